/* SPDX-License-Identifier: Apache-2.0 */
/* help: the manuals of all commands, as text, man pages and shell completions. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "frontends/format/format.h"

/* Man pages, in the macros of man(7). */

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

/* The man page of a command, or of yrt itself (c is NULL), in the man(7) macros. */
static void manual_page(FILE *out, const struct command_line *c)
{
	if (c)
		put_command(out, c);
	else
		put_overview(out);
}

/* Completions for bash, zsh and fish. */

static void put_formats(FILE *out)
{
	for (const struct format *const *f = formats; *f; f++)
		fprintf(out, "%s%s", f == formats ? "" : " ", (*f)->name);
}

static void put_commands(FILE *out)
{
	for (const struct command_line *c = commands; c->name; c++)
		fprintf(out, "%s%s", c == commands ? "" : " ", c->name);
}

/* All options of c, and last --help; n counts them. NULL: no more. */
static const struct manual_option *option_at(const struct command_line *c, u32 n)
{
	const struct manual_option *o = manual_options(c->manual);

	for (; o->key; o++)
		if (o->name && n-- == 0)
			return o;
	return n == 0 ? &manual_help_option : NULL;
}

static void bash_words(FILE *out, const struct command_line *c)
{
	const struct manual_option *o;

	fputs("\t\tlocal options=\"", out);
	for (u32 i = 0; (o = option_at(c, i)); i++) {
		fprintf(out, "%s--%s", i ? " " : "", o->name);
		if (o->key < 256)
			fprintf(out, " -%c", o->key);
	}
	fputs("\"\n", out);
}

static void bash_argument(FILE *out, const struct manual_option *o)
{
	fputs("\t\t", out);
	if (o->key < 256)
		fprintf(out, "-%c|", o->key);
	fprintf(out, "--%s) ", o->name);
	if (o->completion == COMPLETE_NOTHING)
		fputs(":", out);
	else if (o->completion == COMPLETE_FILE)
		fputs("COMPREPLY=($(compgen -f -- \"$word\"))", out);
	else if (o->completion == COMPLETE_PID)
		fputs("COMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$word\"))", out);
	else if (o->completion == COMPLETE_FORMAT) {
		fputs("COMPREPLY=($(compgen -W \"", out);
		put_formats(out);
		fputs("\" -- \"$word\"))", out);
	}
	fputs("; return ;;\n", out);
}

static void bash_operands(FILE *out, enum completion operands)
{
	if (operands == COMPLETE_FILE) {
		fputs("\t\t[[ $word == -* ]] || { COMPREPLY=($(compgen -f -- \"$word\")); return; }\n", out);
	} else if (operands == COMPLETE_COMMAND) {
		fputs("\t\t[[ $word == -* ]] || { COMPREPLY=($(compgen -W \"", out);
		put_commands(out);
		fputs("\" -- \"$word\")); return; }\n", out);
	}
}

static void bash_command(FILE *out, const struct command_line *c)
{
	const struct manual_option *o;

	fprintf(out, "\t%s)\n", c->name);
	bash_words(out, c);
	fputs("\t\tcase $before in\n", out);
	for (u32 i = 0; (o = option_at(c, i)); i++)
		if (o->argument)
			bash_argument(out, o);
	fputs("\t\tesac\n", out);
	bash_operands(out, c->manual->operands);
	fputs("\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n\t\t;;\n", out);
}

static void put_bash(FILE *out)
{
	fputs("# SPDX-License-Identifier: Apache-2.0\n_yrt()\n{\n"
	      "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n\tlocal i\n\tCOMPREPLY=()\n"
	      "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
	      "\t\t\tCOMPREPLY=($(compgen -c -f -- \"$word\"))\n\t\t\treturn\n\t\tfi\n\tdone\n"
	      "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W \"",
	        out);
	put_commands(out);
	fputs(" --help --version\" -- \"$word\"))\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n", out);
	for (const struct command_line *c = commands; c->name; c++)
		bash_command(out, c);
	fputs("\tesac\n}\ncomplete -o filenames -o bashdefault -F _yrt yrt\n", out);
}

