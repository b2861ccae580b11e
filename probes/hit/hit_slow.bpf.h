/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What is found out about calls that may turn out slow (--over): the registers they began with, and the stacks that
 * their thread waited or ran with. These are taken as it leaves the CPU, and at ticks of a clock; they count only if
 * the call was slow. The time that a call had a CPU is divided among the stacks of its ticks.
 */
#ifndef YRT_HIT_SLOW_BPF_H
#define YRT_HIT_SLOW_BPF_H

#include "hit/hit_key.bpf.h"
#include "hit/hit_record.h"
#include "hit/hit_values.bpf.h"
#include "hit/stack_budget.bpf.h"
#include "wait/wait_why.bpf.h"

#define SLOW_RUNS    wait_reason(WAIT_RUNNING, WAIT_NO_FILE, -1)
#define SLOW_ADDRESS 4096 /* nothing is mapped below */

u64 latency_over_ns = 0;
u64 latency_tick_ns = 1;                  /* between two ticks of the clock */
u64 latency_told_ns[LATENCY_SPECS] = {0}; /* of each -e, only calls that last this long are sent: user space keeps the
					     longest */

struct latency_call {
	u64 began;
	u32 again;   /* it is about to begin once more, on a larger stack */
	u32 left;    /* by a jump to another function, which returns in its place */
	u32 shift;   /* a call of another one may have ended unseen */
	u32 refused; /* by its condition, or that was not asked yet: it does not count */
	u64 reg[LATENCY_REGS];
	u64 which; /* the function's number */
};

struct { /* calls that are under way; the oldest make room. Its size is set where calls are measured */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct latency_key);
	__type(value, struct latency_call);
} latency_calls SEC(".maps");

struct slow_line_key { /* what runs one call after the other: a thread, or what has a stack that moves */
	u64 who;       /* the thread, or the process */
	u64 stack;
};

struct slow_line {
	u64 at;    /* of its outermost call (struct latency_key); 0: it is in none */
	u64 outer; /* when that began */
	u64 began; /* of the call that ended last */
	u64 inner; /* when the innermost began: waits since then are of it */
	u32 calls; /* of languages, that are under way, */
	u32 shift; /* since one of this shift began */
	u32 n;
	u32 shortest; /* of slow_place(): here, as the verifier follows each value of a variable */
	struct latency_wait wait[LATENCY_WAITS];
	struct latency_wait tick[LATENCY_WAITS]; /* what it ran */
	u32 nticks;
};

struct { /* sized for --over, as all here */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct slow_line_key);
	__type(value, struct slow_line);
} slow_lines SEC(".maps");

struct { /* a new one: it is too large for BPF's stack */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slow_line);
} slow_new SEC(".maps");

struct slow_off {
	struct slow_line_key line;
	struct latency_wait wait;
	u64 delay; /* wait_delay() then */
};

struct { /* threads that left the CPU in a call */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slow_off);
} slow_away SEC(".maps");

struct { /* what waits without a thread, in a call (hit_park.bpf.h) */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct slow_line_key);
	__type(value, struct slow_off);
} slow_parked SEC(".maps");

static inline void slow_line_key(struct task_struct *task, const struct latency_key *key, struct slow_line_key *ret)
{
	ret->stack = key->stack;
	ret->who = key->stack ? key->tgid : (u64)BPF_CORE_READ(task, pid);
}

/* Has the outermost call not been left, by an exception or longjmp()? */
static inline bool slow_is_within(const struct slow_line *line, const struct latency_key *key)
{
	return line->at && (key->stack ? key->at >= line->at : key->at <= line->at);
}

static __attribute__((noinline)) struct slow_line *slow_line_of(struct task_struct *task, const struct latency_key *key)
{
	struct slow_line_key at;

	slow_line_key(task, key, &at);
	return bpf_map_lookup_elem(&slow_lines, &at);
}

/* A call begins. shift: 1 + that of calls of languages, which may share a stack pointer; 0: it is native. */
static inline void slow_begin(struct task_struct *task, const struct latency_key *key, u64 now, u32 shift)
{
	struct slow_line *line = slow_line_of(task, key);
	struct slow_line_key at;
	u32 zero = 0;

	if (!line) {
		slow_line_key(task, key, &at);
		line = bpf_map_lookup_elem(&slow_new, &zero);
		if (line)
			bpf_map_update_elem(&slow_lines, &at, line, BPF_NOEXIST);
		line = bpf_map_lookup_elem(&slow_lines, &at);
	}
	if (!line)
		return;
	line->inner = now;
	if (slow_is_within(line, key) && (line->at != key->at || (line->calls && line->shift == shift))) {
		line->calls += shift != 0;
		return;
	}
	line->n = line->nticks = 0;
	line->calls = shift != 0;
	line->shift = shift;
	line->at = key->at;
	line->outer = now;
}

