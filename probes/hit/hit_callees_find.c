/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions there are: looks at the targets, now and then, and where a word says that code was replaced. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hit_arguments.h"
#include "hit_callee.h"
#include "hit_callee_ends.h"
#include "hit_callee_match.h"
#include "hit_callees_internal.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "unwind/grow.h"
#include "unwind/now.h"

#define LOOK_NS    500000000ull
#define LOOK_EACH  50 /* times as much as a look takes of a CPU lies between two; */
#define LOOK_SOON  5  /* while not all are found; */
#define LOOK_WHOLE 20 /* for whole names, of which one that is defined anew is to be found soon */
#define LOOKS_SOON 4  /* the first may find a program that begins */

/*
 * Once a function is compiled, no call begins in the interpreter: measuring that as well would take the registers of
 * others, and whether it can be measured does not matter.
 */
static bool is_superseded(const struct hit_callees *c, const struct callee_match *m, u32 i)
{
	for (u32 k = 0; c->latency && !m->of[i].executed && k < m->n; k++)
		if (m->of[k].executed && !strcmp(m->of[k].name, m->of[i].name))
			return true;
	return false;
}

static struct error *add_form(struct hit_callees *c, const struct runtime_callee *callee)
{
	struct form *f;
	struct error *err;

	for (u32 i = 0; i < c->nforms; i++) {
		f = &c->forms[i];
		if (f->process != c->adding || f->callee.entry != callee->entry ||
		        memcmp(f->callee.at, callee->at, sizeof(callee->at)))
			continue;
		if (f->spec != c->adding_for)
			return error_new(ERROR_USAGE, "-e %s: %s is a function of -e %s, too",
			        c->options->spec[c->adding_for].text, callee->name, c->options->spec[f->spec].text);
		f->seen = true;
		return NULL;
	}
	err = c->began ? NULL
	               : hit_arguments_check(
	                         targets_find(c->host->targets, c->adding), c->options, c->adding_for, callee);
	if (!err)
		err = grow(&c->forms, c->nforms, sizeof(*c->forms));
	if (err)
		return err;
	c->forms[c->nforms++] = (struct form){.process = c->adding,
	        .spec = c->adding_for,
	        .callee = *callee,
	        .seen = true,
	        .since = c->since,
	        .covered = c->pace.done};
	c->found[c->adding_for]++;
	c->unseen_why[c->adding_for] = callee->unseen;
	hit_callees_say_ends(c, callee);
	return NULL;
}

static struct error *add_or_refuse(struct hit_callees *c, const struct runtime_callee *callee)
{
	struct refused *r = &c->refused[c->adding_for];
	bool is_server = c->options->none && callee_ends_unseen(callee); /* no user can choose another function */
	struct error *why = c->latency && !is_server ? callee_check_ends(callee) : NULL;

	r->of++;
	if (!why)
		return add_form(c, callee);
	r->n++;
	if (r->why)
		error_free(why);
	else
		r->why = why;
	return NULL;
}

/* What of a spec cannot be measured, once: an error if that is all, else a warning. */
static struct error *settle_refused(struct hit_callees *c, u32 spec)
{
	struct refused *r = &c->refused[spec];
	struct error *err = r->why;

	if (err && r->of > 1) {
		err = error_hint(error_new(err->kind, "-e %s: %u of %u functions cannot be measured: %s",
		                         c->options->spec[spec].text, r->n, r->of, err->message),
		        "%s", r->why->hint ? r->why->hint : "yrt probe shows their calls");
		error_free(r->why);
	}
	r->why = NULL;
	r->n = r->of = 0;
	if (!err || r->said) {
		error_free(err);
		return NULL;
	}
	r->said = true;
	if (!c->found[spec] && !(c->options->none && c->nforms))
		return err;
	c->host->options->warn(c->host->options->ctx, err);
	return NULL;
}

static struct error *add_all(struct hit_callees *c, const struct process *p, u32 spec, const struct callee_match *m)
{
	struct error *err = NULL;

	if (m->n && !hit_holds(c->options, spec, p, &err))
		return err;
	c->adding = p->number;
	c->adding_for = spec;
	for (u32 i = 0; !err && i < m->n; i++)
		if (!is_superseded(c, m, i))
			err = add_or_refuse(c, &m->of[i]);
	return err;
}

/* Functions of a process that were not there at the last look, or are not any more. */
static struct error *look_for(struct hit_callees *c, const struct process *p, struct looked *l, u32 spec)
{
	const struct hit_spec *s = &c->options->spec[spec];
	struct callee_match match;
	struct error *err = callee_match(
	        p, s->language, s->text, *l->of[spec] ? l->of[spec] : s->name, c->options->none != NULL, &match);

	if (!err)
		err = add_all(c, p, spec, &match);
	l->found |= !err && match.n && !callee_is_pattern(s->name) && !*l->of[spec];
	if (!err && match.n && !callee_is_pattern(s->name))
		snprintf(l->of[spec], sizeof(l->of[spec]), "%s", match.of[0].name);
	free(match.of);
	return err;
}

static struct looked *looked_at(struct hit_callees *c, u32 process)
{
	for (u32 i = 0; i < c->nlooked; i++)
		if (c->looked[i].process == process)
			return &c->looked[i];
	if (grow(&c->looked, c->nlooked, sizeof(*c->looked)))
		return NULL;
	c->looked[c->nlooked] = (struct looked){.process = process};
	return &c->looked[c->nlooked++];
}

