/* SPDX-License-Identifier: Apache-2.0 */
/* The errors for a command or an option that does not exist, with the one that was probably meant. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "unwind/edit_distance.h"

#define NAME_MAX_LEN 32

/* What is nearest to a name: a third of its letters may be wrong, three at most. */
struct nearest {
	const char *wanted, *found;
	u32 best;
};

static struct nearest nearest_to(const char *wanted)
{
	return (struct nearest){wanted, NULL, (strlen(wanted) < 9 ? (u32)strlen(wanted) / 3 : 3) + 1};
}

static void offer(struct nearest *n, const char *name)
{
	u32 wrong = edit_distance(n->wanted, name);

	if (wrong >= n->best)
		return;
	n->best = wrong;
	n->found = name;
}

static const char *nearest(const char *name)
{
	struct nearest n = nearest_to(name);

	for (const struct command_line *c = commands; c->name; c++)
		offer(&n, c->name);
	return n.found;
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

	if (all && (!near || edit_distance(name, near) > 1))
		return error_hint(err, "`yrt %s` shows programs in any language; `yrt runtimes` lists those with views",
		        all->name);
	if (near)
		return error_hint(err, "did you mean `yrt %s`? `yrt --help` lists all commands", near);
	return error_hint(err, "`yrt --help` lists all commands");
}

static char **arguments;
static const struct manual_getopt *table;

void manual_arguments(char **argv)
{
	arguments = argv;
	opterr = 0;
}

void manual_remember(const struct manual_getopt *g)
{
	table = g;
}

static const struct option *option_of(int key)
{
	const struct option *o = table->longs;

	while (o->name && o->val != key)
		o++;
	return o->name ? o : NULL;
}

/* "--duraton=5", of which the name is looked for. */
static struct error *bad_long(const char *word)
{
	size_t len = strcspn(word, "=");
	struct error *err = error_new(ERROR_USAGE, "there is no option %.*s", (int)len, word);
	char name[NAME_MAX_LEN + 1];
	struct nearest near;
	u32 begin = 0;

	snprintf(name, sizeof(name), "%.*s", (int)len - 2, word + 2);
	near = nearest_to(name);
	for (const struct option *o = table->longs; o->name; o++) {
		begin += !strncmp(o->name, name, strlen(name));
		offer(&near, o->name);
	}
	if (begin > 1)
		return error_hint(err, "several begin so; --help lists all options");
	if (near.found)
		return error_hint(err, "did you mean --%s? --help lists all options", near.found);
	return error_hint(err, "--help lists all options");
}

/* "-e" of a command that has --event alone. */
static struct error *bad_letter(char letter)
{
	struct error *err = error_new(ERROR_USAGE, "there is no option -%c", letter);
	const char *near = NULL;
	u32 begin = 0;

	for (const struct option *o = table ? table->longs : NULL; o && o->name; o++) {
		bool has_letter = o->val > ' ' && o->val < 127; /* it is written with that one */

		if (*o->name != letter || has_letter)
			continue;
		near = o->name;
		begin++;
	}
	if (begin == 1)
		return error_hint(err, "did you mean --%s? --help lists all options", near);
	return error_hint(err, "--help lists all options");
}

/* optopt: the letter, or the key of an option whose argument is missing or too much; 0: a long one is not known. */
struct error *manual_bad_option(void)
{
	const char *word = arguments && optind > 0 && arguments[optind - 1] ? arguments[optind - 1] : "";
	const struct option *o = table ? option_of(optopt) : NULL;

	if (o && o->has_arg)
		return error_hint(error_new(ERROR_USAGE, "--%s takes a value, which is missing", o->name),
		        "--help says what it takes");
	if (o)
		return error_new(ERROR_USAGE, "--%s takes no value", o->name);
	if (!optopt && table && !strncmp(word, "--", 2) && word[2])
		return bad_long(word);
	return bad_letter(optopt > ' ' && optopt < 127 ? (char)optopt : '?');
}
