/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is written completely or not at all: to a temporary file beside it, which is renamed when it is complete
 * and, where the file system permits it, has no name before. The old file stays until then. A recording that a full
 * disk cuts short is kept, because it can still be read: its writer closes it with keep, and reports the error. A
 * device, a pipe, or a file in a folder that takes no new files is written in place.
 */
#ifndef YRT_OUTPUT_H
#define YRT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "unwind/error.h"

struct output {
	char *name; /* "-": stdout */
	FILE *file;
	char *temporary; /* NULL: in place, or nameless */
	bool nameless;   /* it has no name until it is complete */
};

/*
 * Makes an empty file of a name that nobody has: STEM and kind (".yrt"), or STEM-N and kind, N from first on (1:
 * without a number).
 * *ret is malloc'd. Who leaves it empty deletes it (output_unreserve()).
 */
struct error *output_reserve(const char *stem, const char *kind, unsigned long first, char **ret);
void output_unreserve(const char *path);
/* The local time as names of files have it: 20260102-030405. */
#define OUTPUT_STAMP 16
void output_stamp(char ret[OUTPUT_STAMP]);
/* "%p" and "%t" in a file name become the pid and the time; "%%" a percent sign. malloc'd. */
char *output_expand(const char *pattern, int pid);
/* name is taken over, also on failure. An unwritable place is found out here, before long work. */
struct error *output_open(char *name, struct output *ret);
/* Frees err, and returns NULL, if whoever reads this pipe has enough (`| head`). Else returns err. */
struct error *output_unread(FILE *file, struct error *err);
/* The same, after what is buffered was written; an error has advice. */
struct error *output_error(const struct output *o, struct error *err);
/* Ends it: keep says whether it takes its name. An error names the file; nothing is left of a file that was not kept.
 */
struct error *output_close(struct output *o, bool keep);
/* Keeps it unless there is an error, err, or one of what is still buffered. Returns the first. */
struct error *output_end(struct output *o, struct error *err);

#endif
