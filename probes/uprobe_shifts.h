/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uprobes that are placed all the time, or in shifts.
 *
 * A hit costs the target microseconds, whether it becomes a sample or not. So if the hits alone would take too much,
 * uprobes are placed for a shift at a random moment of each period. What is hit within a shift stands for all of its
 * period, so shares stay unbiased; a program with few and long phases gets a larger error.
 *
 * Removing a uprobe waits for the kernel's grace period, a tenth of a second, so a separate thread does it. The
 * breakpoint itself is gone at once.
 */
#ifndef YRT_UPROBE_SHIFTS_H
#define YRT_UPROBE_SHIFTS_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"

struct bpf_program;
struct uprobe;
struct uprobe_shifts;

struct uprobe_shifts_options {
	u32 shift_ms, period_ms; /* at least; whichever makes the shift longer */
	bool exact;              /* what is hit past the time that open() gets does not count */
	/*
	 * Called by the thread. A hit counts as `each` hits from now until `until` (CLOCK_MONOTONIC, ns); each is 0:
	 * hits do not count from now on. Not called while there are no shifts: each hit counts once.
	 */
	void (*open)(void *ctx, u32 each, u64 until);
	/* Called by the thread after a shift: is there a reason to keep uprobes that are "last"? NULL: never. */
	bool (*under_way)(void *ctx);
	/* Called by the thread: what is under way now is not seen to its end. NULL: nobody has to know. */
	void (*over)(void *ctx);
	void *ctx;
};

struct uprobe_site {
	const struct bpf_program *program;
	u32 process; /* for uprobe_shifts_has() */
	pid_t pid;
	u64 offset, counter, cookie; /* as for uprobe_place() */
	bool always;                 /* it is no matter of shifts */
	bool last;                   /* stays after a shift while something is under way; placed before the others */
};

struct error *uprobe_shifts_create(const struct uprobe_shifts_options *options, struct uprobe_shifts **ret);
void uprobe_shifts_destroy(struct uprobe_shifts *s); /* takes all away; NULL is fine */
/*
 * path: of the file, for the kernel; what it leads to now is what is probed later, too. No error if it is not there any
 * more: the process has ended, or maps something else.
 */
struct error *uprobe_shifts_add(struct uprobe_shifts *s, const struct uprobe_site *site, const char *path);
bool uprobe_shifts_has(struct uprobe_shifts *s, u32 process);
/*
 * The part of time to place uprobes for if a budget allows this much: at least `least`, and all of it where less would
 * not spare much. now: what it is.
 */
double uprobe_shifts_duty(double allowed, double now, double least);
/* The part of time that uprobes are to be placed from now on; 1: always. */
void uprobe_shifts_set_duty(struct uprobe_shifts *s, double duty);
/* For how long hits have counted since the first was placed. */
u64 uprobe_shifts_open_ns(struct uprobe_shifts *s);
/* Takes all away for good. */
void uprobe_shifts_clear(struct uprobe_shifts *s);
/* Takes it away together with others, as waiting for it would delay what comes next. NULL is fine. */
void uprobe_shifts_take_away(struct uprobe_shifts *s, struct uprobe *u);

#endif
