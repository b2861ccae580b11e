/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The program at allocation functions (alloc.h). */
#ifndef YRT_ALLOC_BPF_H
#define YRT_ALLOC_BPF_H

#include "hit/hit.bpf.h"
#include "object/alloc.h"
#include "object/alloc_progress.h"
#include "unwind/shared/alloc_shape.h"

#define ALLOC_MOMENT_NS    10000000ull
#define ALLOC_INTERVAL_MAX (1ull << 31)
#define ALLOC_CALL_BYTES   5    /* of a direct call */
#define ALLOC_ANONYMOUS    0x20 /* MAP_ANONYMOUS */

#define ALLOC_PAIR_MOST     3 /* times the mean: what takes longer was interrupted */
#define ALLOC_PAIR_FIRST_NS 8000

u64 alloc_interval = 1;
u64 alloc_call_bytes = 0;    /* as so much more each block is, when chance decides: a half of what is usual */
u64 alloc_interval_most = 0; /* that blocks were taken by chance with */
u32 alloc_most = 0;          /* stacks in a moment, before the interval grows; 0: any number */
u32 alloc_of_moment = 0;
u64 alloc_largest = 0;       /* block of an allocator that counts */
u64 alloc_moment = 0;        /* when it began */
u32 alloc_open = 1;          /* calls count */
u32 alloc_each = ALLOC_EACH; /* how many blocks one of a pool counts for, in units of 1/ALLOC_EACH */
u32 alloc_window = 0;        /* they do so in alloc_window_counts, and user space adds them with a weight */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_counters);
} alloc_counted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_progress);
} alloc_progressed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_mark_hits);
} alloc_marks_hit SEC(".maps");

struct alloc_last { /* hit of a CPU */
	u64 ended, switches;
	u32 thread, is_first;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_last);
} alloc_lasts SEC(".maps");

struct { /* sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct alloc_count_key);
	__type(value, struct alloc_count);
} alloc_window_counts SEC(".maps");

struct { /* by tgid; sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_counter_at);
} alloc_counter_at SEC(".maps");

struct { /* when each began; sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct alloc_thread);
	__type(value, u64);
} alloc_threads SEC(".maps");

struct { /* alloc_inner_key(); sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u32);
} alloc_inner SEC(".maps");

struct { /* sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct alloc_outside);
	__type(value, u32);
} alloc_outside SEC(".maps");

struct alloc_tail { /* a call that may go on as one of another function: its place on the stack, and where it returns */
	u64 at, to;
	u64 sure; /* it does: what begins there is no other call */
};

struct { /* by thread; sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_tail);
} alloc_tails SEC(".maps");

/* Is it a call that the allocator makes of itself? */
WALK_GLOBAL int alloc_is_inner(u64 sp, u64 ip, u64 cookie)
{
	struct alloc_tail here = {.at = sp + 8 * ALLOC_COOKIE_PUSHED(cookie)}, *last;
	struct alloc_outside outside = {.tgid = tgid_of(bpf_get_current_task_btf())};
	u32 thread = (u32)bpf_get_current_pid_tgid();
	u64 key;

	if (bpf_probe_read_user(&here.to, sizeof(here.to), (const void *)here.at))
		return 0;
	key = alloc_inner_key(ALLOC_COOKIE_NUMBER(cookie), (long)(here.to - ip));
	if (bpf_map_lookup_elem(&alloc_inner, &key))
		return 1;
	outside.addr = here.to;
	if (ALLOC_COOKIE_SHAPE(cookie) >= ALLOC_MAP && bpf_map_lookup_elem(&alloc_outside, &outside))
		return 1;
	last = bpf_map_lookup_elem(&alloc_tails, &thread);
	if (last && last->at == here.at && last->to == here.to && (last->sure || !ALLOC_COOKIE_TAILS(cookie))) {
		last->at = 0;
		return 1;
	}
	if (ALLOC_COOKIE_TAILS(cookie))
		bpf_map_update_elem(&alloc_tails, &thread, &here, BPF_ANY);
	return 0;
}

/* The function that is called, or jumped to, next. */
WALK_GLOBAL int alloc_goes_on(u64 sp, u64 ip, u64 cookie)
{
	struct alloc_tail next = {.at = sp, .sure = 1};
	u32 thread = (u32)bpf_get_current_pid_tgid();

	if (ALLOC_COOKIE_OPERAND(cookie)) {
		next.at = sp - 8;
		next.to = ip + ALLOC_CALL_BYTES;
	} else if (bpf_probe_read_user(&next.to, sizeof(next.to), (const void *)sp)) {
		return 0;
	}
	bpf_map_update_elem(&alloc_tails, &thread, &next, BPF_ANY);
	return 0;
}

static const volatile u8 alloc_register_words[] = ARCH_PT_REGS_WORDS;

/* The verifier refuses to read the context at a variable offset; the task has a copy of the registers. */
static inline u64 alloc_register(u32 number)
{
	const u64 *words = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), words + alloc_register_words[number & 15]);
	return value;
}

