/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The one way of an event from a program to user space (event.h says what an event is). A program calls
 *
 *	slot = event_begin(st, instance, tgid, value, &number)	NULL: lost, and counted as such
 *	slot->head.more, .reason; event_reason(slot)		if it has them
 *	event_kernel(ctx, slot, skip)				if the thread is in the kernel
 *	event_user(slot, ctx, task, process, true)		ctx: of a perf event that hit user code, else NULL
 *	event_end(slot, st, event_emit(slot, st))
 *
 * and gets user, language and kernel frames, deferred walks, aggregation and the accounting of losses. An event whose
 * value is known only later passes 0, keeps head.hash, and adds the value by event_add().
 */
#ifndef YRT_EVENT_BPF_H
#define YRT_EVENT_BPF_H

#include "return_walk.bpf.h"

/* The table of one entry by which NAME calls NAME_walk. */
#define WALKING_TABLE(name)                                                                                            \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);                                                                 \
		__uint(max_entries, 1);                                                                                \
		__uint(key_size, sizeof(u32));                                                                         \
		__uint(value_size, sizeof(u32));                                                                       \
	} name##_now SEC(".maps")

/*
 * Defines NAME_walk, a program that takes stacks, in this section. NAME is attached, and calls it through a table of
 * one entry. So a program with more walkers can replace it between two events (probes/walker_loads.h).
 */
#define WALKING(section, name)                                                                                         \
	WALKING_TABLE(name);                                                                                           \
	SEC(section) int name(void *ctx)                                                                               \
	{                                                                                                              \
		bpf_tail_call(ctx, &name##_now, 0);                                                                    \
		return 0;                                                                                              \
	}                                                                                                              \
	SEC(section)

#define CHUNKS_MAX     33           /* of the deepest stack: 8,192 frames and what the kernel adds */
#define DEFERRED_LEAST 5            /* pages of a stack that are sent though a guess needs less, or some are absent */
#define ASK_NS         100000000ULL /* ask for a look at the maps of a process at most this often */
#define YOUNG_NS       10000000000ULL
#define WOKEN_NS       5000000ULL /* what comes so soon after an urgent stack waits for the next one, or a poll */

/* A word of the target; 0: it cannot be read. */
static inline u64 user_word(u64 addr)
{
	u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)addr);
	return value;
}

static inline struct probe_stats *my_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

/* Wakes user space, and notes it for the clock (time_since_woken()). */
static inline u64 wake(void)
{
	struct probe_stats *st = my_stats();

	if (st)
		st->woke = 1;
	return BPF_RB_FORCE_WAKEUP;
}

static inline u64 wake_flags(void)
{
	if (eager || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_wake)
		return wake();
	return BPF_RB_NO_WAKEUP;
}

/*
 * Where user space looks rarely, stacks of young processes wake it: what they name is lost with the process, which may
 * end soon.
 */
static inline bool is_urgent(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 now;

	if (!wake_young)
		return false;
	now = bpf_ktime_get_ns();
	if (now - BPF_CORE_READ(task, group_leader, start_time) > YOUNG_NS || now - woken_ns < WOKEN_NS)
		return false;
	woken_ns = now;
	return true;
}

enum sent { SENT_MORE, SENT_LAST, SENT_FULL };

WALK_GLOBAL int send_chunk(struct walk *w, struct stack_head *head, u32 i)
{
	struct stack_record *record;
	u32 number, n;

	if (!w || !head)
		return SENT_FULL;
	number = w->target.chunk + i;
	record = bpf_map_lookup_elem(&chunks, &number);
	if (!record || i * CHUNK_FRAMES > w->nframes)
		return SENT_FULL;
	n = w->nframes - i * CHUNK_FRAMES;
	record->last = n <= CHUNK_FRAMES;
	if (n > CHUNK_FRAMES)
		n = CHUNK_FRAMES;
	record->type = RECORD_STACK;
	record->nframes = n;
	record->hash = head->hash;
	record->instance = head->instance;
	record->tgid = head->tgid;
	record->tid = head->tid;
	record->weight = head->weight;
	record->more = head->weight_more;
	record->stop = head->stop;
	record->first = i;
	record->epoch = head->epoch;
	record->role = head->role;
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	WALK_BARRIER(n);
	if (n > CHUNK_FRAMES)
		return SENT_FULL;
	if (bpf_ringbuf_output(&ring, record, offsetof(struct stack_record, frame) + n * sizeof(struct frame),
	            is_urgent() ? wake() : wake_flags()))
		return SENT_FULL;
	return record->last ? SENT_LAST : SENT_MORE;
}

