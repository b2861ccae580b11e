/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A wait is over: what it counts for, under which stack. */
#ifndef YRT_WAIT_OVER_BPF_H
#define YRT_WAIT_OVER_BPF_H

#include "wait/wait_chance.bpf.h"
#include "wait/wait_state.bpf.h"

/* For how much a wait of ns counts that was chosen as it began: for itself and for those of which it was drawn. */
static inline u64 wait_value(const struct wait_state *w, u64 ns)
{
	return (w->stands > 1 && ns > w->walk_ns ? ns - w->walk_ns : ns) * (w->stands | !w->stands);
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

/* Only what stacks stand for: then the sum says the same as they do. */
static inline void wait_on_run_queue(const struct wait_state *w, struct wait_stats *ws, u64 ns)
{
	if (w->runnable)
		ws->run_queue_ns += ns;
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
	record->waker = waker;
	record->hash = hash;
	record->stop = w->stop;
	record->runnable = w->runnable || (!hash && !w->switches);
	record->instance = process ? process->instance : 0;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return true;
}

static inline void wait_lose(
        const struct wait_state *w, struct wait_stats *ws, struct probe_stats *st, u32 cause, u64 value)
{
	st->weights += value;
	st->lost[cause] += value;
	wait_on_run_queue(w, ws, value);
}

/* Counts a wait under its stack. */
static __attribute__((noinline)) int wait_count(struct wait_state *w, u64 ns, bool alone, u64 now, u64 waker)
{
	struct probe_stats *st = my_stats();
	struct wait_stats *ws = wait_stats();
	u64 hash = wait_with_waker(w->hash, waker), value = alone ? ns : wait_value(w, ns),
	    times = alone ? 1 : w->stands;

	if (!st || !ws)
		return 0;
	wait_on_run_queue(w, ws, value);
	if (times > 1) {
		u64 part = value >> WAIT_SQUARE_BITS;

		ws->estimated_ns += value;
		ws->squares += part * part - part * part / times; /* the variance, by what was chosen */
	}
	st->weights += value;
	count_stop(st, w->stop, value);
	if (with_times)
		send_time(hash, value, now, ns);
	if (!event_add(hash, value, times))
		st->lost[LOST_TABLE] += value;
	return 0;
}

/*
 * A wait is over: what of it was not counted yet is. A thread that never ran before has no stack, and no other wait
 * stands for its first one.
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
	alone = wait_counts_alone(w, ns);
	if (!alone && w->unwatched && wait_futexes)
		return 0; /* those of the shifts stand for it */
	times = alone ? 1 : wait_seen_as();
	ws->off_ns += ns * times;
	ws->waits += times;
	wait_learn(w, ns < WAIT_LONG_NS ? ns : WAIT_LONG_NS);
	if ((ns < wait_min_ns || ns > wait_max_ns) && !w->settled) {
		ws->left_out_ns += ns;
		wait_on_run_queue(w, ws, ns);
		return 0;
	}
	if (hash && (!alone || wait_has_stack(w))) {
		wait_count(w, ns, alone, now, waker);
	} else if (alone || is_birth) {
		if (!wait_send(w, ns, hash, waker))
			wait_lose(w, ws, st, LOST_RING, ns);
	} else if (w->chosen) { /* another event had the scratch memory of this CPU */
		wait_lose(w, ws, st, LOST_SCRATCH, wait_value(w, ns));
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
	came = came > w->since_ns ? came : w->since_ns; /* user space has just settled it */
	return wait_over(w, came < now ? came : now);
}

#endif
