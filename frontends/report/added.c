/* SPDX-License-Identifier: Apache-2.0 */
#include "added.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontends/format/keeper.h"
#include "own.h"
#include "source_text.h"
#include "unwind/binary/root.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/profile/pattern.h"
#include "unwind/runtime.h"

#define FILES_MOST  256
#define BYTES_MOST  (16 << 20) /* of source, in all */
#define LINE_MOST   400        /* longer ones are data, or generated */
#define NAME_LEAST  2          /* in source: shorter ones are anything's */
#define NAME_MOST   64
#define BACK        3 /* boxes up the path: a library's collection has a name of the program above its own */
#define PLACES_MOST 64

/*
 * A line adds to the collection N: it stores below a key; calls a method of N, or of one of its elements; appends to
 * it; or gives it to a function that does.
 */
#define NAMED "\\b%s\\b[]}'\"]*"
#define KEY   "(\\[[^]]*\\]+|\\{[^}]*\\}+)"
#define VERB                                                                                                           \
	"([aA]dd|[aA]ppend|[pP]ut|[pP]ush|[iI]nsert|[sS]tore|[sS]et|offer|register|enqueue|extend|update|setdefault|"  \
	"compute|merge|LoadOrStore)[A-Za-z_]* *\\("
static const char *const adds[] = {
        NAMED "(" KEY "|\\.[A-Za-z_]+|->)*" KEY " *(\\|\\||\\?\\?|//|[+.])?=[^=~>]",
        NAMED "(" KEY "|[^] =;:,)#]|:[a-z])*(\\.|->|:)" VERB,
        NAMED " *(:?= *append *\\(|\\+= *\\[)",
        "\\b(push|unshift|table\\.insert|insort|insort_left|insort_right|heappush) *[( ][^=;,]*\\b%s\\b",
};

#define FUNCTION "^[ \t]*(async |local )?(def|function|sub|func) "

struct place {
	char *file, *function; /* owned; file: as the process sees it */
	u32 line;
};

struct search {
	const struct libraries *l;
	pid_t pid;
	int root; /* the process's */
	const struct evidence *e;
	char **file; /* owned, of the program */
	u32 nfiles;
	struct place place[PLACES_MOST];
	u32 nplaces;
	size_t bytes;
};

static struct error *add_file(struct search *s, const char *path)
{
	struct error *err;

	for (u32 i = 0; i < s->nfiles; i++)
		if (!strcmp(s->file[i], path))
			return NULL;
	if (s->nfiles == FILES_MOST)
		return NULL;
	err = grow(&s->file, s->nfiles, sizeof(*s->file));
	if (!err && !(s->file[s->nfiles] = strdup(path)))
		err = &error_no_memory;
	s->nfiles += !err;
	return err;
}

/* A path that the process uses, from its own root: scripts may be named by where it began. */
static bool resolve(const struct search *s, const char *file, char *ret, size_t size)
{
	char link[64], cwd[PATH_MAX];
	ssize_t n;

	if (*file == '/')
		return (size_t)snprintf(ret, size, "%s", file) < size;
	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)s->pid);
	n = readlink(link, cwd, sizeof(cwd) - 1);
	if (!*file || n <= 0)
		return false;
	cwd[n] = '\0';
	return (size_t)snprintf(ret, size, "%s/%s", cwd, file) < size;
}

static struct error *add_own(struct search *s)
{
	struct error *err = NULL;
	char path[PATH_MAX];

	for (u32 i = 0; i < s->e->nviews; i++) {
		const struct profile *p = s->e->view[i].profile;

		for (u32 k = 1; !err && k < p->nfunctions; k++)
			if (*p->functions[k].file && is_own(s->l, &p->functions[k]) &&
			        resolve(s, p->functions[k].file, path, sizeof(path)))
				err = add_file(s, path);
	}
	return err;
}

/* "function remember (/app/store.lua:9)": what the way itself names. */
static struct error *add_named(struct search *s, const char *way)
{
	struct error *err = NULL;

