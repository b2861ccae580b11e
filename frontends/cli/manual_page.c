/* SPDX-License-Identifier: Apache-2.0 */
/* Man pages, in the macros of man(7). */
#include <string.h>

#include "cli.h"
#include "frontends/format/format.h"

/* Text of a man page: '\', '-' and quotes mean something there, and a '.' at the start of a line is a request. */
static void put(FILE *out, const struct command_line *c, const char *s)
{
	bool at_start = true;

	for (; *s; at_start = *s++ == '\n') {
		if (at_start && (*s == '.' || *s == '\''))
			fputs("\\&", out);
		if (*s == '\n')
			fputs("\n.PP\n", out);
		else if (*s == '@' && c)
			put(out, NULL, c->name);
		else if (*s == '\\')
			fputs("\\e", out);
		else if (*s == '-')
			fputs("\\-", out);
		else if (*s == '\'')
			fputs("\\(aq", out);
		else
			fputc(*s, out);
	}
}

static void put_line(FILE *out, const char *macro, const struct command_line *c, const char *s)
{
	fputs(macro, out);
	put(out, c, s);
	fputc('\n', out);
}

static void put_title(FILE *out, const struct command_line *c, const char *summary)
{
	fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n.TH YRT", out);
	for (const char *s = c ? c->name : ""; *s; s++)
		fprintf(out, "%s%c", s == c->name ? "\\-" : "", *s >= 'a' && *s <= 'z' ? *s - 32 : *s);
	fprintf(out, " 1 %s \"yrt %s\" \"User Commands\"\n.SH NAME\nyrt", YRT_DATE, YRT_VERSION);
	if (c)
		put_line(out, "\\-", c, c->name);
	put_line(out, c ? "\\- " : " \\- ", c, summary);
}

static void put_option(FILE *out, const struct command_line *c, const struct manual_option *o)
{
	char text[MANUAL_FORMAT];

	if (!o->name) {
		put_line(out, ".SS ", c, o->text);
		return;
	}
	fputs(".TP\n", out);
	if (o->key < 256)
		fprintf(out, "\\fB\\-%c\\fR, ", o->key);
	fputs("\\fB\\-\\-", out);
	put(out, c, o->name);
	fputs("\\fR", out);
	if (o->argument)
		put_line(out, " \\fI", c, o->argument);
	fputs(o->argument ? "\\fR" : "\n", out);
	put_line(out, "", c, o->text);
	if (o->completion != COMPLETE_FORMAT)
		return;
	fputs(".RS\n", out);
	for (const struct format *const *f = formats; *f; f++) {
		put_line(out, ".TP\n", c, (*f)->name);
		manual_format(c, *f, text);
		put_line(out, "", c, text);
	}
	fputs(".RE\n", out);
}

static void put_examples(FILE *out, const struct command_line *c)
{
	if (c->manual->examples)
		fputs(".SH EXAMPLES\n", out);
	for (const struct manual_example *e = c->manual->examples; e && e->command; e++) {
		fputs(".TP\n", out);
		put_line(out, "\\fB", c, e->command);
		put_line(out, "\\fR", c, e->text ? e->text : "");
	}
}

static void put_command(FILE *out, const struct command_line *c)
{
	const struct manual *m = c->manual;

	put_title(out, c, c->summary);
	fputs(".SH SYNOPSIS\n", out);
	for (const char *const *u = m->usage; *u; u++) {
		fputs(u == m->usage ? ".B yrt " : ".br\n.B yrt ", out);
		put_line(out, "", c, c->name);
		if (**u)
			put_line(out, "", c, *u);
	}
	if (m->text) {
		fputs(".SH DESCRIPTION\n", out);
		put_line(out, "", c, m->text);
	}
	fputs(".SH OPTIONS\n", out);
	for (const struct manual_option *o = manual_options(m); o->key; o++)
		put_option(out, c, o);
	put_option(out, c, &manual_help_option);
	put_examples(out, c);
	fputs(".SH SEE ALSO\n.BR yrt (1)\n", out);
}

