/* SPDX-License-Identifier: Apache-2.0 */
/* Where the code of a source line begins, by debug information. */
#ifndef YRT_SOURCE_LINE_H
#define YRT_SOURCE_LINE_H

#include <stdbool.h>
#include <types.h>

#include "binary/image.h"

#define LINE_PLACES_MAX 64

struct line_places {
	u32 line; /* the first from the one asked for on that has code */
	u32 n;
	bool more;                 /* than LINE_PLACES_MAX */
	u64 addr[LINE_PLACES_MAX]; /* the file's own: the lowest in each function, ascending */
};

/*
 * file: the end of its path ("http/ngx_http.c"), or its name. debug: has the debug information of img: a separate debug
 * file, or img itself. Functions are told apart by img's symbols (symbols_load()). False: no code comes from that line
 * or one behind it.
 */
bool source_line_find(struct image *img, struct image *debug, const char *file, u32 line, struct line_places *ret);

#endif
