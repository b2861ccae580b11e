/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_callees.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hit_arguments.h"
#include "hit_awaits.h"
#include "hit_callee.h"
#include "hit_callee_ends.h"
#include "hit_callee_match.h"
#include "hit_callees_internal.h"
#include "hit_latency.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "probes/thread_watch.h"
#include "sample.skel.h"
#include "unwind/binary/memory.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"

_Static_assert(RUNTIME_CALL_STAMP == CALLEE_STAMP && CALLEE_STAMP == 3, "words that are summed up");
_Static_assert(RUNTIME_CALL_RETURNS == sizeof(((struct callee_watch *)0)->returns), "BPF compares all of them");
_Static_assert(RUNTIME_CALL_PROOF == 2, "BPF compares so many words");
_Static_assert(CALLEE_FRAMES == RUNTIME_CALL_FRAMES, "BPF compares all frames that a runtime gives");
_Static_assert(CALLEE_OWN_FRAME == RUNTIME_OWN_FRAME, "BPF knows calls that can be suspended by it");

#define WATCHED_MAX 8192 /* functions of all targets */
#define LOOK_NS     500000000ull
#define LOOK_EACH   50   /* times as much as a look takes of a CPU lies between two; */
#define LOOK_SOON   5    /* while not all are found; */
#define LOOK_WHOLE  20   /* for whole names, of which one that is defined anew is to be found soon */
#define LOOKS_SOON  4    /* the first may find a program that begins */
#define PACE_LEAST  0.02 /* of its progress that a program makes in a shift */
#define WEIGHT_MOST 20.0 /* of the periods that a shift is a part of */
#define OWN_MEMORY  8    /* shifts */
#define SHIFT_NS    20000000ull
#define PERIOD_NS   1000000000ull /* at least, of shifts in which calls are measured: longer ones may not be over */
#define WAIT_NS     5000000ull    /* for calls that are under way */
#define STEER_NS    100000000ull
#define SHARE       0.1 /* of --max-cpu: a hit here costs the target more than its own time */
#define CREDIT_NS   5e9 /* the budget of so long is there from the start */
#define EACH_MAX    100
#define MEMORY      4 /* looks that a mean goes back, about */

void hit_callees_prepare(struct object *o, const struct hit_options *options)
{
	object_want(o, "on_callee");
	bpf_map__set_max_entries(object_skeleton(o)->maps.callees, WATCHED_MAX);
	if (options->returns)
		bpf_map__set_max_entries(object_skeleton(o)->maps.callee_lines, CALLEE_LINES);
	if (options->returns && options->over_ns)
		hit_awaits_prepare(o);
}

struct error *hit_callees_create(const struct event_host *host, const struct hit_options *options,
        struct hit_latency *latency, struct hit_arguments *arguments, struct hit_callees **ret)
{
	struct hit_callees *c = calloc(1, sizeof(*c));

	if (!c)
		return &error_no_memory;
	c->host = host;
	c->options = options;
	c->latency = latency;
	c->arguments = arguments;
	c->each = c->weight = 1;
	*ret = c;
	return NULL;
}

/* Of an entry, and from 1 of ends: where it is. */
static u64 address(const struct form *f, u32 i)
{
	return i ? callee_end_of(&f->callee, i - 1).at : f->callee.entry;
}

/* How much of it is watched. Of code that is executed 8. */
static u8 bytes_at(const struct form *f, u32 i)
{
	return i ? callee_end_of(&f->callee, i - 1).bytes : f->callee.bytes;
}

static enum callee_exit kind_at(const struct form *f, u32 i)
{
	return i ? callee_end_of(&f->callee, i - 1).kind : CALLEE_ENTRY;
}

/* Debug registers that it takes. */
static u32 registers(const struct hit_callees *c, const struct form *f)
{
	return 1 + (c->latency ? callee_ends_of(&f->callee, !c->scarce) : 0);
}

static bool is_open(const struct form *f)
{
	return f->watch[0] || f->which[0];
}