	while (!err && (way = strstr(way, "(/"))) {
		size_t n = strcspn(++way, ":)");
		char path[PATH_MAX];

		if (way[n] == ':' && n < sizeof(path)) {
			snprintf(path, sizeof(path), "%.*s", (int)n, way);
			err = add_file(s, path);
		}
	}
	return err;
}

/* Others of the same folder and kind. */
static struct error *add_neighbours(struct search *s)
{
	struct error *err = NULL;

	for (u32 i = 0, n = s->nfiles; !err && i < n; i++) {
		const char *base = strrchr(s->file[i], '/'), *kind = base ? strrchr(base, '.') : NULL;
		char folder[PATH_MAX], path[PATH_MAX];
		struct dirent *d;
		DIR *all;

		if (!kind || (size_t)(base - s->file[i]) >= sizeof(folder))
			continue;
		snprintf(folder, sizeof(folder), "%.*s/", (int)(base - s->file[i]), s->file[i]);
		all = root_open_folder(s->root, folder);
		for (u32 k = 0; all && !err && k < 16 * FILES_MOST && (d = readdir(all)); k++) {
			const char *end = strrchr(d->d_name, '.');

			if (end && !strcmp(end, kind) &&
			        (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)(base - s->file[i]), s->file[i],
			                d->d_name) < sizeof(path))
				err = add_file(s, path);
		}
		if (all)
			closedir(all);
	}
	return err;
}

static size_t indent_of(const char *line)
{
	return strspn(line, " \t");
}

static bool is_comment(const char *line)
{
	line += indent_of(line);
	return *line == '#' || *line == '*' || !strncmp(line, "//", 2) || !strncmp(line, "--", 2) ||
	       !strncmp(line, "/*", 2);
}

/* "remember" of "func (s *Store) remember(o *Order) {". */
static char *function_name(const char *line)
{
	const char *at = line + indent_of(line);
	size_t n;

	for (const char *word = at; (n = strcspn(word, " \t")) && word[n]; word += n + 1) {
		at = word + n + 1 + strspn(word + n + 1, " \t");
		if (strncmp(word, "async ", 6) != 0 && strncmp(word, "local ", 6) != 0)
			break;
	}
	if (*at == '(' && strchr(at, ')'))
		at = strchr(at, ')') + 1;
	at += indent_of(at);
	n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:$");
	while (n && at[n - 1] == ':')
		n--;
	return strndup(at, n);
}

static struct error *add_place(struct search *s, const char *file, u32 line, const char *header)
{
	struct place *p = &s->place[s->nplaces];

	if (s->nplaces == PLACES_MOST)
		return NULL;
	*p = (struct place){strdup(file), header ? function_name(header) : strdup(""), line};
	s->nplaces++;
	return p->file && p->function ? NULL : &error_no_memory;
}

static struct error *search_file(struct search *s, const char *file, const char *name, const struct pattern *adding,
        u32 n, const struct pattern *function)
{
	cleanup(free) char *line = NULL, *header = NULL;
	cleanup(fclose) FILE *in = NULL;
	struct error *err = NULL;
	size_t room = 0;
	ssize_t length;

	in = source_open(s->root, file, s->e->start_unix_ns);
	for (u32 number = 1; in && !err && s->bytes < BYTES_MOST && (length = getline(&line, &room, in)) >= 0;
	        number++) {
		bool found = false;

		s->bytes += (size_t)length;
		if (length > LINE_MOST || is_comment(line))
			continue;
		if (pattern_matches(function, line)) {
			free(header);
			header = strdup(line);
		} else if (header && line[indent_of(line)] > ' ' && indent_of(line) < indent_of(header)) {
			free(header);
			header = NULL;
		}
		for (u32 i = 0; i < n && !found && strstr(line, name); i++)
			found = pattern_matches(&adding[i], line);
		if (found)
			err = add_place(s, file, number, header);
	}
	return err;
}

static void forget_places(struct search *s)
{
	for (u32 i = 0; i < s->nplaces; i++) {
		free(s->place[i].file);
		free(s->place[i].function);
	}
	s->nplaces = 0;
}

