/* SPDX-License-Identifier: Apache-2.0 */
/* Walks threads that sleep from outside, by the registers that the iterator saved. */
#ifndef YRT_WAIT_OUTSIDE_H
#define YRT_WAIT_OUTSIDE_H

#include <stdbool.h>
#include <types.h>

struct event_host;
struct process;
struct wait_thread;
struct wait_walker;

/* Outlives nothing of the host. NULL: no memory. */
struct wait_walker *wait_walker_create(const struct event_host *host);
void wait_walker_destroy(struct wait_walker *w);

/* Hands over the stack of a thread that has never run: nothing but the reason. */
void wait_put_birth(struct wait_walker *w, const struct wait_thread *t, u64 hash);

/*
 * Hands the thread's stack to the host under that hash, as if BPF had sent it. *stop: why the walk ended. False: the
 * thread has run since (by its count of switches), or is gone; nothing was handed over.
 */
bool wait_walk_thread(struct wait_walker *w, const struct process *p, const struct wait_thread *t, u64 hash, u32 *stop);

#endif
