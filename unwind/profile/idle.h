/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits by design: an event loop without events, a pool thread without work. They do not show what makes a program
 * slow, and hide what does. Rules on the frames around them tell (runtime_rules.h).
 */
#ifndef YRT_IDLE_RULES_H
#define YRT_IDLE_RULES_H

#include "names.h"

/* What a reason (FRAME_REASON) says by itself. */
enum idle_chance {
	IDLE_NEVER,  /* it could run, or the kernel is at work for it */
	IDLE_MAYBE,  /* frames decide */
	IDLE_ALWAYS, /* accept(), pause(): for customers */
};

/*
 * The rule by which this stack, leaf first, is a wait by design: its function or the begin of a thread's name, which
 * live as long as the profile, or NULL. p may be NULL. profile: where names puts functions; comm: what the kernel calls
 * its thread, COMM_LEN bytes.
 */
struct error *idle_find(struct names *names, const struct profile *profile, const struct process *p,
        const struct frame *frames, u32 n, const char *comm, bool whole, enum idle_chance (*chance)(u32 reason),
        const char **ret);

#endif
