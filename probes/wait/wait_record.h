/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Plain data that the BPF programs of waits and user space share. */
#ifndef YRT_WAIT_RECORD_H
#define YRT_WAIT_RECORD_H

#include <arch.h>
#include <types.h>

#include "unwind/shared/record.h"

#define WAIT_LONG_NS       50000000ull /* to walk such a wait from outside costs more than to take its stack before */
#define WAIT_BRIEF_NS      5000000ull  /* for bulk: waits like those that a thread has many of */
#define WAIT_DUE_NS        25000000ull /* visited only then, or later */
#define WAIT_FOUND_NS      25000000ull /* it is visited so long after that, also if the visit is a little late */
#define WAIT_VISIT_NS      20000000ull /* user space looks for waits that nobody took a stack of so often */
#define WAIT_SQUARE_BITS   12
#define WAIT_SKIPPED_NS    200ull /* what a wait costs that is skipped, about */
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
	WAIT_CLIENT, /* a connection that was accepted: the other end is a client; of poll(), the only file */
	WAIT_SERVER, /* a socket that hears whoever comes; of poll(), select(), epoll: such a one, or a client's, too */
};

#define WAIT_FOR_CPU ((u32)WAIT_RUNNABLE << 24) /* the reason */

static inline bool wait_is_runnable(u32 reason)
{
	return reason >> 24 == WAIT_RUNNABLE;
}

static inline bool wait_is_poll(s64 syscall)
{
	return syscall == 7 || syscall == 271; /* poll, ppoll */
}

static inline bool wait_is_select(s64 syscall)
{
	return syscall == 23 || syscall == 270; /* select, pselect6 */
}

static inline bool wait_is_epoll(s64 syscall)
{
	return syscall == 232 || syscall == 281 || syscall == 441; /* epoll_wait, epoll_pwait, epoll_pwait2 */
}

#define WAIT_POLLED   4  /* files of poll() that are looked at */
#define WAIT_SELECTED 32 /* descriptors of select() */

static inline u32 wait_reason(enum wait_kind kind, u32 file, s32 syscall)
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
	u64 queued; /* of that on the run queue, at its end */
	u64 waker;  /* hash of the stack of who ended it; 0: not known */
	u64 hash;   /* of the stack that ends in unknown code, if nobody walked a better one; 0: none */
	u32 stop;   /* why it ends there */
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

enum wait_thread_flag {
	WAIT_RUNS = 1,   /* it is on a CPU, or gone: no wait */
	WAIT_KNOWN = 2,  /* hash: its stack was sent, and what was counted of it is settled */
	WAIT_OTHERS = 8, /* others stand for the wait that it is in; at the end of the run */
	WAIT_DUE = 4,    /* nobody took its stack, or only up to unknown code: registers follow */
};

/* A thread of a target as the iterator finds it. */
struct wait_thread {
	u32 tgid, tid, instance, flags;
	u32 settled;  /* it counts for itself, also while it lasts */
	u32 stands;   /* WAIT_KNOWN: it counts for so many */
	u64 runnable; /* it is a wait for a CPU */
	u64 begin_ns; /* since when it is watched */
	u64 ns;       /* of the wait it is in: until now; WAIT_KNOWN: since it was last settled */
	u64 queued;   /* of that on the run queue, at its end; 0: it is one for a CPU */
	u64 hash;
	u64 switches;
	u64 object; /* the futex that it waits for, if only futexes are wanted (lock-flame); else 0 */
	u32 stop;
	u32 reason;
	u64 reg[ARCH_NREGS];
	u64 thread_pointer;
	u64 kernel[WAIT_KERNEL_FRAMES]; /* up to 0 */
	struct return_probes probes;
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
	u64 estimated_ns;        /* of chosen waits, by what they stand for; and its variance, */
	u64 squares;             /* each value without its last WAIT_SQUARE_BITS */
	u64 unseen;              /* waits whose end the kernel did not report */
	u64 queue;               /* the address of its struct rq, once that was read */
	u64 clock_ns, behind_ns; /* the scheduler's clock at the last comparison, and what to add for CLOCK_MONOTONIC */
	/* the budget: since when, skipped until then, on walks; time off the CPU that a walk stands for, at least */
	u64 window_ns, window_skipped, spent_ns, each_ns;
};

#endif
