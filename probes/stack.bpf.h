/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The stack of the current thread: where it is stored, its kernel frames, its user registers, and the walk through its
 * user frames.
 */
#ifndef YRT_STACK_BPF_H
#define YRT_STACK_BPF_H

#include "targets.bpf.h"

#define KERNEL_FRAMES     127  /* PERF_MAX_STACK_DEPTH */
#define KERNEL_GROUP      16   /* of them in one function */
#define STEPS_NO_LOOP     2200 /* where there is no bpf_loop, the verifier must see the end */
#define DEFERRED_GUESSES  4
#define WALK_PARTS        (1 + DEFERRED_GUESSES + WALK_RESUMES)
#define DEFERRED_GROUP    16  /* of them in one function, which the verifier checks once */
#define DEFERRED_WORDS    512 /* of the stack that are searched for the caller of code that is not known */
#define DEFERRED_POINTERS 8   /* frames of such code that frame pointers are followed through */
#define SYSCALL_CLONE     56
#define SYSCALL_CLONE3    435
#define SYSCALL_EXECVE    59
#define SYSCALL_EXECVEAT  322
#define SYSCALL_SIGRETURN 15 /* rt_sigreturn() */

const volatile __u32 slots_per_cpu = 2;
const volatile __u32 chunks_per_slot = 1;
const volatile __u32 max_frames = 1024;
const volatile __u32 ring_wake = 0; /* wake user space when so many bytes wait */
const volatile bool with_loop = true;
const volatile bool with_kernel = true;
const volatile bool with_user = true;
const volatile bool by_thread = false;
const volatile bool with_times = false; /* record when each sample was taken */
const volatile bool everyone = false;   /* who runs becomes a target (-a) */
const volatile __u32 own_tgid = 0;      /* not yrt itself */
const volatile bool wake_young = false; /* stacks of processes that have just begun wake user space */

__u32 eager = 0;             /* wake user space for each new stack: what it names does not live long */
__u32 ticks = TICKS_IGNORED; /* what becomes of events */
__u64 taken_ns = 0;          /* since when */
__u64 woken_ns = 0;          /* when an urgent stack last woke user space */
__u64 weight = 0;            /* what an event counts: 1, and more once the rate was halved */
__u64 time_value = 1;        /* what a sample of --timeline stands for, in the unit of the event */
__u64 ended_ns = 0;          /* CPU time of processes that were targets and are gone */
__u32 any_ending = 0;        /* was there ever one in the map of endings? */
__u32 keep_ended = 0;        /* processes that are gone stay in that map, with all of their CPU time */
__u32 counts_in_use = 0;     /* its lowest bit: which half of the table; counts how often that changed */
__u32 last_instance = 0;
__u32 code_watched = 0; /* code_changes is kept */

struct stack_head { /* what happened (event.bpf.h), and what a walk's stack_records have in common */
	u64 hash;
	u32 instance;
	u32 tgid;
	u32 tid;
	u32 stop;
	u64 weight, weight_more; /* of struct stack_record */
	u64 value, more;         /* what this one counts; 0: that is not known yet */
	u32 reason;              /* of the event's own (event_ops.reason); 0: no frame */
	u32 epoch;
	u64 object;   /* what the reason is about: an address of the process; 0: nothing is known */
	u32 role;     /* enum stack_role */
	u32 noted;    /* enum stop_reason: why the walk first ended in unknown code (slot.deferred); 0: it did not */
	u64 begin_ns; /* 0: it is not timed */
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
	u32 ends;                             /* how often the walk has ended, to go on elsewhere */
	u32 defers;                           /* it may be done again later, if it meets unknown code */
	u32 guesses;                          /* that it may still make there */
	struct return_instance *return_probe; /* the last that it has passed (return_walk.bpf.h) */
	struct stack_head head; /* here, and not on the stack: BPF has 512 bytes of it for a chain of functions */
	struct walk walk;
	u64 kernel[KERNEL_FRAMES + 1];
	struct alloc_record alloc;       /* of tlab_sample.bpf.h */
	struct deferred_record deferred; /* if head.noted */
	struct vm_state vm;              /* at that code */
} __attribute__((aligned(4096)));        /* what each walk needs is in one page */

struct { /* CPUs * slots_per_cpu: too large for a per-CPU map */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

/*
 * A table of both epochs, each of COUNTS_PLACES, in which a stack is at the place that its hash says or at one of the
 * next (count_of() of event.bpf.h). The kernel's own hash tables take a call, and three times as many lines of the
 * cache and pages, which are cold in each sample.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * COUNTS_PLACES);
	__type(key, u32);
	__type(value, struct stack_count);
} counts SEC(".maps");

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

struct { /* by signal_struct */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct process_ending);
} endings SEC(".maps");

