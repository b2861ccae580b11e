/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "colour.h"
#include "frontends/format/text.h"
#include "unwind/cleanup.h"

char *say_clean(const char *text)
{
	char *ret = text ? malloc(4 * strlen(text) + 1) : NULL, *to = ret;

	while (ret && *text) {
		u32 c = text_next(&text);

		to += text_encode(text_is_control(c) ? TEXT_REPLACEMENT : c, to);
	}
	if (ret)
		*to = '\0';
	return ret;
}

void say_note(const char *format, ...)
{
	cleanup(free) char *text = NULL, *safe = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	safe = say_clean(text);
	fprintf(stderr, "yrt: note: %s\n", safe ? safe : "");
}

void say_note_error(struct error *err)
{
	say_note("%s", err->message);
	error_free(err);
}

int report_error(struct error *err)
{
	cleanup(free) char *message = say_clean(err->message), *hint = say_clean(err->hint);
	int code = err->kind;

	fprintf(stderr, "%syrt:%s %s\n", colour(stderr, COLOUR_RED), colour(stderr, COLOUR_NONE),
	        message ? message : "");
	if (hint)
		fprintf(stderr, "     %s\n", hint);
	error_free(err);
	return code;
}
