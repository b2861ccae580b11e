/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug registers for the programs of tlab.h: one write watchpoint for each thread that allocates, set and moved by
 * watchpoint threads. A watchpoint thread is a thread of yrt on each CPU, at real-time priority. The program wakes the
 * one of its CPU, which runs before the watched thread returns to its own code, so no byte is missed. Without that
 * priority, or if it comes late, the watchpoint thread notices that (top has passed the address), chooses another
 * address, and counts the miss.
 */
#ifndef YRT_WATCHPOINTS_H
#define YRT_WATCHPOINTS_H

#include <types.h>

#include "tlab_object.h"
#include "unwind/error.h"

struct watchpoints;

struct watchpoints_stats {
	u64 set;       /* addresses watched */
	u64 late;      /* of them passed already: another one was chosen, or none */
	u64 refused;   /* debug registers taken by others, or threads gone */
	u64 requests;  /* all that watchpoint threads were woken for */
	u64 thread_ns; /* their CPU time */
	bool realtime;
};

/* collecting: called by a watchpoint thread, when a collection begins that goes on after that. */
struct error *watchpoints_create(struct object *o, void (*collecting)(void *ctx), void *ctx, struct watchpoints **ret);
void watchpoints_destroy(struct watchpoints *w);
void watchpoints_stats(struct watchpoints *w, struct watchpoints_stats *ret);
/* Forgets threads that have ended. */
void watchpoints_sweep(struct watchpoints *w);
/* The error that a target's threads have none left. */
struct error *watchpoints_refused(void);
/* Does this machine let a thread of ours be watched, and what does a trap cost? An error says what is in the way. */
struct error *watchpoints_try(u64 *trap_ns);

#endif
