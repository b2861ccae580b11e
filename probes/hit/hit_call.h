/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call with its arguments, as text. What a function takes is known from
 *
 *	its debug information	open(path = "/etc/passwd", flags = 0)
 *	the system call of its name, in libc	fsync(7 = /var/lib/a.db)
 *	its code: registers that it reads before it writes to them	f("text", 3, 0x7f12a0001000)
 */
#ifndef YRT_HIT_CALL_H
#define YRT_HIT_CALL_H

#include "hit_record.h"
#include "unwind/symbols/parameters.h"

struct hit_function {
	u32 spec;            /* the -e that it is measured for */
	struct image *img;   /* owned; NULL: of a language that is interpreted */
	u64 addr;            /* of its first instruction, in the file */
	pid_t pid;           /* whose file system its debug file is looked for in */
	char *name;          /* as the user calls it; owned */
	bool suspends;       /* of a language: calls can be suspended (RUNTIME_OWN_FRAME) */
	bool own_convention; /* its code is a runtime's that does not pass arguments as C does */
	bool looked;         /* what follows is known */
	bool described;      /* by debug information */
	struct parameters parameters;
	int syscall; /* that it is named after; < 0: none */
	u32 nregs;   /* arguments in general registers, by its code */
};

/* "NAME(ARGUMENTS)", malloc'd; NULL: out of memory. Text and paths of the target are in it, without control bytes. */
char *hit_call_text(struct hit_function *function, const struct latency_record *record);

#endif