/* Sends the frames of a walk. False: the ring was full. */
WALK_GLOBAL int send_stack(struct walk *w, struct stack_head *head)
{
	int sent = SENT_MORE;

	if (!w || !head)
		return false;
	for (u32 i = 0; i < CHUNKS_MAX && sent == SENT_MORE; i++)
		sent = send_chunk(w, head, i);
	return sent == SENT_LAST;
}

/*
 * Where a stack is counted in this epoch; NULL: nothing is yet, or (make) there is no room. Places are never freed
 * while an epoch is in use, so the first free one ends the search.
 */
static inline struct stack_count *count_of(u32 epoch, u64 hash, bool make)
{
	for (u32 i = 0; i < COUNTS_NEAR; i++) {
		u32 place = (epoch & 1) * COUNTS_PLACES + ((u32)(hash + i) & (COUNTS_PLACES - 1));
		struct stack_count *count = bpf_map_lookup_elem(&counts, &place);
		u64 found = count ? count->hash : 0;

		if (!count || (!found && !make))
			return NULL;
		if (!found)
			found = __sync_val_compare_and_swap(&count->hash, 0, hash);
		if (!found || found == hash)
			return count;
	}
	return NULL;
}

/* Adds to what is counted of a stack in this epoch. False: nothing is yet, or (make) there is no room. */
static inline bool event_count(u32 epoch, u64 hash, u64 value, u64 more, bool make)
{
	struct stack_count *count = count_of(epoch, hash, make);

	if (!count)
		return false;
	if (value)
		__sync_fetch_and_add(&count->value, value);
	if (more)
		__sync_fetch_and_add(&count->more, more);
	return true;
}

/* Counts more of a stack that was sent, in this epoch or before. False: there is no room. */
static inline bool event_add(u64 hash, u64 value, u64 more)
{
	return event_count(counts_in_use, hash, value, more, true);
}

/* Sends a stack that is new in this epoch, and counts it. Returns the cause of a loss, or -1. */
WALK_GLOBAL int send_new(struct slot *slot)
{
	struct stack_head *head;

	if (!slot)
		return LOST_RING;
	head = &slot->head;
	if (!send_stack(&slot->walk, head))
		return LOST_RING;
	if (event_count(head->epoch, head->hash, head->value, head->more, true) || !head->value)
		return -1;
	/* The table is full there: the stack carries its own count. */
	head->weight = head->value;
	head->weight_more = head->more;
	return send_stack(&slot->walk, head) ? -1 : LOST_TABLE;
}

/* Counts a stack, and sends it first if it is new. Returns the cause of a loss, or -1. */
static inline int count_stack(struct slot *slot)
{
	struct stack_head *head = &slot->head;

	head->epoch = counts_in_use & 1;
	return event_count(head->epoch, head->hash, head->value, head->more, false) ? -1 : send_new(slot);
}

/* Wakes user space, which makes or forgets the process. */
static inline void send_process_record(u32 type, u32 tgid, u32 instance, u32 parent, u64 stack)
{
	struct process_record record = {
	        .type = type, .tgid = tgid, .instance = instance, .parent = parent, .stack = stack};

	record.ns = bpf_ktime_get_ns();
	bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

WALK_GLOBAL int ask_for_maps(u32 tgid, u64 pc, u64 now)
{
	struct process_record record = {.type = RECORD_UNKNOWN, .tgid = tgid, .pc = pc};
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);

	if (!process || now - process->asked_ns < ASK_NS)
		return 0;
	record.instance = process->instance;
	process->asked_ns = now;
	return bpf_ringbuf_output(&ring, &record, sizeof(record), wake());
}

/*
 * Sends a page of the stack; of the first page only what may be in use. Returns how much, 0: no more. If a
 * guess is to be proved, little more than what is below the guessed frame is sent: it may be wrong. Pages that were not
 * touched yet are absent.
 */
