/* SPDX-License-Identifier: Apache-2.0 */
/* A stream whose output is a gzip file. Equal bytes give equal files: its header has no time. */
#ifndef YRT_FORMAT_GZIP_H
#define YRT_FORMAT_GZIP_H

#include <stdio.h>

#include "unwind/error.h"

struct gzip;

struct error *gzip_create(FILE *out, struct gzip **ret);
void gzip_destroy(struct gzip *gz);
/* An error of out stays with out, for text_finish(). */
void gzip_write(struct gzip *gz, const void *bytes, size_t size);
/* The end of the file. */
void gzip_finish(struct gzip *gz);

static inline void cleanup_gzip(struct gzip **gz)
{
	gzip_destroy(*gz);
}

#endif