/* Inside single quotes of zsh's _arguments and of fish; zsh takes ':' and brackets for its own. */
static void put_quoted(FILE *out, const struct command_line *c, const char *s, bool zsh)
{
	for (; *s; s++) {
		if (*s == '@')
			fputs(c->name, out);
		else if (*s == '\'')
			fputs("'\\''", out);
		else if (zsh && strchr(":[]\\", *s))
			fprintf(out, "\\%c", *s);
		else if (*s == '\\')
			fputs("\\\\", out);
		else
			fputc(*s, out);
	}
}

static void zsh_completion(FILE *out, enum completion completion)
{
	if (completion == COMPLETE_FILE) {
		fputs("_files", out);
	} else if (completion == COMPLETE_PID) {
		fputs("_pids", out);
	} else if (completion == COMPLETE_FORMAT) {
		fputs("(", out);
		put_formats(out);
		fputs(")", out);
	} else if (completion == COMPLETE_COMMAND) {
		fputs("(", out);
		put_commands(out);
		fputs(")", out);
	}
}

static void zsh_spec(
        FILE *out, const struct command_line *c, const struct manual_option *o, const char *dashes, const char *name)
{
	fprintf(out, "\t\t\t'%s%s%s[", dashes, name, o->argument && name[1] ? "=" : o->argument ? "+" : "");
	put_quoted(out, c, o->text, true);
	fputc(']', out);
	if (o->argument) {
		fputc(':', out);
		put_quoted(out, c, o->argument, true);
		fputc(':', out);
		zsh_completion(out, o->completion);
	}
	fputs("' \\\n", out);
}

static void zsh_command(FILE *out, const struct command_line *c)
{
	const struct manual_option *o;

	fprintf(out, "\t%s)\n\t\t_arguments -s \\\n", c->name);
	for (u32 i = 0; (o = option_at(c, i)); i++) {
		zsh_spec(out, c, o, "--", o->name);
		if (o->key < 256)
			zsh_spec(out, c, o, "-", (char[]){(char)o->key, 0});
	}
	if (c->manual->operands) {
		fputs("\t\t\t'*:operand:", out);
		zsh_completion(out, c->manual->operands);
		fputs("'\n\t\t;;\n", out);
	} else {
		fputs("\t\t\t'*::command:_normal'\n\t\t;;\n", out);
	}
}

static void put_zsh(FILE *out)
{
	fputs("#compdef yrt\n# SPDX-License-Identifier: Apache-2.0\n_yrt()\n{\n"
	      "\tif ((CURRENT == 2)); then\n\t\tlocal -a list=(\n",
	        out);
	for (const struct command_line *c = commands; c->name; c++) {
		fprintf(out, "\t\t\t'%s:", c->name);
		put_quoted(out, c, c->summary, true);
		fputs("'\n", out);
	}
	fputs("\t\t)\n\t\t_describe command list\n\t\treturn\n\tfi\n\tlocal which=$words[2]\n\tshift "
	      "words\n\t((CURRENT--))\n"
	      "\tcase $which in\n",
	        out);
	for (const struct command_line *c = commands; c->name; c++)
		zsh_command(out, c);
	fputs("\tesac\n}\nif [[ $funcstack[1] == _yrt ]]; then\n\t_yrt \"$@\"\nelse\n\tcompdef _yrt yrt\nfi\n", out);
}

