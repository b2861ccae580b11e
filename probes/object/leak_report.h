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

/* Adds each stack to the first one of its names, and leaves nothing in it. */
struct error *leak_join_sites(struct leak_stacks *stacks, const struct profile *p);
/* What ages say of a stack, as a frame: "[left: grows by 1.0 MiB to 1.2 MiB a minute]". */
void leak_describe(const struct leak_growth *growth, char *text, size_t size);
/* A line: the function that asked for a block, and its callers; what a VM does in between is left out. */
void leak_print_stack(FILE *out, const struct profile *p, u32 node);

#endif
