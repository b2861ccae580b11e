/* SPDX-License-Identifier: Apache-2.0 */
#include "idle.h"

#include "rules.h"

/* A thread that others hand work to, and which does not wait for what a language knows, as its lock. */
static struct error *find_service(const struct rule_stack *s, struct rule_found *ret)
{
	struct rule_found known = {0};
	struct error *err = rule_find(s, native_rules, NULL, RULE_SERVES, ret);

	if (!err && ret->rule)
		err = rule_find_of_languages(s, RULE_LOCK, &known);
	if (known.rule)
		ret->rule = NULL;
	return err;
}

/* A reason that is idle whatever the frames are: "accept". */
static struct error *find_reason(const struct rule_stack *s, const char **ret)
{
	struct named named;
	struct error *err = names_frame(s->names, s->p, s->frames, 0, s->n, &named);

	if (!err)
		*ret = s->profile->functions[named.function].name;
	return err;
}

struct error *idle_find(struct names *names, const struct profile *profile, const struct process *p,
        const struct frame *frames, u32 n, const char *comm, bool whole, enum idle_chance (*chance)(u32 reason),
        const char **ret)
{
	struct rule_stack s = {
	        .names = names, .profile = profile, .p = p, .frames = frames, .n = n, .comm = comm, .whole = whole};
	enum idle_chance c = n && frame_kind(&frames[0]) == FRAME_REASON ? chance((u32)frames[0].detail) : IDLE_NEVER;
	struct rule_found found;
	struct error *err;

	*ret = NULL;
	if (c == IDLE_ALWAYS)
		return find_reason(&s, ret);
	if (c != IDLE_MAYBE || !p)
		return NULL;
	err = rule_find_of_languages(&s, RULE_IDLE, &found);
	if (!err && !found.rule)
		err = rule_find(&s, native_rules, NULL, RULE_IDLE, &found);
	if (!err && !found.rule && whole && !rule_sees_scripts(&s))
		err = find_service(&s, &found);
	*ret = !err && found.rule ? found.rule->name : NULL;
	return err;
}
