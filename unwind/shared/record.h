/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What crosses from the probes to user space through the ring buffer, and the counters that both sides know.
 */
#ifndef YRT_SHARED_RECORD_H
#define YRT_SHARED_RECORD_H

#include <arch.h>

#include "frame.h"

enum record_type {
	RECORD_STACK = 1, /* struct stack_record, a chunk of a stack seen for the first time */
	RECORD_FORK,      /* struct process_record: a target made a child, which runs under `instance` already */
	RECORD_EXEC,      /* struct process_record: a target became another program; its entry is gone */
	RECORD_EXIT,      /* struct process_record: the last thread of a target is exiting */
	RECORD_UNKNOWN,   /* struct process_record: a walk met code outside all regions: look at its maps again */
	RECORD_DEFERRED,  /* struct deferred_record: a piece of the stack of a thread whose walk met such code */
	RECORD_EVENT,     /* of the event's own (event_ops.record) */
	RECORD_TIME,      /* struct time_record: a sample was taken (--timeline) */
};

#define CHUNK_FRAMES 256u
#define COMM_LEN     16

/*
 * A stack crosses in chunks of CHUNK_FRAMES frames, leaf first, all with the same head; the last one has `last` set.
 * Samples of a stack that crossed are counted in the table of counts under its hash.
 */
struct stack_record {
	u32 type;
	u32 nframes;      /* in this chunk */
	u64 hash;         /* of the frames, the process instance, and what else distinguishes stacks */
	u32 instance;     /* struct process_entry.instance */
	u32 tgid, tid;    /* in the pid namespace of yrt, as far as known */
	u16 stop;         /* enum stop_reason */
	u16 first;        /* chunk number */
	u64 weight, more; /* count this at once: the table had no room. weight 0: it is in the table, or comes
	                     later */
	u16 last;         /* 1: no more chunks */
	u16 epoch;        /* in which half of the table it is */
	u32 role;         /* enum stack_role */
	char comm[COMM_LEN];
	struct frame frame[CHUNK_FRAMES];
};
_Static_assert(sizeof(struct stack_record) == 72 + 16 * CHUNK_FRAMES, "no padding before the frames");

/*
 * The hash of the same stack where the thread can go on but has no CPU yet: it is counted without having been sent
 * (collect_options.queued).
 */
static inline u64 stack_queued(u64 hash)
{
	return hash ^ 0x51ed270b9a5f2c63ull;
}

enum stack_role {
	STACK_OF_EVENT,
	STACK_OF_WAKER, /* it is counted behind others only (collector_join()) */
};

#define COUNTS_PLACES 32768u /* of one epoch; power of two */
#define COUNTS_NEAR   8u     /* places where a stack may be */

/* What is counted of a stack, in the unit of the event, and what else (event_ops.unit, .more). */
struct stack_count {
	u64 hash; /* 0: the place is free */
	u64 value, more;
};

/*
 * A walk ended in code that yrt does not know yet: what a deferred walk needs to continue there
 * (unwind/profile/deferred.h). The pieces of the stack come before the stack_record, in order and without a gap. The
 * stack_record has the same hash, which no other one has, and a weight.
 */
#define DEFERRED_PIECE  4096u
#define DEFERRED_PIECES 8u
#define DEFERRED_BELOW  128u /* bytes below the stack pointer: in an epilogue, rows still find popped registers there */
#define DEFERRED_MOST   256  /* stacks that a process may send after each new file */
struct deferred_record {
	u32 type;
	u32 size; /* bytes of this piece; the last one may be cut */
	u64 hash;
	u64 addr;            /* of the piece */
	u64 reg[ARCH_NREGS]; /* where the walk ended: not one of its frames yet */
	u32 valid;
	u32 leaf;
	u64 thread_pointer;
	u64 pc, sp; /* a frame, found by guess, that it went on at; 0: none */
	u64 fp;     /* its frame pointer, if that was used: 0: it was not */
	u32 before; /* frames of the stack from before that; the others are that frame's and its callers' */
	u32 stop;   /* why it ended there */
	u32 resume; /* 1: a runtime said where to go on (runtime_ops.resume): the others begin with a FRAME_GAP; pc is
	               any place in that frame's code; it is found by fp, or by sp if that is 0 */
	u32 reserved;
	u8 byte[DEFERRED_PIECE];
};
_Static_assert(sizeof(struct deferred_record) == 80 + 8 * ARCH_NREGS + DEFERRED_PIECE, "no padding before the bytes");

