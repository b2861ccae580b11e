/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What is known of a thread's wait (wait.h), and the clock of waits. */
#ifndef YRT_WAIT_STATE_BPF_H
#define YRT_WAIT_STATE_BPF_H

#include "wait/wait_record.h"
#include "wait/wait_why.bpf.h"

#define WAIT_ONE      (1u << 16) /* a wait that stands for itself */
#define WAIT_CLOCK_NS 1000000ull /* the scheduler's clock is compared with CLOCK_MONOTONIC so often */

u64 wait_min_ns = 0;
u64 wait_max_ns = ~0ull;
u64 wait_end_ns = 0;   /* no wait lasts longer; 0: it goes on */
u32 wait_settling = 0; /* the iterator counts what was not counted until now */
u32 wait_futexes = 0;  /* only waits in futex(2): lock-flame */
u32 wait_sampled = 0;  /* there are waits without a stack: user space has to visit those that last */

struct wait_state {               /* of a thread */
	u64 since_ns;             /* off the CPU since then, or counted until then; 0: it runs */
	u64 hash;                 /* of its stack; 0: not taken */
	u64 waker;                /* of the stack that ended it; 0: not taken */
	u64 exact_ns, counted_ns; /* of all its short waits, and what those that were chosen counted */
	u64 raw_ns;               /* what one of these stands for, on average */
	u64 mean_ns;              /* how long its waits last; long ones count as WAIT_LONG_NS */
	u64 switches;             /* of the thread when it left: which wait it is */
	u64 walk_ns; /* how long it took to take its stack: waits that were not chosen are shorter by that */
	u32 stands;  /* for how much this wait does, in WAIT_ONE */
	u32 skip;    /* waits to skip before the next is chosen */
	u32 drawn;   /* for how many waits that one stands; 0: none was chosen yet */
	u32 settled; /* some of it was counted already */
	u32 stop;
	u32 longs; /* how many of 256 waits are long */
	u16 runnable;
	u16 exited;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wait_state);
} wait_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wait_stats);
} wait_counters SEC(".maps");

static inline struct wait_stats *wait_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&wait_counters, &zero);
}

/*
 * By how much CLOCK_MONOTONIC is ahead. If the host takes the CPU away between the two readings, the difference grows
 * by milliseconds, which would count as a wait: so it may grow by at most 0.1 % of the time.
 */
static inline void wait_compare(struct wait_stats *ws, u64 clock)
{
	s64 more = (s64)(bpf_ktime_get_ns() - clock - ws->behind_ns), most = (s64)((clock - ws->clock_ns) >> 10);

	ws->behind_ns += (u64)(ws->clock_ns && more > most ? most : more);
	ws->clock_ns = clock;
}

/*
 * The time at a switch, by the scheduler's clock of this CPU, which was just read. Reading CLOCK_MONOTONIC costs as
 * much as everything else here, so that is done only from time to time.
 */
static inline u64 wait_now(struct wait_stats *ws, struct task_struct *prev)
{
	u64 clock = 0;

	if (bpf_core_field_exists(prev->se.cfs_rq) && bpf_core_field_exists(prev->se.cfs_rq->rq))
		clock = prev->se.cfs_rq->rq->clock;
	if (!clock)
		return bpf_ktime_get_ns();
	if (clock - ws->clock_ns >= WAIT_CLOCK_NS)
		wait_compare(ws, clock);
	return clock + ws->behind_ns;
}

/* Since when a thread of a target is watched. */
static __attribute__((noinline)) u64 wait_begin(struct task_struct *task)
{
	u64 begin = BPF_CORE_READ(task, start_time), key = (u64)BPF_CORE_READ(task, signal), since;
	u32 tgid = tgid_of(task);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct process_ending *ending = process ? NULL : bpf_map_lookup_elem(&endings, &key);

	since = process ? process->since_ns : ending && ending->tgid == tgid ? ending->since_ns : 0;
	begin = begin > since ? begin : since;
	return begin > taken_ns ? begin : taken_ns;
}

/* Has the wait a stack that is the best there is? The code that a walk ended in may be known by now (after exec). */
static inline bool wait_has_stack(const struct wait_state *w)
{
	return w->hash && !stop_is_unknown_code(w->stop);
}

static inline u64 wait_switches(struct task_struct *task)
{
	return BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

/* User space may have settled it by a clock that is ahead of this CPU's. */
static inline u64 wait_span(u64 since, u64 now)
{
	return now > since ? now - since : 0;
}

/* Since when a thread that runs does so, as the scheduler knows; or_else: it does not. */
static inline u64 wait_arrival(struct task_struct *task, struct wait_stats *ws, u64 or_else)
{
	if (!bpf_core_field_exists(task->sched_info.last_arrival))
		return or_else;
	return BPF_CORE_READ(task, sched_info.last_arrival) + ws->behind_ns;
}

static inline struct wait_state *wait_new(struct task_struct *task)
{
	return bpf_task_storage_get(&wait_states, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The state of a target's thread, which is made for one that has slept until now; NULL: it is not a target's. */
static __attribute__((always_inline)) inline struct wait_state *wait_state_of(struct task_struct *task)
{
	struct wait_state *w = bpf_task_storage_get(&wait_states, task, NULL, 0);
	u64 object;
	u32 tgid;

	if (w)
		return w;
	tgid = tgid_of(task);
	if (!bpf_map_lookup_elem(&processes, &tgid))
		return NULL;
	w = wait_new(task);
	if (!w || (wait_futexes && !wait_for_futex(task, &object)))
		return w;
	w->since_ns = wait_begin(task);
	w->switches = wait_switches(task);
	return w;
}

#endif
