/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who held a lock while others waited for it, of a recording of `lock --holders`: inside each wait lies the stack of
 * the thread that released it ("[released by COMM]", the leaf first), so the function that let it go.
 */
#ifndef YRT_REPORT_HOLDER_H
#define YRT_REPORT_HOLDER_H

#include "match.h"
#include "rule.h"

#define HOLDERS_MAX 3

struct holder {
	u32 function; /* of the profile: the program's own that released it */
	u64 value;
};

struct holders {
	struct holder all[HOLDERS_MAX]; /* the greatest first */
	u32 n;
	u64 total;        /* of all waits that are asked for */
	u32 lock, thread; /* functions: the lock's name and "[released by COMM]" of the greatest; 0: not known */
};

/* Of waits whose stack has a function of this name ("": of all). */
struct error *holders_find(
        const struct profile *locks, const struct libraries *l, const char *waiter, struct holders *ret);
/*
 * What the holder does besides waiting for the lock of rule r. Matches the stacks of p that go through it, but not
 * those of r; the sites are the program's innermost functions of these.
 */
struct error *holder_works(
        const struct rule *r, const struct profile *p, const struct profile_function *holder, struct match *ret);

#endif
