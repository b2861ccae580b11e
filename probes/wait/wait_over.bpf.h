/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A wait is over: what it counts for, under which stack. */
#ifndef YRT_WAIT_OVER_BPF_H
#define YRT_WAIT_OVER_BPF_H

#include "wait/wait_chance.bpf.h"
#include "wait/wait_state.bpf.h"

/* For how many waits does it stand, itself included? */
static inline u64 wait_stands(const struct wait_state *w)
{
	return w->stands | !w->stands;
}

/* For how much a wait of ns counts that was chosen as it began: for itself and for those of which it was drawn. */
static inline u64 wait_value(const struct wait_state *w, u64 ns)
{
	return (w->stands > 1 && ns > w->walk_ns ? ns - w->walk_ns : ns) * wait_stands(w);
}

/* The hash that a wait is counted under: of both stacks, if there is a waker's. */
static __attribute__((noinline)) u64 wait_with_waker(u64 hash, u64 waker)
{
	struct wait_pair pair = {.type = RECORD_EVENT, .pair = 1, .hash = hash, .waker = waker};
	u64 both = waker ? walk_mix(hash, waker) : hash;

	pair.epoch = counts_in_use & 1;
	pair.both = both;
	if (!waker || event_count(pair.epoch, both, 0, 0, false))
		return both;
	return bpf_ringbuf_output(&ring, &pair, sizeof(pair), BPF_RB_NO_WAKEUP) ? hash : both;
}

/* Of what a wait counts for, the part on the run queue. Only what stacks stand for: then the sum says the same. */
static inline u64 wait_on_run_queue(const struct wait_state *w, struct wait_stats *ws, u64 value, u64 times)
{
	u64 queued = w->queued_ns * times;

	if (queued > value)
		queued = value;
	ws->run_queue_ns += w->runnable ? value : queued;
	return queued;
}

/* A wait that nobody took a stack of: user space counts it. False: it will not. */
static __attribute__((noinline)) bool wait_send(struct wait_state *w, u64 ns, u64 hash, u64 waker)
{
	struct task_struct *task = (struct task_struct *)w->task;
	struct wait_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	u32 tgid = tgid_of(task);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);

	if (!record)
		return false;
	__builtin_memset(record, 0, sizeof(*record));
	record->type = RECORD_EVENT;
	record->tid = pid_of(task, BPF_CORE_READ(task, pid));
	record->tgid = tgid;
	record->switches = w->switches;
	record->ns = ns;
	record->queued = w->queued_ns;
	record->waker = waker;
	record->hash = hash;
	record->stop = w->stop;
	record->runnable = w->runnable || (!hash && !w->switches);
	record->instance = process ? process->instance : 0;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return true;
}

static inline void wait_lose(struct probe_stats *st, u32 cause, u64 value)
{
	st->weights += value;
	st->lost[cause] += value;
}

/* Adds to what is counted of a stack, for an interval of `span` that ends at `end`. */
static __attribute__((always_inline)) inline void wait_add(
        struct probe_stats *st, u64 hash, u64 value, u64 times, u64 end, u64 span)
{
	if (with_times)
		send_time(hash, value, end, span);
	if (!event_add(hash, value, times))
		st->lost[LOST_TABLE] += value;
}

/* Counts a wait under its stack, and its time on the run queue beside it: that is no part of waiting for a lock. */
static __attribute__((noinline)) int wait_count(struct wait_state *w, u64 ns, bool alone, u64 now, u64 hash)
{
	struct probe_stats *st = my_stats();
	struct wait_stats *ws = wait_stats();
	u64 value = alone ? ns : wait_value(w, ns), times = alone ? 1 : wait_stands(w), queued;

	if (!st || !ws)
		return 0;
	queued = wait_on_run_queue(w, ws, value, times);
	if (times > 1) {
		u64 part = value >> WAIT_SQUARE_BITS;

		ws->estimated_ns += value;
		ws->squares += part * part - part * part / times; /* the variance, by what was chosen */
	}
	if (wait_futexes)
		value -= queued;
	st->weights += value;
	count_stop(st, w->stop, value);
	if (queued && !wait_futexes) {
		value -= queued;
		wait_add(st, stack_queued(w->hash), queued, 0, now, w->queued_ns);
	}
	wait_add(st, hash, value, times, now - w->queued_ns, ns - w->queued_ns);
	return 0;
}

/*
 * A wait is over, and its time on the run queue known (queued_ns): what of it was not counted yet is. A thread that
 * never ran before has no stack, and no other wait stands for its first one.
 */
WALK_GLOBAL int wait_over(struct wait_state *w, u64 now)
{
	struct probe_stats *st = my_stats();
	struct wait_stats *ws = wait_stats();
	u64 since, ns, hash, waker, times;
	bool alone, is_birth;

	if (!w || !st || !ws)
		return 0;
	since = __sync_lock_test_and_set(&w->since_ns, 0);
	hash = w->hash;
	waker = w->waker;
	is_birth = !hash && !w->switches;
	if (!since)
		return 0;
	w->waker = 0;
	ns = wait_span(since, now);
	if (w->runnable)
		w->queued_ns = 0;
	else if (w->queued_ns > ns)
		w->queued_ns = ns;
	alone = wait_counts_alone(w, ns);
	if (!alone && w->unwatched && wait_futexes)
		return 0; /* those of the shifts stand for it */
	times = alone ? 1 : wait_seen_as();
	ws->off_ns += ns * times;
	ws->waits += times;
	wait_learn(w, ns < WAIT_LONG_NS ? ns : WAIT_LONG_NS);
	if ((ns < wait_min_ns || ns > wait_max_ns) && !w->settled) {
		ws->left_out_ns += ns;
		wait_on_run_queue(w, ws, ns, 1);
		return 0;
	}
	if (hash && (!alone || wait_has_stack(w))) {
		wait_count(w, ns, alone, now, wait_with_waker(hash, waker));
	} else if (alone || is_birth) {
		if (!wait_send(w, ns, hash, waker)) {
			wait_lose(st, LOST_RING, ns);
			wait_on_run_queue(w, ws, ns, 1);
		}
	} else if (w->chosen) { /* another event had the scratch memory of this CPU */
		wait_lose(st, LOST_SCRATCH, wait_value(w, ns));
		wait_on_run_queue(w, ws, wait_value(w, ns), wait_stands(w));
	}
	return 0; /* else others stand for it */
}

/*
 * A thread leaves the CPU but was not seen to come back: some kernels leave out switches (one that hides a task leaves
 * out that task's).
 */
static __attribute__((noinline)) int wait_over_unseen(
        struct task_struct *task, struct wait_state *w, struct wait_stats *ws, u64 now)
{
	u64 came = wait_arrival(task, now);

	ws->unseen++;
	w->queued_ns = wait_queued(task, w, 0, now);
	came = came > w->since_ns ? came : w->since_ns; /* user space has just settled it */
	return wait_over(w, came < now ? came : now);
}

#endif