static void fish_option(FILE *out, const struct command_line *c, const struct manual_option *o)
{
	fprintf(out, "complete -c yrt -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
	if (o->key < 256)
		fprintf(out, " -s %c", o->key);
	if (o->completion == COMPLETE_FILE)
		fputs(" -r -F", out);
	else if (o->argument)
		fputs(" -x", out);
	if (o->completion == COMPLETE_PID)
		fputs(" -a '(__fish_complete_pids)'", out);
	if (o->completion == COMPLETE_FORMAT) {
		fputs(" -a '", out);
		put_formats(out);
		fputc('\'', out);
	}
	fputs(" -d '", out);
	put_quoted(out, c, o->text, false);
	fputs("'\n", out);
}

static void fish_command(FILE *out, const struct command_line *c)
{
	const struct manual_option *o;

	fprintf(out, "complete -c yrt -f -n __fish_use_subcommand -a %s -d '", c->name);
	put_quoted(out, c, c->summary, false);
	fputs("'\n", out);
	for (u32 i = 0; (o = option_at(c, i)); i++)
		fish_option(out, c, o);
	if (c->manual->operands != COMPLETE_COMMAND)
		return;
	fprintf(out, "complete -c yrt -f -n '__fish_seen_subcommand_from %s' -a '", c->name);
	put_commands(out);
	fputs("'\n", out);
}

static void put_fish(FILE *out)
{
	fputs("# SPDX-License-Identifier: Apache-2.0\n"
	      "complete -c yrt -n __fish_use_subcommand -l help -s h -d 'all commands'\n"
	      "complete -c yrt -n __fish_use_subcommand -l version -d 'the version'\n",
	        out);
	for (const struct command_line *c = commands; c->name; c++)
		fish_command(out, c);
}

/* Completions for "bash", "zsh" or "fish". False: no such shell. */
static bool manual_completion(FILE *out, const char *shell)
{
	if (!strcmp(shell, "bash"))
		put_bash(out);
	else if (!strcmp(shell, "zsh"))
		put_zsh(out);
	else if (!strcmp(shell, "fish"))
		put_fish(out);
	else
		return false;
	return true;
}

enum { OPT_MAN = 256, OPT_COMPLETION, OPT_LIST };

static const struct manual_option options[] = {
        {OPT_MAN, "man", NULL, "print the man page, in man(7) macros", COMPLETE_NOTHING},
        {OPT_COMPLETION, "completion", "SHELL", "print the completions for bash, zsh or fish", COMPLETE_NOTHING},
        {OPT_LIST, "list", NULL, "print the names of the commands", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"[COMMAND] [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt help flame", NULL},
        {"yrt help --man flame | man -l -", NULL},
        {"eval \"$(yrt help --completion bash)\"", "completions without installing yrt"},
        {NULL, NULL},
};

const struct manual help_manual = {
        .usage = usage,
        .options = options,
        .examples = examples,
        .operands = COMPLETE_COMMAND,
};

struct request {
	bool man, list, help;
	const char *shell;
};

static struct error *parse(const struct manual *m, int argc, char **argv, struct request *ret)
{
	struct manual_getopt g;
	int option;

	manual_getopt(m, &g);
	optind = 1;
	while ((option = getopt_long(argc, argv, g.shorts + 1, g.longs, NULL)) != -1) {
		if (option == OPT_MAN)
			ret->man = true;
		else if (option == OPT_LIST)
			ret->list = true;
		else if (option == OPT_COMPLETION)
			ret->shell = optarg;
		else if (option == 'h')
			ret->help = true;
		else
			return manual_bad_option();
	}
	return argc - optind > 1
	               ? error_new(ERROR_USAGE, "help takes one command; unexpected argument \"%s\"", argv[optind + 1])
	               : NULL;
}

static struct error *answer(const struct request *r, const struct command_line *c)
{
	if (r->list)
		for (c = commands; c->name; c++)
			puts(c->name);
	else if (r->shell && !manual_completion(stdout, r->shell))
		return error_new(ERROR_USAGE, "there are completions for bash, zsh and fish, not for \"%s\"", r->shell);
	else if (r->man)
		manual_page(stdout, c);
	else if (!r->shell && c)
		manual_help(stdout, c);
	else if (!r->shell)
		manual_overview(stdout);
	return NULL;
}

int help_main(const struct command_line *self, int argc, char **argv)
{
	struct request r = {0};
	const struct command_line *c = NULL;
	struct error *err = parse(self->manual, argc, argv, &r);

	if (!err && r.help)
		c = self;
	else if (!err && optind < argc && !(c = find_command(argv[optind])))
		err = no_command(argv[optind]);
	if (!err)
		err = answer(&r, c);
	return err ? report_error(err) : 0;
}
