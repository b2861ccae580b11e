/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grows on the heap of a language, and who keeps it alive: the tree of references (`yrt LANG-refs`) of a process,
 * read several times. What waits for a collection is not in it, so that a heap grows only if something keeps more.
 */
#ifndef YRT_REPORT_KEPT_H
#define YRT_REPORT_KEPT_H

#include "evidence.h"

#define KEPT_READINGS 3

struct kept { /* zeroed at first, but for folder */
	const char *folder;
	pid_t pid;
	char command[64]; /* "python-refs" */
	pid_t reader;     /* 0: none runs */
};

/* Does one of these runtimes (bit n: that of id n) tell who keeps its objects? Then so does k->command. */
bool kept_choose(struct kept *k, u32 runtimes);
/* Reads in a process of its own, beside other measurements: now, and again until seconds have gone by. */
struct error *kept_begin(struct kept *k, double seconds);
/*
 * Waits for that, until then at most (now_ns()). The view "kept": what has grown between the first and the last
 * reading, by who keeps it; and the facts kept.bytes, .growth, .low, .high (of the parts between readings; bytes a
 * second), .path, .by (up to what is a collection), .what (type of its elements), .share (of the growth that is below
 * .by), .seconds. Deletes the readings.
 */
struct error *kept_end(struct kept *k, u64 until, struct evidence *e);
/*
 * Where what is kept is made: of the view "tlab" (allocations by class) the stacks that end in the type of the
 * elements, or are in its constructor, as the view "made", which is not added if there are none.
 */
struct error *kept_made(const char *folder, struct evidence *e);

#endif
