/* SPDX-License-Identifier: Apache-2.0 */
#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open_files.h"

struct error error_no_memory = {.kind = ERROR_INTERNAL, .message = (char *)"out of memory"};

/* Takes over message. */
static struct error *error_make(enum error_kind kind, char *message)
{
	struct error *err = message ? malloc(sizeof(*err)) : NULL;

	if (!err) {
		free(message);
		return &error_no_memory;
	}
	*err = (struct error){.kind = kind, .message = message};
	return err;
}

static char *format_message(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

struct error *error_new(enum error_kind kind, const char *format, ...)
{
	va_list args;
	char *message;

	va_start(args, format);
	message = format_message(format, args);
	va_end(args);
	return error_make(kind, message);
}

struct error *error_hint(struct error *err, const char *format, ...)
{
	va_list args;

	if (!err || err == &error_no_memory)
		return err;
	free(err->hint);
	va_start(args, format);
	err->hint = format_message(format, args);
	va_end(args);
	return err;
}

static enum error_kind errno_kind(int errnum)
{
	switch (errnum) {
	case EPERM:
	case EACCES:
		return ERROR_PERMISSION;
	case ESRCH:
		return ERROR_NO_PROCESS;
	default:
		return ERROR_INTERNAL;
	}
}

struct error *error_errno(int errnum, const char *format, ...)
{
	const char *hint = open_files_hint(errnum);
	char *what, *message = NULL;
	struct error *err;
	va_list args;

	va_start(args, format);
	what = format_message(format, args);
	va_end(args);
	if (what && asprintf(&message, "%s: %s", what, strerror(errnum)) < 0)
		message = NULL;
	free(what);
	err = error_make(errno_kind(errnum), message);
	return hint ? error_hint(err, "%s", hint) : err;
}

void error_free(struct error *err)
{
	if (!err || err == &error_no_memory)
		return;
	free(err->message);
	free(err->hint);
	free(err);
}
