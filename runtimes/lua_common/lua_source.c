/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_source.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/proc_path.h"
#include "cleanup.h"

#define FILES_MAX  256
#define FILE_BYTES (4u << 20)
#define ALL_BYTES  (32u << 20)
#define PARAMETERS 250 /* LJ_MAX_SLOTS */

struct source {
	char *path;
	char *text; /* NULL: it could not be read */
	size_t len;
};

struct lua_sources {
	struct source file[FILES_MAX];
	u32 n;
	size_t bytes;
};

struct lua_sources *lua_sources_create(void)
{
	return calloc(1, sizeof(struct lua_sources));
}

static void forget_all(struct lua_sources *sources)
{
	for (u32 i = 0; i < sources->n; i++) {
		free(sources->file[i].path);
		free(sources->file[i].text);
	}
	sources->n = 0;
	sources->bytes = 0;
}

void lua_sources_destroy(struct lua_sources *sources)
{
	if (sources)
		forget_all(sources);
	free(sources);
}

/* --- text --- */

struct text {
	const char *at, *end;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Line number n, from 1; it lasts to the next. */
static bool find_line(const char *text, size_t len, u32 n, struct text *ret)
{
	const char *end = text + len, *next;

	for (ret->at = text; n > 1; n--) {
		next = memchr(ret->at, '\n', end - ret->at);
		if (!next)
			return false;
		ret->at = next + 1;
	}
	next = memchr(ret->at, '\n', end - ret->at);
	ret->end = next ? next : end;
	return n == 1;
}

/* The next place in a line where this word stands by itself; NULL: there is none. */
static const char *find_word(struct text line, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = line.at; (at = memmem(at, line.end - at, word, n)); at++)
		if ((at == line.at || !is_word(at[-1])) && (at + n == line.end || !is_word(at[n])))
			return at;
	return NULL;
}

static void skip_space(struct text *t)
{
	while (t->at < t->end && isspace((unsigned char)*t->at))
		t->at++;
}

static bool take(struct text *t, const char *token)
{
	size_t n = strlen(token);

	skip_space(t);
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, token, n))
		return false;
	t->at += n;
	return true;
}

static bool take_word(struct text *t)
{
	const char *start;

	skip_space(t);
	for (start = t->at; t->at < t->end && is_word(*t->at); t->at++)
		;
	return t->at > start;
}

/* Are these the parameters of the function that is looked for? */
static bool match_parameters(struct text t, const struct lua_definition *d, bool self)
{
	u32 n = self;
	bool vararg = false;

	if (!take(&t, "("))
		return false;
	while (!vararg && n <= PARAMETERS && !take(&t, ")")) {
		vararg = take(&t, "...");
		if (!take_word(&t) && !vararg) /* 5.5: "...name" */
			return false;
		n += !vararg;
		if (take(&t, ")"))
			break;
		if (vararg || !take(&t, ","))
			return false;
	}
	return n == d->parameters && vararg == d->vararg;
}

/* The name behind "function", empty if "(" follows at once. */
static struct text name_behind(struct text *t)
{
	struct text name;

	while (t->at < t->end && is_blank(*t->at))
		t->at++;
	for (name.at = t->at; t->at < t->end && (is_word(*t->at) || *t->at == '.' || *t->at == ':'); t->at++)
		;
	name.end = t->at;
	return name;
}

/* Does a line end inside of a table that it has begun? */
static bool in_braces(struct text line)
{
	s32 depth = 0;

	for (; line.at < line.end; line.at++)
		depth += (*line.at == '{') - (*line.at == '}');
	return depth > 0;
}

/* What "= function" is assigned to, in a line of which `at` is the "function". Empty: nothing that has one name. */
static struct text name_before(struct text line, const char *at)
{
	struct text name = {at, at};