static struct error *search_name(struct search *s, const char *name)
{
	struct pattern adding[sizeof(adds) / sizeof(*adds)] = {0}, function = {0};
	const u32 n = sizeof(adds) / sizeof(*adds);
	struct error *err = pattern_compile(FUNCTION, &function);

	forget_places(s);
	for (u32 i = 0; !err && i < n; i++) {
		cleanup(free) char *text = NULL;

		err = asprintf(&text, adds[i], name) < 0 ? &error_no_memory : pattern_compile(text, &adding[i]);
	}
	for (u32 i = 0; !err && i < s->nfiles; i++)
		err = search_file(s, s->file[i], name, adding, n, &function);
	for (u32 i = 0; i < n; i++)
		pattern_free(&adding[i]);
	pattern_free(&function);
	return err;
}

/* The identifier of a box: "by_user" of ".by_user: dict", "$seen: hash", "main.orders: map[int]int". */
static bool name_of(const char *box, size_t n, char *ret)
{
	const char *end = memmem(box, n, ": ", 2), *at;

	*ret = '\0';
	if (!end || memchr(box, '(', (size_t)(end - box)))
		return false;
	for (at = end; at > box && (isalnum((unsigned char)at[-1]) || at[-1] == '_'); at--)
		;
	if (end == at || end - at >= NAME_MOST || isdigit((unsigned char)*at))
		return false;
	snprintf(ret, NAME_MOST, "%.*s", (int)(end - at), at);
	return true;
}

/* Does the way to the collection name this file: by its path, or its name as that of a module or class? */
static bool is_of_way(const char *way, const char *file)
{
	const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	size_t n = strcspn(base, "."), length = strlen(file);

	for (const char *at = way; (at = strstr(at, file)); at += length)
		if (at[length] == ':')
			return true;
	for (const char *at = way; n && (at = memmem(at, strlen(at), base, n)); at++)
		if ((at == way || !(isalnum((unsigned char)at[-1]) || strchr("_/", at[-1]))) &&
		        !(isalnum((unsigned char)at[n]) || at[n] == '_'))
			return true;
	return false;
}

/* Of several places those in a file that the way names, if there are such. */
static void choose(struct search *s, const char *way)
{
	u32 n = 0;

	for (u32 i = 0; i < s->nplaces; i++)
		n += is_of_way(way, s->place[i].file);
	for (u32 i = 0; n && i < s->nplaces;) {
		if (is_of_way(way, s->place[i].file)) {
			i++;
			continue;
		}
		free(s->place[i].file);
		free(s->place[i].function);
		memmove(&s->place[i], &s->place[i + 1], (--s->nplaces - i) * sizeof(*s->place));
	}
}

/* The place that a runtime knows. */
static struct error *add_known(void *ctx, const char *function, const char *file, u32 line)
{
	struct search *s = ctx;
	struct place *p = &s->place[s->nplaces];

	if (s->nplaces == PLACES_MOST)
		return NULL;
	*p = (struct place){strdup(file), strdup(function), line};
	s->nplaces++;
	return p->file && p->function ? NULL : &error_no_memory;
}

/* By the program's code, of the class whose box stands before the n bytes of the field's. */
static struct error *search_code(struct search *s, const char *way, const char *box, const char *field)
{
	const size_t sign = strlen(KEEPER_SIGN);
	const char *from = box - (box > way ? sign : 0), *end = from;
	cleanup(free) char *holder = NULL;
	struct error *err = NULL;

	while (from > way && (from < way + sign || strncmp(from - sign, KEEPER_SIGN, sign) != 0))
		from--;
	holder = strndup(from, (size_t)(end - from));
	for (const struct runtime_ops *const *r = runtimes; holder && *holder && *r && !err; r++)
		if (s->e->runtimes & 1u << (*r)->id && (*r)->added)
			err = (*r)->added(s->pid, keeper_type(holder), field, add_known, s);
	return holder ? err : &error_no_memory;
}