static void close_watch(struct hit_callees *c, struct form *f)
{
	int map = bpf_map__fd(object_skeleton(c->host->object)->maps.callees);
	const struct process *p = targets_find(c->host->targets, f->process);
	struct callee_key key = {.tgid = p ? (u32)p->pid : 0};
	struct callee_watch watch;

	for (u32 i = 0; i < THREAD_WATCHES; i++) {
		if (!f->watch[i] && !f->which[i])
			continue;
		thread_watch_close(f->watch[i]);
		f->watch[i] = NULL;
		key.addr = address(f, i);
		key.which = f->which[i];
		f->which[i] = 0;
		if (!bpf_map_lookup_elem(map, &key, &watch))
			c->calls[f->spec] += watch.calls;
		bpf_map_delete_elem(map, &key);
	}
}

void hit_callees_destroy(struct hit_callees *c)
{
	if (!c)
		return;
	for (u32 i = 0; i < c->nforms; i++)
		close_watch(c, &c->forms[i]);
	for (u32 i = 0; i < c->nchanging; i++)
		thread_watch_close(c->changing[i].watch);
	free(c->changing);
	for (u32 i = 0; i < HIT_SPECS_MAX; i++)
		error_free(c->refused[i].why);
	pace_free(&c->pace);
	free(c->forms);
	free(c->looked);
	free(c);
}

static struct callee_place place_of(const struct runtime_place *place)
{
	u32 reg = callee_register(place->reg);

	return (struct callee_place){
	        place->own, reg, place->top, place->call, place->bottom, place->half, place->moved};
}

/* Tells BPF what a hit must find. numbers: of the function for latency, arguments, its result; 0: it is not wanted. */
static struct error *tell(
        struct hit_callees *c, const struct form *f, u32 i, const struct process *p, const u32 numbers[3])
{
	int map = bpf_map__fd(object_skeleton(c->host->object)->maps.callees);
	bool asked = c->options->handled || kind_at(f, i) == CALLEE_ENTRY; /* conditions, as a call begins */
	u64 stamp[RUNTIME_CALL_STAMP];
	struct callee_key key = {.addr = address(f, i), .tgid = (u32)p->pid, .which = f->which[i]};
	struct callee_watch watch = {.reason = c->options->n > 1 && !c->options->handled ? f->spec + 1 : 0,
	        .handler = {asked ? c->options->handler[f->spec][0] : 0,
	                c->options->handled ? c->options->handler[f->spec][1] : 0},
	        .each = c->weight,
	        .bytes = f->callee.executed ? 0 : bytes_at(f, i),
	        .nat = f->callee.nat,
	        .compared = i ? 0 : f->callee.compared,
	        .nproof = i ? 0 : f->callee.nproof,
	        .code_from = i || f->callee.executed ? 0 : f->callee.code_from,
	        .code_to = i || f->callee.executed ? 0 : f->callee.code_to,
	        .function = numbers[0],
	        .values = i && kind_at(f, i) != CALLEE_RETURN ? 0 : numbers[i ? 2 : 1],
	        .shows = numbers[1] && c->options->arguments,
	        .loose = f->callee.loose_detail,
	        .lead = f->callee.lead,
	        .beside = f->callee.beside,
	        .identity = f->callee.identity,
	        .exit = kind_at(f, i),
	        .counter = f->callee.counter,
	        .frame_cursor = f->callee.frame_cursor,
	        .frame_word = f->callee.frame_word,
	        .place = place_of(&f->callee.place),
	        .carrier = {1 + callee_register(f->callee.carrier.reg), f->callee.carrier.current,
	                f->callee.carrier.own, f->callee.carrier.number}};

	memcpy(watch.at, f->callee.at, sizeof(watch.at));
	memcpy(watch.returns, f->callee.returns, sizeof(watch.returns));
	if (i)
		watch.at[1] = f->callee.begun;
	for (u32 k = 0; k < RUNTIME_CALL_PROOF; k++) {
		watch.proof_at[k] = f->callee.proof[k].at;
		watch.proof[k] = f->callee.proof[k].value;
	}
	if (!i && f->callee.stamp && memory_read(p->memory, stamp, sizeof(stamp), f->callee.stamp)) {
		watch.stamp_at = f->callee.stamp;
		watch.stamp = stamp[0] + stamp[1] + stamp[2];
	}
	if (!i && f->callee.executed && !memory_read(p->memory, &watch.word, CALLEE_PATCH, key.addr))
		return NULL;
	if (watch.bytes && !memory_read(p->memory, &watch.word, watch.bytes, key.addr))
		return NULL; /* it is gone: the next look sees that */
	if (bpf_map_update_elem(map, &key, &watch, BPF_ANY))
		return error_errno(errno, "cannot tell BPF of a function");
	return NULL;
}

