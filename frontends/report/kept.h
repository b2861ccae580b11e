/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows on the heap of a language, and who keeps it alive: the tree of references (`yrt LANG-refs`) of a process,
 * read several times. What waits for a collection is not in it, so that a heap grows only if something keeps more. Of a
 * heap that grows so fast that there is no time for a second reading one is enough, if a collection is larger now than
 * the whole process was before.
 */
#ifndef YRT_REPORT_KEPT_H
#define YRT_REPORT_KEPT_H

#include "evidence.h"

#define KEPT_READINGS 3
#define KEPT_MOST     (2ull << 30) /* bytes of a process: a larger one takes a minute and more to read */

struct kept { /* zeroed at first */
	const char *folder;
	pid_t pid;
	double before;      /* bytes that were the process's own, */
	u64 before_unix_ns; /* at this time; */
	double rate;        /* and how fast that grew since, a second: set before kept_end() */
	char command[64];   /* "python-refs"; empty: the reader finds out */
	pid_t reader;       /* 0: none runs */
};

/* Does one of these runtimes (bit n: that of id n) tell who keeps its objects? Then so does k->command. */
bool kept_choose(struct kept *k, u32 runtimes);
/*
 * Reads in a process of its own, beside other measurements: now, and again when seconds have gone by, or before that if
 * the reading would not be ready until then (now_ns()); a heap that is read quickly a third time between these.
 */
struct error *kept_begin(struct kept *k, double seconds, u64 until);
/* Ends the reader, and deletes what it has read. */
void kept_cancel(struct kept *k);
/*
 * Waits for that, until then at most (now_ns()). The view "kept": what has grown between the first and the last
 * reading, by who keeps it; and the facts kept.bytes, .growth, .low, .high (of the parts between readings; bytes a
 * second), .path, .by (up to what is a collection), .what (type of its elements), .share (of the growth that is below
 * .by), .seconds, .readings. Of one reading the view is what there is, and growth what the collection
 * has beyond .before, which is all that the process had .seconds before, but not more than .rate: objects may have been
 * there that nobody had touched. Deletes the readings.
 */
struct error *kept_end(struct kept *k, u64 until, struct evidence *e);
/* The fact kept.how, of the others: by what it is known that it grows. */
void kept_conclude(struct facts *f);
/*
 * Adds the view "made": where the elements of the collection are allocated. It has the stacks of the view "tlab"
 * (allocations by class) that end in their type or run its constructor. If no stack does, the next type on the way
 * below the elements is tried, and so on; without any such stack no view is added.
 */
struct error *kept_made(const char *folder, struct evidence *e);

#endif