static struct error *search_way(struct search *s, const char *way)
{
	const char *end = way + strlen(way);
	struct error *err = NULL;

	for (u32 i = 0; !err && !s->nplaces && i < BACK && end > way; i++) {
		const char *box = end;
		char name[NAME_MOST];

		do
			box--;
		while (box > way && strncmp(box, KEEPER_SIGN, strlen(KEEPER_SIGN)) != 0);
		end = box;
		box += box > way ? strlen(KEEPER_SIGN) : 0;
		if (!name_of(box, strcspn(box, ">"), name))
			continue;
		err = search_code(s, way, box, name);
		if (!err && !s->nplaces && strlen(name) >= NAME_LEAST)
			err = search_name(s, name);
	}
	if (!err)
		choose(s, way);
	return err;
}

static void put_fact(struct facts *f, u32 i, const char *what, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "kept.added.%u.%s", i + 1, what);
	facts_set_text(f, name, text);
}

static void set_added(struct facts *f, const struct search *s)
{
	char text[512] = "";

	for (u32 i = 0; i < s->nplaces; i++) {
		const struct place *p = &s->place[i];
		const char *slash = strrchr(p->file, '/'), *base = slash ? slash + 1 : p->file,
		           *before = i ? " or " : ", added in ";
		char name[64];

		snprintf(name, sizeof(name), "kept.added.%u.line", i + 1);
		facts_set(f, name, p->line);
		put_fact(f, i, "file", p->file);
		put_fact(f, i, "function", p->function);
		if (*p->function)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.100s (%.40s:%u)", before,
			        p->function, base, p->line);
		else
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.40s:%u", before, base, p->line);
	}
	facts_set_text(f, "kept.added", text);
}

struct error *added_find(const struct libraries *l, pid_t pid, struct evidence *e)
{
	const struct fact *by = facts_find(&e->facts, "kept.by");
	char path[64];
	cleanup(close) int root = snprintf(path, sizeof(path), "/proc/%d/root", (int)pid) > 0 ? root_open(path) : -1;
	struct search s = {.l = l, .pid = pid, .root = root, .e = e};
	struct error *err = NULL;

	if (root >= 0 && by && by->text && facts_number(&e->facts, "kept.sure") > 0) {
		err = add_named(&s, by->text);
		if (!err)
			err = add_own(&s);
		if (!err)
			err = add_neighbours(&s);
		if (!err)
			err = search_way(&s, by->text);
	}
	if (s.nplaces > ADDED_MOST)
		forget_places(&s);
	if (!err)
		set_added(&e->facts, &s);
	forget_places(&s);
	for (u32 i = 0; i < s.nfiles; i++)
		free(s.file[i]);
	free(s.file);
	return err;
}

static const char *text_of(const struct facts *f, u32 i, const char *what)
{
	const struct fact *found;
	char name[64];

	snprintf(name, sizeof(name), "kept.added.%u.%s", i + 1, what);
	found = facts_find(f, name);
	return found && found->text ? found->text : "";
}

struct error *added_sites(const struct evidence *e, struct finding_site ret[ADDED_MOST], u32 *n)
{
	for (*n = 0; *n < ADDED_MOST; ++*n) {
		const char *file = text_of(&e->facts, *n, "file"), *function = text_of(&e->facts, *n, "function");
		const char *base = strrchr(file, '/');
		char name[64];

		if (!*file)
			break;
		snprintf(name, sizeof(name), "kept.added.%u.line", *n + 1);
		ret[*n] = (struct finding_site){.function = clean_text(*function ? function
		                                                       : base    ? base + 1
		                                                                 : file),
		        .file = clean_text(file),
		        .line = (u32)fmin(UINT32_MAX, fmax(0, facts_number(&e->facts, name)))};
		ret[*n].text = source_text(e, file, ret[*n].line);
		if (!ret[*n].function || !ret[*n].file)
			return &error_no_memory; /* *n: the caller frees the one before it */
	}
	return NULL;
}
