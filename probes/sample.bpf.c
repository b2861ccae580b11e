/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The clock: takes the stack of a target at each period, and follows fork, exec and exit of targets. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "unwind/driver.h"
#include "unwind/shared/alloc.h"
#include "unwind/native_walk.c"
#include "walkers.h"

#define KERNEL_FRAMES 127	     /* PERF_MAX_STACK_DEPTH */
#define CHUNKS_MAX    33	     /* of the deepest stack: 8,192 frames and what the kernel adds */
#define KINDS	      64
#define PROCESS_END_NS 250000ULL /* a process gives back its memory when its clock is gone */
#define SETTLED_NS     10000000ULL /* how often a thread switches is not asked before it ran for so long */
#define YOUNG_TICKS   8	  /* a thread is young that ran for so long */
#define STEPS_NO_LOOP 1100	     /* where there is no bpf_loop, the verifier must see the end */
#define LATE_GUESSES  4
#define LATE_WORDS    512	     /* of the stack that are searched for the caller of code that is not known */
#define LATE_POINTERS 8	     /* frames of such code that frame pointers are followed through */
#define SYSCALL_CLONE  56
#define SYSCALL_CLONE3 435
#define ASK_NS	      100000000ULL /* ask for a look at the maps of a process at most this often */

const volatile __u32 slots_per_cpu = 2;
const volatile __u32 chunks_per_slot = 1;
const volatile __u32 max_frames = 1024;
const volatile __u32 ring_wake = 0; /* wake user space when so many bytes wait */
const volatile bool with_loop = true;
const volatile bool with_kernel = true;
const volatile bool with_user = true;
const volatile bool by_thread = false;

__u32 pid_level = 0;	 /* of yrt's own pid namespace: the pids that it knows are of this level */
__u32 eager = 0;	 /* wake user space for each new stack: what it names does not live long */
__u64 period_ns = 1000000; /* CPU time that a sample stands for */
__u64 tick_ns = 1000000; /* CPU time between two ticks of a clock that starts now */
__u32 by_cycles = 0;	 /* the event's own period is none of time */
__u32 by_cpu = 0;	 /* ticks are those of CPUs, whatever runs there */
__u64 switch_rates = 0;	 /* switches a second of CPU time of sampled threads, since their start; a sum */
__u32 switch_looks = 0;
__u32 short_lives = 0;	 /* threads that ended before they had run for two periods */
__u64 attached_ns = 0;	 /* CLOCK_MONOTONIC: of older threads it is not known how much ran before */

/*
 * CPU time that no tick covered, of threads that ended, by kind of thread (its name). A tick comes at the end of the time that
 * it covers, so what a thread runs after its last tick is covered by none. on_free() finds that out and leaves it here, and the
 * next sample of a young thread of the kind stands for it too. Without that, threads that live for a few ticks would be
 * shown too small.
 */
__u64 debts[KINDS];
__u32 in_debt = 0; /* any of them */
__u32 weight = 1;	 /* what a sample counts, more than 1 once the rate was halved */
__u32 counts_in_use = 0; /* which of the two count maps */
__u32 last_instance = 0;
__u32 attaching = 0; /* user space is opening clocks: note which threads inherit one */

struct stack_head { /* what a walk's stack_records have in common */
	u64 hash;
	u32 instance;
	u32 tgid;
	u32 tid;
	u32 stop;
	u32 weight;  /* of struct stack_record */
	u32 samples; /* what this one counts */
	u32 epoch;
};

struct vm_state { /* of a walk: what runtimes keep between their steps */
	u32 ncursors;
	u32 state;
	u32 mark;
	u32 lost;
	struct walk_cursor cursor[WALK_CURSORS];
};

struct slot { /* one walk in progress */
	u32 busy;
	u32 reserved;
	struct stack_head head; /* here, and not on the stack: BPF has 512 bytes of it for a chain of functions */
	struct alloc_record alloc;
	u64 kernel[KERNEL_FRAMES + 1];
	struct walk walk;
	struct late_record late; /* stop 0: the walk met no unknown code */
	struct vm_state vm;	 /* at that code */
};

