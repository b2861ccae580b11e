/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that wait most of the time, as servers do that are not busy. What little CPU time they use says hardly
 * anything of what a window stands for: behind a hit the code between two calls takes ten times as long or more, and
 * what is left after all subtractions is a small difference (a Rust service of 94 bursts a second: 1/30 of the truth).
 *
 * But somebody else gives their pace. A window ends when the program waits again, so that it has whole bursts: calls
 * for a wait, times all waits, which the kernel counts. That is exact for timers and for clients that wait for their
 * answer. It is too much where the program, slow in a window, does in one burst what it does in several else. Calls for
 * a second of time are too few then, as a burst takes longer: so the interval reaches from one to the other.
 *
 * Who is always ready to run gets little CPU time because others take it: its waits, as those of a runtime's own
 * threads, say nothing (three goroutines at 0.2 of a CPU: 1/20 of the truth).
 */
#ifndef YRT_ALLOC_WAITS_H
#define YRT_ALLOC_WAITS_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "alloc_weigh.h"

#define ALLOC_WAITS_BUSY 0.25 /* of a CPU: who uses more does not wait */

struct alloc_waited {          /* by all threads, since they began */
	u64 voluntary, others; /* context switches (switches.h) */
	u64 ready;             /* ns on a CPU, or waiting for one */
};

/* Adds those of a process. False: it has too many threads to read them all. */
bool alloc_waits_count(pid_t pid, struct alloc_waited *ret);
/* Is it work that it waited for in these ns, rather than a CPU, and often enough to tell? */
bool alloc_waits_often(const struct alloc_waited *from, const struct alloc_waited *to, double ns);
/* Do waits and time tell more of these than CPU time does? */
bool alloc_waits_tell(const struct alloc_slice *slices, u32 n, const struct alloc_cold *cold);
/* Weights by both clocks. */
void alloc_waits_weights(const struct alloc_slice *slices, u32 n, double *by_waits, double *by_time);

#endif
