/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What is known of a thread's wait (wait.h), and the clock of waits. */
#ifndef YRT_WAIT_STATE_BPF_H
#define YRT_WAIT_STATE_BPF_H

#include "wait/wait_record.h"
#include "wait/wait_why.bpf.h"

#define WAIT_CLOCK_NS 1000000ull /* the scheduler's clock is compared with CLOCK_MONOTONIC so often */

#define WAIT_BRIEFS        8
#define WAIT_PLACE_TAKEN   1
#define WAIT_PLACE_KEPT_NS 1000000000ull

u64 wait_min_ns = 0;
u64 wait_max_ns = ~0ull;
u64 wait_end_ns = 0;           /* no wait lasts longer; 0: it goes on */
u32 wait_settling = 0;         /* the iterator counts what was not counted until now */
u32 wait_futexes = 0;          /* only waits in futex(2): lock-flame */
u32 wait_sampled = 0;          /* there are waits without a stack: user space has to visit those that last */
u64 wait_due_ns = WAIT_DUE_NS; /* user space takes the stacks of waits without one that have lasted for so long */
u32 wait_pauses = 0;           /* switches are not watched (wait_bulk.bpf.h) */
u32 wait_factor = 1;           /* a wait that begins in a shift stands for this many, as the pause has others */
u64 wait_behind_ns = 0; /* wait_stats.behind_ns of the CPU that was compared last: others see no switches of targets */

struct wait_state {   /* of a thread; what each switch needs comes first */
	u64 owner;    /* of a place: wait_number() of its thread; WAIT_PLACE_TAKEN: about to be */
	u64 since_ns; /* off the CPU since then, or counted until then; 0: it runs */
	u64 hash;     /* of its stack; 0: not taken */
	u64 mean_ns;  /* how long its waits last; long ones count as WAIT_LONG_NS */
	u64 switches; /* of the thread when it left: which wait it is */
	u32 stands;   /* of so many waits one is chosen, as this one may be */
	u32 skip;     /* waits to skip before the next is chosen */
	u16 settled;  /* some of it was counted already */
	u16 walked;   /* user space takes its stack */
	u8 runnable;
	u8 exited;
	u8 unwatched; /* nobody saw it begin */
	u8 chosen;    /* its stack is taken as it begins */
	u8 bulk_left; /* it had just left the CPU when bulk_ns began */
	u64 task;     /* its address, for functions that the verifier checks alone: they take no pointer to a task */
	u64 bulk_ns;  /* since then its switches are not timed (wait_bulk.bpf.h); 0: they are */
	u64 bulk_exec_ns; /* its CPU time then */
	u32 bulk_skip;    /* skip then */
	u64 ended_ns;     /* when it exited */
	u64 waker;        /* of the stack that ended the wait; 0: not taken */
	u64 walk_ns;      /* how long it took to take its stack: waits that were not chosen are shorter by that */
	u64 brief_ns;     /* how long those last that are shorter than WAIT_BRIEF_NS, on average */
	u64 delay_ns;     /* on run queues, before the wait */
	u64 queued_ns;    /* of the wait, as it is over */
	u32 drawn;        /* for how many waits that one stands; 0: none was chosen yet */
	u32 stop;
	u32 longs;  /* how many of 256 waits are long */
	u32 briefs; /* how many waits brief_ns is of, up to WAIT_BRIEFS */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wait_state);
} wait_states SEC(".maps");

/*
 * Looking into task storage takes 30 ns, and each switch looks for the states of two threads. So a thread's state is
 * here, at a place that follows from the address of its task_struct (its number may change with exec()), unless another
 * thread has that place.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* WAIT_PLACES of a run that watches waits */
	__type(key, u32);
	__type(value, struct wait_state);
} wait_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wait_stats);
} wait_counters SEC(".maps");

/* There are waits without a stack: wakes user space, which may sleep for longer than such a wait lasts. */
static inline void wait_is_sampled(void)
{
	void *nothing;

	if (wait_sampled)
		return;
	wait_sampled = 1;
	nothing = bpf_ringbuf_reserve(&ring, sizeof(u64), 0);
	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

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
	wait_behind_ns = ws->behind_ns;
}

/*
 * The time at a switch, by the scheduler's clock of this CPU, which was just read. Reading CLOCK_MONOTONIC costs as
 * much as everything else here, so that is done only from time to time.
 */
