/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The program of the clock: which ticks of which CPU are samples (clock.h). */
#ifndef YRT_CLOCK_BPF_H
#define YRT_CLOCK_BPF_H

#include "clock/clock_cpus.bpf.h"

#define LATE_TICK_NS 5000
#define GAP_PERIODS  3 /* a tick stands for so many at most */
#define RAN_PERIODS  8 /* and one that follows a wakeup */

__u64 period_ns = 0;    /* CPU time that a sample stands for */
__u64 clock_value = 0;  /* what it counts */
__u32 clock_reason = 0; /* of all samples */

/* For how long has this task had this CPU? ~0: the kernel does not say. */
static inline u64 time_here(struct perf_event *event, struct task_struct *task)
{
	s64 here;

	if (!bpf_core_field_exists(task->sched_info.last_arrival))
		return ~0ULL;
	here = BPF_CORE_READ(event, hw.prev_count.a.a.counter) - (s64)task->sched_info.last_arrival;
	return here > 0 ? (u64)here : 0;
}

/*
 * The time that a tick of this CPU stands for: the time since the tick before. That is more than a period if the
 * clock's period has changed (clock.h), if the kernel did not run the program (another BPF program or a map update had
 * the CPU), or if the CPU was idle, as some CPUs do not tick then. If ticks are missing, only this task's time on the
 * CPU counts; otherwise it would get idle's time. More than GAP_PERIODS is lost (a virtual machine that was stopped, a
 * throttled clock). Time before this task had the CPU is not counted: nobody knows how much of it was used, and behind
 * a pool's short requests it is idle time.
 */
static inline u64 tick_time(struct probe_stats *st, struct perf_event *event, u64 now, bool target, u64 here)
{
	u64 period = BPF_CORE_READ(event, hw.sample_period);
	u64 time = st->last_ns ? now - st->last_ns : period, most = period * GAP_PERIODS,
	    own = here < time ? here : time;
	u64 whole = st->last_period != period ? st->last_period + period : period; /* if no tick is missing */

	if (time > most && target && own > most)
		st->lost_ns += own - most;
	if (time > whole + whole / 4)
		time = own > period ? own : period;
	if (time > most)
		time = most;
	st->last_ns = now;
	st->last_period = period;
	return time;
}

/* CPU time of the task, from a moment on that stays the same as long as it keeps its CPU. */
static inline u64 time_run(struct perf_event *event, struct task_struct *task)
{
	return task->se.sum_exec_runtime + (u64)BPF_CORE_READ(event, hw.prev_count.a.a.counter) - task->se.exec_start;
}

static inline void note_woken(struct clock_woken *woken, struct perf_event *event, struct task_struct *task)
{
	woken->ran = time_run(event, task);
	woken->migrations = task->se.nr_migrations;
	woken->tid = (u32)bpf_get_current_pid_tgid();
}

/*
 * A tick that wakes user space takes the CPU away from the task that it hit, if user space gets the same CPU.
 * Everything that user space does is then between two ticks that may both hit the target, and each would stand for all
 * of that time: code whose stacks are always new had a third too many samples. So the tick after a wakeup stands only
 * for what its thread has run since.
 */
static inline u64 time_since_woken(
        struct clock_woken *woken, struct perf_event *event, struct task_struct *task, u64 time)
{
	u64 ran, most;

	if (!woken->tid || woken->tid != (u32)bpf_get_current_pid_tgid())
		return time;
	woken->tid = 0;
	ran = time_run(event, task) - woken->ran;
	if (woken->migrations != task->se.nr_migrations)
		return time;
	most = BPF_CORE_READ(event, hw.sample_period) * RAN_PERIODS;
	return ran < most ? ran : most;
}

/*
 * Was the tick due before this task came to this CPU? A CPU that wakes up from idle is late with its timer, by 30 to 70
 * us on a virtual machine, and with deep idle states elsewhere too. Such ticks hit the task that runs next: 15 % too
 * many in requests of 0.2 ms. Only then is the delay long enough to matter; at a switch interrupts are off for some
 * microseconds only.
 */
static inline bool was_due_before(struct perf_event *event, u64 now, u64 here)
{
	s64 late = (s64)now - BPF_CORE_READ(event, hw.hrtimer._softexpires);

	return late >= LATE_TICK_NS && (u64)late > here;
}

/*
 * Is this tick a sample? The CPU time of targets on a CPU is divided into blocks of one sampling period. In each block
 * a random moment is chosen, and the first tick after it that is not a sample yet becomes one. So the choice depends on
 * time alone, not on what runs.
 */
static inline bool take_tick(struct probe_stats *st, u64 time)
{
	u64 period = period_ns;

	if (!st->at)
		st->chosen = bpf_get_prandom_u32() % period;
	st->at += time;
	if (st->at <= st->chosen)
		return false;
	st->chosen = (st->chosen / period + 1) * period + bpf_get_prandom_u32() % period;
	return true;
}