/* Once for each -e. */
static void say_unread(struct hit_callees *c, const struct form *f)
{
	if (!c->unread[f->spec])
		c->host->options->warn(
		        c->host->options->ctx, error_new(ERROR_UNSUPPORTED, "-e %s: arguments of %s cannot be read",
		                                       c->options->spec[f->spec].text, f->callee.name));
	c->unread[f->spec] = true;
}

/* CPython 3.10 keeps equal bytecode of functions of a module once (compile.c, assemble()): how many are open there? */
static u32 sharing(const struct hit_callees *c, const struct form *f, u32 i)
{
	u32 n = 0;

	for (u32 k = 0; k < c->nforms; k++)
		n += &c->forms[k] != f && c->forms[k].process == f->process && is_open(&c->forms[k]) &&
		     c->forms[k].callee.entry == f->callee.entry && i < registers(c, &c->forms[k]);
	return n;
}

static struct error *open_register(struct hit_callees *c, struct form *f, u32 i, const struct process *p)
{
	struct error *err = thread_watch_open(&(struct thread_watch_options){.pid = p->pid,
	                                              .addr = address(f, i),
	                                              .bytes = bytes_at(f, i),
	                                              .executed = f->callee.executed,
	                                              .written = kind_at(f, i) == CALLEE_GONE,
	                                              .program = object_program(c->host->object, "on_callee")},
	        &f->watch[i]);

	if (!err && thread_watch_missed(f->watch[i]) > c->unseen.threads)
		c->unseen.threads = thread_watch_missed(f->watch[i]);
	return err;
}

static bool wants_arguments(const struct hit_options *o, u32 spec)
{
	return o->arguments || o->over_ns || o->nwanted[spec];
}

static struct error *open_watch(struct hit_callees *c, struct form *f)
{
	const struct process *p = targets_find(c->host->targets, f->process);
	u32 n = registers(c, f), numbers[3] = {0};
	struct error *err = NULL;

	if (is_open(f) || !p || p->dead)
		return NULL;
	err = pace_add(&c->pace, p->pid);
	if (!err && c->latency)
		err = hit_latency_add_callee(c->latency, f->spec, &f->callee, &numbers[0]);
	if (!err && c->arguments && wants_arguments(c->options, f->spec))
		err = hit_arguments_add(c->arguments, p, c->options, f->spec, &f->callee, numbers + 1);
	if (!err && c->options->arguments && !numbers[1])
		say_unread(c, f);
	for (u32 i = n; !err && i-- > 0;) { /* exits first: a call that is entered then has all of them */
		f->which[i] = sharing(c, f, i);
		err = tell(c, f, i, p, numbers);
		if (!err && !f->which[i])
			err = open_register(c, f, i, p);
	}
	if (!err && f->since && c->each == 1) {
		c->unseen.changes++;
		c->unseen.ns += now_ns() - f->since;
	}
	f->since = 0;
	if (err)
		close_watch(c, f);
	if (err && err != &error_no_memory && (err->kind == ERROR_NO_PROCESS || c->refused_late)) {
		error_free(err);
		err = NULL;
	}
	c->refused_late = c->began && (err || c->refused_late); /* said once; later polls try again */
	return err;
}

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
			close_watch(c, &c->forms[i]);
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

static struct error *look(struct hit_callees *c, u64 now)
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

static bool is_of(const struct form *f, u32 process, u64 changes)
{
	return f->process == process && f->callee.changes == changes;
}

/* The forms that a function has now that it got other code. */
static struct error *look_again(struct hit_callees *c, const struct process *p, const struct callee_change *change)
{
	struct error *err = NULL;
	bool done[HIT_SPECS_MAX] = {0};

