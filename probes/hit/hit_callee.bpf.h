/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The program that runs where a call touches a debug register (thread_watch.h). */
#ifndef YRT_HIT_CALLEE_BPF_H
#define YRT_HIT_CALLEE_BPF_H

#include "hit/hit_callee.h"
#include "hit/hit_latency.bpf.h"
#include "hit/hit_values.bpf.h"

struct { /* of a Y program: its handlers of such functions, sized where it has some */
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} y_handlers SEC(".maps");

u32 callee_closed = 0;  /* set by hit_callees.c: calls that begin do not count */
u32 y_handlers_run = 0; /* before, no call begins that they might see the end of */

struct { /* sized where functions of a language are probed */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct callee_key);
	__type(value, struct callee_watch);
} callees SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct callee_counts);
} callee_counters SEC(".maps");

/*
 * Of the current process. Out of line, as most here: the chain of functions below a program needs all of the stack. But
 * the kernel takes 256 functions of a program, and on_callee() has nearly that many.
 */
static __attribute__((noinline)) struct callee_watch *callee_of(u64 addr, u32 which)
{
	struct callee_key key = {.addr = addr, .tgid = tgid_of(bpf_get_current_task_btf()), .which = which};

	return bpf_map_lookup_elem(&callees, &key);
}

static __attribute__((noinline)) struct callee_counts *callee_counts_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&callee_counters, &zero);
}

/* Was the address read, not written? */
static inline int callee_was_read(struct callee_watch *watch, u64 addr)
{
	u32 bytes = watch->bytes;
	u64 word = 0;

	if (!bytes)
		return !watch->word || bpf_probe_read_user(&word, CALLEE_PATCH, (const void *)addr) ||
		       word == watch->word;
	WALK_BARRIER(bytes);
	if (bytes > 8 || bpf_probe_read_user(&word, bytes, (const void *)addr))
		return true;
	if (word == watch->word)
		return true;
	watch->word = word;
	return false;
}

/* Is it written, and less than before? */
static inline int callee_falls(struct callee_watch *watch, u64 addr)
{
	s32 now = 0, before = (s32)watch->word;

	if (bpf_probe_read_user(&now, sizeof(now), (const void *)addr))
		return false;
	watch->word = (u32)now;
	return now < before;
}

#define X86_CMP8     0x80   /* with modrm xx 111 xxx: cmp $imm8, memory */
#define X86_XOR_EAX  0xc031 /* xor %eax, %eax */
#define X86_CMP_AL   0x3a   /* with modrm 00 000 xxx: cmp (register), %al */
#define X86_CODE_MAX 8      /* of such an instruction without prefix */

/* Does the instruction before rip compare what it reads with a constant? */
static __attribute__((always_inline)) inline int callee_is_compared(const struct callee_watch *watch, u64 rip)
{
	u8 code[X86_CODE_MAX];

	if (!watch->compared || bpf_probe_read_user(code, sizeof(code), (const void *)(rip - sizeof(code))))
		return false;
	if (code[X86_CODE_MAX - 1] < 8 && code[X86_CODE_MAX - 2] == X86_CMP_AL) /* overflows if it is -128: clang */
		return code[X86_CODE_MAX - 4] == (X86_XOR_EAX & 0xff) && code[X86_CODE_MAX - 3] == X86_XOR_EAX >> 8 &&
		       watch->compared == 0x80;
	if (code[X86_CODE_MAX - 1] != watch->compared)
		return false;
	for (u32 i = 0; i < X86_CODE_MAX - 2; i++)
		if (code[i] == X86_CMP8 && (code[i + 1] & 0x38) == 0x38 && code[i + 1] < 0xc0)
			return true;
	return false;
}

/* Does code read the entry that begins no call? rip is behind the instruction. */
static inline bool callee_is_elsewhere(const struct callee_watch *watch, u64 rip)
{
	return watch->code_to && (rip <= watch->code_from || rip > watch->code_to);
}

/* Was the entry read already by this call? */
static __attribute__((always_inline)) inline int callee_is_anew(struct callee_watch *watch)
{
	u64 words[CALLEE_STAMP], sum;

	if (!watch->stamp_at || bpf_probe_read_user(words, sizeof(words), (const void *)watch->stamp_at))
		return false;
	sum = words[0] + words[1] + words[2];
	if (sum == watch->stamp)
		return false;
	watch->stamp = sum;
	return true;
}

