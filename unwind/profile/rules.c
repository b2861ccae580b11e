/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <string.h>

#include "symbols/compiler_copy.h"

/* The name without its first part: Python has classes in names from 3.11 on, Java packages too. */
static const char *behind_dot(const char *name)
{
	for (; name && *name && !strchr(" (<", *name); name++)
		if (*name == '.')
			return name + 1;
	return NULL;
}

static bool is_named(const char *shown, const char *name)
{
	size_t len = strlen(name);

	if (!shown || strncmp(shown, name, len))
		return false;
	return !shown[len] || compiler_copy(shown + len, true) || shown[len] == ' ' || shown[len] == '(' ||
	       (shown[len] == ':' && shown[len + 1] >= '0' && shown[len + 1] <= '9');
}

static bool is_function(const struct profile_function *fn, const char *name)
{
	const char *at = fn->name;

	while (at && !is_named(at, name))
		at = behind_dot(at);
	return at;
}

static bool is_file(const struct profile_function *fn, const char *tail)
{
	size_t len = strlen(fn->file), want = tail ? strlen(tail) : 0;

	return !tail || (len >= want && !strcmp(fn->file + len - want, tail));
}

static struct error *function_at(const struct rule_stack *s, u32 i, const struct profile_function **ret)
{
	struct named named;
	struct error *err = names_frame(s->names, s->p, s->frames, i, s->n, &named);

	*ret = err ? NULL : &s->profile->functions[named.function];
	return err;
}

/* Is the next frame of the same kind this function? */
static struct error *is_called_by(const struct rule_stack *s, u32 i, const char *name, bool *ret)
{
	const struct profile_function *fn;
	enum frame_kind kind = frame_kind(&s->frames[i]);
	struct error *err;

	do
		i++;
	while (i < s->n && frame_kind(&s->frames[i]) != kind);
	*ret = false;
	if (i == s->n)
		return NULL;
	err = function_at(s, i, &fn);
	*ret = !err && is_function(fn, name);
	return err;
}

/* Is this function so near to the start of its thread or task, which is not the program's first? */
static struct error *is_near(const struct rule_stack *s, u32 i, const struct idle_rule *rule, bool *ret)
{
	const struct profile_function *fn;
	enum frame_kind kind = frame_kind(&s->frames[i]);
	struct error *err = NULL;
	bool first = false;
	u32 outer = 0;

	while (!err && !first && outer <= rule->near && ++i < s->n) {
		if (frame_kind(&s->frames[i]) != kind || !rule_is_code(&s->frames[i]))
			continue;
		outer++;
		if (rule->first)
			err = function_at(s, i, &fn);
		first = !err && rule->first && is_function(fn, rule->first);
	}
	*ret = s->whole && !first && outer && outer <= rule->near;
	return err;
}

struct error *rule_matches(const struct rule_stack *s, u32 i, u32 depth, const struct idle_rule *rule, bool *ret)
{
	const struct profile_function *fn;
	struct error *err;

	*ret = false;
	if (!rule->frame || depth >= rule->within)
		return NULL;
	err = function_at(s, i, &fn);
	if (err || !is_function(fn, rule->frame) || !is_file(fn, rule->file))
		return err;
	*ret = true;
	if (rule->caller)
		err = is_called_by(s, i, rule->caller, ret);
	return !err && *ret && rule->near ? is_near(s, i, rule, ret) : err;
}
