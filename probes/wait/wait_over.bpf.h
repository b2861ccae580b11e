/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A wait is over: what it counts for, under which stack. */
#ifndef YRT_WAIT_OVER_BPF_H
#define YRT_WAIT_OVER_BPF_H

#include "wait/wait_chance.bpf.h"
#include "wait/wait_state.bpf.h"

#define WAIT_VALUE_FREE 100000000ll /* no limit for the value of a wait below */

struct { /* by process */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct wait_pool);
} wait_owed SEC(".maps");

/* A part of what this process's threads that have ended lack; the rest is left for others. */
static inline s64 wait_take_owed(u32 tgid)
{
	struct wait_pool *pool = bpf_map_lookup_elem(&wait_owed, &tgid);
	s64 owed = pool ? pool->ns : 0, part = owed >> 3;

	part = part ? part : owed;
	if (part)
		__sync_fetch_and_add(&pool->ns, -part);
	return part;
}

/*
 * The value of a short wait. Because it was chosen by chance, the sum of its thread would be uncertain. But the true
 * sum is known, so each value is made slightly larger or smaller to follow it. The first chosen wait of a thread cannot
 * be corrected yet. Sums grow in pauses between shifts, those of the chosen ones in shifts: so the window is no shorter
 * than both. A wait that is a thousand times as long as others must not stand for a thousand: a value never passes the
 * sum by more than half a window.
 */
static __attribute__((noinline)) u64 wait_value(struct wait_state *w, u64 ns, u32 tgid)
{
	u64 own = ns > w->walk_ns && w->stands != WAIT_ONE ? ns - w->walk_ns : ns, raw = own * w->stands / WAIT_ONE;
	u64 window = 16 * w->raw_ns | 1, scale = 1024, more;
	s64 missing = wait_take_owed(tgid), most;

	if (window < wait_cycle_ns)
		window = wait_cycle_ns;
	w->exact_ns += missing;
	most = (s64)(w->exact_ns - w->counted_ns + window / 2);
	if (w->raw_ns)
		missing = (s64)(w->exact_ns - w->counted_ns - raw);
	most = most > WAIT_VALUE_FREE ? most : WAIT_VALUE_FREE;
	if ((s64)raw > most)
		raw = most;
	w->raw_ns = w->raw_ns ? w->raw_ns - w->raw_ns / 16 + raw / 16 : raw;
	more = ((u64)(missing > 0 ? missing : -missing) << 10) / window;
	if (missing > 0)
		scale += more < 3072 ? more : 3072;
	else
		scale -= more < 768 ? more : 768;
	raw = raw * scale >> 10;
	w->counted_ns += raw;
	return raw;
}

static inline void wait_remember(struct wait_state *w, u64 hash, u64 value)
{
	struct wait_rest wait = {.ns = (s64)value, .hash = hash, .stop = w->stop, .runnable = w->runnable};

	wait_choose(&w->chosen, &wait, counts_in_use);
}

/* At a thread's end, or that of the run. */
static inline void wait_rest_of(const struct wait_state *w, struct wait_rest *ret)
{
	wait_take_rest(&w->chosen, (s64)(w->exact_ns - w->counted_ns), counts_in_use, ret);
}

/* The hash that a wait is counted under: of both stacks, if there is a waker's. */
static __attribute__((noinline)) u64 wait_with_waker(u64 hash, u64 waker)
{
	struct wait_pair pair = {.type = RECORD_EVENT, .pair = 1, .hash = hash, .waker = waker};
	u64 both = waker ? walk_mix(hash, waker) : hash;

	pair.epoch = counts_in_use & 1;
	pair.both = both;
	if (!waker || event_add_known(pair.epoch, &both, 0, 0))
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
static __attribute__((noinline)) bool wait_send(
        struct task_struct *task, const struct wait_state *w, u64 ns, u64 hash, u64 waker)
{
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

/*
 * A wait is over: what of it was not counted yet is. A thread that never ran before has no stack, and no other wait
 * stands for its first one.
 */
WALK_GLOBAL int wait_over(struct wait_state *w, u64 now)
{
	struct probe_stats *st = my_stats();
	struct wait_stats *ws = wait_stats();
	u64 since, ns, value, hash, waker, times;
	struct task_struct *task;
	bool is_long, is_birth;

	if (!w || !st || !ws)
		return 0;
	task = (struct task_struct *)w->task;
	since = __sync_lock_test_and_set(&w->since_ns, 0);
	hash = w->hash;
	waker = w->waker;
	is_birth = !hash && !w->switches;
	if (!since)
		return 0;
	w->waker = 0;
	ns = wait_span(since, now);
	is_long = wait_counts_alone(w, ns);
	if (!is_long && w->unwatched && wait_futexes)
		return 0; /* those of the shifts stand for it */
	times = is_long ? 1 : wait_seen_as();
	ws->off_ns += ns * times;
	ws->waits += times;
	wait_learn(w, ns < WAIT_LONG_NS ? ns : WAIT_LONG_NS);
	if ((ns < wait_min_ns || ns > wait_max_ns) && !w->settled) {
		ws->left_out_ns += ns;
		wait_on_run_queue(w, ws, ns);
		return 0;
	}
	if (!is_long && !is_birth)
		w->exact_ns += ns * times;
	if (hash && (!is_long || wait_has_stack(w))) {
		hash = wait_with_waker(hash, waker);
		value = is_long ? ns : wait_value(w, ns, tgid_of(task));
		if (!is_long)
			wait_remember(w, hash, value);
		wait_on_run_queue(w, ws, value);
		st->weights += value;
		count_stop(st, w->stop, value);
		if (with_times)
			send_time(hash, value, now, ns);
		if (!event_add(hash, value, is_long ? 1 : w->stands / WAIT_ONE))
			st->lost[LOST_TABLE] += value;
		return 0;
	}
	if (!is_long && !is_birth)
		return 0; /* others stand for it */
	if (!wait_send(task, w, ns, hash, waker)) {
		st->weights += ns;
		st->lost[LOST_RING] += ns;
		wait_on_run_queue(w, ws, ns);
	}
	return 0;
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