/*
 * The instance of the current process; 0: it is not a target. Out of line, because the chain of functions below a
 * program needs all of the stack.
 */
WALK_GLOBAL int find_target(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tgid = tgid_of_typed(task);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct process_ending *ending;
	u64 key;

	if (process)
		return process->instance;
	if (!any_ending)
		return 0;
	key = (u64)BPF_CORE_READ(task, signal);
	ending = bpf_map_lookup_elem(&endings, &key);
	return ending && ending->tgid == tgid ? ending->instance : 0;
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

/* What a walk of user frames looks up code in. */
static inline void walk_through(struct walk *w, const struct process_entry *process, u32 tgid)
{
	const struct code_change *change = code_watched ? bpf_map_lookup_elem(&code_changes, &tgid) : NULL;

	w->changed_start = w->changed_end = 0;
	if (change && change->ns > process->looked_ns) {
		w->changed_start = change->start;
		w->changed_end = change->end;
	}
	w->regions = process->regions;
	w->nregions = process->nregions;
	for (u32 i = 0; i < PROCESS_RESUMES; i++)
		w->resume[i] = process->resume[i];
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
	w->resumes = 0;
	w->proof.guessed = 0;
	w->region.start = w->region.end = 0;
	w->stack.len = w->stack.start = 0;
	if (w->others) { /* else the last walk left them alone, and their pages are cold */
		w->vm.len = w->calls.len = 0;
		w->vm.start = w->calls.start = 0;
	}
	w->others = 0;
	w->target.chunk = slot * chunks_per_slot;
}

/* Some of n frames. Out of line, so that the verifier looks at a group of them once, and not at all 127. */
WALK_GLOBAL int push_kernel_frames(struct slot *slot, u32 first, u32 n)
{
	u32 flags;

	if (!slot)
		return 0;
	flags = walk_launder(&slot->walk, first ? FRAME_RETADDR : 0);
	for (u32 k = 0; k < KERNEL_GROUP; k++, flags = FRAME_RETADDR) {
		u32 i = first + k;

		WALK_BARRIER(i);
		if (i >= n || i >= KERNEL_FRAMES)
			break;
		walk_push(&slot->walk, frame_where(FRAME_KERNEL, RUNTIME_NATIVE, flags, slot->kernel[i]), 0);
	}
	return 0;
}

static inline void push_kernel(struct slot *slot, u32 bytes)
{
	for (u32 i = 0; i < KERNEL_FRAMES && i < bytes / 8; i += KERNEL_GROUP)
		push_kernel_frames(slot, i, bytes / 8);
}

#define REGS(p, ax, dx, cx, bx, si, di, bp, sp, ip)                                                                    \
	do {                                                                                                           \
		w->reg[DWREG_RAX] = (p)->ax;                                                                           \
		w->reg[DWREG_RDX] = (p)->dx;                                                                           \
		w->reg[DWREG_RCX] = (p)->cx;                                                                           \
		w->reg[DWREG_RBX] = (p)->bx;                                                                           \
		w->reg[DWREG_RSI] = (p)->si;                                                                           \
		w->reg[DWREG_RDI] = (p)->di;                                                                           \
		w->reg[DWREG_RBP] = (p)->bp;                                                                           \
		w->reg[DWREG_RSP] = (p)->sp;                                                                           \
		w->reg[DWREG_R8] = (p)->r8;                                                                            \
		w->reg[DWREG_R9] = (p)->r9;                                                                            \
		w->reg[DWREG_R10] = (p)->r10;                                                                          \
		w->reg[DWREG_R11] = (p)->r11;                                                                          \
		w->reg[DWREG_R12] = (p)->r12;                                                                          \
		w->reg[DWREG_R13] = (p)->r13;                                                                          \
		w->reg[DWREG_R14] = (p)->r14;                                                                          \
		w->reg[DWREG_R15] = (p)->r15;                                                                          \
		w->reg[DWREG_RIP] = (p)->ip;                                                                           \
	} while (0)

/* The user registers that the kernel saved at entry. */
static inline void saved_registers(struct walk *w, struct task_struct *task)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);

	REGS(r, ax, dx, cx, bx, si, di, bp, sp, ip);
	w->valid = (1u << ARCH_NREGS) - 1;
	/* Nothing has to stand behind this call, which never returns: the next function may. */
	w->leaf = r->orig_ax != SYSCALL_SIGRETURN;
	w->thread_pointer = task->thread.fsbase;
}

