/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Waits that are skipped in bulk. While waits of a thread are skipped, its switches are not timed, which costs
 * more than anything else at a switch. When it is next looked at, it has waited for as long as it did not run, by the
 * scheduler's count of its CPU time (task_struct.se.sum_exec_runtime, in all scheduling classes). Time that interrupts
 * or the host took while it ran counts as waiting then. User space looks for threads that are off the CPU anyway: from
 * its first look on, a wait that lasts is one like others.
 */
#ifndef YRT_WAIT_BULK_BPF_H
#define YRT_WAIT_BULK_BPF_H

#include "wait/wait_chance.bpf.h"
#include "wait/wait_state.bpf.h"

#define WAIT_BULK_MANY 8u /* waits whose average replaces the running mean of the thread */

static inline bool wait_may_bulk(void)
{
	return !wait_futexes && !wait_min_ns && wait_max_ns == ~0ull;
}

static inline void wait_bulk_begin(struct task_struct *task, struct wait_state *w, u64 now)
{
	w->stands = 0;
	w->bulk_exec_ns = task->se.sum_exec_runtime;
	w->bulk_skip = w->skip;
	w->bulk_ns = now;
}

static inline void wait_bulk_learn(struct wait_state *w, u64 ns, u32 waits)
{
	if (!waits)
		return;
	w->mean_ns = waits < WAIT_BULK_MANY ? w->mean_ns - w->mean_ns / 8 + ns / waits / 8 : ns / waits;
	w->longs -= w->longs / 8;
}

/*
 * Counts what the thread has waited since wait_bulk_begin(). Either a switch or user space does so, whichever is first.
 * For a running thread the time ends where it came back to the CPU; its CPU time at that moment is known in the fair
 * class only. A switch may interrupt user space here, so the sums are atomic.
 */
static __attribute__((noinline)) int wait_bulk_end(
        struct task_struct *task, struct wait_state *w, struct wait_stats *ws, u64 now, u32 runs)
{
	u64 begin = __sync_lock_test_and_set(&w->bulk_ns, 0), came, exec, ns;
	u32 waits = w->bulk_skip - w->skip;

	if (!begin)
		return 0;
	exec = BPF_CORE_READ(task, se.prev_sum_exec_runtime);
	if (runs && exec >= w->bulk_exec_ns) {
		came = wait_arrival(task, ws, now);
		now = came < now ? came : now;
	} else {
		exec = BPF_CORE_READ(task, se.sum_exec_runtime);
	}
	ns = wait_span(exec - w->bulk_exec_ns, wait_span(begin, now));
	__sync_fetch_and_add(&w->exact_ns, ns);
	__sync_fetch_and_add(&ws->off_ns, ns);
	__sync_fetch_and_add(&ws->waits, waits);
	wait_bulk_learn(w, ns, waits);
	return 0;
}

#endif
