/* SPDX-License-Identifier: Apache-2.0 */
/* A report for people (Markdown, a page) and for programs (JSON; docs/report.md lists its fields). */
#ifndef YRT_REPORT_WRITE_H
#define YRT_REPORT_WRITE_H

#include <stdio.h>

#include "compare.h"
#include "findings.h"

struct report_meta {
	const char *command;              /* as typed */
	const struct comparison *changes; /* with an earlier report; NULL: there is none */
};

struct error *report_write_markdown(
        const struct findings *f, const struct evidence *e, const struct report_meta *meta, FILE *out);
struct error *report_write_json(
        const struct findings *f, const struct evidence *e, const struct report_meta *meta, FILE *out);
struct error *report_write_html(
        const struct findings *f, const struct evidence *e, const struct report_meta *meta, FILE *out);

/* Words that the formats share. */
const char *report_severity(enum severity s);
/* "62 ± 3 % of CPU time" */
void report_weight(const struct finding *f, char *ret, size_t size);

/* What 100 % are, of the views that were measured; malloc'd. */
char *report_wholes(const struct evidence *e);
const char *report_healthy_group(enum healthy_group group);
/* How many of a group there are. */
u32 report_healthy(const struct findings *f, enum healthy_group group);

#endif