/* Is this frame, of a language, that of the function as it begins? */
static inline bool callee_is_at(const struct callee_watch *watch, const struct frame *f)
{
	u64 where = f->where & ~(0xffull << FRAME_ADDR_BITS);

	return (where == watch->at[0].where && !((f->detail ^ watch->at[0].detail) & ~watch->loose)) ||
	       (watch->nat > 1 && where == watch->at[1].where && f->detail == watch->at[1].detail);
}

static inline bool callee_is_handled(const struct callee_watch *watch)
{
	return watch->handler[0] || watch->handler[1];
}

/* Are its arguments a frame of the stack? */
static __attribute__((always_inline)) inline bool callee_shows_values(const struct callee_watch *watch)
{
	return watch->shows;
}

/* Frames that are no code, in front of all others: the arguments, the reason. */
static inline u64 callee_heads(const struct slot *slot, const struct callee_watch *watch)
{
	return (slot->head.reason ? 1 : 0) + (callee_shows_values(watch) ? 1 : 0);
}

/* Their frames; what the arguments are is not known yet. And that of a call that is gone: a walk finds its caller. */
static inline int callee_head(struct slot *slot, const struct callee_watch *watch)
{
	if (callee_shows_values(watch))
		walk_push(&slot->walk, frame_where(FRAME_OBJECT, RUNTIME_NATIVE, 0, 0), 0);
	event_reason(slot);
	return watch->exit == CALLEE_GONE && walk_push(&slot->walk, watch->at[0].where, watch->at[0].detail);
}

/* Where the innermost frame of a call is in a chunk: behind what is no code, and what may precede it. */
static inline u64 callee_at(const struct slot *slot, const struct callee_watch *watch, const struct stack_record *chunk)
{
	u64 at = callee_heads(slot, watch);

	if (watch->lead && frame_kind(&chunk->frame[at]) == FRAME_NATIVE)
		at++;
	if (watch->beside && frame_kind(&chunk->frame[at]) == FRAME_SCRIPT && chunk->frame[at].detail & watch->beside)
		at++;
	return at;
}

#define CALLEE_AT_MAX 5

/* Is the innermost frame of a walk, but for the reason, that of the function as it begins? */
WALK_GLOBAL int callee_begins(struct slot *slot, const struct callee_watch *watch)
{
	struct stack_record *chunk;
	u32 number;
	u64 at;

	if (!slot || !watch)
		return false;
	number = slot->walk.target.chunk;
	chunk = bpf_map_lookup_elem(&chunks, &number);
	if (!chunk || !slot->walk.nframes)
		return false;
	at = callee_at(slot, watch, chunk);
	WALK_BARRIER(at);
	return at < CALLEE_AT_MAX && callee_is_at(watch, &chunk->frame[at]);
}

#define CALLEE_REGISTERS                                                                                               \
	15 /* of struct pt_regs, in its beginning: all but those of the program counter and the stack */

/* Does a register point to the frame of the function as it begins? */
WALK_GLOBAL int callee_is_proven(const struct callee_watch *watch)
{
	const u64 *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct callee_counts *counts = callee_counts_here();
	u64 at, word;

	if (!watch || !counts)
		return false;
	for (u32 i = 0; i < CALLEE_REGISTERS; i++)
		if (!bpf_probe_read_kernel(&at, sizeof(at), regs + i) &&
		        !bpf_probe_read_user(&word, sizeof(word), (void *)(at + watch->proof_at[0])) &&
		        word == watch->proof[0] &&
		        !bpf_probe_read_user(&word, sizeof(word), (void *)(at + watch->proof_at[1])) &&
		        word == watch->proof[1]) {
			counts->proven = at;
			return true;
		}
	return false;
}

/*
 * Has the walk found the caller, while the function's frame is there and not linked yet? Then it is to be done again,
 * behind that frame.
 */
static __attribute__((always_inline)) inline int callee_starts_anew(struct slot *slot, const struct callee_watch *watch)
{
	u32 each = chunks_per_slot | !chunks_per_slot;

	if (!watch->nproof || callee_begins(slot, watch) || !callee_is_proven(watch))
		return false;
	walk_start(&slot->walk, slot->walk.target.chunk / each, slot->head.instance);
	slot->head.noted = 0;
	callee_head(slot, watch);
	return walk_push(&slot->walk, watch->at[0].where, watch->at[0].detail);
}

static inline u64 callee_word(const struct callee_watch *watch, u64 addr)
{
	u64 word = 0;

	bpf_probe_read_user(&word, watch->place.half ? 4 : 8, (const void *)addr);
	return word;
}

