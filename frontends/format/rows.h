/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as a table, one row per function: samples that end in it (self), and samples that end in it or below it
 * (total; recursion counts once). Functions of the same name and module are one row. Below frames of threads (-t) each
 * thread has rows of its own. Frames of processes are left out, or are the only rows.
 */
#ifndef YRT_FORMAT_ROWS_H
#define YRT_FORMAT_ROWS_H

#include "unwind/profile/profile.h"

struct row {
	const struct profile_function *function;
	const struct profile_function *thread; /* NULL: not distinguished */
	u64 self, total;
};

struct rows {
	struct row *row;
	u32 n;
	u64 samples; /* of all */
};

enum rows_order { ROWS_SELF, ROWS_TOTAL, ROWS_NAME, ROWS_MODULE };

/*
 * What came after an earlier moment, when since was the self counts of the first nsince nodes. nsince 0: all.
 * processes: a row for each process instead.
 */
struct error *rows_create(const struct profile *p, const u64 *since, u32 nsince, bool processes, struct rows *ret);
void rows_free(struct rows *rows);
/* The greatest number, or the first name, comes first; reversed: last. */
void rows_sort(struct rows *rows, enum rows_order order, bool reversed);

#endif
