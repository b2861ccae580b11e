/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_awaits.h"

#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

#include "hit_callee.h"
#include "probes/map_each.h"
#include "probes/object.h"
#include "probes/stack_text.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/process/process.h"
#include "unwind/profile/collect.h"
#include "unwind/runtime.h"
#include "unwind/runtime_calls.h"
#include "unwind/table.h"

#define CALLS_MAX   4096 /* under way at once */
#define LOOKS       4    /* at a call that is just slow */
#define LOOK_MIN_NS 5000000ull
#define LOOK_MAX_NS 100000000ull
#define OLDEST      64 /* are looked at each time; as many of the others in turns */
#define FRAMES_MAX  32
#define LOOKS_REST  20 /* times as much as a look takes of a CPU lies between two */

struct place { /* where calls are suspended */
	u64 ns;
	u32 process, n;
	struct frame frame[FRAMES_MAX]; /* leaf first */
};

struct call {
	struct callee_own_key key;
	u64 began, until; /* CLOCK_MONOTONIC: how far its places tell */
	struct place place[SLOW_AWAITS];
	u32 nplaces;
	bool suspended; /* as it was seen last, at */
	u32 at;
};

struct hit_awaits {
	const struct event_host *host;
	u64 each_ns, next_ns;
	struct call *calls, *before; /* as of this look; of the one before */
	u32 ncalls, nbefore, turn;
};

void hit_awaits_prepare(struct object *o)
{
	bpf_map__set_max_entries(object_skeleton(o)->maps.callee_own, CALLS_MAX);
}

struct error *hit_awaits_create(const struct event_host *host, u64 over_ns, struct hit_awaits **ret)
{
	struct hit_awaits *a = calloc(1, sizeof(*a));

	if (!a)
		return &error_no_memory;
	a->host = host;
	a->each_ns = over_ns / LOOKS;
	a->each_ns = a->each_ns < LOOK_MIN_NS ? LOOK_MIN_NS : a->each_ns > LOOK_MAX_NS ? LOOK_MAX_NS : a->each_ns;
	*ret = a;
	return NULL;
}

void hit_awaits_destroy(struct hit_awaits *a)
{
	if (!a)
		return;
	free(a->calls);
	free(a->before);
	free(a);
}

static struct error *take(void *ctx, const void *key, const void *value)
{
	struct hit_awaits *a = ctx;
	struct error *err = grow(&a->calls, a->ncalls, sizeof(*a->calls));
	struct call *c;

	if (err)
		return err;
	c = &a->calls[a->ncalls++];
	memset(c, 0, sizeof(*c));
	memcpy(&c->key, key, sizeof(c->key));
	memcpy(&c->began, value, sizeof(c->began));
	c->until = c->began;
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return x->began != y->began ? (x->began > y->began) - (x->began < y->began)
	                            : memcmp(&x->key, &y->key, sizeof(x->key));
}

/* What is known of them since the look before. Both are in the same order. */
static void keep(struct hit_awaits *a)
{
	u32 k = 0;

	for (u32 i = 0; i < a->ncalls; i++) {
		while (k < a->nbefore && compare(&a->before[k], &a->calls[i]) < 0)
			k++;
		if (k < a->nbefore && !compare(&a->before[k], &a->calls[i]))
			a->calls[i] = a->before[k];
	}
}

static u32 read_place(const struct process *p, u64 frame, struct frame *ret)
{
	struct runtime_process view = process_view(p);
	u32 n = 0;

	for (u32 i = 0; !n && i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];

		if (instance->data && instance->ops->calls && instance->ops->calls->suspended)
			n = instance->ops->calls->suspended(instance->data, &view, frame, ret, FRAMES_MAX);
	}
	return n;
}

/* Which of its places that is: a new one if there is room, else the last. */
static u32 place_of(struct call *c, u32 process, const struct frame *frames, u32 n)
{
	u32 i = 0;

	while (i < c->nplaces && (c->place[i].n != n || c->place[i].process != process ||
	                                 memcmp(c->place[i].frame, frames, n * sizeof(*frames))))
		i++;
	if (i == SLOW_AWAITS)
		return i - 1;
	if (i == c->nplaces) {
		c->place[i].process = process;
		c->place[i].n = n;
		memcpy(c->place[i].frame, frames, n * sizeof(*frames));
		c->nplaces++;
	}
	return i;
}

