/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Who ends a wait (wait.h). */
#ifndef YRT_WAIT_WAKING_BPF_H
#define YRT_WAIT_WAKING_BPF_H

#include "wait/wait_chance.bpf.h"
#include "wait/wait_state.bpf.h"

/*
 * The wait that a wake-up ends, if the waker's stack is wanted: the wait's own stack was taken, is being taken on the
 * CPU that the thread is about to leave, or will be, and it has no waker yet.
 */
static inline struct wait_state *wait_to_wake(struct task_struct *woken)
{
	struct wait_state *w = wait_state_of(woken);

	if (!w || !w->since_ns || w->waker || w->runnable)
		return NULL;
	if (w->hash || w->chosen || w->walked)
		return w;
	return wait_span(w->since_ns, bpf_ktime_get_ns()) < WAIT_LONG_NS ? NULL : w;
}

/* The kernel frames, in any case: they show an interrupt. */
static __attribute__((noinline)) int waker_begin(void *ctx, struct slot *slot)
{
	u64 name[2] = {0};
	long bytes = bpf_get_stack(ctx, slot->kernel, KERNEL_FRAMES * 8, 0);

	slot->head.role = STACK_OF_WAKER;
	bpf_get_current_comm(name, sizeof(name));
	slot->walk.hash = walk_mix(walk_mix(slot->walk.hash, name[0]), name[1]);
	if (bytes > 0)
		push_kernel(slot, bytes);
	return 0;
}

static __attribute__((noinline)) int waker_end(struct slot *slot, struct task_struct *woken, u64 begin)
{
	struct wait_state *w = wait_known(woken);
	struct wait_stats *ws = wait_stats();
	u64 walk_ns;

	if (!w)
		return 0;
	walk_ns = w->walk_ns;
	w->waker = slot->head.hash;
	if (ws)
		wait_budget(ws, w, begin);
	w->walk_ns += walk_ns;
	return 0;
}

WALKING_TABLE(on_waking);

/* Most wakings end here, as most switches do. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *woken)
{
	if (ticks == TICKS_TAKEN && wait_to_wake(woken))
		bpf_tail_call(ctx, &on_waking_now, 0);
	return 0;
}

/*
 * The stack of the waker, for a wait whose own stack is or will be taken: the whole stack of a target's thread, else
 * its kernel frames and its name. Code that an interrupt hit is not the waker; names of kernel frames show an
 * interrupt.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking_walk, struct task_struct *woken)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u64 begin = bpf_ktime_get_ns();
	struct slot *slot;
	u32 number, tgid;

	if (!st)
		return 0;
	tgid = tgid_of(task);
	slot = event_begin(st, find_target(), tgid, 0, &number);
	if (!slot)
		return 0;
	waker_begin(ctx, slot);
	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), false);
	event_end(slot, st, event_emit(slot, st));
	waker_end(slot, woken, begin);
	return 0;
}

#endif
