/* SPDX-License-Identifier: Apache-2.0 */
/* What programs print. Other engines print the same bytes: emit/runtime.py is this in Python. */
#include <stdlib.h>
#include <string.h>

#include "frontends/format/text.h"
#include "vm_state.h"

#define BAR 40

/* --- text --- */

/* The character at *p, and moves behind it: as text.h has it, but NUL is one like any other control. */
static u32 next_character(const char **p, const char *end)
{
	char piece[5] = "";
	const char *q = piece;
	size_t left = (size_t)(end - *p);
	u32 c;

	if (!**p) {
		++*p;
		return TEXT_REPLACEMENT;
	}
	memcpy(piece, *p, left < 4 ? left : 4);
	c = text_next(&q);
	*p += q - piece;
	return text_is_control(c) ? TEXT_REPLACEMENT : c;
}

u32 y_put_text(FILE *out, const char *bytes, u32 len)
{
	const char *p = bytes, *end = bytes + len;
	u32 n = 0;

	for (; p < end; n++) {
		char utf8[4];

		fwrite(utf8, 1, text_encode(next_character(&p, end), utf8), out);
	}
	return n;
}

static u32 count_characters(const char *bytes, u32 len)
{
	const char *p = bytes, *end = bytes + len;
	u32 n = 0;

	for (; p < end; n++)
		next_character(&p, end);
	return n;
}

/* The program's own text may have lines and tabs. */
static void put_own_text(FILE *out, const char *text, u32 len)
{
	while (len) {
		u32 n = 0;

		while (n < len && text[n] != '\n' && text[n] != '\t')
			n++;
		y_put_text(out, text, n);
		if (n < len)
			fputc(text[n++], out);
		text += n;
		len -= n;
	}
}

static void put_padded(FILE *out, const char *bytes, u32 len, int width, bool left)
{
	u32 n = width ? count_characters(bytes, len) : 0;
	int pad = width > (int)n ? width - (int)n : 0;

	if (!left)
		fprintf(out, "%*s", pad, "");
	y_put_text(out, bytes, len);
	if (left)
		fprintf(out, "%*s", pad, "");
}

/* --- printf --- */

static u64 printed_number(const struct y_piece *p, u64 v)
{
	static const u8 others[][2] = {[Y_I8] = {Y_I8, Y_U8},
	        [Y_U8] = {Y_I8, Y_U8},
	        [Y_I16] = {Y_I16, Y_U16},
	        [Y_U16] = {Y_I16, Y_U16},
	        [Y_I32] = {Y_I32, Y_U32},
	        [Y_U32] = {Y_I32, Y_U32},
	        [Y_I64] = {Y_I64, Y_U64},
	        [Y_U64] = {Y_I64, Y_U64}};

	return y_wrap(others[p->type][p->conversion != 'd'], v);
}

/* libc's own conversion, with its flags, of a long or a double. */
static void put_number(FILE *out, const struct y_piece *p, int width, int precision, u64 value)
{
	char spec[32], *s = spec;
	double real;

	*s++ = '%';
	for (u32 i = 0; i < 5; i++)
		if ((const bool[]){p->left, p->zero, p->plus, p->space, p->alternate}[i])
			*s++ = "-0+ #"[i];
	s += sprintf(s, "*");
	if (precision >= 0)
		s += sprintf(s, ".%d", precision);
	if (p->kind == Y_FLOAT) {
		sprintf(s, "%c", p->conversion);
		memcpy(&real, &value, sizeof(real));
		fprintf(out, spec, width, real); // NOLINT: made above
		return;
	}
	sprintf(s, "l%c", p->conversion);
	fprintf(out, spec, width, printed_number(p, value)); // NOLINT: made above
}

static void put_failure(FILE *out, const struct y_piece *p, int width, const struct y_printed *v)
{
	char text[64];

	if (v->at)
		snprintf(text, sizeof(text), "<%s 0x%lx>", y_status_name(v->status), v->at);
	else
		snprintf(text, sizeof(text), "<%s>", y_status_name(v->status));
	put_padded(out, text, (u32)strlen(text), width, p->left);
}