/* With those that its registers serve: they get others. */
static void close_sharing(struct hit_callees *c, struct form *f)
{
	for (u32 i = 0; i < c->nforms; i++)
		if (c->forms[i].process == f->process && c->forms[i].callee.entry == f->callee.entry)
			hit_callees_close(c, &c->forms[i]);
}

/* Forgets what a look has not seen any more. */
static void forget(struct hit_callees *c, u32 process)
{
	u32 left = 0;

	for (u32 i = 0; i < c->nforms; i++)
		if (c->forms[i].process == process && !c->forms[i].seen)
			close_sharing(c, &c->forms[i]);
	for (u32 i = 0; i < c->nforms; i++) {
		const struct form *f = &c->forms[i];

		if (f->process != process || f->seen)
			c->forms[left++] = *f;
	}
	c->nforms = left;
}

static bool is_all_found(const struct hit_callees *c, const struct process *p)
{
	for (u32 i = 0; c->options->none && i < c->nforms; i++)
		if (c->forms[i].process == p->number)
			return true;
	for (u32 i = 0; i < c->options->n; i++)
		if (c->options->spec[i].language && !c->found[i])
			return false;
	return true;
}

/* After a look, in times of what it took. */
static u32 rest_after(const struct hit_callees *c, const struct process *p, struct looked *l)
{
	if (l->found)
		return LOOK_WHOLE;
	if (!p->ninstances || ++l->n <= LOOKS_SOON)
		return 0;
	return is_all_found(c, p) ? LOOK_EACH : LOOK_SOON;
}

/* Has the process functions of a lower rank than this -e? */
static bool is_outranked(const struct hit_callees *c, const struct process *p, u32 spec)
{
	const u8 *rank = c->options->rank;

	for (u32 i = 0; rank[spec] && i < c->nforms; i++)
		if (c->forms[i].process == p->number && c->forms[i].seen && rank[c->forms[i].spec] < rank[spec])
			return true;
	return false;
}

struct error *hit_callees_look(struct hit_callees *c, u64 now)
{
	const struct targets *t = c->host->targets;
	struct error *err = NULL;
	u64 began;

	for (u32 i = 0; !err && i < t->nprocesses; i++) {
		const struct process *p = t->processes[i];
		struct looked *l = p->dead ? NULL : looked_at(c, p->number);

		if (!l || now < l->next_ns)
			continue;
		began = thread_cpu_ns();
		c->since = l->last_ns;
		l->last_ns = now;
		l->found = false;
		for (u32 k = 0; k < c->nforms; k++)
			c->forms[k].seen &= c->forms[k].process != p->number;
		for (u32 k = 0; !err && k < c->options->n; k++)
			if (c->options->spec[k].language && !is_outranked(c, p, k))
				err = look_for(c, p, l, k);
		if (!err)
			forget(c, p->number);
		l->next_ns = now_ns() + LOOK_NS;
		l->next_ns += rest_after(c, p, l) * (thread_cpu_ns() - began);
	}
	for (u32 k = 0; !err && k < c->options->n; k++)
		err = settle_refused(c, k);
	return err;
}

void hit_callees_record(struct hit_callees *c, const struct callee_change *change)
{
	if (c->nchanges < CHANGES_MAX)
		c->changes[c->nchanges++] = *change;
	for (u32 i = 0; c->nchanges == CHANGES_MAX && i < c->nlooked; i++)
		c->looked[i].next_ns = 0;
}

/* The forms that a function has now that it got other code. */
static struct error *look_again(struct hit_callees *c, const struct process *p, const struct callee_change *change)
{
	struct error *err = NULL;
	bool done[HIT_SPECS_MAX] = {0};

	c->since = change->at;
	for (u32 i = 0; i < c->nforms; i++)
		c->forms[i].seen = !hit_callees_is_of(&c->forms[i], p->number, change->addr);
	for (u32 i = 0, n = c->nforms; !err && i < n; i++) {
		struct runtime_callee callee = c->forms[i].callee;
		u32 spec = c->forms[i].spec;
		struct callee_match match;

		if (done[spec] || !hit_callees_is_of(&c->forms[i], p->number, change->addr))
			continue;
		done[spec] = true;
		err = callee_again(p, c->options->spec[spec].language, &callee, &match);
		if (!err)
			err = add_all(c, p, spec, &match);
		free(match.of);
	}
	if (!err)
		forget(c, p->number);
	return err;
}

struct error *hit_callees_look_at_changes(struct hit_callees *c)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < c->nchanges; i++) {
		struct process *p = targets_alive(c->host->targets, (pid_t)c->changes[i].tgid);

		err = p ? look_again(c, p, &c->changes[i]) : NULL;
	}
	c->nchanges = 0;
	return err;
}

void hit_callees_suspect_changes(struct hit_callees *c)
{
	for (u32 i = 0; i < c->nforms; i++) {
		const struct form *f = &c->forms[i];
		const struct process *p = targets_find(c->host->targets, f->process);
		struct looked *l = looked_at(c, f->process);

		if (p && l && c->nchanges < CHANGES_MAX && hit_callees_is_first(c, i))
			c->changes[c->nchanges++] = (struct callee_change){.tgid = (u32)p->pid,
			        .addr = f->callee.changes,
			        .at = hit_callees_is_changing(c, f) ? c->polled : l->last_ns};
	}
}
