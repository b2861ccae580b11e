/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops all threads of a process while it is looked at, with ptrace(2): if yrt dies meanwhile, the kernel lets them go
 * on. A system call that sleeps is interrupted, and restarted by the kernel.
 */
#ifndef YRT_PAUSE_H
#define YRT_PAUSE_H

#include <sys/types.h>
#include <types.h>

#include "error.h"

struct paused_thread {
	pid_t tid;
	int signal; /* that it is about to take, and gets when it goes on; 0: none */
};

struct pause {
	struct paused_thread *threads;
	u32 n;
};

/* On an error nothing is stopped. */
struct error *pause_begin(pid_t pid, struct pause *ret);
void pause_end(struct pause *p);

#endif
