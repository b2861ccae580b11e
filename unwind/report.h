/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime reports about itself in a process, for `yrt inspect`: sections of rows, in the order of their
 * addition. Out of memory is remembered and returned by report_end(), so adding needs no check.
 */
#ifndef YRT_REPORT_H
#define YRT_REPORT_H

#include <types.h>

#include "error.h"

struct report_row {
	char *key;
	char *value; /* text; NULL: number */
	s64 number;
	char *remark; /* origin, unit, detail; NULL: none */
};

struct report_section {
	char *name;    /* "module", "vm": what it is about */
	char *subject; /* which one, if there are several: an address; NULL */
	struct report_row *rows;
	u32 nrows;
};

/* Zeroed at first. Text may hold untrusted bytes of the target: whoever prints it must escape it. */
struct report {
	struct report_section *sections;
	u32 nsections;
	bool no_memory;
};

/* Rows belong to the section that was begun last. subject, remark: NULL for none. */
void report_section(struct report *r, const char *name, const char *subject);
void report_text(struct report *r, const char *key, const char *remark, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
void report_number(struct report *r, const char *key, s64 number, const char *remark);
/* NULL, or out of memory: rows are missing then. */
struct error *report_end(const struct report *r);
void report_free(struct report *r);

#endif