struct process_record {
	u32 type;
	u32 tgid; /* in the pid namespace of yrt, as far as known */
	u32 instance;
	u32 parent; /* RECORD_FORK: instance of the parent */
	u64 pc;     /* RECORD_UNKNOWN */
	u64 stack;  /* RECORD_FORK, RECORD_EXEC: start of the first thread's stack: another program has another */
	u64 ns;     /* the same: CLOCK_MONOTONIC */
};

/* When a sample was taken. Its stack may come before or after this, or was sent long ago. */
struct time_record {
	u32 type;
	u32 count; /* samples that it stands for */
	u64 hash;  /* of its stack */
	u64 ns;    /* CLOCK_MONOTONIC */
	u64 span;  /* they are spread evenly over so many ns until then */
};

/* Why a sample did not become a stack. X(name, word in the statistics) */
#define LOST_CAUSES(X)                                                                                                 \
	X(LOST_RING, "ring_full")                                                                                      \
	X(LOST_SCRATCH, "scratch_busy")                                                                                \
	X(LOST_TABLE, "table_full")                                                                                    \
	X(LOST_ENDED, "ended") /* the thread, between the end of the run and the walk of its last wait */

enum lost_cause {
#define X(name, word) name,
	LOST_CAUSES(X)
#undef X
	        LOST_MAX,
};

enum ticks { /* what becomes of events, as the clock's ticks */
	TICKS_IGNORED,
	TICKS_TAKEN,
	TICKS_AT_EXEC, /* are taken once a target has executed a program */
};

struct clock_woken {    /* the last thread whose tick on this CPU woke user space, and then: */
	u64 ran;        /* its CPU time, from some moment on */
	u64 migrations; /* how often it had changed its CPU */
	u32 tid;        /* 0: its next tick has come */
	u32 reserved;
};

struct probe_stats { /* one for each CPU; what each tick and each sample needs comes first */
	u64 at;      /* CPU time of targets that ticks covered, and the moment of the next sample in it */
	u64 chosen;
	u64 ticks;       /* clock interrupts that hit a target */
	u64 last_ns;     /* CLOCK_MONOTONIC of the last interrupt */
	u64 hit_ns;      /* of the last that hit a target */
	u64 last_period; /* of the clock, then */
	u32 woke;        /* user space was woken */
	u32 hit;         /* the instance that the clock's last interrupt hit; 0: no target */
	struct clock_woken woken;
	u64 samples;  /* events that were taken (of ticks: as samples), each counting a value */
	u64 weights;  /* sum of their values */
	u64 clocked;  /* samples of the clock, weighted */
	u64 first_ns; /* CLOCK_MONOTONIC of the first sample; 0: none yet */
	u64 frames;
	u64 stop[STOP_MAX]; /* values by why the walk ended */
	u64 lost[LOST_MAX];
	u64 lost_ns;  /* CPU time of targets without an interrupt */
	u64 records;  /* stacks sent */
	u64 timed_ns; /* duration of the samples that were timed, and their number */
	u64 timed;
};

/*
 * Return addresses of a thread that a return probe has replaced (STOP_RETURN_PROBE), the innermost first: where each
 * was on the stack, and what it was.
 */
#define RETURN_PROBES_KEPT 16
struct return_probes {
	u64 n;
	struct {
		u64 at, address;
	} probe[RETURN_PROBES_KEPT];
};

#endif