struct { /* CPUs * slots_per_cpu: too large for a per-CPU map */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, struct process_entry);
} processes SEC(".maps");

/* While threads are being attached: those that have a clock, their own or an inherited one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32); /* tid */
	__type(value, u32);
} clocked SEC(".maps");

struct counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); /* struct stack_record.hash */
	__type(value, u64);
};
struct counts_map counts_a SEC(".maps"), counts_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct probe_stats);
} stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

struct { /* targets' threads that are exiting, by task: CPU time that their ticks covered */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u64);
} exiting SEC(".maps");

static inline u32 pid_of(struct task_struct *task, u32 kernel_pid)
{
	struct pid *pid;
	u32 nr = 0;

	if (!pid_level)
		return kernel_pid;
	pid = BPF_CORE_READ(task, thread_pid);
	if (BPF_CORE_READ(pid, level) < pid_level)
		return 0;
	/* the kernel's element is larger than our flavour of it: a variable index must not be left to the compiler */
	bpf_probe_read_kernel(&nr, sizeof(nr),
		(void *)__builtin_preserve_access_index(&pid->numbers[0]) + pid_level * bpf_core_type_size(struct upid));
	return nr;
}

static inline u32 tgid_of(struct task_struct *task)
{
	return pid_of(pid_level ? BPF_CORE_READ(task, group_leader) : task, BPF_CORE_READ(task, tgid));
}

static inline u64 *debt_of(struct task_struct *task)
{
	u64 name[2];
	u32 i;

	BPF_CORE_READ_INTO(&name, task, comm);
	i = walk_mix(walk_mix(0, name[0]), name[1]) % KINDS;
	return &debts[i & (KINDS - 1)];
}

/* The CPU time that a tick covers. Threads that exist keep their clock's period when later ones get another one. */
static inline u64 tick_of(void *ctx)
{
	struct bpf_perf_event_data_kern *kern = ctx;

	return by_cycles ? tick_ns : BPF_CORE_READ(kern, event, hw.sample_period);
}

/*
 * Is this tick a sample? The CPU time of targets on a CPU is divided into blocks of one sampling period; in each a random moment is
 * chosen, and the tick that passes it becomes the sample: no period of the programs' own can resonate with that.
 */
static inline bool take_tick(struct probe_stats *st, struct task_struct *task, u64 tick)
{
	u64 period = period_ns;

	if (st->task != (u64)task) {
		st->task = (u64)task;
		st->in_row = 0;
	}
	st->in_row += tick;
	st->at += tick;
	if (st->at <= st->chosen)
		return false;
	st->chosen = (st->chosen / period + 1) * period + bpf_get_prandom_u32() % period;
	return true;
}

/* Both out of line: the chain of functions below on_clock() has all of the stack. */
WALK_GLOBAL int is_target(void)
{
	u32 tgid = tgid_of(bpf_get_current_task_btf());

	return bpf_map_lookup_elem(&processes, &tgid) != NULL;
}

WALK_GLOBAL int note_switches(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 ran = BPF_CORE_READ(task, se.sum_exec_runtime);

	if (ran < SETTLED_NS)
		return 0;
	__sync_fetch_and_add(&switch_rates, (BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw)) * 1000000000 / ran);
	__sync_fetch_and_add(&switch_looks, 1);
	return 0;
}

/* How many samples more this one stands for, by the debts of its kind. Another CPU may be taking them just now: then none. */
static inline u32 take_debt(struct task_struct *task)
{
	u64 period = period_ns, *debt, owed;
	u32 n;

	if (!in_debt || BPF_CORE_READ(task, se.sum_exec_runtime) > YOUNG_TICKS * tick_ns)
		return 0;
	debt = debt_of(task);
	owed = *debt;
	n = owed / period;
	return n && __sync_val_compare_and_swap(debt, owed, owed - n * period) == owed ? n : 0;
}

static inline struct slot *claim_slot(u32 *ret)
{
	u32 base = bpf_get_smp_processor_id() * slots_per_cpu, i;

	for (i = 0; i < 4 && i < slots_per_cpu; i++) {
		u32 number = base + i;
		struct slot *slot = bpf_map_lookup_elem(&slots, &number);

		if (slot && __sync_val_compare_and_swap(&slot->busy, 0, 1) == 0) {
			*ret = number;
			return slot;
		}
	}
	return NULL;
}