/* Strings of many languages are a pointer and a length, in one order or the other. */
static inline void slow_follow(struct latency_record *record, u32 i)
{
	const u64 *words = (const u64 *)record->memory[i];
	u64 addr = words[0] < SLOW_ADDRESS ? words[1] : words[0];

	if (!bpf_probe_read_user(record->behind[i], LATENCY_BEHIND, (const void *)addr) ||
	        bpf_probe_read_user_str(record->behind[i], LATENCY_BEHIND, (const void *)addr) > 0)
		record->followed |= 1u << i;
}

/* Takes what register i points to. */
WALK_GLOBAL int slow_memory(struct latency_record *record, u32 i)
{
	u64 addr;

	if (!record || i >= LATENCY_REGS)
		return 0;
	addr = record->reg[i];
	if (!bpf_probe_read_user(record->memory[i], LATENCY_MEMORY, (const void *)addr)) {
		record->read |= 1u << i;
		slow_follow(record, i);
	} else if (bpf_probe_read_user_str(record->memory[i], LATENCY_MEMORY, (const void *)addr) > 0) {
		record->text |= 1u << i;
	}
	return 0;
}

/* What is in registers as a call returns. */
WALK_GLOBAL int slow_result(struct latency_record *record)
{
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 addr = 0;

	if (!record || bpf_probe_read_kernel(record->result, sizeof(record->result), regs))
		return 0;
	bpf_probe_read_kernel(&addr, sizeof(addr), &regs->rax);
	record->followed |= LATENCY_RETURNED;
	if (!bpf_probe_read_user(record->returned, LATENCY_MEMORY, (const void *)addr))
		record->read |= LATENCY_RETURNED;
	else if (bpf_probe_read_user_str(record->returned, LATENCY_MEMORY, (const void *)addr) > 0)
		record->text |= LATENCY_RETURNED;
	return 0;
}

/* Of a native call, where it is on its stack. */
static inline struct values_call slow_values_key(const struct latency_key *key)
{
	return (struct values_call){.who = key->at, .began = key->stack, .tgid = (u32)key->tgid};
}

/* Tells what was taken as the call began (on_keep()). Returns its key; 0: nothing was. */
WALK_GLOBAL u64 slow_values(const struct latency_key *key)
{
	struct values_call call;
	struct values_record *values;
	u64 ret;

	if (!key)
		return 0;
	call = slow_values_key(key);
	values = bpf_map_lookup_elem(&values_calls, &call);
	if (!values)
		return 0;
	ret = values->key;
	if (bpf_ringbuf_output(&ring, values, sizeof(*values), 0))
		ret = 0;
	bpf_map_delete_elem(&values_calls, &call);
	return ret;
}

/* Of the thread's call of this function that ends here. */
WALK_GLOBAL int slow_tell(u64 ns, u64 function)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct latency_record *record;
	struct latency_call *call;
	struct slow_line *line;
	struct latency_key key = {0};
	u64 values;

	latency_where(&key);
	key.function = function;
	line = slow_line_of(task, &key);
	call = bpf_map_lookup_elem(&latency_calls, &key);
	values = call ? slow_values(&key) : 0;
	record = line && call ? bpf_ringbuf_reserve(&ring, sizeof(*record), 0) : NULL;
	if (!record)
		return 0;
	record->type = RECORD_EVENT;
	record->which = (u32)call->which;
	record->tgid = (u32)key.tgid;
	record->tid = pid_of(task, task->pid);
	record->began = call->began;
	record->ns = ns;
	record->call = values;
	record->read = record->text = record->followed = record->carried = 0;
	record->nwaits = line->n;
	record->nticks = line->nticks;
	for (u32 i = 0; i < LATENCY_REGS; i++)
		record->reg[i] = call->reg[i];
	bpf_probe_read_kernel(record->wait, sizeof(record->wait), line->wait);
	bpf_probe_read_kernel(record->tick, sizeof(record->tick), line->tick);
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	for (u32 i = 0; i < LATENCY_REGS; i++)
		slow_memory(record, i);
	slow_result(record);
	bpf_ringbuf_submit(record, wake());
	return 0;
}

