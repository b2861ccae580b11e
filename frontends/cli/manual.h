/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command's manual, written once, as data beside its code: getopt's tables, --help, the man page and the shell
 * completions are made from it. '@' in a text stands for the name of the command.
 */
#ifndef YRT_MANUAL_H
#define YRT_MANUAL_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

enum completion { /* what a shell offers for an argument */
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_PID,
	COMPLETE_FORMAT,  /* names of output formats; --help and the man page list them too */
	COMPLETE_COMMAND, /* commands of yrt */
};

struct manual_option {
	int key;              /* what getopt_long() returns; if it is a character, also the short option */
	const char *name;     /* the long option without its dashes; NULL: text is a heading for the options below */
	const char *argument; /* "LIST"; NULL: takes none */
	const char *text;     /* what it does, its default; without line breaks */
	enum completion completion;
};

#define MANUAL_HEADING(text)                                                                                           \
	{                                                                                                              \
		-1, NULL, NULL, text, COMPLETE_NOTHING                                                                 \
	}

struct manual_example {
	const char *command;
	const char *text; /* what it is for; NULL: plain */
};

struct manual {
	const char *const *usage;              /* what follows the name of the command, NULL-terminated; at least one */
	const char *text;                      /* a longer description, '\n' between paragraphs; NULL: none */
	const struct manual_option *options;   /* up to key 0; NULL: only --help */
	const struct manual_example *examples; /* up to command NULL */
	enum completion operands;
};

struct command_line;
struct error;

#define MANUAL_OPTIONS_MAX 64

/* What every command takes besides its own options, which are never NULL here. */
extern const struct manual_option manual_help_option;
const struct manual_option *manual_options(const struct manual *m);

/* The tables for getopt_long(); optstring begins with '+': options end at the first operand. */
struct manual_getopt {
	struct option longs[MANUAL_OPTIONS_MAX + 1];
	char shorts[3 * MANUAL_OPTIONS_MAX];
};

void manual_getopt(const struct manual *m, struct manual_getopt *ret);
/*
 * The error for what getopt_long() did not take, with the option that was probably meant: of the table that was made
 * last, and of these arguments, which main() tells.
 */
void manual_arguments(char **argv);
struct error *manual_bad_option(void);
void manual_remember(const struct manual_getopt *g);

struct format;
/* What a format is; of folded stacks of an event also what is counted. */
#define MANUAL_FORMAT 128
void manual_format(const struct command_line *c, const struct format *f, char ret[MANUAL_FORMAT]);

/* --help of a command, and of yrt. */
void manual_help(FILE *out, const struct command_line *c);
void manual_overview(FILE *out);

/* If a command without options of its own was given words: its --help or a usage error, *code. False: it was not. */
bool manual_only_help(const struct command_line *c, int argc, char **argv, int *code);

#endif