static __attribute__((noinline)) u64 alloc_operand(const struct pt_regs *ctx, u32 operand)
{
	u64 value = operand & ALLOC_OPERAND_VALUE;

	if (operand & ALLOC_OPERAND_REGISTER)
		return alloc_register((u32)value) * (value >> 8 ?: 1);
	if (operand & ALLOC_OPERAND_PRODUCT)
		return alloc_register((u32)value) * alloc_register((u32)value >> 8);
	if (operand & ALLOC_OPERAND_STACK &&
	        bpf_probe_read_user(&value, sizeof(value), (const void *)(ctx->rsp + value)))
		return 0;
	return value;
}

/* False: it allocates nothing. */
static inline bool alloc_size(const struct pt_regs *ctx, u64 cookie, u64 *size)
{
	switch (ALLOC_COOKIE_SHAPE(cookie)) {
	case ALLOC_SIZE_1:
		*size = ctx->rdi;
		return true;
	case ALLOC_SIZE_3:
		*size = ctx->rdx;
		return true;
	case ALLOC_SIZE_PRODUCT:
		*size = ctx->rdi * ctx->rsi;
		return true;
	case ALLOC_RESIZE:
		*size = ctx->rsi;
		return !ctx->rdi || *size;
	case ALLOC_PRODUCT_2:
		*size = ctx->rsi * ctx->rdx;
		return true;
	case ALLOC_RESIZE_2:
		*size = ctx->rdx;
		return !ctx->rsi || *size;
	case ALLOC_AT:
		*size = alloc_operand(ctx, ALLOC_COOKIE_OPERAND(cookie));
		return true;
	case ALLOC_RESIZE_OF:
		*size = ctx->rcx;
		return *size && (!ctx->rsi || *size > ctx->rdx);
	case ALLOC_MAP:
		*size = (ctx->rsi + 4095) & ~4095ull;
		return ctx->rcx & ALLOC_ANONYMOUS;
	case ALLOC_FREE:
	case ALLOC_FREE_2:
		return false;
	case ALLOC_MOVE_END:
		*size = ctx->rdi;
		return (s64)*size > 0;
	default:
		*size = ctx->rsi;
		return true;
	}
}

/* Does a block of this size get a stack? Then *calls is what it counts for, and *value its bytes. */
static inline bool alloc_choose(u64 size, u64 *value, u64 *calls)
{
	u64 interval = alloc_interval, units = (size ? size : 1) + alloc_call_bytes;

	*value = size;
	*calls = 1;
	if (units >= interval)
		return true;
	if (interval > alloc_interval_most)
		alloc_interval_most = interval;
	if (bpf_get_prandom_u32() >= (units << 32) / interval)
		return false;
	*value = size * interval / units;
	*calls = interval / units + (bpf_get_prandom_u32() % units < interval % units);
	return true;
}

