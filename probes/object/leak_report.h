/* SPDX-License-Identifier: Apache-2.0 */
/* What is left at the end of a run: in the profile, inside each stack its verdict, and in words. */
#ifndef YRT_LEAK_REPORT_H
#define YRT_LEAK_REPORT_H

#include "leak_heap.h"
#include "leak_stacks.h"
#include "unwind/error.h"

/* *text: lines, malloc'd. heap: NULL if nothing of it is known. Adds to s: what grows. */
struct error *leak_report(struct leak_stacks *stacks, struct leak_heap *heap, struct profile *p, struct leak_summary *s,
        u64 now, char **text);

/* A line: the function that asked for a block, and its callers; what a VM does in between is left out. */
void leak_print_stack(FILE *out, const struct profile *p, u32 node);

#endif