/* Where the call's part of its language's own stack begins. */
static __attribute__((always_inline)) inline u64 callee_part(const struct callee_watch *watch, u64 owner)
{
	const u64 *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 at = 0;

	if (watch->place.reg != CALLEE_NO_REG)
		bpf_probe_read_kernel(&at, sizeof(at), regs + watch->place.reg);
	else
		at = callee_word(watch, callee_word(watch, owner + watch->place.top) + watch->place.call);
	return watch->place.half ? (u32)at : at;
}

/* The innermost frame of the language, and its caller's, as the walk or a register told. */
WALK_GLOBAL int callee_frames(const struct slot *slot, const struct callee_watch *watch)
{
	struct callee_counts *counts = callee_counts_here();
	u32 word;

	if (!slot || !watch || !counts)
		return 0;
	counts->frame = counts->proven;
	counts->caller = 0;
	for (u32 i = 0; i < WALK_CURSORS && watch->frame_word; i++) {
		if (i >= slot->walk.ncursors || slot->walk.cursor[i].key != watch->frame_cursor)
			continue;
		word = watch->frame_word; /* here: Linux 6.1 forgets the bounds of what is kept on the stack */
		WALK_BARRIER(word);
		if (word > 5)
			break;
		counts->caller = slot->walk.cursor[i].more[word + 1];
		if (!counts->frame)
			counts->frame = slot->walk.cursor[i].more[word];
		else
			counts->caller = slot->walk.cursor[i].more[word];
	}
	return 0;
}

/* Where the arguments of the call lie that begins; 0: it is not known. */
static inline u64 callee_arguments(const struct slot *slot, const struct callee_watch *watch)
{
	const struct value_places *p = values_places(watch->values);
	struct callee_counts *counts = callee_counts_here();
	u32 own = watch->place.own - 1;
	u64 at = 0;

	if (!p || !counts)
		return 0;
	WALK_BARRIER(own);
	callee_frames(slot, watch);
	if (p->base == VALUE_FRAME)
		at = counts->frame;
	else if (p->base == VALUE_PLACE)
		at = callee_part(watch, own < WALK_CURSORS ? slot->walk.cursor[own].key : 0);
	else if (p->base == VALUE_POINTER)
		at = values_register(p->pointer);
	else if (p->base == VALUE_REGISTERS)
		return 1;
	return at ? at + (u64)(s64)p->at : 0;
}

static __attribute__((always_inline)) inline struct values_call callee_call(u64 began)
{
	const struct callee_counts *counts = callee_counts_here();

	return (struct values_call){
	        .who = counts ? counts->who : 0, .began = began, .tgid = tgid_of(bpf_get_current_task_btf())};
}

/* Keeps the arguments until the call is over. */
static inline int callee_keep(u64 now)
{
	struct values_call key = callee_call(now);
	struct values_record *r = values_here();

	if (r && latency_over_ns)
		bpf_map_update_elem(&values_calls, &key, r, BPF_ANY);
	return 0;
}

/* Makes the arguments part of the stack's hash: calls with others are another stack. */
WALK_GLOBAL int callee_values(struct slot *slot, const struct callee_watch *watch, u64 now)
{
	struct stack_record *chunk;
	u32 number;
	u64 key;

	if (!slot || !watch || !watch->values)
		return 0;
	number = slot->walk.target.chunk;
	values_take(watch->values, callee_arguments(slot, watch));
	if (callee_is_handled(watch)) /* on_y_values() or on_callee_fields() goes on with them */
		return 0;
	if (watch->function)
		return callee_keep(now);
	key = values_count(slot->head.tgid, watch->each);
	chunk = bpf_map_lookup_elem(&chunks, &number);
	if (chunk)
		chunk->frame[0].detail = key;
	slot->head.hash = walk_mix(slot->head.hash, key);
	return 0;
}

/* A hit that comes to nothing. */
static inline int callee_drop(struct slot *slot, struct probe_stats *st)
{
	st->samples--;
	slot->busy = 0;
	return false;
}

/* A hit is over. Is it a call? Then it counts. */
static inline int callee_counts_as(struct slot *slot, struct callee_watch *watch, u64 now)
{
	struct callee_counts *counts = callee_counts_here();
	struct probe_stats *st = my_stats();

	if (!slot || !watch || !counts || !st)
		return false;
	if (callee_closed || !callee_begins(slot, watch))
		return callee_drop(slot, st);
	st->weights += watch->each;
	counts->calls++;
	counts->happened = CALLEE_BEGAN;
	__sync_fetch_and_add(&watch->calls, 1);
	counts->stand_for += watch->each;
	callee_values(slot, watch, now);
	return true;
}

/* --- how long calls take --- */