/* Where stacks come fast, the interval grows at once: user space looks too rarely for that. */
static inline void alloc_pace(u64 now)
{
	if (!alloc_most)
		return;
	if (now - alloc_moment > ALLOC_MOMENT_NS) {
		alloc_moment = now;
		alloc_of_moment = 0;
	}
	if (++alloc_of_moment % alloc_most == 0 && alloc_interval < ALLOC_INTERVAL_MAX)
		alloc_interval *= 2;
}

/*
 * What a call that was just made counts for, if it is to get a stack: NULL: it is not. *size is what it asked for.
 */
static __attribute__((noinline)) struct slot *alloc_take(u64 size, u32 *number)
{
	struct probe_stats *st = my_stats();
	u32 zero = 0, tgid = tgid_of(bpf_get_current_task_btf());
	struct alloc_counters *own = bpf_map_lookup_elem(&alloc_counted, &zero);
	int instance = find_target();
	struct slot *slot;
	u64 value, calls;

	if (!own || !st)
		return NULL;
	own->calls++;
	own->bytes += size;
	if (!alloc_choose(size, &value, &calls) || (weight > 1 && bpf_get_prandom_u32() % (u32)weight))
		return NULL;
	own->taken++;
	slot = event_begin(st, instance, tgid, value * weight, number);
	if (slot)
		slot->head.more = calls * weight;
	return slot;
}

/* False: the hit is no allocation that counts. */
static __attribute__((noinline)) int alloc_hit(struct pt_regs *ctx, u64 cookie, u64 *size)
{
	u32 zero = 0;
	struct alloc_counters *own = bpf_map_lookup_elem(&alloc_counted, &zero);
	struct hit_counts *counts = hit_counts_here();

	if (ticks != TICKS_TAKEN || !find_target() || !counts || !own)
		return 0;
	counts->entries++;
	if (ALLOC_COOKIE_SHAPE(cookie) == ALLOC_BEFORE) {
		alloc_goes_on(ctx->rsp, ctx->rip, cookie);
		return 0;
	}
	if (!ALLOC_COOKIE_ALL(cookie) && alloc_is_inner(ctx->rsp, ctx->rip, cookie)) {
		own->inner++;
		return 0;
	}
	if (!alloc_size(ctx, cookie, size))
		return 0;
	if (*size >> 47) {
		own->strange++;
		return 0;
	}
	return 1;
}

/* Counts a stack of a window. False: there is no room. */
WALK_GLOBAL int alloc_count_in_window(u64 hash, u32 epoch, u64 bytes, u64 calls)
{
	struct alloc_count_key key = {.hash = hash, .epoch = epoch};
	struct alloc_count none = {0}, *count;

	count = bpf_map_lookup_elem(&alloc_window_counts, &key);
	if (!count) {
		bpf_map_update_elem(&alloc_window_counts, &key, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&alloc_window_counts, &key);
	}
	if (!count)
		return 0;
	__sync_fetch_and_add(&count->bytes, bytes);
	__sync_fetch_and_add(&count->calls, calls);
	return 1;
}

/* A stack that is walked again later has a hash of its own, and its record says what it counts for. */
static __attribute__((always_inline)) inline void alloc_end(
        struct slot *slot, struct probe_stats *st, struct task_struct *task, u32 tgid)
{
	struct stack_head *head = &slot->head;
	u64 bytes, calls;
	int lost;

	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), !alloc_window);
	bytes = head->value;
	calls = head->more;
	if (!alloc_window) {
		event_end(slot, st, event_emit(slot, st));
		return;
	}
	count_stop(st, head->stop, bytes);
	head->value = head->more = 0; /* the weight is known later */
	lost = event_emit(slot, st);
	if (lost < 0 && !alloc_count_in_window(head->hash, head->epoch, bytes, calls))
		lost = LOST_TABLE;
	head->value = bytes;
	event_end(slot, st, lost);
}

static __attribute__((noinline)) u64 alloc_switches(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->nvcsw + task->nivcsw;
}

