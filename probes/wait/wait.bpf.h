/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs of waits (wait.h): what happens when threads leave the CPU, come back and end. */
#ifndef YRT_WAIT_BPF_H
#define YRT_WAIT_BPF_H

#include "wait/wait_bulk.bpf.h"
#include "wait/wait_chance.bpf.h"
#include "wait/wait_over.bpf.h"
#include "wait/wait_state.bpf.h"

/* Looks for the state only now: the verifier would follow the walk once for each place that it may lie at. */
static __attribute__((noinline)) int wait_walked(struct task_struct *task, struct slot *slot, u64 begin)
{
	struct wait_state *w = wait_known(task);
	struct wait_stats *ws = wait_stats();

	if (!w || !ws)
		return 0;
	w->hash = slot->head.hash;
	w->stop = event_stop(slot);
	if (!wait_has_stack(w))
		wait_is_sampled();
	wait_budget(ws, w, begin);
	return 0;
}

/* The thread that runs here leaves the CPU. */
static __attribute__((always_inline)) inline void wait_walk(
        void *ctx, struct task_struct *task, u32 instance, u64 state, u64 object, u64 begin)
{
	struct probe_stats *st = my_stats();
	u32 number, tgid = tgid_of(task);
	struct slot *slot;

	if (!st)
		return;
	slot = event_begin(st, instance, tgid, 0, &number);
	if (!slot)
		return;
	slot->head.reason = wait_why(state);
	slot->head.object = object;
	event_reason(slot);
	event_kernel(ctx, slot, 0);
	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), true);
	event_end(slot, st, event_emit(slot, st));
	wait_walked(task, slot, begin);
}

/* A thread is back whose wait nobody took a stack of, and that was short: most are. */
static inline bool wait_over_shortly(struct wait_state *w, struct wait_stats *ws, u64 now)
{
	u64 ns = wait_span(w->since_ns, now), times = wait_seen_as();

	if (w->chosen || w->settled || w->walked || w->unwatched || !w->switches || ns >= WAIT_LONG_NS ||
	        ns < wait_min_ns || ns > wait_max_ns)
		return false;
	w->since_ns = 0;
	w->waker = 0;
	wait_learn(w, ns);
	ws->off_ns += ns * times;
	ws->waits += times;
	return true;
}

static inline void wait_came(struct task_struct *next, struct task_struct *prev, struct wait_stats *ws)
{
	struct wait_state *w = wait_state_of(next);
	u64 now;

	if (!w || !w->since_ns || (w->bulk_ns && wait_pauses))
		return;
	now = wait_now(ws, prev);
	if (w->bulk_ns) {
		wait_bulk_back(next, w, now);
		w->runnable = 0; /* it is by now */
	}
	if (wait_over_shortly(w, ws, now))
		return;
	w->queued_ns = wait_queued(next, w, ws->behind_ns, now);
	wait_over(w, now);
}

/* Of the thread that runs here, if it is a target's; NULL: it is not, or ends. */
static __attribute__((noinline)) struct wait_state *wait_state_of_own(struct task_struct *task, struct wait_stats *ws)
{
	struct wait_state *w = wait_known(task);
	u64 begin;

	if (w || wait_is_over(task) || !find_target())
		return w && !w->exited ? w : NULL;
	w = wait_new(task);
	begin = wait_begin(task);
	if (w && !wait_futexes && wait_arrival(task, 0) > begin) { /* it came unseen, for the first time */
		w->since_ns = begin;
		w->switches = wait_switches(task) - 1;
	}
	return w;
}

WALKING_TABLE(on_switch);

/*
 * The thread leaves the CPU for a wait that is timed, or the first of those that are skipped in bulk. False: the wait
 * does not matter.
 */
static inline bool wait_leaves(
        struct task_struct *prev, struct wait_state *w, struct wait_stats *ws, bool preempt, bool skips)
{
	u32 state = preempt ? 0 : state_with_freezer(prev->__state, prev->jobctl);
	u64 now = wait_now(ws, prev), object;

