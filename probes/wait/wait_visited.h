/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits that user space took the stacks of, by thread and its count of switches: why the walk ended, and how much of
 * them was counted. Those of this turn and of the last are known; to count a wait that lasts makes it one of this turn.
 */
#ifndef YRT_WAIT_VISITED_H
#define YRT_WAIT_VISITED_H

#include <stdbool.h>
#include <types.h>

#include "unwind/error.h"
#include "unwind/table.h"

struct event_host;
struct wait_thread;
struct wait_walker;

struct wait_visit {
	u64 counted; /* ns */
	u32 stop;
	bool runnable;
};

struct wait_visited { /* starts as zeroes */
	const struct event_host *host;
	struct wait_walker *walker;
	struct table of_turn[2];
	u32 turn;
	u64 taken, moved; /* waits; those that were over before their stacks were taken */
	u64 walked_ns;    /* how long that took since the last wait_visited_tune() */
};

/* wait_visited_end() in any case. */
struct error *wait_visited_begin(struct wait_visited *v, const struct event_host *host);
void wait_visited_end(struct wait_visited *v);

bool wait_visited_get(const struct wait_visited *v, u64 key, struct wait_visit *ret);
struct error *wait_visited_put(struct wait_visited *v, u64 key, const struct wait_visit *visit);
/* Takes the stack of a wait that has none. What ran meanwhile is visited again if it waits long again. */
struct error *wait_visited_take(struct wait_visited *v, const struct wait_thread *t, u64 key);
void wait_visited_turn(struct wait_visited *v);
/* Sets when waits are due (wait_due_ns): the later the more there are, so that walks take some 1 % of a CPU. */
void wait_visited_tune(struct wait_visited *v);

#endif