/* The time of programs counts as a cost, what lies between those of a pair tells that of an exception. */
WALK_GLOBAL int alloc_hit_ends(u64 began, u64 cookie)
{
	u32 zero = 0, thread = (u32)bpf_get_current_pid_tgid();
	struct alloc_progress *p = bpf_map_lookup_elem(&alloc_progressed, &zero);
	struct alloc_last *last = bpf_map_lookup_elem(&alloc_lasts, &zero);
	u64 switches = alloc_switches();

	if (!p || !last)
		return 0;
	if (last->thread == thread && last->switches == switches && began > last->ended) {
		p->gaps++;
		p->gap_ns += began - last->ended;
	}
	p->hits++;
	p->stepped += ALLOC_COOKIE_STEPPED(cookie);
	last->switches = switches;
	last->thread = thread;
	last->is_first = true;
	last->ended = bpf_ktime_get_ns();
	p->bpf_ns += last->ended - began;
	return 0;
}

/* The second place of a pair. An interrupt in between is no part of what a hit costs. */
SEC("uprobe")
int on_alloc_pair(struct pt_regs *ctx)
{
	u64 began = bpf_ktime_get_ns(), took;
	u32 zero = 0, thread = (u32)bpf_get_current_pid_tgid();
	struct alloc_progress *p = bpf_map_lookup_elem(&alloc_progressed, &zero);
	struct alloc_last *last = bpf_map_lookup_elem(&alloc_lasts, &zero);

	if (ticks != TICKS_TAKEN || !find_target() || !p || !last)
		return 0;
	took = began - last->ended;
	if (last->is_first && last->thread == thread && last->switches == alloc_switches() &&
	        took * p->paired <= ALLOC_PAIR_MOST * p->pair_ns + ALLOC_PAIR_FIRST_NS) {
		p->paired++;
		p->pair_ns += took;
	}
	p->pairs++;
	last->is_first = false;
	last->ended = bpf_ktime_get_ns();
	p->bpf_ns += last->ended - began;
	return 0;
}

#define ALLOC_TSD_BYTES  16384        /* of jemalloc's data of a thread, at most */
#define ALLOC_EVENT_MOST (1ull << 46) /* bytes between two events */

struct alloc_event { /* jemalloc's te_ctx_s */
	u64 is_alloc, current, last, next;
};

/* Does it lie in the data of the thread, and what does it say? */
static inline bool alloc_event_word(u64 tsd, u64 addr, u64 *ret)
{
	return addr - tsd < ALLOC_TSD_BYTES && !bpf_probe_read_user(ret, sizeof(*ret), (const void *)addr);
}

/* Is it an event, and where is the counter? */
static __attribute__((noinline)) int alloc_event_tells(u64 tsd, u64 ctx, u64 *counter)
{
	struct alloc_event at = {0};
	u64 current, last, next;

	if (bpf_probe_read_user(&at, sizeof(at), (const void *)ctx) || (at.is_alloc & 0xff) != 1 ||
	        !alloc_event_word(tsd, at.current, &current) || !alloc_event_word(tsd, at.last, &last) ||
	        !alloc_event_word(tsd, at.next, &next) || current - last < next - last ||
	        current - last > ALLOC_EVENT_MOST)
		return 0;
	*counter = at.current;
	return 1;
}

/* An event of jemalloc's counter of bytes tells where the counter is. Those of freed bytes do not matter. */
SEC("uprobe")
int on_alloc_counter(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 began = bpf_ktime_get_ns(), base = BPF_CORE_READ(task, thread.fsbase), counter = 0;
	struct alloc_counter_at first = {0}, *found;
	u32 tgid = tgid_of(task);
	u8 is_alloc = 0;

	if (ticks != TICKS_TAKEN || !find_target())
		return 0;
	if (!bpf_probe_read_user(&is_alloc, 1, (const void *)ctx->rsi) && is_alloc) {
		found = bpf_map_lookup_elem(&alloc_counter_at, &tgid);
		if (!alloc_event_tells(ctx->rdi, ctx->rsi, &counter))
			counter = base;
		first.offset = counter - base;
		if (!found) {
			bpf_map_update_elem(&alloc_counter_at, &tgid, &first, BPF_NOEXIST);
			found = bpf_map_lookup_elem(&alloc_counter_at, &tgid);
		}
		if (found && first.offset && found->offset == first.offset)
			__sync_fetch_and_add(&found->events, 1);
		else if (found)
			__sync_fetch_and_add(&found->strange, 1);
	}
	alloc_hit_ends(began, bpf_get_attach_cookie(ctx));
	return 0;
}