/* Is it longer than the calls that user space has of this -e? */
static inline bool slow_is_told(u64 ns, u64 function)
{
	return ns >= latency_told_ns[function >> LATENCY_SPEC & (LATENCY_SPECS - 1)];
}

/* A call has ended, slow or not. */
static __attribute__((noinline)) int slow_end(
        struct task_struct *task, const struct latency_key *key, const struct latency_call *call, u64 ns, bool slow)
{
	struct slow_line *line = slow_line_of(task, key);

	if (!line)
		return 0;
	line->began = call->began;
	if (slow && slow_is_told(ns, key->function))
		slow_tell(ns, key->function);
	if (line->at == key->at)
		line->at = 0;
	return 0;
}

WALK_GLOBAL int slow_count_wait(u64 hash, u64 ns, u32 stop)
{
	struct probe_stats *st = my_stats();

	if (!st || !ns)
		return 0;
	st->weights += ns;
	count_stop(st, stop, ns);
	if (!event_add(hash, ns, 0))
		st->lost[LOST_TABLE] += ns;
	return 0;
}

/* Is it of the call that has just ended, and took ns? */
static inline bool slow_counts(const struct slow_line *line, const struct latency_wait *wait, u64 ns)
{
	return wait->hash && wait->began >= line->began && wait->began < line->began + ns;
}

/* Adds its waits, each `times` times. Returns how long they took. */
WALK_GLOBAL u64 slow_waited(const struct slow_line *line, u64 ns, u64 times)
{
	u64 sum = 0;

	for (u32 i = 0; line && i < LATENCY_WAITS && i < line->n; i++) {
		const struct latency_wait *wait = &line->wait[i];

		if (!slow_counts(line, wait, ns))
			continue;
		slow_count_wait(wait->hash, wait->ns * times, wait->stop);
		sum += wait->ns;
	}
	return sum;
}

/* Those of the i-th stack, if they are of the call that has just ended. A function, which is verified once. */
WALK_GLOBAL u64 slow_ticks(const struct slow_line *line, u64 ns, u32 i)
{
	const struct latency_wait *tick;

	if (!line || i >= line->nticks || i >= LATENCY_WAITS)
		return 0;
	tick = &line->tick[i];
	return slow_counts(line, tick, ns) ? tick->ns / (latency_tick_ns | 1) : 0;
}

/* Divides `ran` among the stacks of its ticks. Returns how much of it. */
WALK_GLOBAL u64 slow_ran_with(const struct slow_line *line, u64 ns, u64 ran, u64 times)
{
	u64 all = 0, sum = 0, part;

	for (u32 i = 0; i < LATENCY_WAITS; i++)
		all += slow_ticks(line, ns, i);
	for (u32 i = 0; line && all && i < LATENCY_WAITS; i++) {
		part = ran * slow_ticks(line, ns, i) / all;
		slow_count_wait(line->tick[i].hash, part * times, line->tick[i].stop);
		sum += part;
	}
	return sum;
}

/* The line of the thread that runs here. */
static inline struct slow_line *slow_line_here(void)
{
	struct latency_key key = {0};

	latency_where(&key);
	return slow_line_of(bpf_get_current_task_btf(), &key);
}

/*
 * Adds the waits of the call that has just ended, and the time it ran for as its ticks say, each `times` times. Returns
 * the part of its ns that is left.
 */
WALK_GLOBAL u64 slow_rest(u64 ns, u64 times)
{
	struct slow_line *line = latency_over_ns ? slow_line_here() : NULL;
	u64 sum;

	if (!line)
		return ns;
	sum = slow_waited(line, ns, times);
	if (ns > sum + 1)
		sum += slow_ran_with(line, ns, ns - sum - 1, times);
	return ns > sum ? ns - sum : 1;
}

static inline struct latency_wait *slow_wait_at(struct slow_line *line, u32 i)
{
	return &line->wait[i & (LATENCY_WAITS - 1)];
}

static inline bool slow_is_same(
        const struct slow_line *line, const struct latency_wait *a, const struct latency_wait *b)
{
	return a->hash == b->hash && a->reason == b->reason && a->began >= line->inner;
}

