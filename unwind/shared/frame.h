/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A frame: 16 bytes of facts, named later. And why a walk ended.
 *
 * Plain data, shared by the BPF programs and user space; frames are hashed as they are, so every bit is defined.
 */
#ifndef YRT_SHARED_FRAME_H
#define YRT_SHARED_FRAME_H

#include <types.h>

enum frame_kind {
	FRAME_NONE,
	FRAME_KERNEL, /* addr: kernel text (sign-extend from 48 bits); detail: 0 */
	FRAME_NATIVE, /* addr: pc; detail: module number (struct region.module) */
	FRAME_SCRIPT, /* a frame of a language: addr and detail mean what the runtime says in its header */
	FRAME_GAP, /* no frame: native ones are missing here, between a callee and what a runtime goes on with; detail:
	              enum stop_reason */
	FRAME_REASON, /* no code: why an event happened, inside its leaf; detail: what the event says (probes/event.h);
	                 addr: of what it is about (a futex), or 0; runtime: whose task waits, if it is no thread */
	FRAME_OBJECT, /* no code: what it happened to (a file, a peer), inside the reason; detail: a key of the event's
	                 own */
};

enum frame_flag {
	FRAME_RETADDR = 1, /* addr is a return address: look up addr - ARCH_CALL_BACK */
	FRAME_GUESS = 2,   /* found by frame pointers without CFI, or otherwise not certain */
	FRAME_APPROX = 4,  /* the runtime gives this position only approximately */
	FRAME_VM = 8,      /* native code of a VM's own loop or of its JIT: a language's view hides it */
	FRAME_INLINED = 16,
	FRAME_THREAD = 64,   /* no code: which thread of a runtime's own (a goroutine) the stack is of; its outermost
	                      frame, only recorded if FEATURE_TASKS was given */
	FRAME_AWAITED = 128, /* no code: what the thread waits for, as its runtime knows it; only recorded if
	                        FEATURE_AWAITED was given */
	FRAME_CHAINED = 64, /* of native code, with FRAME_GUESS: found by the frame pointer, which user space may prove;
	                        gone after that */
	FRAME_LOCK = 32,    /* code of a VM: its thread held the VM's lock; only recorded if FEATURE_LOCK was given */
};

/* The runtimes; RUNTIME_NATIVE is no runtime but ordinary code. The numbers are kept in recordings: never reuse one. */
enum runtime_id {
	RUNTIME_NATIVE = 0,
	RUNTIME_LUAJIT = 1,
	RUNTIME_PYTHON = 2,
	RUNTIME_HOTSPOT = 3,
	RUNTIME_GO = 4,
	RUNTIME_PERL = 5,
	RUNTIME_LUA = 6,
	RUNTIME_MAX = 16,
};

struct frame {
	u64 where;  /* addr:48 | flags:8 | runtime:4 | kind:4, from the low end */
	u64 detail; /* depends on kind and runtime */
};
_Static_assert(sizeof(struct frame) == 16, "a frame is 16 bytes");

#define FRAME_ADDR_BITS 48
#define FRAME_ADDR_MASK ((1ULL << FRAME_ADDR_BITS) - 1)

static inline u64 frame_where(enum frame_kind kind, enum runtime_id runtime, u32 flags, u64 addr)
{
	return (u64)kind << 60 | (u64)runtime << 56 | (u64)flags << 48 | (addr & FRAME_ADDR_MASK);
}

static inline enum frame_kind frame_kind(const struct frame *f)
{
	return (enum frame_kind)(f->where >> 60);
}

static inline enum runtime_id frame_runtime(const struct frame *f)
{
	return (enum runtime_id)(f->where >> 56 & 15);
}

static inline u32 frame_flags(const struct frame *f)
{
	return (u32)(f->where >> 48) & 0xff;
}

/* The address; of a kernel frame with its upper bits back. */
static inline u64 frame_addr(const struct frame *f)
{
	u64 addr = f->where & FRAME_ADDR_MASK;

	return frame_kind(f) == FRAME_KERNEL ? addr | ~FRAME_ADDR_MASK : addr;
}