	if (w->bulk_ns)
		wait_bulk_end(w, now, WAIT_LEFT);
	if (w->since_ns)
		wait_over_unseen(prev, w, ws, now);
	if (wait_futexes && (!state || state & STATE_OF_OTHERS || !wait_for_futex(prev, &object)))
		return false;
	if (skips && wait_may_bulk())
		wait_bulk_begin(prev, w, now);
	else
		wait_starts(w, now, prev->nvcsw + prev->nivcsw, wait_delay(prev), !state);
	if (wait_pauses)
		w->unwatched = 1;
	else if (!skips)
		w->chosen = wait_chance(w, ws);
	else
		w->skip--;
	return true;
}

/* Most switches end here: only waits whose stacks are taken go on to on_switch_walk() (WALKING()). */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct wait_stats *ws;
	struct wait_state *w;
	bool skips;

	if (ticks != TICKS_TAKEN)
		return 0;
	ws = wait_stats();
	if (!ws)
		return 0;
	if (next->pid)
		wait_came(next, prev, ws);
	w = prev->pid ? wait_state_of_own(prev, ws) : NULL;
	if (!w)
		return 0;
	if (wait_pauses && w->bulk_ns)
		return 0;
	skips = wait_pauses || (w->skip && w->mean_ns < ws->each_ns && w->longs < WAIT_OFTEN_LONG);
	if (skips && w->bulk_ns && !w->since_ns) {
		w->skip--;
	} else if (!wait_leaves(prev, w, ws, preempt, skips)) {
		return 0;
	} else if (w->chosen) {
		bpf_tail_call(ctx, &on_switch_now, 0);
		return 0;
	}
	if (!wait_pauses) {
		ws->skipped++;
		ws->unwatched += wait_seen_as() - 1;
	}
	wait_is_sampled();
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_walk, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 begin = bpf_ktime_get_ns(), object = 0;
	int instance = find_target();

	if (!instance)
		return 0;
	if (preempt || !prev->__state || !wait_for_futex(prev, &object))
		object = 0;
	wait_walk(ctx, prev, instance, preempt ? 0 : state_with_freezer(prev->__state, prev->jobctl), object, begin);
	return 0;
}

static inline void wait_exited(struct wait_state *w)
{
	w->ended_ns = bpf_ktime_get_ns();
	w->exited = 1;
}

/* It ends after the run, but before user space has settled it: the stack of its current wait is lost. */
static inline void wait_left_late(struct wait_state *w, struct wait_stats *ws, u64 end)
{
	u64 since = __sync_lock_test_and_set(&w->since_ns, 0), ns = since ? wait_span(since, end) : 0;
	struct probe_stats *st = my_stats();

	ws->off_ns += ns;
	w->queued_ns = 0;
	wait_on_run_queue(w, ws, ns, 1);
	if (!st || ns < wait_min_ns || ns > wait_max_ns)
		return;
	st->weights += ns;
	st->lost[LOST_ENDED] += ns;
}

/* From here on its time is not counted. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *task)
{
	u64 end = wait_end_ns, now = end ? end : bpf_ktime_get_ns();
	struct wait_stats *ws = wait_stats();
	struct wait_state *w = wait_known(task);

	if ((ticks != TICKS_TAKEN && !end) || !ws || !find_target()) {
		if (w)
			wait_exited(w);
		return 0;
	}
	if (!w && wait_pauses)
		w = wait_paused(task, wait_begin(task));
	else
		w = wait_new(task);
	if (!w || w->exited)
		return 0;
	wait_exited(w);
	if (w->bulk_ns)
		wait_bulk_end(w, now, WAIT_ON);
	if (!end && w->since_ns)
		wait_over_unseen(task, w, ws, now);
	if (end)
		wait_left_late(w, ws, end);
	ws->wall_ns += wait_span(wait_begin(task), now);
	return 0;
}

#endif