static void look_at(const struct hit_awaits *a, struct call *c)
{
	const struct process *p = targets_alive(a->host->targets, (pid_t)c->key.tgid);
	struct frame frames[FRAMES_MAX];
	u32 n = p ? read_place(p, c->key.who, frames) : 0;
	u64 now = now_ns();

	c->suspended = n != 0;
	if (n)
		c->at = place_of(c, p->number, frames, n);
	if (n && now > c->until)
		c->place[c->at].ns += now - c->until;
	c->until = now;
}

/* The oldest, which are the slowest so far, and some of the others. */
static void look(struct hit_awaits *a)
{
	u32 others = a->ncalls > OLDEST ? (a->ncalls - OLDEST + OLDEST - 1) / OLDEST : 1;

	a->turn++;
	for (u32 i = 0; i < a->ncalls; i++)
		if (i < OLDEST || i % others == a->turn % others)
			look_at(a, &a->calls[i]);
}

struct error *hit_awaits_poll(struct hit_awaits *a, u64 now)
{
	struct call *before;
	struct error *err;
	u64 began = thread_cpu_ns(), rest;

	if (!a || now < a->next_ns)
		return NULL;
	before = a->before;
	a->before = a->calls;
	a->nbefore = a->ncalls;
	a->calls = before;
	a->ncalls = 0;
	err = map_each(object_skeleton(a->host->object)->maps.callee_own, false, take, a, "calls that are under way");
	if (err)
		return err;
	if (a->ncalls)
		qsort(a->calls, a->ncalls, sizeof(*a->calls), compare);
	keep(a);
	look(a);
	rest = LOOKS_REST * (thread_cpu_ns() - began);
	a->next_ns = now_ns() + (rest > a->each_ns ? rest : a->each_ns);
	return NULL;
}

u64 hit_awaits_due(const struct hit_awaits *a)
{
	return a ? a->next_ns : 0;
}

static const struct call *find(const struct call *calls, u32 n, const struct latency_record *record)
{
	for (u32 i = 0; i < n; i++)
		if (calls[i].began == record->began && calls[i].key.function == record->which)
			return &calls[i];
	return NULL;
}

/* In the profile, where it is no sample: for its names. */
static struct error *name(const struct hit_awaits *a, const struct call *c, const struct place *p, char **ret)
{
	struct stack_record record = {
	        .instance = p->process, .tgid = c->key.tgid, .stop = STOP_ROOT_RUNTIME, .weight = 0};
	struct error *err;
	u32 node;

	*ret = NULL;
	err = collector_place_task(a->host->collector, &record, "suspended", 1, p->frame, p->n, &node);
	if (!err && node != COLLECTOR_FILTERED)
		*ret = stack_text(collector_profile(a->host->collector), node);
	return err;
}

/* How long it was suspended there, in a call that ended then. */
static u64 time_at(const struct call *c, u32 place, u64 end)
{
	u64 ns = c->place[place].ns;

	if (c->at == place && c->suspended && end > c->until)
		return ns + end - c->until;
	if (c->at == place && c->until > end)
		return c->until - end < ns ? ns - (c->until - end) : 0;
	return ns;
}

struct error *hit_awaits_of(const struct hit_awaits *a, const struct latency_record *record, struct slow_stack *ret)
{
	const struct call *c = a ? find(a->calls, a->ncalls, record) : NULL;
	struct error *err = NULL;

	if (a && !c)
		c = find(a->before, a->nbefore, record);
	for (u32 i = 0; c && !err && i < c->nplaces; i++) {
		struct slow_stack stack = {.ns = time_at(c, i, record->began + record->ns)};

		err = stack.ns ? name(a, c, &c->place[i], &stack.text) : NULL;
		if (!err && stack.ns)
			slow_stack_put(ret, SLOW_AWAITS, stack);
	}
	return err;
}