static inline void walk_start(struct walk *w, u32 slot, u32 instance)
{
	w->hash = walk_mix(0, instance);
	w->nframes = 0;
	w->max_frames = max_frames;
	w->ncursors = 0;
	w->vm_state = 0;
	w->vm_mark = 0;
	w->flags = 0;
	w->lost = 0;
	w->region.start = w->region.end = 0;
	w->stack.len = w->vm.len = 0;
	w->stack.start = w->vm.start = 0;
	w->target.chunk = slot * chunks_per_slot;
}

/* Out of line, so that the verifier looks at one frame and not at all paths through 127. */
WALK_GLOBAL int push_kernel_frame(struct slot *slot, u32 i)
{
	if (!slot)
		return 0;
	WALK_BARRIER(i);
	if (i >= KERNEL_FRAMES)
		return 0;
	return walk_push(&slot->walk, frame_where(FRAME_KERNEL, RUNTIME_NATIVE, i ? FRAME_RETADDR : 0, slot->kernel[i]), 0);
}

static inline void push_kernel(struct slot *slot, u32 bytes)
{
	for (u32 i = 0; i < KERNEL_FRAMES && i < bytes / 8; i++)
		push_kernel_frame(slot, i);
}

#define REGS(p, ax, dx, cx, bx, si, di, bp, sp, ip)                                                                    \
	do {                                                                                                           \
		w->reg[DWREG_RAX] = (p)->ax;                                                                             \
		w->reg[DWREG_RDX] = (p)->dx;                                                                             \
		w->reg[DWREG_RCX] = (p)->cx;                                                                             \
		w->reg[DWREG_RBX] = (p)->bx;                                                                             \
		w->reg[DWREG_RSI] = (p)->si;                                                                             \
		w->reg[DWREG_RDI] = (p)->di;                                                                             \
		w->reg[DWREG_RBP] = (p)->bp;                                                                             \
		w->reg[DWREG_RSP] = (p)->sp;                                                                             \
		w->reg[DWREG_R8] = (p)->r8;                                                                              \
		w->reg[DWREG_R9] = (p)->r9;                                                                              \
		w->reg[DWREG_R10] = (p)->r10;                                                                            \
		w->reg[DWREG_R11] = (p)->r11;                                                                            \
		w->reg[DWREG_R12] = (p)->r12;                                                                            \
		w->reg[DWREG_R13] = (p)->r13;                                                                            \
		w->reg[DWREG_R14] = (p)->r14;                                                                            \
		w->reg[DWREG_R15] = (p)->r15;                                                                            \
		w->reg[DWREG_RIP] = (p)->ip;                                                                             \
	} while (0)

/* The user registers that the kernel saved at entry. */
static inline void saved_registers(struct walk *w, struct task_struct *task)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);

	REGS(r, ax, dx, cx, bx, si, di, bp, sp, ip);
	w->valid = (1u << ARCH_NREGS) - 1;
	w->leaf = 1;
	w->thread_pointer = BPF_CORE_READ(task, thread.fsbase);
}

/* The user registers: those of the event if it hit user code, else those that the kernel saved at entry. */
static inline void user_registers(struct walk *w, struct bpf_perf_event_data *ctx, struct task_struct *task, bool in_user)
{
	if (in_user) {
		bpf_user_pt_regs_t *r = &ctx->regs;

		REGS(r, rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, rip);
		/* keeps the compiler from joining the branches: the verifier wants constant offsets into the context */
		__asm__ volatile("" ::: "memory");
		w->valid = (1u << ARCH_NREGS) - 1;
		w->leaf = 1;
		w->thread_pointer = BPF_CORE_READ(task, thread.fsbase);
	} else {
		saved_registers(w, task);
	}
}
#undef REGS

struct stepping {
	struct walk *walk;
	u32 stop;
};

static long step_one(u32 i, struct stepping *s)
{
	(void)i;
	s->stop = walk_step(s->walk);
	return s->stop != STOP_NONE;
}

