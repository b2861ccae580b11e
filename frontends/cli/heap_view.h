/* SPDX-License-Identifier: Apache-2.0 */
/* What memory is used for (usage.h) as text and as a profile. Names in it may be hostile. */
#ifndef YRT_HEAP_VIEW_H
#define YRT_HEAP_VIEW_H

#include <stdio.h>

#include "unwind/allocators/usage.h"
#include "unwind/profile/profile.h"

struct heap_view {
	const struct usage *before; /* an earlier moment: only what increased is shown; NULL: none */
	const struct usage *after;
	const char *target;
	bool bytes; /* exact numbers */
	bool all;   /* also small rows */
	bool size;  /* by size, whether it is in memory or not */
	bool core;
};

/* A table; the verdict and what helps come first. */
struct error *heap_print(const struct heap_view *v, FILE *out);
/* Adds to a profile: bytes, and blocks as what else is counted. */
struct error *heap_draw(const struct heap_view *v, struct profile *ret);
/* What could not be read, on stderr. */
void heap_notes(const struct heap_view *v);

/* By what the view is drawn and sorted. */
static inline u64 heap_weight(const struct heap_view *v, const struct amount *a)
{
	return v->size ? a->size : a->resident + a->swapped;
}

#endif
