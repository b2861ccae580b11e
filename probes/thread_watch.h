/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A debug register on one address in all threads of a process, those that begin later too: they inherit it. Each thread
 * has four of them, for all tools together.
 */
#ifndef YRT_THREAD_WATCH_H
#define YRT_THREAD_WATCH_H

#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"

#define THREAD_WATCHES 4 /* debug registers of a thread */

struct thread_watch;

struct thread_watch_options {
	pid_t pid;
	u64 addr;
	u32 bytes;     /* 1, 2, 4 or 8; of code 8 */
	bool executed; /* else it is read or written, by user code; */
	bool written;  /* or only written */
	int program;   /* BPF's, that runs at each hit */
};

/* Hits from here on run the program. An error says if debug registers are in use, or there are none. */
struct error *thread_watch_open(const struct thread_watch_options *o, struct thread_watch **ret);
/*
 * Threads that began while the others were being watched, and that may not be: a thread inherits the watch only if its
 * creator had it. 0 where the process starts none, or where they have ended since.
 */
u32 thread_watch_missed(const struct thread_watch *w);
void thread_watch_close(struct thread_watch *w); /* NULL is fine */
/* What a hit costs the thread without the program, measured on this one. 0: it cannot be measured. */
u64 thread_watch_cost(void);

#endif
