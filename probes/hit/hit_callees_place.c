/* SPDX-License-Identifier: Apache-2.0 */
/* The debug registers that a function's calls touch, and what BPF is told of them. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "hit_arguments.h"
#include "hit_callee.h"
#include "hit_callee_ends.h"
#include "hit_callee_match.h"
#include "hit_callees_internal.h"
#include "hit_latency.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/binary/memory.h"
#include "unwind/grow.h"
#include "unwind/now.h"

_Static_assert(RUNTIME_CALL_STAMP == CALLEE_STAMP && CALLEE_STAMP == 3, "words that are summed up");
_Static_assert(RUNTIME_CALL_RETURNS == sizeof(((struct callee_watch *)0)->returns), "BPF compares all of them");
_Static_assert(RUNTIME_CALL_PROOF == 2, "BPF compares so many words");
_Static_assert(CALLEE_FRAMES == RUNTIME_CALL_FRAMES, "BPF compares all frames that a runtime gives");
_Static_assert(CALLEE_OWN_FRAME == RUNTIME_OWN_FRAME, "BPF knows calls that can be suspended by it");

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

u32 hit_callees_registers(const struct hit_callees *c, const struct form *f)
{
	return 1 + (c->latency ? callee_ends_of(&f->callee, !c->scarce) : 0);
}

bool hit_callees_is_open(const struct form *f)
{
	return f->watch[0] || f->which[0];
}

void hit_callees_close(struct hit_callees *c, struct form *f)
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
	        .handler = {asked ? c->options->handler[f->spec][0] ?: c->options->key[f->spec] && numbers[1] : 0,
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
		n += &c->forms[k] != f && c->forms[k].process == f->process && hit_callees_is_open(&c->forms[k]) &&
		     c->forms[k].callee.entry == f->callee.entry && i < hit_callees_registers(c, &c->forms[k]);
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

struct error *hit_callees_open(struct hit_callees *c, struct form *f)
{
	const struct process *p = targets_find(c->host->targets, f->process);
	u32 n = hit_callees_registers(c, f), numbers[3] = {0};
	struct error *err = NULL;

	if (hit_callees_is_open(f) || !p || p->dead)
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
		hit_callees_close(c, f);
	if (err && err != &error_no_memory && (err->kind == ERROR_NO_PROCESS || c->refused_late)) {
		error_free(err);
		err = NULL;
	}
	c->refused_late = c->began && (err || c->refused_late); /* said once; later polls try again */
	return err;
}

u32 hit_callees_registers_of(const struct hit_callees *c, u32 process)
{
	u32 n = 0;

	for (u32 i = 0; i < c->nforms; i++)
		if (c->forms[i].process == process)
			n += hit_callees_registers(c, &c->forms[i]);
	return n;
}

bool hit_callees_is_of(const struct form *f, u32 process, u64 changes)
{
	return f->process == process && f->callee.changes == changes;
}

static void close_changing(struct hit_callees *c, u32 i)
{
	const struct process *p = targets_find(c->host->targets, c->changing[i].process);
	struct callee_key key = {.tgid = p ? (u32)p->pid : 0, .addr = c->changing[i].addr};

	thread_watch_close(c->changing[i].watch);
	bpf_map_delete_elem(bpf_map__fd(object_skeleton(c->host->object)->maps.callees), &key);
	c->changing[i] = c->changing[--c->nchanging];
}

void hit_callees_trim_changing(struct hit_callees *c, bool all)
{
	for (u32 i = c->nchanging; i-- > 0;) {
		u32 used = hit_callees_registers_of(c, c->changing[i].process);
		bool wanted = false;

		for (u32 k = 0; k < c->nchanging; k++)
			used += c->changing[k].process == c->changing[i].process;
		for (u32 k = 0; k < c->nforms; k++)
			wanted |= hit_callees_is_of(&c->forms[k], c->changing[i].process, c->changing[i].addr);
		if (all || !wanted || used > THREAD_WATCHES)
			close_changing(c, i);
	}
}

bool hit_callees_is_changing(const struct hit_callees *c, const struct form *f)
{
	for (u32 i = 0; i < c->nchanging; i++)
		if (hit_callees_is_of(f, c->changing[i].process, c->changing[i].addr))
			return true;
	return false;
}

struct error *hit_callees_watch_changes(struct hit_callees *c, const struct form *f)
{
	const struct process *p = targets_find(c->host->targets, f->process);
	struct callee_watch watch = {.exit = CALLEE_CHANGES, .bytes = 8};
	struct changing new = {.process = f->process, .addr = f->callee.changes};
	struct callee_key key = {.addr = new.addr, .tgid = p ? (u32)p->pid : 0};
	u32 used = hit_callees_registers_of(c, f->process);
	struct error *err;

	for (u32 i = 0; i < c->nchanging; i++)
		used += c->changing[i].process == f->process;
	if (!new.addr || !p || p->dead || used >= THREAD_WATCHES || hit_callees_is_changing(c, f))
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
