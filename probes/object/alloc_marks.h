/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landmarks: functions of the program that it passes far more rarely than it allocates, but in step with that.
 *
 * What windows stand for depends on what a hit costs, and where calls are dense, on its last nanoseconds: code behind
 * an exception runs slower, by how much no probe can measure of itself. But windows in which landmarks alone have
 * uprobes hardly slow the program. They say how often it passes them in truth; windows with all uprobes must come to
 * the same number (alloc_cold.h).
 *
 * Landmarks are functions on the stacks that were taken, at their first instruction that the kernel emulates. Windows
 * try them, some at a time, until a few are known that together have as many hits as cost little.
 */
#ifndef YRT_ALLOC_MARKS_H
#define YRT_ALLOC_MARKS_H

#include <stdbool.h>

#include "alloc_departures.h"
#include "alloc_progress.h"
#include "unwind/error.h"
#include "unwind/process/process.h"
#include "unwind/shared/frame.h"

struct alloc_marks;
struct bpf_program;
struct uprobe;

struct error *alloc_marks_create(const struct bpf_program *program, struct alloc_marks **ret);
void alloc_marks_destroy(struct alloc_marks *m); /* NULL is fine */
/* A stack was taken, leaf first: its functions are candidates. */
struct error *alloc_marks_see(struct alloc_marks *m, const struct process *p, const struct frame *frames, u32 n);
/* Are there any to be tried, or chosen? */
bool alloc_marks_any(const struct alloc_marks *m);
/* They are chosen, and stay so: the number of this choice; 0: some are still tried. */
u32 alloc_marks_choice(const struct alloc_marks *m);
u32 alloc_marks_count(const struct alloc_marks *m); /* that are chosen, or tried */
/* If none are chosen: some that were not tried are to be, in the window that begins, which has landmarks alone. */
void alloc_marks_next(struct alloc_marks *m);
void alloc_marks_place(struct alloc_marks *m);
void alloc_marks_leave(struct alloc_marks *m, struct alloc_departures *d);
/*
 * What a window with them alone has seen: hits of each (cookies are the places in of), in own_ns of the program's time.
 * A hit costs hit_ns.
 */
void alloc_marks_learn(struct alloc_marks *m, const struct alloc_mark_hits *hits, double own_ns, double hit_ns);

#endif
