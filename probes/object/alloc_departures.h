/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uprobes that leave at the end of a window, in threads of their own. The kernel first takes their breakpoints out of
 * the program, which are hit no more then, and waits for a grace period after that (bpf_uprobe_unregister() of Linux
 * 6.18): tens of ms, and a second on a busy machine. The next window need not wait for that, but for the breakpoints:
 * with two links at a place each call would count twice. The program's own memory says when they are gone.
 */
#ifndef YRT_ALLOC_DEPARTURES_H
#define YRT_ALLOC_DEPARTURES_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

struct uprobe;

#define ALLOC_DEPARTURES 64 /* at a time; more wait */

struct alloc_breakpoint { /* of a link, the last that the kernel takes out */
	pid_t pid;        /* 0: it is not known when it is gone */
	u64 addr;
	u8 before; /* the program's own byte there */
};

struct alloc_departing;

struct alloc_departures { /* all zero: none */
	struct alloc_departing *of[ALLOC_DEPARTURES];
	u32 n;
};

/* Before and after the link's uprobes are placed, the last of them at addr; 0: not known. */
void alloc_breakpoint_before(struct alloc_breakpoint *b, pid_t pid, u64 addr);
void alloc_breakpoint_after(struct alloc_breakpoint *b, const struct uprobe *u);
/* Takes it away, and sets it to NULL, which it may be already. */
void alloc_depart(struct alloc_departures *d, struct uprobe **u, const struct alloc_breakpoint *last);
/* May one of them still be hit? */
bool alloc_departures_hit(struct alloc_departures *d);
/* Waits until the kernel is done with all. */
void alloc_departures_join(struct alloc_departures *d);

#endif
