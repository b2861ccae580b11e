/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report knows as numbers: counters of the kernel, limits, and what was computed of them, by name ("cpu.busy").
 * docs/report-rules.md lists them. Texts stand beside numbers: the name of a thread, a path. Text is untrusted.
 */
#ifndef YRT_REPORT_FACTS_H
#define YRT_REPORT_FACTS_H

#include <jansson.h>
#include <stdbool.h>
#include <types.h>

#include "unwind/error.h"

#define FACTS_MAX 4096

struct fact {
	char *name;
	double number;
	char *text; /* NULL: it is a number */
};

struct facts { /* zeroed at first */
	struct fact *all;
	u32 n;
	bool no_memory; /* remembered: facts_check() */
};

/* Sets, or replaces. What is not finite is left out. */
void facts_set(struct facts *f, const char *name, double number);
void facts_set_text(struct facts *f, const char *name, const char *text);
/* The greater of this and what there is. True: it was set. */
bool facts_raise(struct facts *f, const char *name, double number);
/* The lesser of this and what there is. */
void facts_lower(struct facts *f, const char *name, double number);
void facts_forget(struct facts *f, const char *name);
void facts_add(struct facts *f, const char *name, double number);
/* NULL: it is not known. */
const struct fact *facts_find(const struct facts *f, const char *name);
/* 0: not known. */
double facts_number(const struct facts *f, const char *name);
struct error *facts_check(const struct facts *f);
void facts_free(struct facts *f);

/* {"name": number or text, …} and back; reading checks kinds and bounds. path: for messages. */
json_t *facts_to_json(const struct facts *f);
struct error *facts_from_json(const json_t *object, const char *path, struct facts *ret);

#endif