WALK_GLOBAL int send_deferred(struct slot *slot, u32 i)
{
	struct deferred_record *deferred;
	u64 addr;
	u32 size;

	if (!slot)
		return 0;
	deferred = &slot->deferred;
	addr = deferred->reg[REG_SP] - DEFERRED_BELOW;
	size = i ? DEFERRED_PIECE : DEFERRED_PIECE - (addr & (DEFERRED_PIECE - 1));
	if (i)
		addr = (addr & ~(u64)(DEFERRED_PIECE - 1)) + (u64)i * DEFERRED_PIECE;
	WALK_BARRIER(size);
	if (i >= DEFERRED_LEAST && deferred->pc && addr > deferred->sp)
		return 0;
	if (size > DEFERRED_PIECE || bpf_probe_read_user(deferred->byte, size, (const void *)addr))
		return i < DEFERRED_LEAST;
	deferred->type = RECORD_DEFERRED;
	deferred->size = size;
	deferred->hash = slot->head.hash;
	deferred->addr = addr;
	if (bpf_ringbuf_output(&ring, deferred, offsetof(struct deferred_record, byte) + size, BPF_RB_NO_WAKEUP))
		return 0;
	return size;
}

/* Sends a stack that is to be walked again, with what that needs. */
WALK_GLOBAL int send_again(struct slot *slot)
{
	struct stack_head *head;

	if (!slot)
		return LOST_RING;
	head = &slot->head;
	head->hash = walk_mix(walk_mix(slot->walk.hash, bpf_ktime_get_ns()), head->tid);
	head->weight = head->value;
	head->weight_more = head->more;
	if (slot->deferred.resume && stop_is_complete(head->stop))
		head->stop = STOP_RESUMED;
	for (u32 i = 0; i < DEFERRED_PIECES; i++)
		if (!send_deferred(slot, i))
			break;
	return send_stack(&slot->walk, head) ? -1 : LOST_RING;
}

static inline bool take_deferred(struct process_entry *process, u32 stop)
{
	if (!stop_is_unknown_code(stop) || !process->deferred ||
	        bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > 3 * ring_wake)
		return false;
	__sync_fetch_and_add(&process->deferred, -1);
	return true;
}

/*
 * At its first end a walk may ask for what it lacks. In unknown code it goes on where a runtime says if that is exact,
 * else at a caller that is guessed, and where native frames are missing, as long as a runtime says where.
 */
WALK_GLOBAL int walk_goes_on(struct slot *slot, u32 stop)
{
	struct process_entry *process;
	int exact = 0, ret;
	u32 tgid;

	if (!slot)
		return STOP_ARENA;
	if ((stop == STOP_RETURN_PROBE || (stop == STOP_NO_REGION && slot->walk.leaf)) &&
	        walk_past_probe(slot, stop) == STOP_NONE)
		return STOP_NONE;
	stop = slot->head.stop = walk_end(&slot->walk, stop);
	if (stop_is_complete(stop))
		return (int)stop;
	tgid = slot->head.tgid;
	if (!slot->ends++) {
		if (stop == STOP_NO_REGION || stop == STOP_BAD_RETADDR)
			ask_for_maps(tgid, slot->walk.reg[REG_PC], bpf_ktime_get_ns());
		process = slot->defers ? bpf_map_lookup_elem(&processes, &tgid) : NULL;
		if (process && take_deferred(process, stop))
			exact = deferred_note(slot, stop);
	}
	exact = walk_launder(&slot->walk, exact);
	stop = walk_launder(&slot->walk, stop);
	if (!exact && !deferred_guess(slot))
		return STOP_NONE;
	ret = walk_resume(&slot->walk, stop, exact);
	return ret || !exact ? ret : deferred_resumed(slot);
}

static __attribute__((noinline)) struct slot *event_begin(
        struct probe_stats *st, u32 instance, u32 tgid, u64 value, u32 *number)
{
	u64 begin = !(++st->samples & 15) || !st->first_ns ? bpf_ktime_get_ns() : 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct slot *slot;

	st->weights += value;
	if (!st->first_ns)
		st->first_ns = begin;
	slot = claim_slot(number);
	if (!slot) {
		st->lost[LOST_SCRATCH] += value;
		return NULL;
	}
	slot->head = (struct stack_head){
	        .instance = instance, .tgid = tgid, .value = value, .begin_ns = begin, .tid = pid_of(task, task->pid)};
	walk_start(&slot->walk, *number, instance);
	return slot;
}

/* Kernel frames; skip: frames that lead from what happened to the program. */
static __attribute__((always_inline)) inline void event_kernel(void *ctx, struct slot *slot, u32 skip)
{
	long bytes = with_kernel ? bpf_get_stack(ctx, slot->kernel, KERNEL_FRAMES * 8, skip) : 0;

	if (bytes > 0)
		push_kernel(slot, bytes);
}