/* Set by hit_callees.c, as hit_each and hit_shift are for uprobes. */
u32 callee_each = 1;
u32 callee_shift = 0;

struct { /* struct callee_own_key; sized where slow calls are wanted */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct callee_own_key);
	__type(value, u64);
} callee_own SEC(".maps");

static __attribute__((always_inline)) inline struct callee_own_key callee_own_key(const struct callee_counts *counts)
{
	return (struct callee_own_key){
	        .who = counts->who, .tgid = tgid_of(bpf_get_current_task_btf()), .function = (u32)counts->function};
}

/* Of the function that the hit is of. */
static inline struct latency_stats *callee_stats(void)
{
	struct callee_counts *counts = callee_counts_here();

	return counts ? latency_stats_of(counts->function) : NULL;
}

struct callee_line_key {
	u64 who; /* the thread, or whose stack it is */
	u32 tgid, function;
};

struct { /* sized where calls are measured */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct callee_line_key);
	__type(value, struct callee_line);
} callee_lines SEC(".maps");

struct { /* a new one: it is too large for BPF's stack */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct callee_line);
} callee_new SEC(".maps");

static __attribute__((noinline)) struct callee_line *callee_line_of(u32 function)
{
	struct callee_counts *counts = callee_counts_here();
	struct callee_line_key key = {
	        .who = counts ? counts->who : 0, .tgid = tgid_of(bpf_get_current_task_btf()), .function = function};
	struct callee_line *line = bpf_map_lookup_elem(&callee_lines, &key);
	u32 zero = 0;

	if (line)
		return line;
	line = bpf_map_lookup_elem(&callee_new, &zero);
	if (line)
		bpf_map_update_elem(&callee_lines, &key, line, BPF_NOEXIST);
	return bpf_map_lookup_elem(&callee_lines, &key);
}

/* How deep in a stack of the language's own the hit is. */
static __attribute__((always_inline)) inline u64 callee_depth_of(const struct callee_watch *watch, u64 owner)
{
	u64 at = callee_part(watch, owner), link;

	link = watch->place.moved ? callee_word(watch, at - (watch->place.half ? 4 : 8)) : 0;
	if (link && (link & 7) == watch->place.moved)
		at -= link & ~7ull;
	return at - callee_word(watch, owner + watch->place.bottom);
}

/* As deep as there are calls. The one that ends is counted no more. */
static inline u64 callee_counted(const struct callee_watch *watch)
{
	s32 calls = 0;

	bpf_probe_read_user(&calls, sizeof(calls), (const void *)watch->counter);
	return (u64)(s64)calls + (watch->exit ? 1 : 0);
}

/* Where the hit is: on whose stack, and how deep. */
WALK_GLOBAL int callee_place(const struct slot *slot, const struct callee_watch *watch)
{
	struct callee_counts *counts = callee_counts_here();
	u32 own;

	if (!counts || !slot || !watch)
		return 0;
	callee_frames(slot, watch);
	own = watch->place.own - 1;
	counts->who = counts->thread;
	counts->depth = slot->walk.nframes - callee_heads(slot, watch);
	if (counts->who & CALLEE_CARRIED) /* below its frames are its carrier's: one time more than the other */
		counts->depth = 1;
	if (watch->counter)
		counts->depth = callee_counted(watch);
	if (watch->place.own == CALLEE_OWN_FRAME) {
		counts->who = counts->frame;
		counts->depth = 1;
	}
	WALK_BARRIER(own);
	if (own >= WALK_CURSORS)
		return 0;
	counts->who = slot->walk.cursor[own].key;
	counts->depth = callee_depth_of(watch, counts->who);
	return 0;
}

/* A call is over. Tells user space of a slow one (ns not 0), and before that of its arguments. */
WALK_GLOBAL int callee_tell(u64 began, u64 ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct callee_counts *counts = callee_counts_here();
	struct values_call call = callee_call(began);
	struct latency_key key = {0};
	struct values_record *values;
	struct latency_record *record;
	struct slow_line *line;

	latency_where(&key);
	line = slow_line_of(task, &key);
	if (!line || !counts)
		return 0;
	line->began = began;
	if (line->calls && !--line->calls)
		line->at = 0;
	if (!ns || !slow_is_told(ns, counts->function))
		return 0;
	values = bpf_map_lookup_elem(&values_calls, &call);
	counts->found = values ? values->key : 0;
	if (values)
		bpf_ringbuf_output(&ring, values, sizeof(*values), 0);
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record)
		return 0;
	record->type = RECORD_EVENT;
	record->which = (u32)counts->function;
	record->tgid = (u32)key.tgid;
	record->tid = pid_of(task, task->pid);
	record->began = began;
	record->ns = ns;
	record->call = counts->found;
	record->read = record->text = record->followed = 0;
	record->carried = counts->who >> 63;
	record->happened = (u32)counts->happened;
	record->nwaits = line->n;
	record->nticks = line->nticks;
	bpf_probe_read_kernel(record->wait, sizeof(record->wait), line->wait);
	bpf_probe_read_kernel(record->tick, sizeof(record->tick), line->tick);
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	bpf_ringbuf_submit(record, wake());
	return 0;
}

