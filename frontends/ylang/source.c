/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"
#include "unwind/edit_distance.h"

#define MEMORY_MOST (256u << 20)
#define CHUNK       (256u << 10)
#define LINE_MOST   160 /* bytes of a line in a message */
#define LINE_BEFORE 80  /* of a longer one: before what is meant */
#define NEAR_MOST   63

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

struct y_memory {
	struct chunk *chunks;
	size_t total;
};

struct y_memory *y_memory_new(void)
{
	return calloc(1, sizeof(struct y_memory));
}

void y_memory_free(struct y_memory *m)
{
	while (m && m->chunks) {
		struct chunk *c = m->chunks;

		m->chunks = c->next;
		free(c);
	}
	free(m);
}

void *y_memory_get(struct y_memory *m, size_t size)
{
	struct chunk *c = m->chunks;
	void *ret;

	if (size > MEMORY_MOST)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	if (!c || c->size - c->used < size) {
		size_t room = size > CHUNK ? size : CHUNK;

		c = m->total + room <= MEMORY_MOST ? calloc(1, sizeof(*c) + room) : NULL;
		if (!c)
			return NULL;
		m->total += room;
		*c = (struct chunk){.next = m->chunks, .size = room};
		m->chunks = c;
	}
	ret = c->bytes + c->used;
	c->used += size;
	return ret;
}

void *y_new(struct y_source *s, size_t size)
{
	void *ret = y_memory_get(s->memory, size ? size : 1);

	if (!ret)
		y_leave(s, &error_no_memory);
	return ret;
}

char *y_keep(struct y_source *s, const char *text, size_t len)
{
	char *ret = y_new(s, len + 1);

	return memcpy(ret, text, len);
}

char *y_format(struct y_source *s, const char *format, ...)
{
	va_list args, again;
	char *ret;
	int n;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	ret = y_new(s, (size_t)n + 1);
	vsnprintf(ret, (size_t)n + 1, format, again);
	va_end(again);
	va_end(args);
	return ret;
}

void *y_grow(struct y_source *s, void *array, u32 n, size_t size)
{
	void *grown;

	if (n && (n < 16 || n & (n - 1)))
		return array;
	grown = y_new(s, (n ? 2 * (size_t)n : 16) * size);
	return n ? memcpy(grown, array, n * size) : grown;
}

u32 y_add_file(struct y_source *s, const char *name, const char *text, size_t size)
{
	s->files = y_grow(s, s->files, s->nfiles, sizeof(*s->files));
	s->files[s->nfiles] =
	        (struct y_file){.name = y_keep(s, name, strlen(name)), .text = y_keep(s, text, size), .size = size};
	return s->nfiles++;
}

void y_leave(struct y_source *s, struct error *err)
{
	s->error = err;
	longjmp(s->leave, 1);
}

/*
 * The line at pos, or the part of a long one that is around it, and a caret below it. Tabs stay, so that the caret is
 * below what it means.
 */
static void put_line(FILE *out, const struct y_file *f, struct y_pos pos)
{
	const char *p = f->text, *end = f->text + f->size;
	u32 n, column = pos.column, skipped;

	for (u32 line = 1; line < pos.line && p < end; line++) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			return;
		p++;
	}
	n = (u32)strcspn(p, "\n");
	skipped = n > LINE_MOST && column > LINE_BEFORE ? column - LINE_BEFORE : 0;
	skipped = skipped < n ? skipped : n;
	while (skipped && skipped < n && ((u8)p[skipped] & 0xc0) == 0x80)
		skipped++; /* within a letter of several bytes */
	p += skipped;
	n -= skipped;
	column -= skipped;
	n = n < LINE_MOST ? n : LINE_MOST;
	fprintf(out, "\n\t%s%.*s\n\t%s", skipped ? "…" : "", (int)n, p, skipped ? " " : "");
	for (u32 i = 1; i < column && i <= n; i++)
		fputc(p[i - 1] == '\t' ? '\t' : ' ', out);
	fputc('^', out);
}

void y_error(struct y_source *s, struct y_pos pos, const char *in, const char *format, ...)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct error *err;
	va_list args;

	if (!out)
		y_leave(s, &error_no_memory);
	if (pos.line)
		fprintf(out, "%s:%u:%u: error: ", s->files[pos.file].name, pos.line, pos.column);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	if (in)
		fprintf(out, " (in the expansion of macro %s)", in);
	if (pos.line)
		put_line(out, &s->files[pos.file], pos);
	fclose(out);
	err = error_new(ERROR_USAGE, "%s", text);
	free(text);
	y_leave(s, err);
}

/* --- near names --- */

void y_near_offer(void *arg, const char *name)
{
	struct y_near *near = arg;
	u32 most = ((u32)strlen(near->name) + 2) / 3, d;

	if (!*name || strlen(name) > NEAR_MOST || strlen(near->name) < 2)
		return;
	d = edit_distance(near->name, name);
	for (u32 i = 0; i < 3; i++)
		if (!strcmp(near->best[i], name))
			return;
	for (u32 i = 0; d && d <= most && i < 3; i++) {
		if (*near->best[i] && near->distance[i] <= d)
			continue;
		for (u32 j = 2; j > i; j--) {
			memcpy(near->best[j], near->best[j - 1], sizeof(near->best[j]));
			near->distance[j] = near->distance[j - 1];
		}
		snprintf(near->best[i], sizeof(near->best[i]), "%s", name);
		near->distance[i] = d;
		return;
	}
}

const char *y_near_text(struct y_source *s, const struct y_near *near)
{
	if (!*near->best[0])
		return "";
	return y_format(s, "; near names: %s%s%s%s%s", near->best[0], *near->best[1] ? ", " : "", near->best[1],
	        *near->best[2] ? ", " : "", near->best[2]);
}