/*
 * The tgid of the parent if the task has not called execve() since it was forked: both run the same file at the same
 * addresses, which are random for each program. Else 0, which is no target.
 */
static inline u32 forked_from(struct task_struct *task)
{
	struct task_struct *parent = BPF_CORE_READ(task, real_parent);
	struct mm_struct *own = BPF_CORE_READ(task, mm), *its = BPF_CORE_READ(parent, mm);

	if (!own || !its || BPF_CORE_READ(own, exe_file) != BPF_CORE_READ(its, exe_file) ||
	        BPF_CORE_READ(own, start_stack) != BPF_CORE_READ(its, start_stack) ||
	        BPF_CORE_READ(own, start_brk) != BPF_CORE_READ(its, start_brk))
		return 0;
	return tgid_of(parent);
}

/*
 * Adds a process to the targets and reports it to user space. entry: its parent's, or an empty one. Returns its
 * instance number; 0: the map is full.
 */
static inline u32 add_target(struct probe_stats *st, u32 tgid, struct process_entry *entry)
{
	u32 parent = entry->instance;

	entry->deferred = DEFERRED_MOST;
	entry->stack = BPF_CORE_READ(bpf_get_current_task_btf(), mm, start_stack);
	entry->since_ns = bpf_ktime_get_ns();
	entry->instance = __sync_fetch_and_add(&last_instance, 1) + 1;
	if (bpf_map_update_elem(&processes, &tgid, entry, BPF_NOEXIST)) {
		st->lost[LOST_TABLE] += weight;
		return 0;
	}
	send_process_record(RECORD_FORK, tgid, entry->instance, parent, entry->stack);
	return entry->instance;
}

/*
 * With -a, a process becomes a target at its first tick, so processes that never run cost nothing. Its parent becomes
 * one too if it was only forked: a parent that never runs may fork many short-lived children. Until user space has read
 * the files of a process, its stacks are walked with its parent's tables, or copied, as those of a program that has
 * just started. Returns its instance; 0: it is no target.
 */
WALK_GLOBAL int adopt(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tgid = tgid_of(task), forker = forked_from(task);
	struct process_entry entry = {}, *parent;
	struct probe_stats *st = my_stats();

	if (!BPF_CORE_READ(task, pid) || !tgid || tgid == own_tgid || !st)
		return 0;
	parent = bpf_map_lookup_elem(&processes, &forker);
	if (parent)
		entry = *parent;
	else if (forker && forker != own_tgid)
		add_target(st, forker, &(struct process_entry){});
	return add_target(st, tgid, &entry);
}

/*
 * Does the tick hit no target? It is noted (tick_time()), by little code that stays in the caches: most ticks of a
 * machine with many CPUs are such.
 */
static inline bool is_foreign(struct bpf_perf_event_data *ctx)
{
	struct probe_stats *st = my_stats();
	struct perf_event *event;

	if (!st)
		return true;
	st->hit = everyone ? !!bpf_get_current_pid_tgid() : (u32)find_target(); /* 0: idle */
	if (st->hit)
		return false;
	event = BPF_CORE_READ((struct bpf_perf_event_data_kern *)(void *)ctx, event);
	st->last_ns = bpf_ktime_get_ns();
	st->last_period = BPF_CORE_READ(event, hw.sample_period);
	return true;
}

WALKING_TABLE(on_clock);
SEC("perf_event")
int on_clock(struct bpf_perf_event_data *ctx)
{
	if (!is_foreign(ctx))
		bpf_tail_call(ctx, &on_clock_now, 0);
	return 0;
}

SEC("perf_event")
int on_clock_walk(struct bpf_perf_event_data *ctx)
{
	struct perf_event *event = BPF_CORE_READ((struct bpf_perf_event_data_kern *)(void *)ctx, event);
	struct task_struct *task = bpf_get_current_task_btf();
	u64 time, here, now = bpf_ktime_get_ns();
	struct probe_stats *st = my_stats();
	u32 number, tgid = tgid_of_typed(task);
	struct slot *slot;
	u32 instance;

	if (ticks != TICKS_TAKEN || !st)
		return 0;
	instance = everyone ? (u32)find_target() : st->hit; /* is_foreign() has looked for it already */
	if (!instance && everyone)
		instance = (u32)adopt();
	here = instance ? time_here(event, task) : 0;
	if (instance && was_due_before(event, now, here))
		instance = 0;
	time = tick_time(st, event, now, instance, here); /* of no target: noted only */
	if (!instance)
		return 0;
	time = time_since_woken(&st->woken, event, task, time);
	st->ticks++;
	st->hit_ns = now;
	if (!take_tick(st, time))
		return 0;
	st->clocked += weight;
	slot = event_begin(st, instance, tgid, weight * clock_value, &number);
	if (!slot)
		return 0;
	slot->head.reason = clock_reason;
	event_reason(slot);
	st->woke = 0;
	event_hit(slot, st, ctx, task, tgid);
	if (st->woke)
		note_woken(&st->woken, event, task);
	return 0;
}

#endif
