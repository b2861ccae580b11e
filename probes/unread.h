/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that could not be looked into, and why: what is asked for when the picture lacks somebody. The reason may
 * pass (a process that is about to execute something, memory that was short), so they are tried again for some seconds.
 */
#ifndef YRT_UNREAD_H
#define YRT_UNREAD_H

#include "unwind/process/process.h"

#define UNREAD_KEPT 256 /* of more only their number */

struct unread {
	u32 number; /* struct process.number */
	pid_t pid;
	char comm[64];
	char *why;   /* NULL: there was no memory for it */
	u32 tries;   /* again */
	u64 next_ns; /* CLOCK_MONOTONIC */
};

struct unread_list {
	struct unread first[UNREAD_KEPT];
	u32 kept, n;
};

/* p could not be looked into, or not again. Takes over why. */
void unread_add(struct unread_list *l, const struct process *p, struct error *why, u64 now_ns);
/* One that is to be tried now, and the next time later; NULL: none. It stays valid until unread_drop(). */
struct unread *unread_due(struct unread_list *l, u64 now_ns);
/* It was looked into by now. */
void unread_drop(struct unread_list *l, struct unread *u);
void unread_free(struct unread_list *l);

#endif
