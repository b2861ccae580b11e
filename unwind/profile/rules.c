/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "ends_with.h"
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

static bool is_code(const struct frame *f)
{
	return (frame_kind(f) == FRAME_NATIVE || frame_kind(f) == FRAME_SCRIPT) && !(frame_flags(f) & FRAME_AWAITED);
}

/* The frame that leads to frames[i], of the same kind; s->n: none. */
static u32 caller_of(const struct rule_stack *s, u32 i)
{
	enum frame_kind kind = frame_kind(&s->frames[i]);

	do
		i++;
	while (i < s->n && (frame_kind(&s->frames[i]) != kind || !is_code(&s->frames[i])));
	return i;
}

static u32 innermost_script(const struct rule_stack *s)
{
	u32 i = 0;

	while (i < s->n && (frame_kind(&s->frames[i]) != FRAME_SCRIPT || !is_code(&s->frames[i])))
		i++;
	return i;
}

static struct error *function_at(const struct rule_stack *s, u32 i, const struct profile_function **ret)
{
	struct named named;
	struct error *err = names_frame(s->names, s->p, s->frames, i, s->n, &named);

	*ret = err ? NULL : &s->profile->functions[named.function];
	return err;
}

static struct error *has_name(const struct rule_stack *s, u32 i, const char *name, bool *ret)
{
	const struct profile_function *fn = NULL;
	struct error *err = i < s->n ? function_at(s, i, &fn) : NULL;

	*ret = fn && is_function(fn, name);
	return err;
}

/* Is this function so near to the start of its thread or task, which is not the program's first or may be? */
static struct error *is_near(
        const struct rule_stack *s, const struct stack_rule *table, const struct stack_rule *rule, u32 i, bool *ret)
{
	const struct profile_function *fn;
	struct error *err = NULL;
	bool first = false;
	u32 outer = 0;

	while (!err && !first && outer <= rule->near && (i = caller_of(s, i)) < s->n) {
		outer++;
		err = function_at(s, i, &fn);
		for (const struct stack_rule *r = table; !err && !first && !rule->main && r->says; r++)
			first = r->says == RULE_FIRST && is_function(fn, r->name);
	}
	*ret = s->whole && !first && outer && outer <= rule->near;
	return err;
}

/* Is what the rule says of other frames than frames[i] so, too? */
static struct error *fits(
        const struct rule_stack *s, const struct stack_rule *table, const struct stack_rule *r, u32 i, bool *ret)
{
	u32 script = r->leaf ? innermost_script(s) : s->n;
	struct error *err = NULL;

	*ret = true;
	if (r->caller)
		err = has_name(s, caller_of(s, i), r->caller, ret);
	if (!err && *ret && script <= i)
		err = has_name(s, script, r->leaf, ret);
	return !err && *ret && r->near ? is_near(s, table, r, i, ret) : err;
}

/* The first rule of the table, before the one that is found, for frames[i], with depth frames of its kind inside it. */
static struct error *match_frame(const struct rule_stack *s, const struct stack_rule *table, enum rule_says says, u32 i,
        u32 depth, struct rule_found *found)
{
	const struct profile_function *fn = NULL; /* until others are named */
	struct error *err = NULL;
	bool is = false;

	for (const struct stack_rule *r = table; !is && r->says && r != found->rule; r++) {
		if (r->says != says || depth >= r->within)
			continue;
		err = fn ? NULL : function_at(s, i, &fn);
		if (err)
			return err;
		if (!is_function(fn, r->name) || (r->file && !ends_with(fn->file, r->file)))
			continue;
		err = fits(s, table, r, i, &is);
		if (err)
			return err;
		fn = NULL;
		if (is)
			*found = (struct rule_found){.rule = r, .table = table, .frame = i};
	}
	return NULL;
}

bool rule_sees_scripts(const struct rule_stack *s)
{
	bool ret = false;

	for (u32 i = 0; i < s->n; i++)
		ret |= frame_kind(&s->frames[i]) == FRAME_SCRIPT;
	return ret;
}

static const struct stack_rule *thread_rule(const struct rule_stack *s, const struct stack_rule *table)
{
	for (; table->says; table++)
		if (table->says == RULE_THREAD && !strncmp(s->comm, table->name, strlen(table->name)))
			return rule_sees_scripts(s) ? NULL : table;
	return NULL;
}

struct error *rule_find(const struct rule_stack *s, const struct stack_rule *table, const struct runtime_ops *ops,
        enum rule_says says, struct rule_found *ret)
{
	struct error *err = NULL;
	u32 depth[2] = {0};

	*ret = (struct rule_found){.rule = says == RULE_IDLE ? thread_rule(s, table) : NULL, .table = table};
	for (u32 i = 0; !err && i < s->n && (!ret->rule || says == RULE_LOCK); i++) {
		bool script = frame_kind(&s->frames[i]) == FRAME_SCRIPT;

		if (!is_code(&s->frames[i]))
			continue;
		if (says != RULE_LOCK && script && (!ops || frame_runtime(&s->frames[i]) != ops->id))
			break;
		if (depth[script] < RULE_WITHIN)
			err = match_frame(s, table, says, i, depth[script]++, ret);
	}
	return err;
}

struct error *rule_find_of_languages(const struct rule_stack *s, enum rule_says says, struct rule_found *ret)
{
	struct error *err = NULL;

	*ret = (struct rule_found){0};
	for (u32 k = 0; s->p && !err && !ret->rule && k < s->p->ninstances; k++)
		if (s->p->instances[k].ops->rules)
			err = rule_find(s, s->p->instances[k].ops->rules, s->p->instances[k].ops, says, ret);
	return err;
}

/* What a function is on the way from a thread's start to where it waits. */
static enum rule_says role_of(const struct stack_rule *table, const char *function)
{
	char name[NAME_MAX_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(function, " ("), function);
	for (; table->says; table++)
		if (table->says >= RULE_RUNS && !fnmatch(table->name, name, 0))
			return table->says;
	return RULE_PROGRAM;
}

struct error *rule_has_begun(const struct rule_stack *s, const struct rule_found *found, bool *ret)
{
	const struct stack_rule *rule = found->rule;
	const struct profile_function *fn;
	enum rule_says role = RULE_PROGRAM;
	struct error *err = NULL;
	u32 own = 0, i = found->frame;

	*ret = false;
	while (rule->begun && !err && !*ret && role != RULE_RUNS && (i = caller_of(s, i)) < s->n) {
		err = function_at(s, i, &fn);
		if (err)
			break;
		role = role_of(found->table, fn->name);
		own += role == RULE_PROGRAM;
		*ret = own > (role == RULE_RUNS ? rule->in_task : rule->begun);
	}
	return err;
}