static inline u64 wait_now(struct wait_stats *ws, struct task_struct *prev)
{
	u64 clock = 0;
	struct rq *queue;

	if (bpf_core_field_exists(prev->se.cfs_rq) && bpf_core_field_exists(prev->se.cfs_rq->rq)) {
		if (!ws->queue)
			ws->queue = (u64)BPF_CORE_READ(prev, se.cfs_rq, rq);
		queue = (struct rq *)ws->queue;
		bpf_core_read(&clock, sizeof(clock), &queue->clock);
	}
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

/* A wait begins that has no stack yet. switches, delay: of the thread. */
static inline void wait_starts(struct wait_state *w, u64 now, u64 switches, u64 delay, bool runnable)
{
	w->delay_ns = delay;
	w->hash = 0;
	w->settled = w->walked = 0;
	w->runnable = runnable;
	w->unwatched = 0;
	w->chosen = 0;
	w->stands = 1;
	w->switches = switches;
	w->since_ns = now;
}

/*
 * Does a wait of ns count for itself alone? User space has looked at threads while it was due, and taken its stack, or
 * would have, if it had none.
 */
static inline bool wait_counts_alone(const struct wait_state *w, u64 ns)
{
	return w->settled || ns >= wait_due_ns + WAIT_FOUND_NS;
}

/* Since when a thread that runs does so, as the scheduler knows; or_else: it does not. */
static inline u64 wait_arrival(struct task_struct *task, u64 or_else)
{
	if (!bpf_core_field_exists(task->sched_info.last_arrival))
		return or_else;
	return BPF_CORE_READ(task, sched_info.last_arrival) + wait_behind_ns;
}

/*
 * For how long a thread has been on run queues since its wait began (w NULL: since it came to the queue that it is on).
 * behind: of the CPU that it is queued for; 0: only queues that it has left.
 */
static __attribute__((always_inline)) inline u64 wait_queued(
        struct task_struct *task, const struct wait_state *w, u64 behind, u64 now)
{
	u64 left = w ? wait_span(w->delay_ns, wait_delay(task)) : 0;

	return left + (behind ? wait_on_queue(task, now - behind) : 0);
}

/* Is a wait of ns one for a CPU from its beginning, as far as can be told of one that nobody saw begin? */
static inline bool wait_is_for_cpu(struct task_struct *task, u64 queued, u64 ns)
{
	return !wait_state_bits(task) &&
	       (!bpf_core_field_exists(task->sched_info.last_queued) || queued >= ns - ns / 8);
}

/* The verifier lets nobody calculate with pointers but subtract them. */
static inline u64 wait_number(struct task_struct *task)
{
	return (u64)task - (u64)&wait_sampled;
}

static inline struct wait_state *wait_place(u64 number)
{
	u32 at = (number >> 6) * 0x9e3779b97f4a7c15ull >> (64 - WAIT_PLACES_BITS);

	return bpf_map_lookup_elem(&wait_places, &at);
}

/* Is a place's thread gone, and its task_struct another's? At the end of a run all threads count as exited. */
static inline bool wait_is_stale(const struct wait_state *w, struct task_struct *task)
{
	return w->exited && !wait_end_ns && w->ended_ns < BPF_CORE_READ(task, start_time);
}

/* The state of a thread, if it has one. */
static __attribute__((always_inline)) inline struct wait_state *wait_known(struct task_struct *task)
{
	u64 number = wait_number(task);
	struct wait_state *w = wait_place(number);

	if (w && !w->owner)
		return NULL;
	if (w && w->owner == number && !wait_is_stale(w, task))
		return w;
	return bpf_task_storage_get(&wait_states, task, NULL, 0);
}

/* Gives a place to a thread that has no state. A thread that ended lately may still be about to leave its CPU. */
static __attribute__((noinline)) int wait_take_place(struct wait_state *w, u64 number)
{
	u64 owner = w->owner;

	if (owner && owner != number && !(w->exited && bpf_ktime_get_ns() - w->ended_ns > WAIT_PLACE_KEPT_NS))
		return 0;
	if (owner == WAIT_PLACE_TAKEN || __sync_val_compare_and_swap(&w->owner, owner, WAIT_PLACE_TAKEN) != owner)
		return 0;
	__builtin_memset(&w->since_ns, 0, sizeof(*w) - offsetof(struct wait_state, since_ns));
	__sync_lock_test_and_set(&w->owner, number);
	return 1;
}

static __attribute__((always_inline)) inline struct wait_state *wait_new(struct task_struct *task)
{
	struct wait_state *w = wait_known(task);
	u64 number = wait_number(task);

	if (w)
		return w;
	w = wait_place(number);
	if (!w || !wait_take_place(w, number))
		w = bpf_task_storage_get(&wait_states, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w)
		return NULL;
	w->task = (u64)task;
	w->delay_ns = wait_delay(task);
	return w;
}

/*
 * How many waits one stands for, where their sum cannot be known but from those that were seen: the
 * scheduler's counters do not tell waits for futexes from others.
 */
static inline u64 wait_seen_as(void)
{
	return wait_futexes ? wait_factor : 1;
}

/*
 * A thread without a state that is ending: it has passed on_thread_exit() before anything counted, which would have
 * made one. Nobody will count its life.
 */
static inline bool wait_is_over(struct task_struct *task)
{
	return task->flags & PF_EXITING;
}

/* The state of a target's thread, which is made for one that has slept until now; NULL: it is not a target's. */
static __attribute__((always_inline)) inline struct wait_state *wait_state_of(struct task_struct *task)
{
	struct wait_state *w = wait_known(task);
	u64 object;
	u32 tgid;

	if (w)
		return w;
	tgid = tgid_of(task);
	if (wait_is_over(task) || !bpf_map_lookup_elem(&processes, &tgid))
		return NULL;
	w = wait_new(task);
	if (!w || (wait_futexes && !wait_for_futex(task, &object)))
		return w;
	w->since_ns = wait_begin(task);
	w->switches = wait_switches(task);
	w->settled = 1; /* user space has looked at it as it was first seen */
	return w;
}

#endif
