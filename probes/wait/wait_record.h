/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Plain data that the BPF programs of waits and user space share. */
#ifndef YRT_WAIT_RECORD_H
#define YRT_WAIT_RECORD_H

#include <arch.h>
#include <types.h>

#include "unwind/shared/record.h"

#define WAIT_LONG_NS                                                                                                   \
	50000000ull /* of waits that are longer every one counts for itself; shorter ones may stand for others */
#define WAIT_DUE_NS        5000000ull  /* visited only then, or later: it may be over before */
#define WAIT_VISIT_NS      20000000ull /* user space looks for waits that nobody took a stack of so often */
#define WAIT_SKIPPED_NS    200ull      /* what a wait costs that is skipped, about */
#define WAIT_KERNEL_FRAMES 48
#define WAIT_PLACES_BITS   14 /* log2 of the places in the array of threads' states */

/* Why a thread left the CPU: a reason is kind << 24 | file << 16 | (system call + 1, 0: none). */
enum wait_kind {
	WAIT_BLOCKED = 1, /* in the system call, or in a page fault if there is none */
	WAIT_RUNNABLE,    /* it could run, but others had the CPU */
	WAIT_STOPPED,     /* by a signal */
	WAIT_TRACED,      /* by a debugger */
	WAIT_FROZEN,      /* its control group is */
	WAIT_RUNNING,     /* it did not: what it did on the CPU (wall-flame) */
	WAIT_TASK,        /* it is no thread (wait_tasks.h): the rest is wait_reason_of_task()'s */
};

enum wait_file { /* of the system call's first argument */
	WAIT_NO_FILE,
	WAIT_FILE,
	WAIT_SOCKET,
	WAIT_PIPE,
	WAIT_DEVICE, /* a terminal, /dev/… */
};

static inline bool wait_is_runnable(u32 reason)
{
	return reason >> 24 == WAIT_RUNNABLE;
}

static inline u32 wait_reason(enum wait_kind kind, enum wait_file file, s32 syscall)
{
	return (u32)kind << 24 | (u32)file << 16 | (syscall < 0 ? 0 : ((u32)syscall + 1) & 0xffff);
}

/*
 * To user space (RECORD_EVENT): a wait is over that BPF took no stack of, or one that ends in unknown code. It is long,
 * or user space took its stack.
 */
struct wait_record {
	u32 type;
	u32 pair; /* 0 */
	u32 tid;
	u32 tgid;
	u64 switches; /* of the thread until then: which of its waits it was; 0: it never ran before */
	u64 ns;
	u64 waker; /* hash of the stack of who ended it; 0: not known */
	u64 hash;  /* of the stack that ends in unknown code, if nobody walked a better one; 0: none */
	u32 stop;  /* why it ends there */
	u32 runnable;
	u32 instance; /* of the process; 0: not known */
	char comm[COMM_LEN];
};

/*
 * The same type: a new pair of a waiting stack and its waker's stack. What is counted under the hash `both` belongs to
 * both.
 */
struct wait_pair {
	u32 type;
	u32 pair; /* 1 */
	u64 hash, waker, both;
	u32 epoch;
	u32 reserved;
};

/*
 * By how much a thread's short waits were counted for too little, or too much if negative, and the stack of one of them
 * that makes up for it. ns 0: nothing.
 */
struct wait_rest {
	s64 ns;
	u64 hash;
	u32 stop, runnable;
};

#define WAIT_CHOSEN_ENOUGH 3u

/* Short waits that were counted, of a thread: the last; the largest of those whose stacks user space knows. */
struct wait_chosen {
	struct wait_rest last, most;
	u32 n;    /* how many */
	u32 turn; /* counts_in_use at the last one, or when user space last carried their stacks on */
};

static inline void wait_choose(struct wait_chosen *c, const struct wait_rest *wait, u32 turn)
{
	c->last = *wait;
	if (c->turn != turn || wait->ns >= c->most.ns)
		c->most = *wait;
	c->turn = turn;
	c->n++;
}

/* Adds those of another thread. */
static inline void wait_choose_all(struct wait_chosen *c, const struct wait_chosen *others)
{
	u32 n = c->n + others->n;

	if (others->n && (!c->n || others->turn >= c->turn)) {
		wait_choose(c, &others->most, others->turn);
		c->last = others->last;
	}
	c->n = n;
}

/*
 * What makes up for ns that were counted for too little: the last one, or the largest for too much. None if few were
 * counted: they stand for those of other threads, too. User space knows stacks that were sent since the last turn but
 * one, and those of threads that live (wait_visit_turn()).
 */
static inline void wait_take_rest(const struct wait_chosen *c, s64 ns, u32 turn, struct wait_rest *ret)
{
	*ret = ns > 0 ? c->last : c->most;
	if (c->n < WAIT_CHOSEN_ENOUGH || turn - c->turn > 1)
		ret->ns = 0;
	else
		ret->ns = ns > -ret->ns ? ns : -ret->ns;
}

/* What threads of a process that have ended were counted for too little, which others make up for; and their waits. */
struct wait_pool {
	s64 ns;
	struct wait_chosen chosen;
};

enum wait_thread_flag {
	WAIT_RUNS = 1,  /* it is on a CPU, or gone: no wait */
	WAIT_KNOWN = 2, /* hash: its stack was sent, and what was counted of it is settled */
	WAIT_DUE = 4,   /* nobody took its stack, or only up to unknown code: registers follow */
};

/* A thread of a target as the iterator finds it. */
struct wait_thread {
	u32 tgid, tid, instance, flags;
	u64 begin_ns; /* since when it is watched: CLOCK_MONOTONIC */
	u64 ns;       /* of the wait it is in: until now; WAIT_KNOWN: since it was last settled */
	u64 hash;
	u64 switches;
	struct wait_rest rest; /* at the end of the run; at a turn: its hash alone, which user space is to remember */
	u64 most;              /* at a turn: another such hash */
	s64 owed;              /* what that leaves; the stack of `rest` is one of its waits, if there is one */
	u64 object;            /* the futex that it waits for, if only futexes are wanted (lock-flame); else 0 */
	u32 stop;
	u32 reason;
	u64 reg[ARCH_NREGS];
	u64 thread_pointer;
	u64 kernel[WAIT_KERNEL_FRAMES]; /* up to 0 */
	char comm[COMM_LEN];
};

struct wait_stats { /* one for each CPU */
	u64 off_ns; /* time off the CPU, of waits that are over and of settled ones */
	u64 waits;
	u64 run_queue_ns;        /* of threads that could run, by what stacks stand for */
	u64 left_out_ns;         /* shorter or longer than asked for */
	u64 wall_ns;             /* of threads that have ended: since they were watched */
	u64 skipped;             /* waits that others stand for */
	u64 unwatched;           /* the same, in pauses between shifts */
	u64 unseen;              /* waits whose end the kernel did not report */
	u64 clock_ns, behind_ns; /* the scheduler's clock at the last comparison, and what to add for CLOCK_MONOTONIC */
	/* the budget: since when, skipped until then, on walks; time off the CPU that a walk stands for, at least */
	u64 window_ns, window_skipped, spent_ns, each_ns;
};

#endif