enum callee_way { CALLEE_RETURNED, CALLEE_TAIL_CALLED, CALLEE_DROPPED };

/* A call is over, at `end`; 0: it is not known when. Returns how long it took if it was slow, else 0. */
WALK_GLOBAL u64 callee_over(u64 began, u64 end, u32 way)
{
	struct values_call key = callee_call(began);
	struct callee_counts *counts = callee_counts_here();
	struct latency_stats *all = callee_stats();
	struct callee_own_key own;
	u64 ns = end ? end - began : 0, slow = 0;

	if (!all || !counts)
		return 0;
	if (ns && latency_count(ns, counts->function, callee_each))
		slow = ns;
	if (way == CALLEE_RETURNED)
		counts->happened = CALLEE_RETURNS;
	else if (way == CALLEE_TAIL_CALLED)
		all->lost += callee_each;
	else if (way == CALLEE_DROPPED)
		*(end ? &all->raised : &all->left) += callee_each;
	if (!latency_over_ns)
		return slow;
	callee_tell(began, slow);
	bpf_map_delete_elem(&values_calls, &key);
	own = callee_own_key(counts);
	bpf_map_delete_elem(&callee_own, &own);
	return slow;
}

/* A thread is so deep: calls that are further in have been left, by an exception. Returns how many are not. */
WALK_GLOBAL u32 callee_left(struct callee_line *line, u64 depth)
{
	struct callee_counts *counts = callee_counts_here();
	struct latency_stats *all = callee_stats();
	u32 n;

	if (!all || !counts || !line)
		return 0;
	n = line->n;
	if (line->shift != callee_shift) { /* what became of those is not known */
		line->shift = callee_shift;
		return 0;
	}
	for (u32 i = 0; i < CALLEE_WITHIN && n; i++) {
		u32 last = n - 1;

		WALK_BARRIER(last);
		if (last >= CALLEE_WITHIN || line->call[last].depth <= depth)
			break;
		n--;
		callee_over(line->call[last].began, line->call[last].raised, CALLEE_DROPPED);
		counts->under_way--;
	}
	return n;
}

#define CALLEE_ABOVE 4096 /* bytes: so far above where a call begins its code may run */

/* A call begins. */
WALK_GLOBAL int callee_enter(u32 function, u64 now)
{
	struct callee_line *line = callee_line_of(function);
	struct callee_counts *counts = callee_counts_here();
	struct latency_key key = {0};
	struct latency_stats *all = callee_stats();
	u32 n;

	if (!line || !all || !counts)
		return 0;
	n = callee_left(line, counts->depth - 1);
	all->entered += callee_each;
	WALK_BARRIER(n);
	if (n >= CALLEE_WITHIN) {
		all->lost += callee_each;
		line->n = n;
		return 0;
	}
	line->call[n].began = now;
	line->call[n].depth = counts->depth;
	line->call[n].frame = counts->frame;
	line->call[n].caller = counts->caller;
	line->call[n].raised = 0;
	line->n = n + 1;
	counts->under_way++;
	if (latency_over_ns) {
		latency_where(&key);
		key.at += key.stack ? 0 : CALLEE_ABOVE;
		slow_begin(bpf_get_current_task_btf(), &key, now, callee_shift + 1);
	}
	return 0;
}

/* A call ends here. Returns how long it took if it was slow, else 0. tail: it is not known how long. */
WALK_GLOBAL u64 callee_leave(u32 function, u64 now, u32 tail)
{
	struct callee_line *line = callee_line_of(function);
	struct callee_counts *counts = callee_counts_here();
	struct latency_stats *all = callee_stats();
	u32 n;
	u64 began;

	if (!line || !all || !counts)
		return 0;
	n = callee_left(line, counts->depth);
	line->n = n--;
	WALK_BARRIER(n);
	if (n >= CALLEE_WITHIN || line->call[n].depth != counts->depth) {
		all->unpaired++;
		return 0;
	}
	line->n = n;
	counts->under_way--;
	began = line->call[n].began;
	return tail ? callee_over(began, 0, CALLEE_TAIL_CALLED) : callee_over(began, now, CALLEE_RETURNED);
}

