/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which walkers a profile of one process or of the whole machine begins with: those of runtimes that the processes seem
 * to have, by the names of the files that one process of each program has mapped (runtime_ops.files). This is a guess,
 * made without opening any of these files. A walker too many costs some milliseconds; one too few is loaded when a
 * sample meets its runtime (walker_loads.h), or of one process before it is sampled.
 */
#ifndef YRT_WALKER_GUESS_H
#define YRT_WALKER_GUESS_H

#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"

/* proc: "/proc". *ret: bit n is the runtime of id n. */
struct error *walkers_guess(const char *proc, u32 *ret);
/* The same of one process; 0: none of its files has such a name. */
u32 walkers_guess_of(const char *proc, pid_t pid);

#endif
