/* SPDX-License-Identifier: Apache-2.0 */
/* The error for a command that does not exist, with the one that was probably meant. */
#include <string.h>

#include "cli.h"

#define NAME_MAX_LEN 32

static u32 least(u32 a, u32 b, u32 c)
{
	u32 n = a < b ? a : b;

	return n < c ? n : c;
}

/* Letters to insert, delete or replace until a is b; NAME_MAX_LEN if either is long. */
static u32 edits(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);
	u32 row[NAME_MAX_LEN + 1];

	if (na > NAME_MAX_LEN || nb > NAME_MAX_LEN)
		return NAME_MAX_LEN;
	for (u32 j = 0; j <= nb; j++)
		row[j] = j;
	for (u32 i = 1; i <= na; i++) {
		u32 diagonal = row[0];

		row[0] = i;
		for (u32 j = 1; j <= nb; j++) {
			u32 n = least(row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));

			diagonal = row[j];
			row[j] = n;
		}
	}
	return row[nb];
}

/* A third of its letters may be wrong, three at most. */
static const char *nearest(const char *name)
{
	const char *found = NULL;
	u32 best = least(strlen(name) / 3, 3, 3) + 1;

	for (const struct command_line *c = commands; c->name; c++) {
		u32 n = edits(name, c->name);

		if (n < best) {
			best = n;
			found = c->name;
		}
	}
	return found;
}

/* "flame" of "ruby-flame". */
static const struct command_line *general(const char *name)
{
	const char *dash = strchr(name, '-');

	return dash ? find_command(dash + 1) : NULL;
}

struct error *no_command(const char *name)
{
	struct error *err = error_new(ERROR_USAGE, "there is no command \"%s\"", name);
	const struct command_line *all = general(name);
	const char *near = nearest(name);

	if (all)
		return error_hint(err, "`yrt %s` shows programs in any language; `yrt runtimes` lists those with views",
		        all->name);
	if (near)
		return error_hint(err, "did you mean `yrt %s`? `yrt --help` lists all commands", near);
	return error_hint(err, "`yrt --help` lists all commands");
}
