/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of all goroutines: which are left out, and the order in which they are shown. */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "go_goroutines.h"

/* One that the runtime started for itself, and that runs nothing of the program's (as finalizers do). */
static bool is_system(const struct go_goroutine_snapshot *s, const struct go_goroutine *g)
{
	const struct go_chain *c = g->seen == GO_STANDS ? &s->stacks.chains[g->chain] : NULL;
	u32 n;
	const struct go_place *start = go_places_at(&s->places, g->start + 1, &n);
	const char *name = start ? go_place_name(&s->places, start + n - 1) : "";

	if (!go_is_runtime(name) || !strcmp(name, "runtime.main") || !strcmp(name, "runtime.corostart") ||
	        !strcmp(name, "runtime.handleAsyncEvent"))
		return false;
	for (u32 i = 0; c && i < c->n; i++) {
		const struct go_place *at = go_places_at(&s->places, s->stacks.pcs[c->first + i], &n);

		for (u32 k = 0; at && k < n; k++)
			if (!go_is_runtime(go_place_name(&s->places, at + k)))
				return false;
	}
	return true;
}

static void leave_out_system(struct go_goroutine_snapshot *s)
{
	u32 n = 0;

	for (u32 i = 0; i < s->goroutines.n; i++)
		if (!is_system(s, &s->goroutines.all[i]))
			s->goroutines.all[n++] = s->goroutines.all[i];
	s->goroutines.n = n;
}

/* Their numbers, those with the same labels together; the caller frees it. NULL: no memory. */
static u32 *sort_by_labels(const struct go_goroutines *g)
{
	cleanup(free) u32 *next = calloc((size_t)g->labels.n + 2, sizeof(*next));
	u32 *ret = calloc((size_t)g->n + 1, sizeof(*ret));

	if (!next || !ret) {
		free(ret);
		return NULL;
	}
	for (u32 i = 0; i < g->n; i++)
		next[g->all[i].labels + 1]++;
	for (u32 i = 0; i < g->labels.n; i++)
		next[i + 1] += next[i];
	for (u32 i = 0; i < g->n; i++)
		ret[next[g->all[i].labels]++] = i;
	return ret;
}

static struct error *sort_by_chain(struct go_goroutine_snapshot *s)
{
	cleanup(free) u32 *next = calloc((size_t)s->stacks.nchains + 1, sizeof(*next));
	cleanup(free) u32 *by_labels = sort_by_labels(&s->goroutines);

	s->nchains = s->stacks.nchains;
	s->order = calloc((size_t)s->goroutines.n + 1, sizeof(*s->order));
	s->first = calloc((size_t)s->nchains + 1, sizeof(*s->first));
	if (!s->order || !s->first || !next || !by_labels)
		return &error_no_memory;
	for (u32 i = 0; i < s->goroutines.n; i++)
		if (s->goroutines.all[i].seen == GO_STANDS)
			s->first[s->goroutines.all[i].chain + 1]++;
	for (u32 i = 0; i < s->nchains; i++) {
		s->first[i + 1] += s->first[i];
		next[i] = s->first[i];
	}
	for (u32 i = 0; i < s->goroutines.n; i++)
		if (s->goroutines.all[by_labels[i]].seen == GO_STANDS)
			s->order[next[s->goroutines.all[by_labels[i]].chain]++] = by_labels[i];
	return NULL;
}

static struct error *read_places(struct go_goroutine_snapshot *s)
{
	struct error *err = go_places_read(&s->places, &s->stacks);

	for (u32 i = 0; !err && i < s->goroutines.n; i++) {
		err = go_places_add(&s->places, s->goroutines.all[i].start + 1);
		if (!err)
			err = go_places_add(&s->places, s->goroutines.all[i].creator);
	}
	return err;
}

/* A frame that only the compiler made, which no text shows: two go statements of one function have one each. */
static bool is_wrapper(const struct go_goroutine_snapshot *s, u64 pc)
{
	u32 n;
	const struct go_place *at = go_places_at(&s->places, pc, &n);

	for (u32 i = 0; at && i < n; i++)
		if (!at[i].wrapper)
			return false;
	return at;
}

/* Stacks that differ in wrappers alone are one, as for runtime/pprof. */
static struct error *merge_chains(struct go_goroutine_snapshot *s)
{
	u32 nchains = s->stacks.nchains, pcs_n;
	cleanup(free) u32 *merged = calloc((size_t)nchains + 1, sizeof(*merged));
	cleanup(free) u64 *pcs = calloc(GO_DEPTH_MAX, sizeof(*pcs));
	struct error *err = merged && pcs ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < nchains; i++) {
		const struct go_chain c = s->stacks.chains[i];

		pcs_n = 0;
		for (u32 k = 0; k < c.n && pcs_n < GO_DEPTH_MAX; k++)
			if (!is_wrapper(s, s->stacks.pcs[c.first + k]))
				pcs[pcs_n++] = s->stacks.pcs[c.first + k];
		err = go_stacks_chain(&s->stacks, pcs, pcs_n, c.cut, &merged[i]);
	}
	for (u32 i = 0; !err && i < s->goroutines.n; i++) {
		struct go_goroutine *g = &s->goroutines.all[i];

		g->walked = g->chain;
		if (g->seen == GO_STANDS)
			g->chain = merged[g->walked];
	}
	return err;
}

