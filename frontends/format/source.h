/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines of a profile's functions, from files that can be read where it is drawn. The target chooses the names of
 * these files, so files that others may not read stay out: only regular files are read, and as root only files that
 * everybody may read.
 */
#ifndef YRT_FORMAT_SOURCE_H
#define YRT_FORMAT_SOURCE_H

#include <stdio.h>

#include "unwind/profile/profile.h"

#define SOURCE_BEFORE 5u         /* lines shown before a function's line */
#define SOURCE_AFTER  60u        /* and behind it */
#define SOURCE_FILE   (4u << 20) /* bytes; larger files stay out */
#define SOURCE_ALL    (2u << 20) /* bytes of all lines, roughly */
#define SOURCE_LINE   400u       /* bytes of a line */

/* {"FILE": [[FIRST LINE, "LINES"], …], …}: files as functions name them, blocks of lines in ascending order. */
struct error *source_put(const struct profile *p, FILE *out);

#endif
