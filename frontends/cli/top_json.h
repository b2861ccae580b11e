/* SPDX-License-Identifier: Apache-2.0 */
/* A table of top as a line of JSON, for programs. */
#ifndef YRT_CLI_TOP_JSON_H
#define YRT_CLI_TOP_JSON_H

#include <stdio.h>

#include "frontends/format/rows.h"

struct top_moment {
	const char *target, *loss; /* NULL: not known yet */
	double elapsed_s, span_s, cpus;
};

/* {"target", "seconds", "span", "samples", "cpus", "loss", "rows": [{"self", "total", "function", "kind", "module",
 * "pid",
 * "thread"}]}; at most so many rows. */
struct error *top_json(FILE *out, const struct rows *rows, u32 most, const struct top_moment *m);

#endif
