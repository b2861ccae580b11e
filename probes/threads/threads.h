/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of processes at one moment, read from outside by a BPF task iterator: nobody is stopped, and sleeping
 * threads notice nothing. Linux 5.15 and later.
 */
#ifndef YRT_THREADS_H
#define YRT_THREADS_H

#include <sys/types.h>

#include "thread.h"
#include "unwind/error.h"

struct threads;

struct thread_list {
	struct thread_record *items; /* by tid; free() */
	u32 n;
};

/* ERROR_PERMISSION, ERROR_UNSUPPORTED. no_kernel: leave out kernel frames. */
struct error *threads_create(bool no_kernel, struct threads **ret);
void threads_destroy(struct threads *t);
/* The function of the kernel at an address, as kernel_name() does. */
bool threads_name_kernel(struct threads *t, u64 addr, char *text, size_t size);
/* A process whose threads are wanted. */
struct error *threads_want(struct threads *t, pid_t pid);
/* All threads of them now. What exits meanwhile may be missing. */
struct error *threads_take(struct threads *t, struct thread_list *ret);
/* One thread as it is now; *found is false if it is gone. */
struct error *threads_take_one(struct threads *t, pid_t tid, struct thread_record *ret, bool *found);

#endif