static const char *const exit_codes[][2] = {
        {"0", "done"},
        {"1", "internal error"},
        {"2", "usage"},
        {"3", "no such process. Of several, those that are there are shown and a note names the others: that is 0"},
        {"4", "not permitted"},
        {"5", "not supported: runtime, kernel, a 32-bit target"},
        {"6", "more than half of all samples were lost"},
        {"7", "unreadable input"},
        {"8", "unwritable output"},
        {"9", "yrt diff --fail-over: a function grew by more"},
};

static const char *const environment[][2] = {
        {"DEBUGINFOD_URLS", "servers for debug files that are not installed; yrt symbolize asks them at once, other "
                            "commands after sampling. libdebuginfod's other variables work too"},
        {"DEBUGINFOD_TIMEOUT", "seconds without a byte from a server after which yrt gives up on it (10)"},
        {"HOME, XDG_CACHE_HOME", "where compiled unwind tables are kept: see FILES"},
        {"NO_COLOR", "turns colours off if it is not empty. Only terminals get colours"},
        {"TERM", "without it, or if it is dumb, no escape sequences are printed"},
        {"TMPDIR",
                "where cores are unpacked (/var/tmp), and where yrt report keeps its recordings while it runs (/tmp)"},
        {"YRT_CACHE_DIR", "the directory of unwind tables: see FILES"},
        {"YRT_CACHE_MB",
                "how many MiB that directory may have (64); the tables that were not used for longest are removed"},
        {"YRT_LAYOUTS", "a directory with layouts of further builds of runtimes (yrt layout)"},
        {"YRT_PUSH_URL", "the store of yrt push, if --push is not given"},
        {"YRT_PUSH_USER, YRT_PUSH_TOKEN", "who one is to the store: a user and a password, or a bearer token alone"},
        {"YRT_DEBUG", "prints what the kernel's verifier says when it refuses a program"},
};

static const char *const files[][2] = {
        {"$YRT_CACHE_DIR, $XDG_CACHE_HOME/yrt, /var/cache/yrt (root), $HOME/.cache/yrt",
                "compiled unwind tables, by the build-id of files, in the first of these that there is; yrt cache "
                "--clear "
                "removes them"},
        {"/usr/lib/debug/.build-id", "debug files that are installed: names, lines, inlined functions"},
        {"/tmp/perf-PID.map", "names of code that a JIT made, in the target's root directory"},
};

static void put_pairs(FILE *out, const char *heading, const char *const (*pairs)[2], size_t n)
{
	fprintf(out, ".SH %s\n", heading);
	for (size_t i = 0; i < n; i++) {
		put_line(out, ".TP\n.B ", NULL, pairs[i][0]);
		put_line(out, "", NULL, pairs[i][1]);
	}
}

static void put_overview(FILE *out)
{
	put_title(out, NULL, "shows where a process spends its time");
	fputs(".SH SYNOPSIS\n.B yrt\n.I COMMAND\n[options]\n.br\n.B yrt\n.I COMMAND\n.B \\-\\-help\n.br\n"
	      ".B yrt\n.B \\-\\-version\n"
	      ".SH DESCRIPTION\nyrt looks inside a running process and shows where its time goes: one stack from the\n"
	      "kernel through native code and the language VM to the line of script that caused it.\n"
	      "Samples neither pause nor change the target. Commands that watch calls have the kernel put breakpoints\n"
	      "into its code, or watch its addresses.\n"
	      ".SH COMMANDS\nEach has a page of its own.\n",
	        out);
	for (const struct command_line *c = commands; c->name; c++) {
		put_line(out, ".TP\n.BR yrt\\-", c, c->name);
		put_line(out, "", c, c->summary);
	}
	put_pairs(out, "EXIT STATUS", exit_codes, sizeof(exit_codes) / sizeof(*exit_codes));
	put_pairs(out, "ENVIRONMENT", environment, sizeof(environment) / sizeof(*environment));
	put_pairs(out, "FILES", files, sizeof(files) / sizeof(*files));
	fputs(".SH SEE ALSO\n.BR perf (1),\n.BR gdb (1),\n.BR core (5),\n.BR proc (5),\n.BR capabilities (7)\n", out);
}

void manual_page(FILE *out, const struct command_line *c)
{
	if (c)
		put_command(out, c);
	else
		put_overview(out);
}