/* The place of waits of the same call with this stack, else a free one, else that of the shortest. */
WALK_GLOBAL u32 slow_place(u32 pid)
{
	struct slow_off *off = bpf_map_lookup_elem(&slow_away, &pid);
	struct slow_line *line = off ? bpf_map_lookup_elem(&slow_lines, &off->line) : NULL;

	if (!line)
		return 0;
	line->shortest = 0;
	for (u32 i = 0; i < LATENCY_WAITS; i++) {
		const struct latency_wait *wait = &line->wait[i];

		if (i >= line->n || slow_is_same(line, wait, &off->wait))
			return i;
		if (wait->ns < slow_wait_at(line, line->shortest)->ns)
			line->shortest = i;
	}
	return line->shortest;
}

/* A wait is over. If there are too many, the shortest makes room. */
static __attribute__((noinline)) int slow_add(u32 pid, const struct slow_off *off, u64 ns)
{
	struct slow_line *line = bpf_map_lookup_elem(&slow_lines, &off->line);
	u32 i = slow_place(pid);
	struct latency_wait *wait;

	if (!line || !line->at)
		return 0;
	wait = slow_wait_at(line, i);
	if (i < line->n && slow_is_same(line, wait, &off->wait)) {
		wait->ns += ns;
	} else if (i >= line->n || wait->ns < ns) {
		*wait = off->wait;
		wait->ns = ns;
		line->n = line->n > i ? line->n : i + 1;
	}
	return 0;
}

/* The place of ticks of the same call with this stack, or a free one, or any. */
static inline struct latency_wait *slow_tick_at(struct slow_line *line, const struct latency_wait *tick)
{
	for (u32 i = 0; i < LATENCY_WAITS; i++)
		if (i >= line->nticks || slow_is_same(line, &line->tick[i], tick))
			return &line->tick[i];
	return &line->tick[bpf_get_prandom_u32() & (LATENCY_WAITS - 1)];
}

/*
 * A tick of the clock. If there is no room, it joins others, of which it gives the stack with a chance by their times:
 * on average each stack has what it ran.
 */
static __attribute__((noinline)) int slow_add_tick(u32 pid)
{
	struct slow_off *off = bpf_map_lookup_elem(&slow_away, &pid);
	struct slow_line *line = off ? bpf_map_lookup_elem(&slow_lines, &off->line) : NULL;
	struct latency_wait *tick;
	u64 ns, step = latency_tick_ns | 1;

	if (!line || !line->at)
		return 0;
	tick = slow_tick_at(line, &off->wait);
	ns = tick->began >= line->inner ? tick->ns : 0; /* what was before the innermost call makes room */
	if (line->nticks < LATENCY_WAITS && tick == &line->tick[line->nticks & (LATENCY_WAITS - 1)]) {
		line->nticks++;
		ns = 0;
	}
	if (!ns || bpf_get_prandom_u32() % (ns / step + 1) == 0)
		*tick = off->wait;
	tick->ns = ns + step;
	return 0;
}

static inline void slow_back(u32 pid)
{
	struct slow_off *off = bpf_map_lookup_elem(&slow_away, &pid);

	if (!off)
		return;
	slow_add(pid, off, wait_span(off->wait.began, bpf_ktime_get_ns()));
	bpf_map_delete_elem(&slow_away, &pid);
}

/* A thread comes to this CPU. Its wait ends with time on the run queue, which counts for itself. */
static inline void slow_comes(struct task_struct *next, struct task_struct *prev)
{
	u32 pid = (u32)next->pid;
	struct slow_off *off = bpf_map_lookup_elem(&slow_away, &pid);
	u64 clock = 0, queued, ns;

	if (!off)
		return;
	if (bpf_core_field_exists(prev->se.cfs_rq) && bpf_core_field_exists(prev->se.cfs_rq->rq))
		clock = BPF_CORE_READ(prev, se.cfs_rq, rq, clock);
	queued = wait_span(off->delay, wait_delay(next)) + wait_on_queue(next, clock);
	ns = wait_span(off->wait.began, bpf_ktime_get_ns());
	if (!wait_is_runnable(off->wait.reason) && queued) {
		queued = queued < ns ? queued : ns;
		ns -= queued;
		slow_add(pid, off, ns);
		off->wait.began += ns;
		off->wait.reason = WAIT_FOR_CPU;
		off->wait.hash = off->wait.hash ? stack_queued(off->wait.hash) : 0;
		ns = queued;
	}
	slow_add(pid, off, ns);
	bpf_map_delete_elem(&slow_away, &pid);
}

