/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_places.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define NAME_LONGEST 4096 /* of a string in a profile */

struct place {
	const char *file;
	const char *shown; /* the end of file that is unique */
};

const char *profile_place(const char *file)
{
	const char *slash = *file == '[' || *file == '<' ? NULL : strrchr(file, '/');

	return slash ? slash + 1 : file;
}

/* The place in a name: behind " (", up to the ":LINE)" or ")" that must follow. NULL: it shows none. */
static char *find_place(const char *name, const char *place)
{
	size_t len = strlen(place);
	const char *at = name, *found = NULL;

	for (; *place && (at = strstr(at, place)); at++)
		if (at - name >= 2 && at[-1] == '(' && at[-2] == ' ' && (at[len] == ')' || at[len] == ':'))
			found = at;
	return (char *)found;
}

/* By the last byte first, so that files with the longest common end are neighbours. */
static int compare_ends(const void *a, const void *b)
{
	const char *f = ((const struct place *)a)->file, *g = ((const struct place *)b)->file;
	size_t i = strlen(f), j = strlen(g);

	while (i && j && f[i - 1] == g[j - 1])
		i--, j--;
	if (!i || !j)
		return (i > 0) - (j > 0);
	return (u8)f[i - 1] - (u8)g[j - 1];
}

static size_t common_end(const char *f, const char *g)
{
	size_t i = strlen(f), j = strlen(g), n = 0;

	while (n < i && n < j && f[i - 1 - n] == g[j - 1 - n])
		n++;
	return n;
}

/* The end of file that is longer than n bytes, begins a component, and has at least the base name. */
static const char *end_beyond(const char *file, size_t n)
{
	const char *at = file + strlen(file) - n, *base = profile_place(file);

	if (at > base)
		return base;
	if (at > file)
		at--;
	while (at > file && at[-1] != '/')
		at--;
	return at;
}

/* Functions of one file are neighbours, too: each file once. */
static u32 unique(struct place *places, u32 n)
{
	u32 kept = 0;

	for (u32 i = 0; i < n; i++)
		if (!kept || strcmp(places[kept - 1].file, places[i].file))
			places[kept++] = places[i];
	return kept;
}

static void find_ends(struct place *places, u32 n)
{
	size_t before = 0;

	for (u32 i = 0; i < n; i++) {
		size_t behind = i + 1 < n ? common_end(places[i].file, places[i + 1].file) : 0;

		places[i].shown = end_beyond(places[i].file, before > behind ? before : behind);
		before = behind;
	}
}

static struct error *rewrite(struct profile *p, struct profile_function *fn, const struct place *place)
{
	const char *old = profile_place(fn->file), *at = find_place(fn->name, old);
	char text[2 * NAME_LONGEST + 1];

	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - fn->name), fn->name, place->shown, at + strlen(old));
	return profile_string(p, text, &fn->name);
}

struct error *profile_shorten_places(struct profile *p)
{
	cleanup(free) struct place *places = calloc(p->nfunctions + 1, sizeof(*places));
	struct error *err = NULL;
	u32 n = 0;

	if (!places)
		return &error_no_memory;
	for (u32 i = 0; i < p->nfunctions; i++)
		if (strchr(p->functions[i].file, '/') &&
		        find_place(p->functions[i].name, profile_place(p->functions[i].file)))
			places[n++].file = p->functions[i].file;
	qsort(places, n, sizeof(*places), compare_ends);
	n = unique(places, n);
	find_ends(places, n);
	for (u32 i = 0; !err && i < p->nfunctions; i++) {
		struct profile_function *fn = &p->functions[i];
		struct place key = {.file = fn->file},
		             *place = n ? bsearch(&key, places, n, sizeof(key), compare_ends) : NULL;

		if (place && place->shown != profile_place(place->file) &&
		        find_place(fn->name, profile_place(fn->file)))
			err = rewrite(p, fn, place);
	}
	return err;
}