/* Where there is no bpf_loop the verifier follows each round: what it branches into is looked at once, in here. */
WALK_GLOBAL int step_no_loop(struct walk *w)
{
	WALK_CHECK(w);
	return walk_step(w);
}

static inline u32 walk_user(struct walk *w)
{
	struct stepping s = { .walk = w, .stop = STOP_NONE };

	if (with_loop) {
		bpf_loop(walk_steps_max(w), step_one, &s, 0);
	} else {
		for (u32 i = 0; i < STEPS_NO_LOOP && s.stop == STOP_NONE; i++)
			s.stop = step_no_loop(w);
	}
	return walk_end(w, s.stop);
}

static inline struct probe_stats *my_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

static inline u64 wake_flags(void)
{
	if (eager || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_wake)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
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
	record->stop = head->stop;
	record->first = i;
	record->epoch = head->epoch;
	bpf_get_current_comm(record->comm, sizeof(record->comm));
	WALK_BARRIER(n);
	if (n > CHUNK_FRAMES)
		return SENT_FULL;
	if (bpf_ringbuf_output(&ring, record, offsetof(struct stack_record, frame) + n * sizeof(struct frame), wake_flags()))
		return SENT_FULL;
	return record->last ? SENT_LAST : SENT_MORE;
}

/* Sends the frames of a walk. False: the ring was full. */
static inline bool send_stack(struct walk *w, struct stack_head *head)
{
	int sent = SENT_MORE;

	for (u32 i = 0; i < CHUNKS_MAX && sent == SENT_MORE; i++)
		sent = send_chunk(w, head, i);
	return sent == SENT_LAST;
}

/* Counts a stack, and sends it first if it is new. Returns the cause of a loss, or -1. */
static inline int count_stack(struct walk *w, struct stack_head *head)
{
	u64 *count, one = head->samples;
	u32 epoch = head->epoch = counts_in_use & 1;

	count = epoch ? bpf_map_lookup_elem(&counts_b, &head->hash) : bpf_map_lookup_elem(&counts_a, &head->hash);
	if (count) {
		__sync_fetch_and_add(count, one);
		return -1;
	}
	if (!send_stack(w, head))
		return LOST_RING;
	if ((epoch ? bpf_map_update_elem(&counts_b, &head->hash, &one, BPF_NOEXIST) :
		     bpf_map_update_elem(&counts_a, &head->hash, &one, BPF_NOEXIST)) == 0)
		return -1;
	/* Another CPU may have been first, or the map is full: the stack then carries its count itself. */
	head->weight = one;
	return send_stack(w, head) ? -1 : LOST_TABLE;
}

WALK_GLOBAL int ask_for_maps(u32 tgid, u64 pc, u64 now)
{
	struct process_record record = { .type = RECORD_UNKNOWN, .tgid = tgid, .pc = pc };
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);

	if (!process || now - process->asked_ns < ASK_NS)
		return 0;
	record.instance = process->instance;
	process->asked_ns = now;
	return bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

/* In execve(), with the old program's memory gone and the new one's being made, there is no user stack (load_elf_binary() sets this last). */
static inline bool in_new_memory(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	return mm && !BPF_CORE_READ(mm, start_stack);
}

/*
 * A thread that has not left the system call that made it yet: on its stack is what it is to begin with, or of a cache of stacks what an
 * earlier thread left there, and no caller. A forked process has its parent's.
 */
static inline bool is_newborn(struct task_struct *task)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	unsigned long call = BPF_CORE_READ(r, orig_ax);

	return (call == SYSCALL_CLONE || call == SYSCALL_CLONE3) && !BPF_CORE_READ(r, ax) &&
	       BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid);
}

/* Its one frame. */
WALK_GLOBAL int walk_newborn(struct walk *w)
{
	int stop;

	WALK_CHECK(w);
	stop = walk_locate(w, w->reg[REG_PC]);
	if (stop)
		return stop;
	return walk_push(w, frame_where(FRAME_NATIVE, RUNTIME_NATIVE, 0, w->reg[REG_PC]), w->region.module) ? STOP_ROOT : STOP_DEPTH;
}

