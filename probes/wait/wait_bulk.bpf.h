/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Switches that are not timed, and what they were all the same.
 *
 * - Waits that are skipped are skipped in bulk: timing a switch costs more than anything else there.
 * - In a pause between two shifts (wait_shifts.h) no switch is watched at all.
 *
 * When such a thread is next looked at, it has waited for as long as it did not run, by the scheduler's count of its
 * CPU time (task_struct.se.sum_exec_runtime, in all scheduling classes). Time that interrupts or the host took while it
 * ran counts as waiting then. The scheduler also knows when it came to the CPU last (sched_info.last_arrival) and its
 * CPU time then (prev_sum_exec_runtime, in the fair class): so a wait that it is in now has a beginning, and one that
 * was under way before has an end, if that was the only one. User space looks every 20 ms for threads that are off the
 * CPU anyway: from its first look on, a wait that lasts is one like others.
 */
#ifndef YRT_WAIT_BULK_BPF_H
#define YRT_WAIT_BULK_BPF_H

#include "wait/wait_chance.bpf.h"
#include "wait/wait_over.bpf.h"
#include "wait/wait_state.bpf.h"

#define WAIT_BULK_MANY 8u /* waits whose average replaces the running mean of the thread */

enum wait_moment { /* at which a thread is looked at */
	WAIT_OFF,  /* it is off the CPU, or about to come back */
	WAIT_LEFT, /* it leaves the CPU */
	WAIT_ON,   /* it runs */
};

/* The wait that a thread is in when its switches begin to be left alone, or had been in, and what came after it. */
struct wait_past {
	u64 begin;   /* of what is not known: the last moment at which that wait lasted */
	u64 since;   /* of that wait; 0: there was none */
	u64 came;    /* when the thread came to the CPU last */
	u64 off_ns;  /* that it was off the CPU, since `since` or else `begin` */
	u64 left;    /* how often it has left the CPU since */
	u64 waits;   /* that are over, but for that one */
	bool single; /* it came to the CPU once */
	bool stayed; /* it had just left the CPU at `begin`, and did not come back */
};

static inline bool wait_may_bulk(void)
{
	return !wait_futexes && !wait_min_ns && wait_max_ns == ~0ull;
}

/* From `begin` on. exec_ns, switches: of the thread then; left: it had just left the CPU. */
static inline void wait_bulk_from(struct wait_state *w, u64 begin, u64 exec_ns, u64 switches, bool left)
{
	w->bulk_exec_ns = exec_ns;
	w->bulk_skip = w->skip;
	w->bulk_left = left;
	w->switches = switches;
	w->bulk_ns = begin;
}

static inline void wait_bulk_begin(struct task_struct *task, struct wait_state *w, u64 now)
{
	w->chosen = 0;
	wait_bulk_from(w, now, task->se.sum_exec_runtime, task->nvcsw + task->nivcsw, true);
}

/* The same at a pause, for a thread that runs, or waits since since_ns. */
static __attribute__((noinline)) int wait_bulk_pause(struct task_struct *task, struct wait_state *w, u64 now)
{
	u64 exec_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	bool runs = task_is_on_cpu(task);

	if (runs)
		w->since_ns = 0;
	if (runs && BPF_CORE_READ(task, prio) >= PRIO_FAIR) { /* what it ran since is counted at the next tick only */
		exec_ns = BPF_CORE_READ(task, se.prev_sum_exec_runtime);
		now = wait_arrival(task, now);
	}
	wait_bulk_from(w, now, exec_ns, wait_switches(task), false);
	return 0;
}

/* The state of a thread that has none in a pause: it was born then, or has slept or run since it is watched. */
static __attribute__((noinline)) struct wait_state *wait_paused(struct task_struct *task, u64 begin)
{
	struct wait_state *w = wait_new(task);

	if (!w)
		return NULL;
	if (begin == BPF_CORE_READ(task, start_time)) {
		wait_bulk_from(w, begin, 0, 0, false);
	} else if (!task_is_on_cpu(task)) {
		w->switches = wait_switches(task);
		w->since_ns = begin;
	}
	return w;
}

static inline void wait_bulk_learn(struct wait_state *w, u64 ns, u32 waits)
{
	if (!waits)
		return;
	w->mean_ns = waits < WAIT_BULK_MANY ? w->mean_ns - w->mean_ns / 8 + ns / waits / 8 : ns / waits;
	w->longs -= w->longs / 8;
}

/*
 * The wait is over that was under way when switches began to be left alone. If the thread came back more than once, its
 * end is not known: a wait that was seen to last gets what the short ones after it leave over; half of the time off the
 * CPU if only futexes count, as the rest may be for something else. Returns what it took of that time.
 */