static u64 suspended_at(const struct go_view *v)
{
	struct go_wanted dummy = {.name = "runtime.systemstack_switch"};

	go_functions_named(v->table, &dummy, 1);
	return dummy.found ? dummy.fn.start + v->bias : 0;
}

struct error *go_goroutines_take(const struct go_view *v, u32 flags, void **ret)
{
	struct go_goroutine_snapshot *s = calloc(1, sizeof(*s));
	struct error *err;

	if (!s)
		return &error_no_memory;
	memcpy(s->reason, v->reason, sizeof(s->reason));
	s->nreasons = v->nreasons;
	go_stacks_init(&s->stacks, v->p);
	s->stacks.suspended = suspended_at(v);
	err = go_goroutines_read(v, &s->stacks, &s->goroutines);
	if (!err)
		err = read_places(s);
	if (!err && !(flags & GO_SYSTEM))
		leave_out_system(s);
	if (!err)
		err = merge_chains(s);
	if (!err)
		err = sort_by_chain(s);
	if (err)
		go_goroutines_drop(s);
	else
		*ret = s;
	return err;
}

void go_goroutines_drop(void *snapshot)
{
	struct go_goroutine_snapshot *s = snapshot;

	if (!s)
		return;
	go_goroutines_free(&s->goroutines);
	go_stacks_free(&s->stacks);
	go_places_free(&s->places);
	free(s->order);
	free(s->first);
	free(s);
}

const char *go_goroutine_state(const struct go_goroutine_snapshot *s, const struct go_goroutine *g)
{
	static const char *const states[] = {[GO_IDLE] = "idle",
	        [GO_RUNNABLE] = "runnable",
	        [GO_RUNNING] = "running",
	        [GO_SYSCALL] = "syscall",
	        [GO_WAITING] = "waiting",
	        [GO_COPYSTACK] = "copystack",
	        [GO_PREEMPTED] = "preempted",
	        [GO_LEAKED] = "leaked"};

	if (g->seen == GO_TORN)
		return "torn";
	if ((g->status == GO_WAITING || g->status == GO_LEAKED) && g->reason && g->reason < s->nreasons)
		return s->reason[g->reason];
	return g->status < sizeof(states) / sizeof(*states) && states[g->status] ? states[g->status] : "???";
}

/* runtime2.go: isIdleInSynctest, those whose names do not say so. */
static bool is_durable(const char *state)
{
	static const char *const durable[] = {"chan receive (nil chan)", "chan send (nil chan)", "select (no cases)",
	        "sleep", "sync.Cond.Wait", "coroutine", "synctest.Run", "synctest.Wait"};

	for (u32 i = 0; i < sizeof(durable) / sizeof(*durable); i++)
		if (!strcmp(state, durable[i]))
			return true;
	return false;
}

const char *go_goroutine_manner(const struct go_goroutine_snapshot *s, const struct go_goroutine *g)
{
	if (g->status == GO_LEAKED)
		return " (leaked)";
	return g->bubble && g->status == GO_WAITING && is_durable(go_goroutine_state(s, g)) ? " (durable)" : "";
}

u64 go_goroutine_minutes(const struct go_goroutine_snapshot *s, const struct go_goroutine *g)
{
	if ((g->status != GO_WAITING && g->status != GO_SYSCALL) || !g->since || g->since > s->goroutines.now)
		return 0;
	return (s->goroutines.now - g->since) / 60000000000ULL;
}

u32 *go_goroutines_before(const struct go_goroutine_snapshot *before, struct go_goroutine_snapshot *after)
{
	u32 room = after->stacks.nchains + (before ? before->stacks.nchains : 0), chain,
	    *ret = calloc((size_t)room + 1, sizeof(*ret));

	for (u32 i = 0; ret && before && i < before->stacks.nchains; i++) {
		const struct go_chain *c = &before->stacks.chains[i];
		struct error *err =
		        go_stacks_chain(&after->stacks, before->stacks.pcs + c->first, c->n, c->cut, &chain);

		if (err) {
			error_free(err);
			free(ret);
			return NULL;
		}
		ret[chain] = before->first[i + 1] - before->first[i];
	}
	return ret;
}
