/* SPDX-License-Identifier: Apache-2.0 */
/* Completions for bash, zsh and fish. */
#include <string.h>

#include "cli.h"
#include "frontends/format/format.h"

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

bool manual_completion(FILE *out, const char *shell)
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
