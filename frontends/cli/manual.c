/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "cli.h"
#include "colour.h"
#include "frontends/format/format.h"
#include "probes/event.h"
#include "unwind/process/view.h"

#define HELP_WIDTH 100

static const struct manual_option no_options[] = {{0}};
const struct manual_option manual_help_option = {'h', "help", NULL, "this text", COMPLETE_NOTHING};

const struct manual_option *manual_options(const struct manual *m)
{
	return m->options ? m->options : no_options;
}

static void add_option(struct manual_getopt *g, u32 *n, char **shorts, const struct manual_option *o)
{
	g->longs[(*n)++] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, o->key};
	if (o->key >= 256)
		return;
	*(*shorts)++ = (char)o->key;
	if (o->argument)
		*(*shorts)++ = ':';
}

void manual_getopt(const struct manual *m, struct manual_getopt *ret)
{
	char *shorts = ret->shorts;
	u32 n = 0;

	memset(ret, 0, sizeof(*ret));
	*shorts++ = '+';
	for (const struct manual_option *o = manual_options(m); o->key && n < MANUAL_OPTIONS_MAX - 1; o++)
		if (o->name)
			add_option(ret, &n, &shorts, o);
	add_option(ret, &n, &shorts, &manual_help_option);
	manual_remember(ret);
}

/* '@' is the name of the command. */
static void put_text(FILE *out, const struct command_line *c, const char *s, size_t n)
{
	for (; n > 0 && *s; s++, n--) {
		if (*s == '@')
			fputs(c->name, out);
		else
			fputc(*s, out);
	}
}

static int columns(const struct command_line *c, const char *s, size_t n)
{
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		ret += s[i] == '@' ? (int)strlen(c->name) : (s[i] & 0xc0) != 0x80;
	return ret;
}

/* Wrapped at HELP_WIDTH columns; the cursor is at column `indent`, where further lines begin. '\n' ends a paragraph. */
static void put_wrapped(FILE *out, const struct command_line *c, const char *s, int indent)
{
	int at = indent;

	while (*s) {
		size_t n = strcspn(s, " \n");
		int width = columns(c, s, n);

		if (at > indent && at + 1 + width > HELP_WIDTH)
			fprintf(out, "\n%*s", at = indent, "");
		else if (at > indent)
			at += fprintf(out, " ");
		put_text(out, c, s, n);
		at += width;
		s += n;
		if (*s == '\n')
			fprintf(out, "\n\n%*s", at = indent, "");
		s += *s != 0;
	}
	fputc('\n', out);
}

/* "  -p, --pid LIST" and its length in columns. */
static int option_head(const struct manual_option *o, char *ret, size_t size)
{
	char letter[8] = "    ";

	if (o->key < 256)
		snprintf(letter, sizeof(letter), "-%c, ", o->key);
	return snprintf(
	        ret, size, "  %s--%s%s%s", letter, o->name, o->argument ? " " : "", o->argument ? o->argument : "");
}

static int widest(const struct manual *m)
{
	char head[128];
	int width = 0;

	for (const struct manual_option *o = manual_options(m); o->key; o++) {
		int n = o->name ? option_head(o, head, sizeof(head)) : 0;

		width = n > width ? n : width;
	}
	return width > 0 ? width : 12;
}

void manual_format(const struct command_line *c, const struct format *f, char ret[MANUAL_FORMAT])
{
	const struct event_ops *e = f == &format_folded ? c->event : NULL;

	if (e)
		snprintf(ret, MANUAL_FORMAT, "root;...;leaf %s%s%s%s, a line a stack", e->unit, e->more ? " (or " : "",
		        e->more ? e->more : "", e->more ? ")" : "");
	else
		snprintf(ret, MANUAL_FORMAT, "%s", f->description);
}

static void put_option(FILE *out, const struct command_line *c, const struct manual_option *o, int width)
{
	char head[128], text[MANUAL_FORMAT];

	if (!o->name) {
		fprintf(out, "\n %s%s%s\n", colour(out, COLOUR_BOLD), o->text, colour(out, COLOUR_NONE));
		return;
	}
	option_head(o, head, sizeof(head));
	fprintf(out, "%-*s  ", width, head);
	put_wrapped(out, c, o->text, width + 2);
	for (const struct format *const *f = formats; o->completion == COMPLETE_FORMAT && *f; f++) {
		manual_format(c, *f, text);
		fprintf(out, "%*s%-10s %-13s %s\n", width + 4, "", (*f)->name, (*f)->extension, text);
	}
}

