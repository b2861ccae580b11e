/* SPDX-License-Identifier: Apache-2.0 */
/* A program, or one thread of it, that runs under ptrace: for a while at full speed, then step by step. */
#ifndef YRT_STEPS_PROGRAM_H
#define YRT_STEPS_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "unit.h"

#include "unwind.h"

struct program {
	bool followed; /* a thread of its own, while the others run */
	pid_t pid, tid;
};

/*
 * argv: what begins with "fixtures/" is a path in the sources. thread: the one that is traced, by its comm; NULL: the
 * first. The program is stopped when it returns.
 */
struct program program_start(const char *const *argv, const char *thread);
void program_end(const struct program *p);
/* Goes on for so long, in us, and stops; 0: a program without a thread to follow, to its own SIGSTOP. */
void program_run(const struct program *p, u32 us);
/* One instruction. Signals are passed on. */
void program_step(const struct program *p);
void program_registers(const struct program *p, struct unwind_registers *ret);

#endif
