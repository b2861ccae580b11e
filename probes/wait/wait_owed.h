/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At the end of a run: by how much short waits of a process were counted for too little, of threads of which too few
 * were chosen to know that alone, and of those that have ended. What chance did to one thread it did the other way
 * to others, so that only the sum of a process counts. Threads that lack a part of it get that for one of their waits.
 */
#ifndef YRT_WAIT_OWED_H
#define YRT_WAIT_OWED_H

#include "unwind/error.h"
#include "wait_record.h"

struct wait_owed { /* starts as zeroes */
	struct wait_owes {
		u32 tgid;
		s64 owed;
		struct wait_rest rest; /* ns: what it is to be counted for; hash 0: nothing can be */
	} * all;
	u32 n;
};

struct error *wait_owed_add(struct wait_owed *o, const struct wait_thread *t);
/* of_ended: what threads of a process that have ended left. */
void wait_owed_share(struct wait_owed *o, s64 (*of_ended)(void *ctx, u32 tgid), void *ctx);
void wait_owed_free(struct wait_owed *o);

#endif