/*
 * Why a walk ended. STOP_ROOT and STOP_ROOT_RUNTIME are complete stacks; all others are truncated, and shown as such.
 * A step function returns STOP_NONE to go on. X(name, word in the statistics, words for people)
 */
#define STOP_REASONS(X)                                                                                                \
	X(STOP_NONE, "none", "still walking")                                                                          \
	X(STOP_ROOT, "root", "complete: a root defined by the ABI")                                                    \
	X(STOP_ROOT_RUNTIME, "root_runtime", "complete: a root defined by the runtime")                                \
	X(STOP_DEPTH, "depth", "deeper than --depth")                                                                  \
	X(STOP_NO_REGION, "no_region", "program counter outside all known code")                                       \
	X(STOP_NO_CFI, "no_cfi", "no unwind information here, and frame pointers led nowhere")                         \
	X(STOP_CFI_UNSUPPORTED, "cfi_unsupported", "unwind information of a form that is not supported")               \
	X(STOP_REG_LOST, "reg_lost", "a register that the rule needs was not recovered")                               \
	X(STOP_STACK_ABSENT, "stack_absent", "stack memory could not be read (page absent)")                           \
	X(STOP_NO_PROGRESS, "no_progress", "the caller's frame does not lie above the callee's")                       \
	X(STOP_BAD_RETADDR, "bad_retaddr", "return address is not code")                                               \
	X(STOP_VM_ABSENT, "vm_absent", "the runtime's memory could not be read (page absent)")                         \
	X(STOP_VM_BROKEN, "vm_broken", "links of the runtime's stack do not hold")                                     \
	X(STOP_VM_UNKNOWN, "vm_unknown", "the runtime was recognised but its layout is not known")                     \
	X(STOP_NO_PROCESS, "no_process", "the process was not yet known to yrt")                                       \
	X(STOP_ARENA, "arena", "the tables of yrt were inconsistent or full")                                          \
	X(STOP_NO_USER, "no_user", "no user stack (kernel thread, or exiting)")                                        \
	X(STOP_VM_FROZEN, "vm_frozen", "the callers of a virtual thread are still in the heap")                        \
	X(STOP_RESUMED, "resumed", "native frames are missing in the middle; the runtime knows where its own are")     \
	X(STOP_NO_WALKER, "no_walker", "the walker of a runtime that had just appeared was still being loaded")        \
	X(STOP_OWN_STACK, "own_stack", "these frames are on a stack that only their language knows (Haskell)")         \
	X(STOP_RETURN_PROBE, "return_probe", "a return probe (uretprobe) of another tool hides the return address")

enum stop_reason {
#define X(name, word, text) name,
	STOP_REASONS(X)
#undef X
	        STOP_MAX,
};

static inline bool stop_is_complete(u32 stop)
{
	return stop == STOP_ROOT || stop == STOP_ROOT_RUNTIME;
}

/* Is the outermost frame of the stack a root, whatever is missing before it? */
static inline bool stop_has_root(u32 stop)
{
	return stop_is_complete(stop) || stop == STOP_RESUMED;
}

/* Did the walk lose its way among native frames? */
static inline bool stop_is_lost(u32 stop)
{
	return stop == STOP_NO_REGION || stop == STOP_NO_CFI || stop == STOP_CFI_UNSUPPORTED || stop == STOP_REG_LOST ||
	       stop == STOP_STACK_ABSENT || stop == STOP_NO_PROGRESS || stop == STOP_BAD_RETADDR ||
	       stop == STOP_RETURN_PROBE;
}

/* Did the walk end in code that may yet become known? */
static inline bool stop_is_unknown_code(u32 stop)
{
	return stop == STOP_NO_PROCESS || stop == STOP_NO_REGION || stop == STOP_BAD_RETADDR || stop == STOP_NO_WALKER;
}

#endif
