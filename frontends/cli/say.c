/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "colour.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"

void say_note(const char *format, ...)
{
	cleanup(free) char *text = NULL, *safe = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	safe = clean_text(text);
	fprintf(stderr, "yrt: note: %s\n", safe ? safe : "");
}

static void say_hint(const char *hint)
{
	cleanup(free) char *safe = clean_text(hint);

	if (safe)
		fprintf(stderr, "     %s\n", safe);
}

void say_note_error(struct error *err)
{
	say_note("%s", err->message);
	say_hint(err->hint);
	error_free(err);
}

/* What is wrong with a program in Y: its place, the line, a caret. */
static void say_lines(char *rest)
{
	char *line;

	while ((line = strsep(&rest, "\n"))) {
		size_t tabs = strspn(line, "\t ");
		cleanup(free) char *clean = clean_text(line + tabs);

		fprintf(stderr, "%.*s%s\n", (int)tabs, line, clean ? clean : "");
	}
}

int report_error(struct error *err)
{
	cleanup(free) char *message = clean_text(err->message);
	int code = err->kind;

	if (strchr(err->message, '\n'))
		say_lines(err->message);
	else
		fprintf(stderr, "%syrt:%s %s\n", colour(stderr, COLOUR_RED), colour(stderr, COLOUR_NONE),
		        message ? message : "");
	say_hint(err->hint);
	error_free(err);
	return code;
}