	while (at > line.at && is_blank(at[-1]))
		at--;
	if (at == line.at || *--at != '=' || (at > line.at && strchr("=~<>", at[-1])))
		return name;
	while (at > line.at && is_blank(at[-1]))
		at--;
	name.end = at;
	if (at - line.at > 4 && at[-1] == ']' && (at[-2] == '"' || at[-2] == '\'')) { /* ["name"] = function */
		name.end = at -= 2;
		while (at > line.at && at[-1] != *name.end)
			at--;
		name.at = at;
		return name;
	}
	while (at > line.at && (is_word(at[-1]) || at[-1] == '.'))
		at--;
	name.at = at;
	while (at > line.at && is_blank(at[-1]))
		at--;
	if (at > line.at && at[-1] == ',' && !in_braces((struct text){line.at, at}))
		name.end = name.at; /* a, b = function: a's */
	return name;
}

static bool is_name(struct text name)
{
	if (name.at == name.end || isdigit((unsigned char)*name.at))
		return false;
	while (name.at < name.end && (is_word(*name.at) || *name.at == '.' || *name.at == ':'))
		name.at++;
	return name.at == name.end;
}

bool lua_source_parse(const char *text, size_t len, const struct lua_definition *d, char *ret, size_t size)
{
	struct text line, last, found = {0};
	u32 matches = 0;

	if (!d->line || d->last < d->line || !find_line(text, len, d->line, &line) ||
	        !find_line(text, len, d->last, &last) || !find_word(last, "end"))
		return false;
	for (struct text rest = line; (rest.at = find_word(rest, "function"));) {
		const char *keyword = rest.at;
		struct text at = {keyword + strlen("function"), text + len}, name = name_behind(&at);
		bool self = name.end > name.at && memchr(name.at, ':', name.end - name.at);

		rest.at = at.at < line.end ? at.at : line.end;
		if (!match_parameters(at, d, self))
			continue;
		if (matches++)
			return false;
		found = name.end > name.at ? name : name_before(line, keyword);
	}
	if (!matches || !is_name(found))
		return false;
	snprintf(ret, size, "%.*s", (int)(found.end - found.at), found.at);
	return true;
}

/* --- files --- */

/* Of a core its path is what is known: not where a relative one began. */
static int open_source(pid_t pid, const char *path)
{
	char base[64] = "", whole[4096];
	int n;

	if (!pid && *path != '/')
		return -1;
	if (pid)
		proc_path(base, sizeof(base), pid, *path == '/' ? "root" : "cwd");
	n = snprintf(whole, sizeof(whole), "%s/%s", base, path);
	return n < (int)sizeof(whole) ? open(whole, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
}

/* The text of a file; NULL: it is none, too large, or can not be read. */
static char *read_source(pid_t pid, const char *path, size_t *len)
{
	cleanup(close) int fd = open_source(pid, path);
	struct stat st;
	char *text;
	ssize_t n = 0;

	*len = 0;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > FILE_BYTES)
		return NULL;
	text = malloc(st.st_size);
	while (text && *len < (size_t)st.st_size && (n = pread(fd, text + *len, st.st_size - *len, *len)) > 0)
		*len += n;
	if (text && n > 0)
		return text;
	free(text);
	return NULL;
}

static const struct source *find_source(struct lua_sources *sources, pid_t pid, const char *path)
{
	struct source *s;

	for (u32 i = 0; i < sources->n; i++)
		if (!strcmp(sources->file[i].path, path))
			return &sources->file[i];
	if (sources->n == FILES_MAX || sources->bytes > ALL_BYTES)
		forget_all(sources);
	s = &sources->file[sources->n];
	s->path = strdup(path);
	if (!s->path)
		return NULL;
	s->text = read_source(pid, path, &s->len);
	sources->bytes += s->len;
	sources->n++;
	return s;
}

const char *lua_source_text(struct lua_sources *sources, pid_t pid, const char *path, size_t *len)
{
	const struct source *s = pid >= 0 ? find_source(sources, pid, path) : NULL;

	*len = s ? s->len : 0;
	return s ? s->text : NULL;
}

bool lua_source_name(struct lua_sources *sources, pid_t pid, const struct lua_definition *d, char *ret, size_t size)
{
	size_t len;
	const char *text = lua_source_text(sources, pid, d->path, &len);

	return text && lua_source_parse(text, len, d, ret, size);
}
