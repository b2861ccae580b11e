/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A sample of an allocation: when the next one is due, who makes it, and how its record and stack get to user space.
 * Part of sample.bpf.c.
 */
#ifndef YRT_TLAB_SAMPLE_BPF_H
#define YRT_TLAB_SAMPLE_BPF_H

#define WINDOW_NS 10000000ULL /* a burst is what comes within */
#define LN2_Q16   45426       /* ln 2 */

u64 tlab_interval = 0; /* mean distance between samples in bytes; 0: take none */
u32 tlab_open = 1;     /* 0: sites are being placed or taken away */
u32 tlab_duty = ALLOC_ALWAYS;
u32 watching = 1;      /* 0: no debug registers; a refill's stack stands for all of its buffer */
u32 window_most = 100; /* samples of a window */
u32 window_taken = 0;
u64 window_start = 0;
u64 last_alloc_id = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ALLOC_PROBES_MAX);
	__type(key, u32);
	__type(value, struct alloc_probe);
} tlab_probes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32); /* tid */
	__type(value, struct alloc_watch);
} watches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_stats);
} tlab_counters SEC(".maps");

struct { /* bytes handed out, since samples are taken, as if sites were always placed; by struct alloc_handed */
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct alloc_handed);
	__type(value, u64);
} handed_out SEC(".maps");

struct { /* struct alloc_record: to tlab_classes.h */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16384);
} tlab_ring SEC(".maps");

struct { /* to the watchpoint thread of each CPU */
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} watchpoint_threads SEC(".maps");

/*
 * A distance with exponential distribution: -ln(U) times the mean. The logarithm to base 2 comes bit by bit from
 * squaring, with 32 bits of U and 20 behind the point.
 */
WALK_GLOBAL u64 draw_distance(u64 mean)
{
	u64 y = bpf_get_prandom_u32() | 1, log = 0;

	for (u32 step = 16; step; step >>= 1)
		if (!(y >> (32 - step))) {
			y <<= step;
			log += (u64)step << 20;
		}
	for (u32 bit = 1u << 19; bit; bit >>= 1) {
		y = y * y >> 32;
		if (!(y >> 31)) {
			y <<= 1;
			log |= bit;
		}
	}
	return ((mean >> 8) * log >> 12) * LN2_Q16 >> 16;
}

/* A register of the program that was interrupted, by its place in pt_regs. */
static inline u64 saved_register(struct task_struct *task, u16 offset)
{
	u64 value = 0;

	if (offset < sizeof(struct pt_regs___kernel))
		bpf_probe_read_kernel(&value, sizeof(value), (void *)bpf_task_pt_regs(task) + offset);
	return value;
}

/* A burst must not hold up the target. */
static inline bool within_window(struct alloc_stats *st)
{
	u64 now = bpf_ktime_get_ns();

	if (now - window_start > WINDOW_NS) {
		window_start = now;
		window_taken = 0;
	}
	if (__sync_fetch_and_add(&window_taken, 1) < window_most)
		return true;
	st->skipped++;
	return false;
}

static inline struct alloc_stats *alloc_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&tlab_counters, &zero);
}

/* A sample of the current task begins: a slot whose alloc knows who and when; NULL: counted as lost. */
static __attribute__((noinline)) struct slot *begin_sample(
        struct task_struct *task, const struct process_entry *process, u32 tgid, u32 *number)
{
	struct probe_stats *st = my_stats();
	struct slot *slot = st ? event_begin(st, process->instance, tgid, 1, number) : NULL;

	if (!slot)
		return NULL;
	slot->head.begin_ns = bpf_ktime_get_ns(); /* tlab_budget.h wants to know each */
	slot->alloc = (struct alloc_record){.tgid = tgid,
	        .instance = process->instance,
	        .tid = slot->head.tid,
	        .switches = (u32)BPF_CORE_READ(task, nvcsw),
	        .id = __sync_fetch_and_add(&last_alloc_id, 1) + 1};
	return slot;
}

static inline int send_sample(struct slot *slot, struct probe_stats *st, bool wake)
{
	struct stack_head *head = &slot->head;

	st->frames += slot->walk.nframes;
	count_stop(st, head->stop, 1);
	if (bpf_ringbuf_output(
	            &tlab_ring, &slot->alloc, sizeof(slot->alloc), wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		return LOST_RING;
	return send_stack(&slot->walk, head) ? -1 : LOST_RING;
}

/* Walks the stack of what slot->alloc describes, and sends both. */
static __attribute__((always_inline)) inline void end_sample(
        struct task_struct *task, struct slot *slot, struct process_entry *process, bool wake)
{
	struct probe_stats *st = my_stats();

	if (!st) {
		slot->busy = 0;
		return;
	}
	event_user(slot, NULL, task, process, false);
	slot->head.hash = slot->alloc.id; /* the stack is counted by what its record says */
	slot->head.weight = 1;
	event_end(slot, st, send_sample(slot, st, wake));
}
#endif
