/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. A function that can fail returns a struct error *, NULL on success. The message names what failed and on
 * what; hint (may be NULL) says what to do next. Out of memory is a static error, so reporting it cannot fail. The
 * receiver owns the error: pass it on, or error_free() it (NULL is fine).
 */
#ifndef YRT_ERROR_H
#define YRT_ERROR_H

#include <stdarg.h>

enum error_kind { /* the values are the exit codes of the command */
	ERROR_INTERNAL = 1,
	ERROR_USAGE = 2,
	ERROR_NO_PROCESS = 3,
	ERROR_PERMISSION = 4,
	ERROR_UNSUPPORTED = 5, /* runtime, architecture or kernel */
	ERROR_LOST = 6,        /* too much lost to be trusted */
	ERROR_INPUT = 7,       /* a corrupt or unreadable file */
	ERROR_OUTPUT = 8,      /* cannot write the result */
	ERROR_CHANGED = 9,     /* diff --fail-over: something grew by more than that */
};

struct error {
	enum error_kind kind;
	char *message;
	char *hint;
};

extern struct error error_no_memory;

struct error *error_new(enum error_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the hint of err and returns err. */
struct error *error_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Like error_new, with strerror(errnum) behind the message. EPERM, EACCES and ESRCH decide the kind; EMFILE
 * has a hint. */
struct error *error_errno(int errnum, const char *format, ...) __attribute__((format(printf, 2, 3)));
void error_free(struct error *err);

#endif