/* Has the call in this frame come to one of its returns? */
static inline bool callee_returned(const struct callee_watch *watch, u64 frame)
{
	u64 code = 0, at = 0;
	u8 op = 0;

	if (bpf_probe_read_user(&code, sizeof(code), (const void *)(frame + watch->proof_at[0])) ||
	        code != watch->proof[0] ||
	        bpf_probe_read_user(&at, sizeof(at), (const void *)(frame + watch->proof_at[1])) ||
	        bpf_probe_read_user(&op, 1, (const void *)at))
		return false;
	return op && (op == watch->returns[0] || op == watch->returns[1] || op == watch->returns[2] ||
	                     op == watch->returns[3]);
}

/*
 * raised 0: returns the thread's outermost call that began in its current frame, or CALLEE_WITHIN. Other values: the
 * time of an exception, with which that call is marked. The result and line->n are read through memory, as the verifier
 * would otherwise follow each value that they may have.
 */
WALK_GLOBAL u32 callee_find(struct callee_line *line, u64 raised)
{
	struct callee_counts *counts = callee_counts_here();

	if (!line || !counts)
		return CALLEE_WITHIN;
	counts->found = CALLEE_WITHIN;
	for (u32 i = CALLEE_WITHIN; i-- > 0;) {
		if (i >= *(volatile u32 *)&line->n)
			continue;
		if (raised && line->call[i].frame == counts->frame)
			line->call[i].raised = raised;
		else if (!raised && line->call[i].caller == counts->frame)
			counts->found = i;
	}
	return (u32)counts->found;
}

/* The thread runs a frame again that has called the function: that call is over. Returns as callee_leave(). */
WALK_GLOBAL u64 callee_gone(const struct callee_watch *watch, u64 now)
{
	struct callee_counts *counts = callee_counts_here();
	struct latency_stats *all = callee_stats();
	u32 n;
	struct callee_line *line = watch ? callee_line_of(watch->function) : NULL;
	u64 began;

	if (!line || !all || !counts || !watch || !counts->frame)
		return 0;
	n = callee_find(line, 0);
	WALK_BARRIER(n);
	if (n >= CALLEE_WITHIN || !callee_left(line, line->call[n].depth))
		return 0;
	line->n = n;
	counts->under_way--;
	began = line->call[n].began;
	return callee_returned(watch, line->call[n].frame) ? callee_over(began, now, CALLEE_RETURNED)
	                                                   : callee_over(began, line->call[n].raised, CALLEE_DROPPED);
}

/* Does the function end here? */
WALK_GLOBAL int callee_ends(struct slot *slot, const struct callee_watch *watch)
{
	struct stack_record *chunk;
	const struct frame *f;
	u32 number;
	u64 at;

	if (!slot || !watch)
		return false;
	number = slot->walk.target.chunk;
	chunk = bpf_map_lookup_elem(&chunks, &number);
	if (!chunk || !slot->walk.nframes)
		return false;
	at = callee_at(slot, watch, chunk);
	WALK_BARRIER(at);
	if (at >= CALLEE_AT_MAX)
		return false;
	f = &chunk->frame[at];
	return (f->where & ~(0xffull << FRAME_ADDR_BITS)) == watch->at[0].where &&
	       !((f->detail ^ watch->at[0].detail) & watch->identity) && f->detail != watch->at[1].detail;
}

/* Which of the functions that share the address it is. The walk began as that of the first. */
WALK_GLOBAL int callee_which(struct slot *slot, u64 addr)
{
	struct stack_record *chunk;
	u32 number;

	if (!slot)
		return 0;
	number = slot->walk.target.chunk;
	for (u32 i = 0; i < CALLEE_SHARING; i++) {
		struct callee_watch *watch = callee_of(addr, i);

		if (!watch)
			return 0;
		if (!(watch->exit ? callee_ends(slot, watch) : callee_begins(slot, watch)))
			continue;
		chunk = bpf_map_lookup_elem(&chunks, &number);
		if (i && watch->reason && chunk) {
			slot->head.reason = watch->reason;
			chunk->frame[callee_shows_values(watch) ? 1 : 0].detail = watch->reason;
			slot->head.hash = walk_mix(slot->head.hash, watch->reason);
		}
		return (int)i;
	}
	return 0;
}