	c->since = change->at;
	for (u32 i = 0; i < c->nforms; i++)
		c->forms[i].seen = !is_of(&c->forms[i], p->number, change->addr);
	for (u32 i = 0, n = c->nforms; !err && i < n; i++) {
		struct runtime_callee callee = c->forms[i].callee;
		u32 spec = c->forms[i].spec;
		struct callee_match match;

		if (done[spec] || !is_of(&c->forms[i], p->number, change->addr))
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

static struct error *look_at_changes(struct hit_callees *c)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < c->nchanges; i++) {
		struct process *p = targets_alive(c->host->targets, (pid_t)c->changes[i].tgid);

		err = p ? look_again(c, p, &c->changes[i]) : NULL;
	}
	c->nchanges = 0;
	return err;
}

static void read_counts(const struct hit_callees *c, struct callee_counts *ret)
{
	struct object *o = c->host->object;

	error_free(object_sum(o, object_skeleton(o)->maps.callee_counters, (u64 *)ret, sizeof(*ret)));
}

/* The most functions that one process has. */
static u32 most(const struct hit_callees *c)
{
	u32 ret = 0, n;

	for (u32 i = 0; i < c->nforms; i++) {
		n = 0;
		for (u32 k = 0; k < c->nforms; k++)
			n += c->forms[k].process == c->forms[i].process;
		ret = n > ret ? n : ret;
	}
	return ret;
}

/* Functions that are watched at a time. */
static u32 at_once(const struct hit_callees *c)
{
	u32 each = 1;

	for (u32 i = 0; i < c->nforms; i++)
		each = registers(c, &c->forms[i]) > each ? registers(c, &c->forms[i]) : each;
	return THREAD_WATCHES / each;
}

static u32 groups(const struct hit_callees *c)
{
	return (most(c) + at_once(c) - 1) / at_once(c);
}

u32 hit_callees_turns(const struct hit_callees *c)
{
	return groups(c);
}

static void warn(struct hit_callees *c)
{
	struct error *err;

	if (c->warned)
		return;
	c->warned = true;
	if (groups(c) > 1)
		err = error_new(ERROR_INTERNAL,
		        "%u functions and %u debug registers: they are watched in turns, and their calls stand for "
		        "others",
		        most(c), THREAD_WATCHES);
	else
		err = error_hint(error_new(ERROR_INTERNAL,
		                         "hits cost the target %.0f %% of a CPU: functions are watched in shifts, and "
		                         "their calls stand for the others",
		                         100 * c->spent),
		        "--max-cpu 0 counts all calls");
	c->host->options->warn(c->host->options->ctx, err);
}

static double hits_ns(const struct hit_callees *c, const struct callee_counts *counts)
{
	return (double)counts->walk_ns + (double)counts->traps * (double)c->cost_ns;
}

/* How long calls have counted since it was asked last. */
static u64 open_since(const struct hit_callees *c, u64 now)
{
	u64 until = c->latency && c->shift_over ? c->shift_over : now;

	return c->opened_ns && until > c->opened_ns ? until - c->opened_ns : 0;
}

/* What hits cost while functions are watched, and so for which part of the time they can be. */
static void steer(struct hit_callees *c, u64 now)
{
	double budget = c->host->options->cpu_percent / 100 * SHARE, ns, spent;
	struct callee_counts counts, was = c->counts;
	u64 open = c->open_ns + open_since(c, now);
	u32 each = groups(c) < 2 ? 1 : c->latency ? 2 * groups(c) : groups(c); /* calls end between shifts */

	if (now - c->steered_ns < STEER_NS || !open)
		return;
	read_counts(c, &counts);
	ns = hits_ns(c, &counts) - hits_ns(c, &was);
	c->debt = fmax(0, c->debt + ns - budget * (double)(now - c->steered_ns));
	spent = ns / (double)open;
	c->spent = spent > c->spent ? spent : c->spent + (spent - c->spent) / MEMORY;
	c->counts = counts;
	c->steered_ns = now;
	c->open_ns = 0;
	c->opened_ns = c->opened_ns ? now : 0;
	if (budget && (c->each > 1 || c->debt > budget * CREDIT_NS))
		each = (u32)fmax(each, fmin(EACH_MAX, ceil(c->spent / budget)));
	if (each > 1)
		warn(c);
	c->each = each;
}