/* What jemalloc's counter counts for a block: its size class, four of which are between two powers of 2. */
static inline u64 alloc_rounded(u64 size, u64 quantum)
{
	u64 below = size ? size - 1 : 0, step = quantum;
	u32 log = 0;

	if (size <= 8)
		return 8;
	for (u32 bits = 32; bits; bits /= 2)
		if (below >> (log + bits))
			log += bits;
	if (log > 2 && 1ull << (log - 2) > quantum)
		step = 1ull << (log - 2);
	return (size + step - 1) & ~(step - 1);
}

/* A thread of a process whose allocator counts. */
static __attribute__((noinline)) int alloc_note_thread(struct task_struct *task)
{
	struct alloc_thread thread = {.base = BPF_CORE_READ(task, thread.fsbase), .tgid = tgid_of(task)};
	u64 began = BPF_CORE_READ(task, start_time);

	if (!bpf_map_lookup_elem(&alloc_threads, &thread))
		bpf_map_update_elem(&alloc_threads, &thread, &began, BPF_NOEXIST);
	return 0;
}

SEC("iter/task")
int visit_allocating(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 tgid;

	if (!task || task->exit_state)
		return 0;
	tgid = tgid_of(task);
	if (bpf_map_lookup_elem(&alloc_counter_at, &tgid))
		alloc_note_thread(task);
	return 0;
}

/* A landmark; the cookie is its number. */
SEC("uprobe")
int on_alloc_mark(struct pt_regs *ctx)
{
	u64 began = bpf_ktime_get_ns(), number = bpf_get_attach_cookie(ctx) & (ALLOC_MARKS - 1);
	u32 zero = 0;
	struct alloc_progress *p = bpf_map_lookup_elem(&alloc_progressed, &zero);
	struct alloc_mark_hits *hits = bpf_map_lookup_elem(&alloc_marks_hit, &zero);

	if (ticks != TICKS_TAKEN || !find_target() || !p || !hits)
		return 0;
	p->marks++;
	hits->of[number]++;
	alloc_hit_ends(began, 0);
	return 0;
}

static __attribute__((noinline)) int alloc_count_rounded(u64 size, u64 cookie)
{
	u64 units = (size < ALLOC_UNITS_MOST ? size : ALLOC_UNITS_MOST) / ALLOC_UNIT;
	u32 zero = 0;
	struct alloc_progress *p = bpf_map_lookup_elem(&alloc_progressed, &zero);

	if (!p || !ALLOC_COOKIE_QUANTUM(cookie))
		return 0;
	p->rounded += alloc_rounded(size, ALLOC_COOKIE_QUANTUM(cookie));
	p->squares += units * units;
	if (size > alloc_largest)
		alloc_largest = size;
	alloc_note_thread(bpf_get_current_task_btf());
	return 0;
}

WALKING("uprobe", on_alloc)
int on_alloc_walk(struct pt_regs *ctx)
{
	u64 began = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx), size;
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	struct slot *slot;
	u32 number;

	if (ticks != TICKS_TAKEN || !find_target() || !st)
		return 0;
	if (alloc_open && alloc_hit(ctx, cookie, &size)) {
		alloc_count_rounded(size, cookie);
		slot = alloc_take(size, &number);
		if (slot) {
			alloc_pace(began);
			alloc_end(slot, st, task, tgid_of(task));
		}
	}
	alloc_hit_ends(began, cookie);
	return 0;
}

#endif