/* A hit is over. True: it is a call, or a slow one has ended, and its stack is to be sent. */
WALK_GLOBAL int callee_end(struct slot *slot, struct callee_watch *watch, u64 now)
{
	struct callee_counts *counts = callee_counts_here();
	struct probe_stats *st = my_stats();
	u64 ns = 0;

	if (!slot || !watch || !counts || !st)
		return false;
	if (callee_is_handled(watch) && !y_handlers_run)
		return callee_drop(slot, st);
	if (!watch->function)
		return callee_counts_as(slot, watch, now);
	callee_place(slot, watch);
	counts->happened = CALLEE_NOTHING;
	counts->function = watch->function;
	if (!watch->exit && !callee_closed && callee_begins(slot, watch)) {
		counts->calls++;
		counts->happened = CALLEE_BEGAN;
		counts->at = now;
		__sync_fetch_and_add(&watch->calls, 1);
		callee_values(slot, watch, now);
		callee_enter(watch->function, now);
		if (latency_over_ns && watch->place.own == CALLEE_OWN_FRAME) {
			struct callee_own_key own = callee_own_key(counts);

			bpf_map_update_elem(&callee_own, &own, &now, BPF_ANY);
		}
	} else if (watch->exit == CALLEE_GONE) {
		ns = callee_gone(watch, now);
	} else if (watch->exit == CALLEE_RAISES && counts->frame) {
		callee_find(callee_line_of(watch->function), now);
	} else if (watch->exit == CALLEE_FALLS || (watch->exit && callee_ends(slot, watch))) {
		ns = callee_leave(watch->function, now, watch->exit == CALLEE_LEFT);
	}
	if (counts->happened && callee_is_handled(watch))
		return true;
	if (!ns)
		return callee_drop(slot, st);
	slot->head.value = slow_rest(ns, watch->each) * watch->each;
	slot->head.more = watch->each;
	st->weights += slot->head.value;
	return true;
}

/* Gives the slot back that a Y program's handler has not asked for. */
static __attribute__((always_inline)) inline void callee_let_go(struct callee_counts *counts, struct probe_stats *st)
{
	u32 number = (u32)counts->held - 1;
	struct slot *slot = counts->held ? bpf_map_lookup_elem(&slots, &number) : NULL;

	counts->held = 0;
	if (slot)
		callee_drop(slot, st);
}

/* A slot for a hit, with its reason; NULL: it is lost. */
static __attribute__((noinline)) struct slot *callee_slot(const struct callee_watch *watch)
{
	struct callee_counts *counts = callee_counts_here();
	struct probe_stats *st = my_stats();
	struct slot *slot;
	u32 number;

	if (!st || !counts)
		return NULL;
	callee_let_go(counts, st);
	slot = event_begin(st, (u32)find_target(), tgid_of(bpf_get_current_task_btf()), 0, &number);
	if (!slot) {
		st->lost[LOST_SCRATCH] += watch->each;
		return NULL;
	}
	counts->slot = number;
	slot->head.value = watch->function ? 0 : watch->each;
	slot->head.reason = watch->reason;
	callee_head(slot, watch);
	return slot;
}

static __attribute__((always_inline)) inline int callee_time(u64 begin)
{
	struct callee_counts *counts = callee_counts_here();

	if (counts)
		counts->walk_ns += bpf_ktime_get_ns() - begin;
	return 0;
}

/* Tells user space that a function gets other code. */
static inline int callee_changes(u64 addr, u64 now)
{
	struct callee_change change = {
	        .type = RECORD_EVENT, .tgid = tgid_of(bpf_get_current_task_btf()), .addr = addr, .at = now};

	bpf_ringbuf_output(&ring, &change, sizeof(change), wake());
	return -1;
}

/* The number of the slot of a hit that may be a call; < 0: it is none. */
WALK_GLOBAL int callee_begin(struct callee_watch *watch, u64 addr, u64 rip, u64 now)
{
	struct callee_counts *counts = callee_counts_here();

	if (!counts || !watch)
		return -1;
	if (counts->again)
		return (int)counts->slot;
	counts->traps++;
	counts->proven = 0;
	if (watch->exit == CALLEE_CHANGES)
		return callee_changes(addr, now);
	if (watch->exit == CALLEE_FALLS || watch->exit == CALLEE_GONE)
		return callee_falls(watch, addr) && callee_slot(watch) ? (int)counts->slot : -1;
	if (!callee_was_read(watch, addr) || callee_is_elsewhere(watch, rip) || callee_is_anew(watch) ||
	        callee_is_compared(watch, rip) || (!watch->exit && callee_closed))
		return -1;
	return callee_slot(watch) ? (int)counts->slot : -1;
}