/* Debug registers that a process's functions take. */
static u32 registers_of(const struct hit_callees *c, u32 process)
{
	u32 n = 0;

	for (u32 i = 0; i < c->nforms; i++)
		if (c->forms[i].process == process)
			n += registers(c, &c->forms[i]);
	return n;
}

static void close_all(struct hit_callees *c)
{
	for (u32 i = 0; i < c->nforms; i++)
		close_watch(c, &c->forms[i]);
	c->open_ns += open_since(c, now_ns());
	c->opened_ns = 0;
}

/* If registers are too few for all, none tells when exceptions end calls: those count as left then. */
static void save_registers(struct hit_callees *c)
{
	for (u32 i = 0; c->latency && !c->scarce && i < c->nforms; i++)
		if (registers_of(c, c->forms[i].process) > THREAD_WATCHES) {
			close_all(c);
			c->scarce = true;
		}
}

/* The functions of each process make groups. */
static u32 group_of(const struct hit_callees *c, u32 form)
{
	u32 n = 0;

	for (u32 k = 0; k < form; k++)
		n += c->forms[k].process == c->forms[form].process;
	return n % groups(c);
}

static struct error *open_group(struct hit_callees *c, u32 group)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < c->nforms; i++)
		if (group_of(c, i) == group)
			err = open_watch(c, &c->forms[i]);
	c->opened_ns = c->opened_ns ? c->opened_ns : now_ns();
	return err;
}

/* Calls that begin in a shift are waited for until the next one. */
static bool is_under_way(const struct hit_callees *c)
{
	struct callee_counts counts;

	if (!c->latency)
		return false;
	read_counts(c, &counts);
	return counts.under_way > c->begun;
}

/* The function that is furthest behind. */
static u32 next_form(const struct hit_callees *c)
{
	u32 ret = 0;

	for (u32 i = 1; i < c->nforms; i++)
		if (c->forms[i].covered < c->forms[ret].covered)
			ret = i;
	return ret;
}

/* With it a shift's calls stand for all until now, and for half of what comes before the next one of this function. */
static u32 weight_of(const struct hit_callees *c, const struct form *f, u64 length)
{
	double own = f->own_ns > 0 ? f->own / f->own_ns * (double)length : pace_expect(&c->pace, (double)length, true);
	double ahead = pace_expect(&c->pace, (double)length * c->each, false) / 2;

	own = fmax(own, 2 * ahead / c->each * PACE_LEAST);
	return own > 0 ? (u32)fmin(
	                         fmax(round((c->pace.done + own + ahead - f->covered) / own), 1), WEIGHT_MOST * c->each)
	               : c->each;
}

static struct error *begin_shift(struct hit_callees *c, u64 length)
{
	struct sample *skel = object_skeleton(c->host->object);
	u32 next = next_form(c);
	struct callee_counts counts;
	struct error *err;

	read_counts(c, &counts);
	pace_step(&c->pace, now_ns(), hits_ns(c, &counts), false);
	c->begun = counts.under_way;
	c->weight = weight_of(c, &c->forms[next], length);
	skel->bss->callee_shift++;
	skel->data->callee_each = c->weight;
	skel->bss->callee_closed = 1;
	c->shift_over = 0;
	c->opened_ns = now_ns();
	err = open_group(c, group_of(c, next));
	read_counts(c, &counts);
	pace_step(&c->pace, now_ns(), hits_ns(c, &counts), false);
	c->calls_before = counts.calls;
	c->shift_begin = now_ns();
	c->shift_end = c->shift_begin + length;
	skel->bss->callee_closed = 0;
	return err;
}