static void put_value(
        FILE *out, const struct y_piece *p, int width, bool left, int precision, const struct y_printed *v)
{
	const struct y_str *s = (const struct y_str *)v->value;
	struct y_piece piece = *p;
	u32 len = p->kind == Y_STRING && s ? s->len : 0;
	char c = (char)v->value, text[32];

	piece.left = left;
	switch (p->kind) {
	case Y_STRING:
		if (precision >= 0 && (u32)precision < len)
			len = (u32)precision;
		put_padded(out, s ? s->bytes : "", len, width, left);
		break;
	case Y_CHAR:
		put_padded(out, &c, 1, width, left);
		break;
	case Y_POINTER:
		snprintf(text, sizeof(text), v->value ? "0x%lx" : "(nil)", v->value);
		put_padded(out, text, (u32)strlen(text), width, left);
		break;
	default:
		put_number(out, &piece, width, precision, v->value);
	}
}

/* A star's own failure counts as no width. */
static int star(const struct y_printed **v)
{
	const struct y_printed *s = (*v)++;
	int n = s->status ? 0 : (int)s->value;

	return n > 4096 ? 4096 : n < -4096 ? -4096 : n;
}

void y_print_format(FILE *out, const struct y_format *f, const struct y_printed *v)
{
	for (u32 i = 0; i < f->npieces; i++) {
		const struct y_piece *p = &f->pieces[i];
		int width = p->width, precision = p->precision;
		bool left = p->left;

		if (p->kind == Y_TEXT) {
			put_own_text(out, p->text, p->len);
			continue;
		}
		if (width == Y_STAR)
			width = star(&v);
		if (precision == Y_STAR)
			precision = star(&v);
		if (width < 0) {
			left = true;
			width = -width;
		}
		if (p->or_next && v->status == Y_KIND) {
			v++;
			continue;
		}
		if (v->status)
			put_failure(out, p, width, v);
		else
			put_value(out, p, width, left, precision, v);
		v += 1 + p->or_next;
		i += p->or_next;
	}
}

/* --- tables --- */

static void put_key(FILE *out, const struct y_map *m, const struct y_entry *e)
{
	bool first = true;

	for (u32 i = 0; i < m->nkeys; i++) {
		const struct y_str *s = (const struct y_str *)e->keys[i];

		if (i + 1 == m->stack)
			continue;
		fputs(first ? "" : ", ", out);
		first = false;
		if (m->keys[i] == Y_STR)
			y_put_text(out, s->bytes, s->len);
		else if (m->keys[i] == Y_I64)
			fprintf(out, "%ld", (s64)e->keys[i]);
		else
			fprintf(out, "%lu", e->keys[i]);
	}
}

/* A map by stack: each row's values and other keys, then the frames below, innermost first. */
static void put_frames(FILE *out, const struct y_str *stack)
{
	u32 end = stack->len;

	while (end) {
		u32 start = end;

		while (start && stack->bytes[start - 1] != ';')
			start--;
		fputs("    ", out);
		y_put_text(out, stack->bytes + start, end - start);
		fputc('\n', out);
		end = start ? start - 1 : 0;
	}
}

static char *key_text(const struct y_map *m, const struct y_entry *e)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out) {
		put_key(out, m, e);
		fclose(out);
	}
	return text;
}

static void put_map_value(FILE *out, const struct y_map *m, u64 value)
{
	const struct y_str *s = (const struct y_str *)value;
	double real;

	if (m->value == Y_STR && s) {
		y_put_text(out, s->bytes, s->len);
	} else if (m->value == Y_F64) {
		memcpy(&real, &value, sizeof(real));
		fprintf(out, "%g", real);
	} else if (m->value != Y_STR) {
		fprintf(out, m->value == Y_I64 ? "%ld" : "%lu", value);
	}
}