/* The user registers: those of the event if it hit user code, else those that the kernel saved at entry. */
static inline void user_registers(
        struct walk *w, struct bpf_perf_event_data *ctx, struct task_struct *task, bool in_user)
{
	if (in_user) {
		bpf_user_pt_regs_t *r = &ctx->regs;

		REGS(r, rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, rip);
		/* keeps the compiler from joining the branches: the verifier wants constant offsets into the context */
		__asm__ volatile("" ::: "memory");
		w->valid = (1u << ARCH_NREGS) - 1;
		w->leaf = 1;
		w->thread_pointer = task->thread.fsbase;
	} else {
		saved_registers(w, task);
	}
}
#undef REGS

struct stepping {
	struct slot *slot;
	u32 stop;
};

/* A walk has ended, for this reason. STOP_NONE: it goes on elsewhere. In event.bpf.h. */
int walk_goes_on(struct slot *slot, u32 stop);

static inline __attribute__((always_inline)) u32 step_slot(struct slot *slot)
{
	int stop = walk_step(&slot->walk);

	return stop ? (u32)walk_goes_on(slot, stop) : STOP_NONE;
}

static long step_one(u32 i, struct stepping *s)
{
	s->stop = step_slot(s->slot);
	return s->stop != STOP_NONE;
}

/* Without bpf_loop the verifier follows each round; the branches of a round are verified once, in this function. */
WALK_GLOBAL int step_no_loop(struct slot *slot)
{
	if (!slot)
		return STOP_ARENA;
	return step_slot(slot);
}

/* One loop, wherever the walk goes on: the verifier follows each call of bpf_loop. */
static inline __attribute__((always_inline)) u32 walk_user(struct slot *slot)
{
	struct stepping s = {.slot = slot, .stop = STOP_NONE};

	if (with_loop) {
		bpf_loop(WALK_PARTS * walk_steps_max(&slot->walk), step_one, &s, 0);
	} else {
		for (u32 i = 0; i < STEPS_NO_LOOP && s.stop == STOP_NONE; i++)
			s.stop = step_no_loop(slot);
	}
	return s.stop == STOP_NONE ? STOP_DEPTH : s.stop;
}

/*
 * There is no user stack in exit() after the memory is gone, nor in execve() from the loss of the old program's memory
 * on: the new one's stack is another. Where the old one is not known: while the new one is made (load_elf_binary() of
 * 5.12 to 6.18 sets end_code when it is done, setup_arg_pages() start_stack much earlier), and until the new program
 * runs its first instruction: ELF_PLAT_INIT() clears the arguments of the system call, not all of which are NULL.
 */
static inline bool has_no_stack(struct task_struct *task, const struct process_entry *process)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u64 stack = BPF_CORE_READ(mm, start_stack);

	if (!r->sp && !r->ip) /* a thread of io_uring, which runs in the kernel only */
		return true;
	if (r->orig_ax != SYSCALL_EXECVE && r->orig_ax != SYSCALL_EXECVEAT)
		return !stack;
	return !(r->di | r->si | r->dx) || !BPF_CORE_READ(mm, end_code) || (process->stack && process->stack != stack);
}

/*
 * A thread that has not yet left the system call that made it. Its stack has what it begins with, or, with a cache of
 * stacks, what an earlier thread left there, but no caller. A forked process has its parent's stack.
 */
static inline bool is_newborn(struct task_struct *task)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	unsigned long call = r->orig_ax;

	return (call == SYSCALL_CLONE || call == SYSCALL_CLONE3) && !r->ax && task->pid != task->tgid;
}

/* Its one frame. */
WALK_GLOBAL int walk_newborn(struct walk *w)
{
	int stop;

	WALK_CHECK(w);
	stop = walk_locate(w, w->reg[REG_PC]);
	if (stop)
		return stop;
	return walk_push(w, frame_where(FRAME_NATIVE, RUNTIME_NATIVE, 0, w->reg[REG_PC]), w->region.module)
	               ? STOP_ROOT
	               : STOP_DEPTH;
}

/*
 * Follows one frame pointer. STOP_NONE: the walk goes on in the caller, in known code. STOP_NO_CFI: it cannot, and
 * scratch[0] is the next frame pointer, or 0.
 */
WALK_GLOBAL int deferred_pointer(struct walk *w, u64 fp)
{
	u64 next, pc;

	WALK_CHECK(w);
	w->scratch[0] = 0;
	if (fp - w->reg[REG_SP] > GUESS_FRAME_MAX || !walk_stack(w, fp, &next) || !walk_stack(w, fp + 8, &pc))
		return STOP_NO_CFI;
	w->scratch[0] = next;
	if (!behind_call(w, pc))
		return STOP_NO_CFI;
	w->reg[REG_FP] = next;
	w->valid = 1u << REG_FP;
	return enter_caller(w, fp + 16, pc, false);
}

/*
 * Follows frame pointers, as far as there are any, to the first caller in known code. The frame pointer is valid there.
 */