/* Calls that begin from now on do not count. */
static void end_shift(struct hit_callees *c)
{
	struct callee_counts counts;
	double progress, done = c->pace.done;

	object_skeleton(c->host->object)->bss->callee_closed = 1;
	c->shift_over = now_ns();
	read_counts(c, &counts);
	progress = pace_step(&c->pace, c->shift_over, hits_ns(c, &counts), true);
	pace_saw(&c->pace, (double)(counts.calls - c->calls_before), progress, c->weight);
	for (u32 i = 0; i < c->nforms; i++) {
		struct form *f = &c->forms[i];

		if (c->pace.changed) {
			f->own = f->own_ns = 0;
			f->covered = done - (done - f->covered) * c->pace.changed;
		}
		if (!is_open(f))
			continue;
		f->covered += progress * c->weight;
		f->own += progress - f->own / OWN_MEMORY;
		f->own_ns += (double)(c->shift_over - c->shift_begin) - f->own_ns / OWN_MEMORY;
	}
}

static struct error *shift(struct hit_callees *c, u64 now)
{
	u32 n = groups(c);
	u64 period;

	if (c->opened_ns && now < c->shift_end)
		return NULL;
	if (c->opened_ns && !c->shift_over)
		end_shift(c);
	if (c->opened_ns && now < c->next_shift && is_under_way(c))
		return NULL;
	if (c->opened_ns)
		close_all(c);
	if (now < c->next_shift)
		return NULL;
	period = SHIFT_NS * c->each / n;
	if (c->latency && period < PERIOD_NS)
		period = PERIOD_NS;
	c->next_shift = (c->next_shift && now - c->next_shift < period ? c->next_shift : now) + period;
	return begin_shift(c, period * n / c->each);
}

/* Until now all calls were seen. */
static void begin_shifts(struct hit_callees *c, u64 now)
{
	struct callee_counts counts;

	close_all(c);
	read_counts(c, &counts);
	pace_skip(&c->pace, now, hits_ns(c, &counts));
	for (u32 i = 0; i < c->nforms; i++)
		c->forms[i].covered = c->pace.done;
}

static void close_changing(struct hit_callees *c, u32 i)
{
	const struct process *p = targets_find(c->host->targets, c->changing[i].process);
	struct callee_key key = {.tgid = p ? (u32)p->pid : 0, .addr = c->changing[i].addr};

	thread_watch_close(c->changing[i].watch);
	bpf_map_delete_elem(bpf_map__fd(object_skeleton(c->host->object)->maps.callees), &key);
	c->changing[i] = c->changing[--c->nchanging];
}

/* Where functions get other code is not watched any more if they are gone, or need the registers themselves. */
static void trim_changing(struct hit_callees *c, bool all)
{
	for (u32 i = c->nchanging; i-- > 0;) {
		u32 used = registers_of(c, c->changing[i].process);
		bool wanted = false;

		for (u32 k = 0; k < c->nchanging; k++)
			used += c->changing[k].process == c->changing[i].process;
		for (u32 k = 0; k < c->nforms; k++)
			wanted |= is_of(&c->forms[k], c->changing[i].process, c->changing[i].addr);
		if (all || !wanted || used > THREAD_WATCHES)
			close_changing(c, i);
	}
}

static bool is_changing(const struct hit_callees *c, const struct form *f)
{
	for (u32 i = 0; i < c->nchanging; i++)
		if (is_of(f, c->changing[i].process, c->changing[i].addr))
			return true;
	return false;
}

/* Has a register that is left tell when this function gets other code. What does not work is found by later looks. */
static struct error *watch_changes(struct hit_callees *c, const struct form *f)
{
	const struct process *p = targets_find(c->host->targets, f->process);
	struct callee_watch watch = {.exit = CALLEE_CHANGES, .bytes = 8};
	struct changing new = {.process = f->process, .addr = f->callee.changes};
	struct callee_key key = {.addr = new.addr, .tgid = p ? (u32)p->pid : 0};
	u32 used = registers_of(c, f->process);
	struct error *err;