static void put_aggregate(FILE *out, const struct y_aggregate *a)
{
	for (enum y_agg what = Y_COUNT; what <= Y_AVG; what++)
		fprintf(out, " %12ld", y_aggregate_get(a, what));
}

static void put_row(FILE *out, const struct y_map *m, const char *key, u32 width, const struct y_entry *e)
{
	u32 n = count_characters(key, (u32)strlen(key));

	fprintf(out, "%s%*s", key, (int)(width - n), "");
	if (m->is_agg) {
		put_aggregate(out, (const struct y_aggregate *)e->value);
	} else {
		fputs("  ", out);
		put_map_value(out, m, e->value);
	}
	fputc('\n', out);
	if (m->stack)
		put_frames(out, (const struct y_str *)e->keys[m->stack - 1]);
}

static void put_rows(FILE *out, const struct y_map *m, struct y_entry **entries, u32 n, char **keys)
{
	u32 width = (u32)strlen(m->name);

	for (u32 i = 0; i < n; i++) {
		u32 own = count_characters(keys[i], (u32)strlen(keys[i]));

		width = own > width ? own : width;
	}
	fprintf(out, "%-*s", m->is_agg ? (int)width : 0, m->name);
	if (m->is_agg)
		fprintf(out, " %12s %12s %12s %12s %12s", "count", "sum", "min", "max", "avg");
	fputc('\n', out);
	for (u32 i = 0; i < n; i++)
		put_row(out, m, keys[i], width, entries[i]);
}

static void put_bucket(FILE *out, const struct y_map *m, u32 bucket, u64 count, u64 most)
{
	s64 from = m->low + (s64)((bucket - 1) * m->step);
	char range[64];
	u32 bar = most ? (u32)(count * BAR / most) : 0;
	u64 low = bucket > 1 ? 1ull << (bucket - 2) : 0;

	if (!bucket)
		snprintf(range, sizeof(range), "(..., %ld)", m->low);
	else if (m->steps && bucket > m->steps)
		snprintf(range, sizeof(range), "[%ld, ...)", from);
	else if (m->steps)
		snprintf(range, sizeof(range), "[%ld, %ld)", from, from + (s64)m->step);
	else if (bucket < 3)
		snprintf(range, sizeof(range), "[%u]", bucket - 1);
	else
		snprintf(range, sizeof(range), "[%lu, %lu)", low, 2 * low);
	fprintf(out, "%-24s %10lu |", range, count);
	for (u32 i = 0; i < BAR; i++)
		fputc(i < bar ? '@' : ' ', out);
	fputs("|\n", out);
}

static void put_histogram(FILE *out, const struct y_map *m, const char *key, const struct y_aggregate *a)
{
	u32 all = y_buckets(m), first = all, last = 0;
	u64 most = 0;

	fprintf(out, m->nkeys ? "%s[%s]\n" : "%s\n", m->name, key);
	for (u32 i = 0; i < all; i++) {
		if (!a->buckets[i])
			continue;
		first = i < first ? i : first;
		last = i;
		most = a->buckets[i] > most ? a->buckets[i] : most;
	}
	for (u32 i = first; i <= last && i < all; i++)
		put_bucket(out, m, i, a->buckets[i], most);
}

void y_print_table(FILE *out, const struct y_table *t, enum y_shape shape)
{
	u32 n;
	struct y_entry **entries = y_table_sorted(t, t->map->is_agg ? UINT32_MAX : UINT64_MAX, &n);
	char **keys = calloc(n + 1, sizeof(*keys));

	for (u32 i = 0; keys && i < n; i++) {
		keys[i] = key_text(t->map, entries[i]);
		if (!keys[i])
			n = i;
	}
	if (keys && shape == Y_TABLE)
		put_rows(out, t->map, entries, n, keys);
	for (u32 i = 0; keys && shape == Y_HIST && i < n; i++)
		put_histogram(out, t->map, keys[i], (const struct y_aggregate *)entries[i]->value);
	for (u32 i = 0; keys && i < n; i++)
		free(keys[i]);
	free(keys);
	free(entries);
}
