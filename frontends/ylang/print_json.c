/* SPDX-License-Identifier: Apache-2.0 */
/* What a program prints as JSON (--json): an object a line, {"kind": "text"|"table"|"histogram", "title", "data"}. */
#include <stdlib.h>
#include <string.h>

#include "frontends/format/text.h"
#include "vm_state.h"

/* Bytes of the target, made safe. */
static void put_string(FILE *out, const char *bytes, u32 len)
{
	char *text = NULL;
	size_t size;
	FILE *safe = open_memstream(&text, &size);

	if (safe) {
		y_put_text(safe, bytes, len);
		fclose(safe);
	}
	text_json(out, text ? text : "");
	free(text);
}

static void put_str(FILE *out, const struct y_str *s)
{
	put_string(out, s ? s->bytes : "", s ? s->len : 0);
}

/* The outermost first, as in folded stacks. */
static void put_stack(FILE *out, const struct y_str *stack)
{
	fputc('[', out);
	for (u32 at = 0; at < stack->len;) {
		const char *end = memchr(stack->bytes + at, ';', stack->len - at);
		u32 len = end ? (u32)(end - stack->bytes) - at : stack->len - at;

		fputs(at ? ", " : "", out);
		put_string(out, stack->bytes + at, len);
		at += len + 1;
	}
	fputc(']', out);
}

static void put_number(FILE *out, enum y_type type, u64 value)
{
	double real;

	if (type == Y_F64) {
		memcpy(&real, &value, sizeof(real));
		fprintf(out, real - real == 0 ? "%.17g" : "null", real);
	} else {
		fprintf(out, type == Y_I64 ? "%ld" : "%lu", value);
	}
}

static void put_keys(FILE *out, const struct y_map *m, const struct y_entry *e)
{
	for (u32 i = 0; i < m->nkeys; i++) {
		fputs(i ? ", " : "", out);
		if (i + 1 == m->stack)
			put_stack(out, (const struct y_str *)e->keys[i]);
		else if (m->keys[i] == Y_STR)
			put_str(out, (const struct y_str *)e->keys[i]);
		else
			put_number(out, m->keys[i], e->keys[i]);
	}
}

static void put_row(FILE *out, const struct y_map *m, const struct y_entry *e)
{
	fputc('[', out);
	put_keys(out, m, e);
	for (enum y_agg what = Y_COUNT; m->is_agg && what <= Y_AVG; what++)
		fprintf(out, "%s%ld", what || m->nkeys ? ", " : "",
		        y_aggregate_get((const struct y_aggregate *)e->value, what));
	if (!m->is_agg)
		fputs(", ", out);
	if (!m->is_agg && m->value == Y_STR)
		put_str(out, (const struct y_str *)e->value);
	else if (!m->is_agg)
		put_number(out, m->value, e->value);
	fputc(']', out);
}

/* {"kind": "table", "title": "n", "keys": 2, "columns": ["count", …], "data": [[key, key, value …], …]} */
static void put_table(FILE *out, const struct y_map *m, struct y_entry **entries, u32 n)
{
	fputs("{\"kind\": \"table\", \"title\": ", out);
	text_json(out, m->name);
	fprintf(out, ", \"keys\": %u, \"columns\": [%s], \"data\": [", m->nkeys,
	        m->is_agg ? "\"count\", \"sum\", \"min\", \"max\", \"avg\"" : "\"value\"");
	for (u32 i = 0; i < n; i++) {
		fputs(i ? ", " : "", out);
		put_row(out, m, entries[i]);
	}
	fputs("]}\n", out);
}

/* {"kind": "histogram", "title": "us", "key": [404], "data": [[8, 16, 23], …]}: from, below, how many; null: no end */
static void put_histogram(FILE *out, const struct y_map *m, const struct y_entry *e)
{
	const struct y_aggregate *a = (const struct y_aggregate *)e->value;
	bool first = true;

	fputs("{\"kind\": \"histogram\", \"title\": ", out);
	text_json(out, m->name);
	fputs(", \"key\": [", out);
	put_keys(out, m, e);
	fputs("], \"data\": [", out);
	for (u32 i = 0; i < y_buckets(m); i++) {
		s64 from = m->low + (s64)((i - 1) * m->step);
		u64 low = i > 1 ? 1ul << (i - 2) : 0;

		if (!a->buckets[i])
			continue;
		fprintf(out, first ? "[" : ", [");
		first = false;
		if (!i)
			fprintf(out, "null, %ld", m->low);
		else if (m->steps && i > m->steps)
			fprintf(out, "%ld, null", from);
		else if (m->steps)
			fprintf(out, "%ld, %ld", from, from + (s64)m->step);
		else
			fprintf(out, i + 1 < y_buckets(m) ? "%lu, %lu" : "%lu, null", low, i == 1 ? 1 : 2 * low);
		fprintf(out, ", %lu]", a->buckets[i]);
	}
	fputs("]}\n", out);
}

void y_json_table(FILE *out, const struct y_table *t, enum y_shape shape)
{
	u32 n;
	struct y_entry **entries = y_table_sorted(t, t->map->is_agg ? UINT32_MAX : UINT64_MAX, &n);

	if (shape == Y_TABLE)
		put_table(out, t->map, entries, n);
	for (u32 i = 0; shape == Y_HIST && i < n; i++)
		put_histogram(out, t->map, entries[i]);
	free(entries);
}

void y_json_format(FILE *out, const struct y_format *f, const struct y_printed *values)
{
	char *text = NULL;
	size_t size;
	FILE *plain = open_memstream(&text, &size);

	if (plain) {
		y_print_format(plain, f, values);
		fclose(plain);
	}
	fputs("{\"kind\": \"text\", \"data\": ", out);
	text_json(out, text ? text : "");
	fputs("}\n", out);
	free(text);
}