/* Along frame pointers, as far as there are any, to the first caller in known code. The frame pointer holds there. */
WALK_GLOBAL int late_pointers(struct walk *w)
{
	u64 fp, next, pc;

	WALK_CHECK(w);
	fp = walk_has(w, REG_FP) ? w->reg[REG_FP] : 0;
	for (u32 i = 0; i < LATE_POINTERS; i++) {
		if (fp - w->reg[REG_SP] > GUESS_FRAME_MAX || !walk_stack(w, fp, &next) || !walk_stack(w, fp + 8, &pc))
			return STOP_NO_CFI;
		if (behind_call(w, pc)) {
			w->reg[REG_FP] = next;
			w->valid = 1u << REG_FP;
			return enter_caller(w, fp + 16, pc, false);
		}
		fp = next;
	}
	return STOP_NO_CFI;
}

/* Notes where a walk ended in code that is not known. */
WALK_GLOBAL int late_note(struct slot *slot, u32 stop)
{
	struct late_record *late;
	struct walk *w;

	if (!slot)
		return 0;
	w = &slot->walk;
	late = &slot->late;
	for (u32 i = 0; i < ARCH_NREGS; i++)
		late->reg[i] = w->reg[i];
	late->valid = w->valid;
	late->leaf = w->leaf;
	late->thread_pointer = w->thread_pointer;
	late->before = w->nframes;
	late->stop = stop;
	late->pc = late->sp = late->fp = 0;
	slot->vm.ncursors = w->ncursors;
	slot->vm.state = w->vm_state;
	slot->vm.mark = w->vm_mark;
	slot->vm.lost = w->lost;
	__builtin_memcpy(slot->vm.cursor, w->cursor, sizeof(w->cursor));
	return 0;
}

/*
 * Goes on, by guess, at the next caller in known code: STOP_NONE. There may be more code that is not known behind that, so it is done
 * again: frames from in between are told by the second walk.
 */
WALK_GLOBAL int late_guess(struct slot *slot)
{
	struct late_record *late;
	struct walk *w;
	u64 sp;
	int ret;

	if (!slot)
		return STOP_ARENA;
	w = &slot->walk;
	late = &slot->late;
	if (!w->nregions || !late->stop || !stop_is_unknown_code(slot->head.stop))
		return STOP_NO_PROCESS;
	sp = w->reg[REG_SP];
	ret = late_pointers(w);
	late->fp = ret ? 0 : w->reg[REG_FP];
	for (u32 i = 0; i < LATE_WORDS && ret == STOP_NO_CFI; i++)
		ret = step_scan_word(w, sp + i * 8);
	if (ret)
		return ret;
	w->flags = 0;
	w->nframes = late->before;
	w->ncursors = slot->vm.ncursors;
	w->vm_state = slot->vm.state;
	w->vm_mark = slot->vm.mark;
	w->lost = slot->vm.lost;
	__builtin_memcpy(w->cursor, slot->vm.cursor, sizeof(w->cursor));
	late->pc = w->reg[REG_PC];
	late->sp = w->reg[REG_SP];
	return STOP_NONE;
}

/*
 * Sends a page of the stack; of the first one what lies above the stack pointer. Returns how much: 0: no more. If there is a guess to be
 * proved, what lies below it is enough.
 */
WALK_GLOBAL int send_late(struct slot *slot, u32 i)
{
	struct late_record *late;
	u64 addr;
	u32 size;

	if (!slot)
		return 0;
	late = &slot->late;
	addr = late->reg[REG_SP];
	size = i ? LATE_PIECE : LATE_PIECE - (addr & (LATE_PIECE - 1));
	if (i)
		addr = (addr & ~(u64)(LATE_PIECE - 1)) + (u64)i * LATE_PIECE;
	WALK_BARRIER(size);
	if (i && late->pc && addr > late->sp)
		return 0;
	if (size > LATE_PIECE || bpf_probe_read_user(late->byte, size, (const void *)addr))
		size = 0;
	if (!size && i)
		return 0;
	late->type = RECORD_LATE;
	late->size = size;
	late->hash = slot->head.hash;
	late->addr = addr;
	if (bpf_ringbuf_output(&ring, late, offsetof(struct late_record, byte) + size, BPF_RB_NO_WAKEUP))
		return 0;
	return size;
}

