/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of the compiler share: its memory, its files, and the one way to end with an error. y_error() leaves
 * the compiler by longjmp(), so that no function on the way has to care; all that was allocated lies in the memory,
 * which is freed at once.
 */
#ifndef YRT_YLANG_SOURCE_H
#define YRT_YLANG_SOURCE_H

#include <setjmp.h>
#include <stdio.h>
#include <types.h>

#include "unwind/error.h"

struct y_memory;
struct y_memory *y_memory_new(void); /* NULL: out of memory */
void y_memory_free(struct y_memory *m);
/* Zeroed; NULL: out of memory, or beyond 256 MiB. */
void *y_memory_get(struct y_memory *m, size_t size);

struct y_file {
	const char *name; /* as messages have it */
	const char *text; /* NUL-terminated */
	size_t size;
};

struct y_pos {
	u32 file, line, column; /* line and column count from 1; the column in bytes */
};

struct y_source {
	struct y_memory *memory;
	struct y_file *files;
	u32 nfiles;
	jmp_buf leave;
	struct error *error; /* of y_error() */
};

/* These never return NULL: where there is no memory, they leave. */
void *y_new(struct y_source *s, size_t size);
char *y_keep(struct y_source *s, const char *text, size_t len);
char *y_format(struct y_source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for one more at the end of an array of n. */
void *y_grow(struct y_source *s, void *array, u32 n, size_t size);

/* Adds a file; its number. The text is copied. */
u32 y_add_file(struct y_source *s, const char *name, const char *text, size_t size);

/* The message with its place, the line and a caret. in: "in expansion of macro X", or NULL. */
void y_error(struct y_source *s, struct y_pos pos, const char *in, const char *format, ...)
        __attribute__((noreturn, format(printf, 4, 5)));
/* Leaves with an error that has no place. */
void y_leave(struct y_source *s, struct error *err) __attribute__((noreturn));

/* Names like this one, for messages: offer them all, then take the best. */
struct y_near {
	const char *name;
	char best[3][64];
	u32 distance[3];
};
void y_near_offer(void *near, const char *name);
/* " (near names: a, b)", or "". */
const char *y_near_text(struct y_source *s, const struct y_near *near);

#endif