/* Is its walk to be done a second time? */
WALK_GLOBAL int callee_again(struct slot *slot, const struct callee_watch *watch)
{
	struct callee_counts *counts = callee_counts_here();

	if (!counts || !slot || !watch)
		return false;
	counts->again = !counts->again && callee_starts_anew(slot, watch);
	return counts->again != 0;
}

u32 y_values_at = 0; /* on_y_values() in y_handlers */

/* The Y program's handler of what has happened: its number in y_handlers. It takes the slot over, or leaves it. */
static __attribute__((always_inline)) inline int callee_handler(const struct callee_watch *watch)
{
	struct callee_counts *counts = callee_counts_here();

	if (!counts || !callee_is_handled(watch))
		return -1;
	counts->held = counts->slot + 1;
	counts->handler = watch->handler[counts->happened == CALLEE_RETURNS] - 1;
	if (watch->values && counts->happened == CALLEE_BEGAN && watch->handler[0])
		return (int)y_values_at;
	return counts->happened ? (int)counts->handler : -1;
}

/*
 * What a call returns that may be slow, told before the call's own record: here, as the program that walks has no room
 * for it. Of calls on the thread's stack.
 */
static __attribute__((noinline)) int callee_result(const struct callee_watch *watch)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct callee_line_key key = {
	        .who = (u32)bpf_get_current_pid_tgid(), .tgid = tgid_of(task), .function = watch->function};
	const struct callee_line *line = bpf_map_lookup_elem(&callee_lines, &key);
	struct values_record *r = values_here();
	u64 now = bpf_ktime_get_ns(), ns;

	if (!line || !r || !line->n)
		return 0;
	ns = now - line->call[0].began; /* the outermost is the longest */
	if (ns < latency_over_ns || !slow_is_told(ns, watch->function))
		return 0;
	values_take(watch->values, 1);
	r->tgid = key.tgid;
	r->given = pid_of(task, task->pid);
	r->word[VALUES_MAX - 1] = watch->function;
	r->end = now;
	bpf_ringbuf_output(&ring, r, sizeof(*r), 0);
	return 0;
}

/* A second walk is by a call of the program itself: two in one program would be too much for the verifier. */
WALKING_TABLE(on_callee);

/* The thread whose call it may be. */
static __attribute__((always_inline)) inline int callee_thread(const struct callee_watch *watch)
{
	struct callee_counts *counts = callee_counts_here();
	u64 carrier, now, number = 0;

	if (!watch || !counts)
		return 0;
	counts->thread = (u32)bpf_get_current_pid_tgid();
	if (!watch->carrier.number)
		return 0;
	carrier = values_register(watch->carrier.reg);
	now = user_word(user_word(carrier + watch->carrier.current));
	if (now && now != user_word(user_word(carrier + watch->carrier.own)))
		number = user_word(now + watch->carrier.number);
	if (number)
		counts->thread = number | CALLEE_CARRIED;
	return 0;
}

SEC("perf_event")
int on_callee(struct bpf_perf_event_data *ctx)
{
	const struct callee_watch *watch = callee_of(ctx->addr, 0);

	callee_thread(watch);
	if (watch && !watch->exit)
		values_ahead(watch->values);
	else if (watch && watch->values)
		callee_result(watch);
	bpf_tail_call(ctx, &on_callee_now, 0);
	return 0;
}

SEC("perf_event")
int on_callee_walk(struct bpf_perf_event_data *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct callee_watch *watch = callee_of(ctx->addr, 0);
	struct probe_stats *st = my_stats();
	struct slot *slot;
	u32 number;

	if (!watch || !st || ticks != TICKS_TAKEN || !find_target())
		return 0;
	number = (u32)callee_begin(watch, ctx->addr, ctx->regs.rip, begin);
	slot = bpf_map_lookup_elem(&slots, &number);
	if (slot) {
		struct task_struct *task = bpf_get_current_task_btf();

		event_user(slot, ctx, task, bpf_map_lookup_elem(&processes, &slot->head.tgid), true);
		if (callee_again(slot, watch))
			bpf_tail_call(ctx, &on_callee_now, 0);
		watch = callee_of(ctx->addr, (u32)callee_which(slot, ctx->addr)) ?: watch;
		if (callee_end(slot, watch, begin)) {
			int handler = callee_handler(watch);

			if (handler >= 0)
				bpf_tail_call(ctx, &y_handlers, handler);
			if (!callee_is_handled(watch))
				event_end(slot, st, event_emit(slot, st));
		}
	}
	callee_time(begin);
	return 0;
}

#endif
