/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread in futex(2) waits for: a lock that another thread holds, or something that only looks like one (a
 * condition, a semaphore, the end of a thread, work). Rules on its functions decide (runtime_rules.h). A lock is named
 * by the variable, file or memory at its address.
 *
 * A wait without a lock is a worker's for work, or that of a thread which has begun something and now needs what others
 * have: a connection of a pool that is too small, a permit, a result. The latter is many functions of the program deep,
 * in a task of a pool some; a worker's loop is not. Which class it waits in says nothing: queues hand out work and
 * connections.
 */
#ifndef YRT_LOCKS_H
#define YRT_LOCKS_H

#include "names.h"
#include "rules.h"

#define LOCK_TEXT 512

struct lock_found {
	enum lock_kind kind;
	bool begun;           /* no lock, but not for work either, unless it is a wait by design (idle.h) */
	char text[LOCK_TEXT]; /* "mutex stats_lock", "read lock heap 0x5581c0de", "GIL"; "": as the reason says */
};

/*
 * For a stack, leaf first, whose first frame is the reason and has the futex's address (0: of several, or a task's). p
 * may be NULL. profile: where names puts functions.
 */
struct error *locks_find(struct names *names, const struct profile *profile, const struct process *p,
        const struct frame *frames, u32 n, struct lock_found *ret);
/* What a lock at this address is called: the variable, else the place in a file or in memory. text: LOCK_TEXT bytes. */
void locks_name_address(const struct process *p, u64 addr, char *text);
/* "mutexes": for sums. */
const char *lock_kind_words(enum lock_kind kind);
/* "mutex", "notification": what a thread waits for. */
const char *lock_kind_awaited(enum lock_kind kind);

#endif