static inline int deferred_pointers(struct walk *w)
{
	u64 fp = walk_has(w, REG_FP) ? w->reg[REG_FP] : 0;
	int stop = STOP_NO_CFI;

	for (u32 i = 0; i < DEFERRED_POINTERS && stop == STOP_NO_CFI && fp; i++) {
		stop = deferred_pointer(w, fp);
		fp = w->scratch[0];
	}
	return stop;
}

/* Goes on at the first of some words of the stack that can be the return address of code that is not known. */
WALK_GLOBAL int deferred_scan(struct walk *w, u64 at)
{
	int found = SCAN_NONE;

	WALK_CHECK(w);
	for (u32 i = 0; i < DEFERRED_GROUP && found < SCAN_CALLED; i++, at += 8)
		found = scan_word(w, at);
	if (found == SCAN_ABSENT)
		return STOP_STACK_ABSENT;
	return found == SCAN_CALLED ? take_word(w, at - 8) : STOP_NO_CFI;
}

/*
 * Notes where a walk ended in code that is not known. 1: there may be a runtime that leads out more surely than
 * guesses.
 */
WALK_GLOBAL int deferred_note(struct slot *slot, u32 stop)
{
	struct deferred_record *deferred;
	struct walk *w;

	if (!slot)
		return 0;
	w = &slot->walk;
	deferred = &slot->deferred;
	for (u32 i = 0; i < ARCH_NREGS; i++)
		deferred->reg[i] = w->reg[i];
	deferred->valid = w->valid;
	deferred->leaf = w->leaf;
	deferred->thread_pointer = w->thread_pointer;
	deferred->before = w->nframes;
	deferred->stop = slot->head.noted = stop;
	deferred->pc = deferred->sp = deferred->fp = 0;
	deferred->resume = 0;
	slot->vm.ncursors = w->ncursors;
	slot->vm.state = w->vm_state;
	slot->vm.mark = w->vm_mark;
	slot->vm.lost = w->lost;
	bpf_probe_read_kernel(slot->vm.cursor, sizeof(w->cursor), w->cursor); /* shorter than a copy of words */
	_Static_assert(PROCESS_RESUMES == 2, "all are looked at");
	return w->resume[0].exact | w->resume[1].exact;
}

/*
 * Notes where that runtime goes on. What may be missing is between: a deferred walk finds it, or the stack has a gap
 * (send_again()). With guesses what is behind would be dropped.
 */
WALK_GLOBAL int deferred_resumed(struct slot *slot)
{
	struct deferred_record *deferred;
	struct walk *w;

	if (!slot)
		return STOP_ARENA;
	w = &slot->walk;
	deferred = &slot->deferred;
	deferred->resume = 1;
	deferred->pc = w->reg[REG_PC];
	deferred->sp = w->reg[REG_SP];
	deferred->fp = walk_has(w, REG_FP) ? w->reg[REG_FP] : 0;
	w->lost = slot->vm.lost;
	slot->guesses = 0;
	return STOP_NONE;
}

/*
 * Continues, as a guess, at the next caller in known code: STOP_NONE. There may be more unknown code in between, so the
 * walk is repeated later (deferred), which finds the frames in between.
 */
WALK_GLOBAL int deferred_guess(struct slot *slot)
{
	struct deferred_record *deferred;
	struct walk *w;
	u32 left;
	u64 sp;
	int ret;

	if (!slot)
		return STOP_ARENA;
	w = &slot->walk;
	deferred = &slot->deferred;
	left = slot->guesses;
	slot->guesses = 0; /* one that fails is the last one */
	if (!left || !w->nregions || !slot->head.noted || !stop_is_unknown_code(slot->head.stop))
		return STOP_NO_PROCESS;
	sp = w->reg[REG_SP];
	ret = deferred_pointers(w);
	deferred->fp = ret ? 0 : w->reg[REG_FP];
	for (u32 i = 0; i < DEFERRED_WORDS && ret == STOP_NO_CFI; i += DEFERRED_GROUP)
		ret = deferred_scan(w, sp + i * 8);
	if (ret)
		return ret;
	w->flags = 0;
	w->nframes = deferred->before;
	if (w->proof.nframes > w->nframes)
		w->proof.nframes = w->nframes;
	w->ncursors = slot->vm.ncursors;
	w->vm_state = slot->vm.state;
	w->vm_mark = slot->vm.mark;
	w->lost = slot->vm.lost;
	bpf_probe_read_kernel(w->cursor, sizeof(w->cursor), slot->vm.cursor);
	deferred->pc = w->reg[REG_PC];
	deferred->sp = w->reg[REG_SP];
	slot->guesses = left - 1;
	return STOP_NONE;
}

#endif
