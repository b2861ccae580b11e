/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which code ends the waits of a place, and whose work it waits for itself, of a recording of `off --wakers`: behind
 * each wait lies the stack of the thread that ended it ("[woken by COMM]", the leaf first).
 */
#ifndef YRT_REPORT_WOKEN_H
#define YRT_REPORT_WOKEN_H

#include "match.h"
#include "rule.h"

#define WOKEN_MOST 4

struct woken {
	/* functions of the recording: that end the waits, that end the waits in the first of these, and so on */
	u32 by[WOKEN_MOST];
	u32 n;
	double part; /* 0 to 1: of the time of the waits, what by[0] ended */
};

/*
 * waiter: the name of a function, of r's waits ("": all of the recording). Of those who end them, named is the
 * innermost function that is not on the stacks of the waits, too, and has a good part of its thread's time by the view
 * of all threads (wall, may be NULL); else the innermost that is the program's own.
 */
struct error *woken_find(const struct rule *r, const struct profile *waits, const struct profile *wall,
        const char *waiter, struct woken *ret);

#endif
