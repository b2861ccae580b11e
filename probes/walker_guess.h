/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which walkers a profile of the whole machine begins with: of runtimes that the processes there are seem to have, by
 * the names of the files that one of each program has mapped (runtime_ops.files). It is a guess, made without opening
 * any of these files: a walker too many costs some milliseconds, one too few is loaded when a sample meets its runtime
 * (walker_loads.h).
 */
#ifndef YRT_WALKER_GUESS_H
#define YRT_WALKER_GUESS_H

#include <types.h>

#include "unwind/error.h"

/* proc: "/proc". *ret: bit n is the runtime of id n. */
struct error *walkers_guess(const char *proc, u32 *ret);

#endif
