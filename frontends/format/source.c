/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"
#include "unwind/cleanup.h"

struct place {
	const char *file;
	u32 line;
};

/* Strings of a profile are there once: equal ones have equal addresses. */
static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static bool is_open_to_all(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size > 0 && st->st_size <= SOURCE_FILE &&
	       (geteuid() || st->st_mode & S_IROTH);
}

/* All of a text file, ended by a 0; NULL: not here, not to be read, or no text. */
static char *read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char *text = NULL;
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && !fstat(fd, &st) && is_open_to_all(&st) && (text = malloc(st.st_size + 1)))
		n = read(fd, text, st.st_size);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || memchr(text, 0, n)) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

/* Where line starts; at is where line *now does, from where the search goes on. */
static const char *find_line(const char *at, u32 *now, u32 line)
{
	while (*now < line && *at) {
		at += strcspn(at, "\n");
		at += *at == '\n';
		++*now;
	}
	return at;
}

/* Lines first to last; returns the bytes written. */
static size_t put_block(FILE *out, const char *at, u32 first, u32 last)
{
	cleanup(free) char *block = NULL;
	size_t size = 0;
	FILE *lines = open_memstream(&block, &size);

	if (!lines)
		return 0;
	for (u32 i = first; i <= last && *at; i++) {
		size_t n = strcspn(at, "\n");

		fprintf(lines, "%s%.*s", i > first ? "\n" : "", (int)(n < SOURCE_LINE ? n : SOURCE_LINE), at);
		at += n + (at[n] == '\n');
	}
	if (fclose(lines))
		return 0;
	fprintf(out, "[%u,", first);
	text_json(out, block);
	putc(']', out);
	return size;
}

/* The n places of one file; returns the bytes written. */
static size_t put_file(FILE *out, const struct place *places, u32 n, bool any)
{
	cleanup(free) char *text = read_text(places[0].file);
	const char *at = text;
	size_t bytes = 0;
	u32 now = 1;

	if (!text)
		return 0;
	putc(any ? ',' : '{', out);
	text_json(out, places[0].file);
	fputs(":[", out);
	for (u32 i = 0, next; i < n; i = next) {
		u32 first = places[i].line > SOURCE_BEFORE ? places[i].line - SOURCE_BEFORE : 1;
		u32 last = places[i].line + SOURCE_AFTER;

		for (next = i + 1; next < n && places[next].line <= last + SOURCE_BEFORE; next++)
			last = places[next].line + SOURCE_AFTER;
		at = find_line(at, &now, first);
		if (i)
			putc(',', out);
		bytes += put_block(out, at, first, last);
	}
	putc(']', out);
	return bytes;
}

struct error *source_put(const struct profile *p, FILE *out)
{
	cleanup(free) struct place *places = calloc(p->nfunctions + 1, sizeof(*places));
	size_t bytes = 0;
	u32 n = 0;

	if (!places)
		return &error_no_memory;
	for (u32 i = 0; i < p->nfunctions; i++)
		if (*p->functions[i].file && p->functions[i].line && p->functions[i].kind != KIND_PROCESS)
			places[n++] = (struct place){p->functions[i].file, p->functions[i].line};
	qsort(places, n, sizeof(*places), compare_places);
	for (u32 i = 0, next; i < n && bytes < SOURCE_ALL; i = next) {
		for (next = i + 1; next < n && places[next].file == places[i].file; next++)
			;
		bytes += put_file(out, &places[i], next - i, bytes > 0);
	}
	fputs(bytes ? "}" : "{}", out);
	return NULL;
}
