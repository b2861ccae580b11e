/* SPDX-License-Identifier: Apache-2.0 */
/* A system call as text: its name, and its arguments if it is one that threads wait in. */
#ifndef YRT_SYSCALL_H
#define YRT_SYSCALL_H

#include <sys/types.h>
#include <types.h>

struct memory;

struct syscall {
	int number;
	u64 arguments[6];
	pid_t tid;             /* whose descriptors it names */
	struct memory *memory; /* of its process */
	pid_t tgid;            /* 0: of a thread that does not run */
	bool past;             /* of a core file: nobody knows what time it was */
	u64 switches;          /* of the thread, when it was seen in the call (switches.h) */
};

/* NULL: no such call is known. Static. */
const char *syscall_name(int number);
/* The number of a system call whose arguments are known; < 0: none has this name. */
int syscall_number(const char *name);
/*
 * "read(3 = /var/log/syslog, 0x7f…, 4096)", "poll([5 = tcp 10.0.0.1:4711 to 10.0.0.2:5432], 1, no timeout)", with what
 * descriptors are, a futex's operation, and timeouts. If the thread has run since, descriptors have no names, and what
 * is in memory is shown by its address. Paths of the target are in it as they are: hostile. malloc'd; NULL: out of
 * memory.
 */
char *syscall_text(const struct syscall *call);
/* Does it wait for a futex? Then its address, and the value that it is not to have changed from. */
bool syscall_waits_for_futex(const struct syscall *call, u64 *addr, u32 *value);

#endif