/* Its wait, which has begun already, may end on another thread. */
static inline bool slow_is_parked(const struct slow_line *line, const struct slow_line_key *at)
{
	const struct slow_off *parked = at->stack ? bpf_map_lookup_elem(&slow_parked, at) : NULL;

	return parked && parked->wait.began >= line->outer;
}

/* Is the thread that runs here in a call, and not about to leave it parked? Then *off, zeros before, is of now. */
static inline bool slow_in_call(struct task_struct *task, struct slow_off *off)
{
	u32 tgid = tgid_of(task);
	struct latency_key key = {0};
	struct slow_line *line;

	if (!bpf_map_lookup_elem(&processes, &tgid))
		return false;
	latency_where(&key);
	slow_line_key(task, &key, &off->line);
	line = bpf_map_lookup_elem(&slow_lines, &off->line);
	if (!line || !slow_is_within(line, &key) || slow_is_parked(line, &off->line))
		return false;
	off->wait.began = bpf_ktime_get_ns();
	off->delay = wait_delay(task);
	return true;
}

/* The thread that runs here leaves the CPU. Is its stack to be taken? */
static inline bool slow_leaves(struct task_struct *task, bool preempt)
{
	u32 pid = (u32)task->pid;
	struct slow_off off = {0};

	if (!slow_in_call(task, &off))
		return false;
	off.wait.reason = wait_why(preempt ? 0 : wait_state_bits(task));
	bpf_map_update_elem(&slow_away, &pid, &off, BPF_ANY);
	return stack_budget_allows(off.wait.began);
}

WALKING_TABLE(on_call_switch);

SEC("tp_btf/sched_switch")
int BPF_PROG(on_call_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (ticks != TICKS_TAKEN)
		return 0;
	if (next->pid)
		slow_comes(next, prev);
	if (prev->pid && slow_leaves(prev, preempt))
		bpf_tail_call(ctx, &on_call_switch_now, 0);
	return 0;
}

/* Looks for the entry again: the verifier would follow the walk once for each place that it may lie at. */
static __attribute__((noinline)) int slow_walked(u32 pid, const struct slot *slot)
{
	struct slow_off *off = bpf_map_lookup_elem(&slow_away, &pid);

	if (!off)
		return 0;
	off->wait.hash = slot->head.hash;
	off->wait.stop = event_stop(slot);
	return stack_budget_spend(off->wait.began);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_call_switch_walk, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(prev), pid = (u32)prev->pid, number;
	int instance = find_target();
	struct slow_off *off = bpf_map_lookup_elem(&slow_away, &pid);
	struct slot *slot = off && st && instance ? event_begin(st, instance, tgid, 0, &number) : NULL;

	if (!slot)
		return 0;
	slot->head.reason = off->wait.reason;
	event_reason(slot);
	event_kernel(ctx, slot, 0);
	event_user(slot, NULL, prev, bpf_map_lookup_elem(&processes, &tgid), true);
	event_end(slot, st, event_emit(slot, st));
	slow_walked(pid, slot);
	return 0;
}

/* Is the thread that runs here in a call? Its entry in slow_away is free while it runs. */
WALK_GLOBAL int slow_runs(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 pid = (u32)task->pid;
	struct slow_off off = {0};

	if (!slow_in_call(task, &off))
		return false;
	off.wait.reason = SLOW_RUNS;
	return !bpf_map_update_elem(&slow_away, &pid, &off, BPF_ANY);
}

WALK_GLOBAL int slow_ran(u64 hash, u32 stop)
{
	u32 pid = (u32)bpf_get_current_task_btf()->pid;
	struct slow_off *off = bpf_map_lookup_elem(&slow_away, &pid);

	if (!off)
		return 0;
	off->wait.hash = hash;
	off->wait.stop = stop;
	slow_add_tick(pid);
	bpf_map_delete_elem(&slow_away, &pid);
	return 0;
}

WALKING("perf_event", on_call_tick)
int on_call_tick_walk(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task), pid = (u32)task->pid, number;
	struct slot *slot;
	int instance;

	if (ticks != TICKS_TAKEN || !st || !slow_runs())
		return 0;
	instance = find_target();
	slot = instance ? event_begin(st, instance, tgid, 0, &number) : NULL;
	if (!slot) {
		bpf_map_delete_elem(&slow_away, &pid);
		return 0;
	}
	slot->head.reason = SLOW_RUNS;
	event_reason(slot);
	event_hit(slot, st, ctx, task, tgid);
	return slow_ran(slot->head.hash, event_stop(slot));
}

#endif