static __attribute__((noinline)) u64 wait_bulk_over(struct wait_state *w, const struct wait_past *past)
{
	u64 end = past->begin, seen = wait_span(past->since, end), after = wait_span(seen, past->off_ns);

	w->queued_ns = 0;
	if (past->single) {
		end = past->came;
		w->queued_ns = wait_queued((struct task_struct *)w->task, w, 0, end);
	}
	if (!past->single && seen >= WAIT_BRIEF_NS)
		end += wait_futexes ? after / 2 : wait_span(past->waits * w->brief_ns, after);
	if (end < past->begin)
		end = past->begin;
	if (end > past->since + past->off_ns)
		end = past->since + past->off_ns;
	wait_over(w, end);
	return wait_span(past->since, end);
}

/* For how long a thread has been off the CPU that is so now, of the past that is not known. */
static inline u64 wait_bulk_now(struct task_struct *task, const struct wait_past *past, u64 now)
{
	u64 ran = BPF_CORE_READ(task, se.sum_exec_runtime) - BPF_CORE_READ(task, se.prev_sum_exec_runtime), ns;

	if (past->stayed)
		return past->off_ns;
	if (past->came < past->begin || past->came + ran > now)
		return 0;
	ns = now - past->came - ran;
	return ns < past->off_ns ? ns : past->off_ns;
}

/*
 * Waits that nobody saw are over. A switch may interrupt user space here, so the sums are atomic. How many of them the
 * probe at switches has counted as skipped: those by which `skip` fell.
 */
static inline void wait_bulk_add(struct wait_state *w, struct wait_stats *ws, u64 ns, u32 waits)
{
	u32 counted = w->bulk_skip - w->skip;

	if (!wait_may_bulk())
		return;
	__sync_fetch_and_add(&ws->off_ns, ns);
	__sync_fetch_and_add(&ws->waits, waits);
	if (waits > counted)
		__sync_fetch_and_add(&ws->unwatched, waits - counted);
	wait_bulk_learn(w, ns, waits);
}

/*
 * Counts what the thread has waited since its switches were not timed any more. Either a switch or user space does so,
 * whichever is first. One that still waits as it did then goes on to. For a running thread the time ends where it came
 * to the CPU; its CPU time at that moment is known in the fair class only. Returns since when a thread that is off the
 * CPU waits; 0: it goes on to wait as it did.
 */
WALK_GLOBAL u64 wait_bulk_end(struct wait_state *w, u64 now, u32 moment)
{
	u64 until = now, current = 0, exec;
	struct task_struct *task;
	struct wait_stats *ws = wait_stats();
	struct wait_past past = {0};

	if (!w || !ws)
		return 0;
	task = (struct task_struct *)w->task;
	exec = BPF_CORE_READ(task, se.prev_sum_exec_runtime);
	past.begin = __sync_lock_test_and_set(&w->bulk_ns, 0);
	past.since = w->since_ns;
	past.left = wait_switches(task) - w->switches;
	if (!past.begin || (moment == WAIT_OFF && past.since && !past.left))
		return 0;
	past.came = wait_arrival(task, now);
	past.single = past.left == (moment != WAIT_ON);
	if (moment == WAIT_ON && exec >= w->bulk_exec_ns)
		until = past.came < now ? past.came : now;
	else
		exec = BPF_CORE_READ(task, se.sum_exec_runtime);
	past.off_ns = wait_span(exec - w->bulk_exec_ns, wait_span(past.since ? past.since : past.begin, until));
	past.waits = past.left + w->bulk_left;
	past.stayed = w->bulk_left && !past.left;
	if (moment != WAIT_ON && past.waits)
		past.waits--; /* it is in that one */
	if (moment == WAIT_OFF && !wait_end_ns)
		current = wait_bulk_now(task, &past, now);
	past.off_ns -= current;
	if (past.since)
		past.off_ns -= wait_bulk_over(w, &past);
	wait_bulk_add(w, ws, past.off_ns, past.waits);
	return moment == WAIT_OFF && !wait_end_ns ? now - current : 0;
}

/* The same for a thread that is off the CPU: what it waits for now is one like others. */
static __attribute__((always_inline)) inline void wait_bulk_back(
        struct task_struct *task, struct wait_state *w, u64 now)
{
	u64 since = wait_bulk_end(w, now, WAIT_OFF), object, queued = wait_queued(task, NULL, wait_behind_ns, now);

	if (!since || (wait_futexes && !wait_for_futex(task, &object)))
		return;
	wait_starts(w, since, wait_switches(task), wait_delay(task), wait_is_for_cpu(task, queued, now - since));
	w->unwatched = 1;
}

#endif