/* Sends a stack that is to be walked again, with what that needs. */
static inline int send_again(struct slot *slot, struct stack_head *head)
{
	head->hash = walk_mix(walk_mix(slot->walk.hash, bpf_ktime_get_ns()), head->tid);
	head->weight = head->samples;
	for (u32 i = 0; i < LATE_PIECES; i++)
		if (!send_late(slot, i))
			break;
	return send_stack(&slot->walk, head) ? -1 : LOST_RING;
}

static inline bool take_late(struct process_entry *process, u32 stop)
{
	if (!stop_is_unknown_code(stop) || !process->late || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > 3 * ring_wake)
		return false;
	__sync_fetch_and_add(&process->late, -1);
	return true;
}

/* Takes one sample into a slot. Returns the cause of a loss, or -1. */
static inline int take_sample(struct bpf_perf_event_data *ctx, struct task_struct *task, struct slot *slot, u32 number,
	struct process_entry *process, struct probe_stats *st, struct stack_head *head)
{
	bool in_user = (ctx->regs.cs & 3) == 3;
	struct walk *w = &slot->walk;
	u32 stop;
	long bytes;

	walk_start(w, number, process->instance);
	slot->late.stop = 0;
	w->regions = process->regions;
	w->nregions = process->nregions;
	if (!in_user && with_kernel) {
		bytes = bpf_get_stack(ctx, slot->kernel, KERNEL_FRAMES * 8, 0);
		if (bytes > 0)
			push_kernel(slot, bytes);
	}
	head->stop = STOP_NO_USER;
	if (!with_user) {
		head->stop = STOP_ROOT;
	} else if (!in_user && in_new_memory(task)) {
		head->stop = STOP_ROOT;
	} else if (!(BPF_CORE_READ(task, flags) & PF_KTHREAD)) {
		user_registers(w, ctx, task, in_user);
		head->stop = !in_user && is_newborn(task) ? (u32)walk_newborn(w) : walk_user(w);
		if (head->stop == STOP_NO_REGION || head->stop == STOP_BAD_RETADDR)
			ask_for_maps(head->tgid, w->reg[REG_PC], bpf_ktime_get_ns());
		if (take_late(process, head->stop))
			late_note(slot, head->stop);
#pragma unroll
		for (u32 i = 0; i < LATE_GUESSES && with_loop && !late_guess(slot); i++)
			head->stop = walk_user(w);
	}
	stop = slot->late.stop ? slot->late.stop : head->stop;
	w->hash = walk_mix(w->hash, head->stop);
	if (by_thread)
		w->hash = walk_mix(w->hash, head->tid);
	head->hash = w->hash;
	st->frames += w->nframes;
	if (stop < STOP_MAX)
		st->stop[stop] += head->samples;
	return slot->late.stop ? send_again(slot, head) : count_stack(w, head);
}

SEC("perf_event")
int on_clock(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	struct process_entry *process;
	struct slot *slot;
	u64 begin = 0;
	u32 number, samples, tgid;
	int lost;

	if (!st || (by_cpu && !is_target()))
		return 0;
	st->ticks++;
	if (!take_tick(st, task, tick_of(ctx)))
		return 0;
	tgid = tgid_of(task);
	process = bpf_map_lookup_elem(&processes, &tgid);
	if (!process)
		return 0;
	samples = (1 + take_debt(task)) * weight;
	st->samples++;
	st->weights += samples;
	if (!(st->samples & 15) || !st->first_ns)
		begin = bpf_ktime_get_ns();
	if (!(st->samples & 3))
		note_switches();
	if (!st->first_ns)
		st->first_ns = begin;
	slot = claim_slot(&number);
	if (!slot) {
		st->lost[LOST_SCRATCH] += samples;
		return 0;
	}
	slot->head = (struct stack_head){ .instance = process->instance, .tgid = tgid, .samples = samples,
		.tid = pid_of(task, BPF_CORE_READ(task, pid)) };
	lost = take_sample(ctx, task, slot, number, process, st, &slot->head);
	if (lost >= 0 && lost < LOST_MAX)
		st->lost[lost] += samples;
	slot->busy = 0;
	if (begin) {
		st->timed_ns += bpf_ktime_get_ns() - begin;
		st->timed++;
	}
	return 0;
}