	for (u32 i = 0; i < c->nchanging; i++)
		used += c->changing[i].process == f->process;
	if (!new.addr || !p || p->dead || used >= THREAD_WATCHES || is_changing(c, f))
		return NULL;
	err = grow(&c->changing, c->nchanging, sizeof(*c->changing));
	if (err ||
	        bpf_map_update_elem(bpf_map__fd(object_skeleton(c->host->object)->maps.callees), &key, &watch, BPF_ANY))
		return err;
	error_free(thread_watch_open(&(struct thread_watch_options){.pid = p->pid,
	                                     .addr = new.addr,
	                                     .bytes = 8,
	                                     .written = true,
	                                     .program = object_program(c->host->object, "on_callee")},
	        &new.watch));
	if (new.watch)
		c->changing[c->nchanging++] = new;
	return NULL;
}

static struct error *keep_watching(struct hit_callees *c, u64 now)
{
	struct error *err;

	if (!c->nforms)
		return NULL;
	save_registers(c);
	trim_changing(c, c->each > 1);
	if (c->each > 1) {
		if (c->opened_ns && c->shift_end == UINT64_MAX)
			begin_shifts(c, now);
		return shift(c, now);
	}
	if (c->opened_ns && c->shift_end != UINT64_MAX)
		close_all(c);
	c->shift_end = UINT64_MAX;
	c->shift_over = 0;
	c->weight = 1;
	object_skeleton(c->host->object)->data->callee_each = 1;
	object_skeleton(c->host->object)->bss->callee_closed = 0;
	err = open_group(c, 0);
	for (u32 i = 0; !err && i < c->nforms; i++)
		err = watch_changes(c, &c->forms[i]);
	return err;
}

struct error *hit_callees_poll(struct hit_callees *c, u64 now)
{
	struct error *err = look_at_changes(c);

	c->polled = now;
	if (!err)
		err = look(c, now);
	if (!c->began) {
		c->began = now;
		c->cost_ns = thread_watch_cost();
	}
	steer(c, now_ns());
	return err ? err : keep_watching(c, now_ns());
}

u64 hit_callees_due(const struct hit_callees *c)
{
	if (c->each == 1 || !c->nforms)
		return 0;
	return !c->opened_ns ? c->next_shift : c->shift_end > now_ns() ? c->shift_end : now_ns() + WAIT_NS;
}

u32 hit_callees_found(const struct hit_callees *c, u32 spec)
{
	return c->found[spec];
}

/* Changes that nobody has told yet: they came behind the last look, or poll. */
static void suspect_changes(struct hit_callees *c)
{
	for (u32 i = 0; i < c->nforms; i++) {
		const struct form *f = &c->forms[i];
		const struct process *p = targets_find(c->host->targets, f->process);
		struct looked *l = looked_at(c, f->process);

		if (p && l && c->nchanges < CHANGES_MAX && hit_callees_is_first(c, i))
			c->changes[c->nchanges++] = (struct callee_change){.tgid = (u32)p->pid,
			        .addr = f->callee.changes,
			        .at = is_changing(c, f) ? c->polled : l->last_ns};
	}
}

/* New code that could not be watched before the end. */
static void count_unwatched(struct hit_callees *c, u64 now)
{
	suspect_changes(c);
	error_free(look_at_changes(c));
	for (u32 i = 0; i < c->nforms && c->each == 1; i++) {
		c->unseen.changes += c->forms[i].since != 0;
		c->unseen.ns += c->forms[i].since ? now - c->forms[i].since : 0;
		c->unseen.of_ns += hit_callees_is_first(c, i) ? now - c->began : 0;
	}
}

void hit_callees_end(struct hit_callees *c)
{
	u64 now = now_ns();

	c->ended = now;
	if (c->opened_ns && c->shift_end != UINT64_MAX && !c->shift_over)
		end_shift(c);
	close_all(c);
	count_unwatched(c, now);
	trim_changing(c, true);
	hit_callees_say(c);
}

double hit_callees_hits(const struct hit_callees *c)
{
	struct callee_counts counts;

	read_counts(c, &counts);
	return (double)counts.stand_for;
}

double hit_callees_part(const struct hit_callees *c)
{
	return c->each > 1 ? 1.0 / c->each : 0;
}

struct hit_unseen hit_callees_unseen(const struct hit_callees *c)
{
	return c->unseen;
}