/* The frame of the reason, inside all others. */
WALK_GLOBAL int event_reason(struct slot *slot)
{
	if (!slot || !slot->head.reason)
		return 0;
	return walk_push(
	        &slot->walk, frame_where(FRAME_REASON, RUNTIME_NATIVE, 0, slot->head.object), slot->head.reason);
}

/*
 * Walks the user frames; process is NULL while it ends. A walk that reaches unknown code is done again later if
 * event_emit() follows (deferred). user: the registers of a perf event that hit user code; NULL: those saved at entry.
 */
static __attribute__((always_inline)) inline void event_user(struct slot *slot, struct bpf_perf_event_data *user,
        struct task_struct *task, struct process_entry *process, bool deferred)
{
	struct walk *w = &slot->walk;
	struct stack_head *head = &slot->head;
	int stop;

	if (!with_user || !process) {
		head->stop = STOP_ROOT;
	} else if (task->flags & PF_KTHREAD) {
		head->stop = everyone ? STOP_ROOT : STOP_NO_USER;
	} else if (!user && has_no_stack(task, process)) {
		head->stop = STOP_ROOT;
	} else {
		walk_through(w, process, head->tgid);
		user_registers(w, user, task, user);
		slot->ends = 0;
		slot->return_probe = NULL;
		slot->defers = deferred;
		slot->guesses = deferred && with_loop ? DEFERRED_GUESSES : 0;
		stop = !user && is_newborn(task) ? walk_newborn(w) : STOP_NONE;
		if (stop != STOP_NONE)
			stop = walk_goes_on(slot, (u32)stop);
		head->stop = stop == STOP_NONE ? walk_user(slot) : (u32)stop;
	}
	w->hash = walk_mix(w->hash, head->stop);
	if (by_thread)
		w->hash = walk_mix(w->hash, head->tid);
	head->hash = w->hash;
}

/* Why the walk has ended, or first ended. */
static inline u32 event_stop(const struct slot *slot)
{
	return slot->head.noted ? slot->head.noted : slot->head.stop;
}

static inline void count_stop(struct probe_stats *st, u32 stop, u64 value)
{
	WALK_BARRIER(stop);
	if (stop < STOP_MAX)
		st->stop[stop] += value;
}

/* Sends the time of a stack: now, or an interval that ends now. A remainder is rounded at random. */
static inline void send_time(u64 hash, u64 value, u64 now, u64 span)
{
	u64 each = time_value | !time_value, rest = value % each;
	struct time_record record = {.type = RECORD_TIME, .hash = hash, .ns = now, .span = span};

	record.count = (u32)(value / each) + (rest && bpf_get_prandom_u32() % each < rest);
	if (record.count)
		bpf_ringbuf_output(&ring, &record, sizeof(record), wake_flags());
}

/* Counts it; user space gets its stack if it is new. Returns the cause of a loss, or -1. */
static inline int event_emit(struct slot *slot, struct probe_stats *st)
{
	struct stack_head *head = &slot->head;
	int lost;

	st->frames += slot->walk.nframes;
	count_stop(st, event_stop(slot), head->value);
	lost = head->noted ? send_again(slot) : count_stack(slot);
	if (with_times && lost < 0)
		send_time(head->hash, head->value, bpf_ktime_get_ns(), 0);
	return lost;
}

static inline void event_end(struct slot *slot, struct probe_stats *st, int lost)
{
	u64 begin = slot->head.begin_ns;

	if (lost >= 0 && lost < LOST_MAX)
		st->lost[lost] += slot->head.value;
	slot->busy = 0;
	if (begin) {
		st->timed_ns += bpf_ktime_get_ns() - begin;
		st->timed++;
	}
}

/* Finishes an event of a perf event: kernel frames if it hit the kernel, user frames, the end. */
static __attribute__((always_inline)) inline void event_hit(
        struct slot *slot, struct probe_stats *st, struct bpf_perf_event_data *ctx, struct task_struct *task, u32 tgid)
{
	bool in_user = (ctx->regs.cs & 3) == 3;

	if (!in_user)
		event_kernel(ctx, slot, 0);
	event_user(slot, in_user ? ctx : NULL, task, bpf_map_lookup_elem(&processes, &tgid), true);
	event_end(slot, st, event_emit(slot, st));
}

#endif