#include "alloc.bpf.h"

/* A thread is gone for good, and its CPU time final: what is left of it after its last tick is a debt. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	u64 key = (u64)task, ran = BPF_CORE_READ(task, se.sum_exec_runtime), covered, left, most = tick_ns;
	u64 *ticks = bpf_map_lookup_elem(&exiting, &key);

	if (!ticks)
		return 0;
	covered = *ticks;
	if (covered) /* known; and some time passes unseen, before the clock runs and after it stops */
		most *= 2;
	if (BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid))
		most += PROCESS_END_NS;
	bpf_map_delete_elem(&exiting, &key);
	left = ran > covered ? ran - covered : 0;
	__sync_fetch_and_add(debt_of(task), left < most ? left : most);
	in_debt = 1;
	return 0;
}

static inline void tell(u32 type, u32 tgid, u32 instance, u32 parent)
{
	struct process_record record = { .type = type, .tgid = tgid, .instance = instance, .parent = parent };

	bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

static inline void note_inherited(struct task_struct *parent, struct task_struct *child)
{
	u32 tid = pid_of(parent, BPF_CORE_READ(parent, pid)), child_tid = pid_of(child, BPF_CORE_READ(child, pid));
	u32 *known = bpf_map_lookup_elem(&clocked, &tid), one = 1;

	if (known)
		bpf_map_update_elem(&clocked, &child_tid, &one, BPF_ANY);
}

/* A child runs the parent's code at the same addresses: it has its entry before its first instruction. */
SEC("raw_tp/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 tgid = tgid_of(parent), child_tgid;
	struct process_entry *process, entry;

	if (attaching)
		note_inherited(parent, child);
	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0;
	process = bpf_map_lookup_elem(&processes, &tgid);
	if (!process || !(process->flags & PROCESS_FOLLOW))
		return 0;
	entry = *process;
	entry.instance = __sync_fetch_and_add(&last_instance, 1) + 1;
	child_tgid = tgid_of(child);
	bpf_map_update_elem(&processes, &child_tgid, &entry, BPF_ANY);
	tell(RECORD_FORK, child_tgid, entry.instance, process->instance);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	u32 tgid = tgid_of(task);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct process_entry entry = {};

	if (!process)
		return 0;
	entry.flags = process->flags;
	entry.late = LATE_MOST;
	entry.instance = __sync_fetch_and_add(&last_instance, 1) + 1;
	tell(RECORD_EXEC, tgid, entry.instance, process->instance);
	bpf_map_update_elem(&processes, &tgid, &entry, BPF_ANY);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	u32 tgid = tgid_of(task);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct probe_stats *st = my_stats();
	u64 key = (u64)task, ticks;
	u32 tid = BPF_CORE_READ(task, pid);

	bpf_map_delete_elem(&watches, &tid);
	/* a short life mostly passes on one CPU; of threads that are older it is not known when their ticks come */
	if (process && st && !by_cpu && BPF_CORE_READ(task, start_time) > attached_ns) {
		ticks = st->task == key ? st->in_row : 0;
		bpf_map_update_elem(&exiting, &key, &ticks, BPF_ANY);
		if (BPF_CORE_READ(task, se.sum_exec_runtime) < 2 * period_ns)
			__sync_fetch_and_add(&short_lives, 1);
	}
	if (process && BPF_CORE_READ(task, signal, live.counter) == 0) {
		tell(RECORD_EXIT, tgid, process->instance, 0);
		bpf_map_delete_elem(&processes, &tgid);
	}
	return 0;
}

/* Run once by user space, which can not tell by itself how deep its pid namespace is. */
SEC("raw_tp")
int find_level(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	(void)ctx;
	pid_level = BPF_CORE_READ(task, thread_pid, level);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