static void put_heading(FILE *out, const char *text)
{
	fprintf(out, "\n%s%s%s\n", colour(out, COLOUR_BOLD), text, colour(out, COLOUR_NONE));
}

static void put_examples(FILE *out, const struct command_line *c)
{
	if (c->manual->examples)
		put_heading(out, "examples:");
	for (const struct manual_example *e = c->manual->examples; e && e->command; e++) {
		fputs("  ", out);
		put_text(out, c, e->command, strlen(e->command));
		fprintf(out, e->text ? "\n      %s%s%s\n" : "%s%s%s\n", colour(out, COLOUR_FAINT),
		        e->text ? e->text : "", colour(out, COLOUR_NONE));
	}
}

void manual_help(FILE *out, const struct command_line *c)
{
	const struct manual *m = c->manual;
	int width = widest(m);

	for (const char *const *u = m->usage; *u; u++)
		fprintf(out, "%s yrt %s%s%s\n", u == m->usage ? "usage:" : "      ", c->name, **u ? " " : "", *u);
	fprintf(out, "\n%c%s.\n", toupper((unsigned char)*c->summary), c->summary + 1);
	if (m->text) {
		fputc('\n', out);
		put_wrapped(out, c, m->text, 0);
	}
	put_heading(out, "options:");
	for (const struct manual_option *o = manual_options(m); o->key; o++)
		put_option(out, c, o, width);
	put_option(out, c, &manual_help_option, width);
	put_examples(out, c);
}

static const char *const group_titles[COMMAND_GROUPS] = {
        [GROUP_CPU] = "on the CPU:",
        [GROUP_WAITING] = "waiting:",
        [GROUP_CALLS] = "calls and I/O:",
        [GROUP_MEMORY] = "memory:",
        [GROUP_PROFILES] = "recordings:",
        [GROUP_PROGRAM] = "programs and this machine:",
};

static bool has_views(const struct command_line *general)
{
	for (const struct command_line *c = commands; c->name; c++)
		if (c->general && !strcmp(c->general, general->name))
			return true;
	return false;
}

/* "lua, python, java, go, perl" */
static void put_languages(FILE *out)
{
	for (const struct view *v = views(); v->name; v++)
		fprintf(out, "%s%s", v == views() ? "" : ", ", v->name);
}

/* One row for a command and its views of languages: "flame, LANG-flame". */
static void put_group(FILE *out, enum command_group group)
{
	char name[64];

	put_heading(out, group_titles[group]);
	for (const struct command_line *c = commands; c->name; c++) {
		if (c->group != group || c->general)
			continue;
		snprintf(name, sizeof(name), has_views(c) ? "%1$s, LANG-%1$s" : "%1$s", c->name);
		fprintf(out, "  %-29s  %s\n", name, c->summary);
	}
}

void manual_overview(FILE *out)
{
	fprintf(out, "yrt shows where a process spends its time, from the kernel to the line of script.\n\n"
	             "usage: yrt COMMAND [options]     yrt COMMAND --help     yrt --version\n\n"
	             "LANG-flame and so on show a language without its VM's own frames; LANG is one of\n");
	put_languages(out);
	fputs(".\n", out);
	for (u32 g = 0; g < COMMAND_GROUPS; g++)
		put_group(out, g);
	put_heading(out, "examples:");
	fprintf(out, "  yrt lua-flame -p 4242 -d 10 -o flame.html\n"
	             "  yrt flame -p $(pgrep -o nginx) -s -o flame.html\n"
	             "  yrt flame -o - -- ./program args | head\n"
	             "  yrt off-flame -p 4242 -d 10 -o off.html\n"
	             "  yrt top -p 4242\n");
}

bool manual_only_help(const struct command_line *c, int argc, char **argv, int *code)
{
	if (argc <= 1)
		return false;
	*code = 0;
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		manual_help(stdout, c);
		return true;
	}
	*code = report_error(error_hint(error_new(ERROR_USAGE, "%s does not take \"%s\"", c->name, argv[1]),
	        "`yrt %s --help` shows what it takes", c->name));
	return true;
}
