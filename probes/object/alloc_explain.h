/* SPDX-License-Identifier: Apache-2.0 */
/* What alloc and leak say where no call of an allocator was seen. */
#ifndef YRT_ALLOC_EXPLAIN_H
#define YRT_ALLOC_EXPLAIN_H

#include <stdio.h>

#include "probes/run.h"

/* A line: whose view shows the objects of a language that asks the kernel for memory itself, or why else. */
void alloc_explain_nothing(FILE *out, const struct run_request *r, const struct sampler_stats *st);

#endif
