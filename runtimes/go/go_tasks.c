/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines as what waits without a thread (runtime_tasks.h). */
#include "go_tasks.h"

#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"
#include "go_goroutines.h"
#include "go_snapshots.h"

#define TASKS_MAX 262144

struct listing {
	const struct runtime_process *p;
	const struct go_goroutine_snapshot *s;
	struct frame frames[GO_DEPTH_MAX];
};

static u32 module_of(const struct runtime_process *p, u64 pc)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, pc - ARCH_CALL_BACK);

	return m ? m->module : 0;
}

static void put_frames(struct listing *l, const struct go_chain *c, struct runtime_task *ret)
{
	for (u32 i = 0; i < c->n; i++) {
		u64 pc = l->s->stacks.pcs[c->first + i];

		l->frames[i] = (struct frame){.where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, FRAME_RETADDR, pc),
		        .detail = module_of(l->p, pc)};
	}
	ret->frames = l->frames;
	ret->nframes = c->n;
	if (c->cut)
		ret->stop = STOP_DEPTH;
}

static struct runtime_task describe(struct listing *l, const struct go_goroutine *g)
{
	static const u32 stops[] = {[GO_STANDS] = STOP_ROOT_RUNTIME,
	        [GO_ON_CPU] = STOP_NO_USER,
	        [GO_TORN] = STOP_VM_BROKEN,
	        [GO_UNWALKED] = STOP_VM_BROKEN};
	struct runtime_task ret = {
	        .id = g->id, .stop = stops[g->seen], .on_thread = g->status == GO_RUNNING || g->status == GO_SYSCALL};
	u64 minutes = go_goroutine_minutes(l->s, g);
	int n;

	snprintf(ret.name, sizeof(ret.name), "%lu", g->id);
	n = snprintf(ret.state, sizeof(ret.state), "%s%s", go_goroutine_state(l->s, g), go_goroutine_manner(l->s, g));
	if (minutes)
		n += snprintf(ret.state + n, sizeof(ret.state) - (size_t)n, ", %lu minutes", minutes);
	if (g->seen == GO_UNWALKED)
		n += snprintf(ret.state + n, sizeof(ret.state) - (size_t)n, ", not walked");
	if (g->locked)
		n += snprintf(ret.state + n, sizeof(ret.state) - (size_t)n, ", locked to thread");
	if (g->bubble)
		snprintf(ret.state + n, sizeof(ret.state) - (size_t)n, ", synctest bubble %lu", g->bubble);
	if (g->seen == GO_STANDS)
		put_frames(l, &l->s->stacks.chains[g->chain], &ret);
	return ret;
}

static struct error *list_all(const struct runtime_process *p, const struct go_goroutine_snapshot *s,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	cleanup(free) struct listing *l = calloc(1, sizeof(*l));
	struct error *err = l ? NULL : &error_no_memory;
	u32 i;

	if (err)
		return err;
	l->p = p;
	l->s = s;
	for (i = 0; !err && i < s->goroutines.n && i < TASKS_MAX; i++) {
		struct runtime_task t = describe(l, &s->goroutines.all[i]);

		err = add(ctx, &t);
	}
	if (err || i == s->goroutines.n)
		return err;
	return error_hint(error_new(ERROR_UNSUPPORTED, "process %d has %u goroutines: %u are shown", p->pid,
	                          s->goroutines.n, TASKS_MAX),
	        "yrt go-goroutines shows them all, by stack");
}

static struct error *list(void *instance, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	void *snapshot;
	struct error *err = go_take_goroutines(instance, p, 0, &snapshot);

	if (!err && snapshot)
		err = list_all(p, snapshot, add, ctx);
	go_goroutines_drop(snapshot);
	return err;
}

const struct runtime_tasks_ops go_tasks = {.kind = "goroutine", .kinds = "goroutines", .all = true, .list = list};
