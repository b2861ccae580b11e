/* SPDX-License-Identifier: Apache-2.0 */
/* What hit_callees.h says of functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hit_callee_match.h"
#include "hit_callee_ends.h"
#include "hit_callees_internal.h"
#include "hit_inlining.h"
#include "probes/sampler.h"
#include "probes/targets.h"

bool hit_callees_is_first(const struct hit_callees *c, u32 form)
{
	for (u32 k = 0; k < form; k++)
		if (c->forms[k].process == c->forms[form].process &&
		        c->forms[k].callee.changes == c->forms[form].callee.changes)
			return false;
	return c->forms[form].callee.changes;
}

/* Has a target a runtime of the language? */
static bool is_run(const struct hit_callees *c, const char *language)
{
	const struct targets *t = c->host->targets;

	for (u32 i = 0; i < t->nprocesses; i++)
		for (u32 k = 0; k < t->processes[i]->ninstances; k++)
			if (!strcmp(t->processes[i]->instances[k].ops->view, language))
				return true;
	return false;
}

struct error *hit_callees_missing(struct hit_callees *c, u32 spec)
{
	const struct hit_spec *s = &c->options->spec[spec];
	const struct targets *t = c->host->targets;
	struct callee_match match = {0};
	struct error *err = NULL;
	char near[HIT_NEAR_TEXT];

	for (u32 i = 0; !err && i < t->nprocesses && !match.near.n; i++) {
		if (t->processes[i]->dead)
			continue;
		free(match.of);
		err = callee_match(t->processes[i], s->language, s->text, s->name, false, &match);
	}
	free(match.of);
	if (err)
		return err;
	hit_near_text(&match.near, near);
	err = error_new(ERROR_USAGE, "-e %s: there is no function \"%s\"", s->text, s->name);
	if (callee_is_pattern(s->name) && *s->name != '*')
		return error_hint(err, "a pattern is of whole names: %s:*%s", s->language, s->name);
	if (match.near.n)
		return error_hint(err, "near: %s; what is written in C is FILE:FUNCTION", near);
	if (!is_run(c, s->language))
		return error_hint(err, "no target runs %s", s->language);
	return error_hint(err, "%s; what is written in C is FILE:FUNCTION; `yrt functions -p PID` lists all",
	        callee_form(s->language));
}

/* Functions that have those of a spec inlined by now. */
static void find_inlined(struct hit_callees *c, u32 spec, struct callee_inlining *ret)
{
	const struct hit_spec *s = &c->options->spec[spec];
	const struct targets *t = c->host->targets;
	u32 left = CALLEE_INLINING_OF;

	for (u32 i = 0; i < c->nforms && left; i++) {
		if (c->forms[i].spec != spec || (c->forms[i].callee.changes && !hit_callees_is_first(c, i)))
			continue;
		u32 before = ret->n + ret->more;

		left--;
		for (u32 k = 0; k < t->nprocesses; k++)
			if (!t->processes[k]->dead && t->processes[k]->number == c->forms[i].process)
				callee_inlined(
				        t->processes[k], s->language, &c->forms[i].callee, callee_inlining_add, ret);
		if (ret->n + ret->more > before)
			hit_inlined_add(&c->inlined, s->text, &c->forms[i].callee);
	}
}

/* Calls that cannot be seen are said, with the functions that they are in. */
static struct error *not_counted(struct hit_callees *c, u32 spec)
{
	struct callee_inlining in = {0};
	char into[CALLEE_INLINING_TEXT];

	find_inlined(c, spec, &in);
	if (!in.n)
		return NULL;
	callee_inlining_text(&in, into);
	return error_new(ERROR_LOST, "-e %s: %scalls that are inlined into compiled code are not counted: of %s",
	        c->options->spec[spec].text, c->calls[spec] ? "" : "no call was seen; ", into);
}

/* Its functions are there, but no call was seen. */
static struct error *not_called(const struct hit_callees *c, u32 spec)
{
	const char *why = c->unseen_why[spec];

	return error_new(ERROR_LOST, "-e %s: the function is there, but no call was seen%s%s%s",
	        c->options->spec[spec].text, c->each > 1 ? " while it was watched, a part of the time" : "",
	        why ? "; " : "", why ? why : "");
}

static struct error *say_error(const struct hit_callees *c)
{
	double off = pace_error(&c->pace);

	if (off < 1)
		return error_new(ERROR_LOST, "calls seen in shifts stand for others: their number may be %.0f %% off",
		        100 * off);
	if (pace_error_by_chance(&c->pace) > off / 2)
		return error_hint(
		        error_new(ERROR_LOST, "calls seen in shifts stand for others: too few were seen to know "
		                              "the number of all"),
		        c->scarce ? "fewer functions at once, or a longer run"
		                  : "a longer run; --max-cpu 0 counts all calls");
	return error_hint(error_new(ERROR_LOST, "calls seen in shifts stand for others: how many there are is "
	                                        "not known (it may be a multiple or a fraction), as hits took nearly "
	                                        "all of the time"),
	        "--max-cpu 0 counts all calls");
}

void hit_callees_say(struct hit_callees *c)
{
	struct error *err;

	if (c->pace.calls > 0)
		c->host->options->warn(c->host->options->ctx, say_error(c));
	for (u32 i = 0; i < c->options->n; i++) {
		if (!c->options->spec[i].language || !c->found[i])
			continue;
		err = not_counted(c, i);
		if (err || !c->calls[i])
			c->host->options->warn(c->host->options->ctx, err ? err : not_called(c, i));
	}
}

const struct hit_inlined_all *hit_callees_inlined(const struct hit_callees *c)
{
	return &c->inlined;
}

void hit_callees_say_ends(const struct hit_callees *c, const struct runtime_callee *callee)
{
	struct error *what = NULL;

	if (!c->latency || c->found[c->adding_for] != 1)
		return;
	if (callee_ends_in_tail_calls(callee))
		what = error_new(ERROR_LOST, "%s ends in tail calls (return f()): its times end where those begin",
		        callee->name);
	else if (callee_ends_unseen(callee))
		what = error_new(ERROR_LOST,
		        "%s returns at %u places, %u of which are watched: calls that return elsewhere have no time",
		        callee->name, callee->nexits, RUNTIME_CALL_EXITS);
	if (what)
		c->host->options->warn(c->host->options->ctx, what);
}
