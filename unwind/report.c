/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy(struct report *r, const char *text)
{
	char *ret = text ? strdup(text) : NULL;

	if (text && !ret)
		r->no_memory = true;
	return ret;
}

void report_section(struct report *r, const char *name, const char *subject)
{
	struct report_section *grown = reallocarray(r->sections, r->nsections + 1, sizeof(*grown));

	if (!grown) {
		r->no_memory = true;
		return;
	}
	r->sections = grown;
	grown[r->nsections++] = (struct report_section){.name = copy(r, name), .subject = copy(r, subject)};
}

/* value is taken over. */
static void add(struct report *r, const char *key, char *value, s64 number, const char *remark)
{
	struct report_section *s = r->nsections ? &r->sections[r->nsections - 1] : NULL;
	struct report_row *grown = s ? reallocarray(s->rows, s->nrows + 1, sizeof(*grown)) : NULL;

	if (!grown) {
		r->no_memory = true;
		free(value);
		return;
	}
	s->rows = grown;
	grown[s->nrows++] = (struct report_row){copy(r, key), value, number, copy(r, remark)};
}

void report_text(struct report *r, const char *key, const char *remark, const char *format, ...)
{
	char *value;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&value, format, args);
	va_end(args);
	if (len < 0)
		r->no_memory = true;
	else
		add(r, key, value, 0, remark);
}

void report_number(struct report *r, const char *key, s64 number, const char *remark)
{
	add(r, key, NULL, number, remark);
}

struct error *report_end(const struct report *r)
{
	return r->no_memory ? &error_no_memory : NULL;
}

static void free_section(struct report_section *s)
{
	for (u32 i = 0; i < s->nrows; i++) {
		free(s->rows[i].key);
		free(s->rows[i].value);
		free(s->rows[i].remark);
	}
	free(s->rows);
	free(s->name);
	free(s->subject);
}

void report_free(struct report *r)
{
	for (u32 i = 0; i < r->nsections; i++)
		free_section(&r->sections[i]);
	free(r->sections);
	*r = (struct report){0};
}
