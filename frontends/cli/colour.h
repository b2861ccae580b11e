/* SPDX-License-Identifier: Apache-2.0 */
/* Colours, used only on a terminal that supports them, unless NO_COLOR is set (no-color.org). */
#ifndef YRT_COLOUR_H
#define YRT_COLOUR_H

#include <stdbool.h>
#include <stdio.h>

enum colour {
	COLOUR_NONE, /* back to plain */
	COLOUR_BOLD,
	COLOUR_FAINT,
	COLOUR_INVERSE,
	COLOUR_RED,
	COLOUR_GREEN,
	COLOUR_YELLOW,
	COLOUR_BLUE,
	COLOUR_MAGENTA,
	COLOUR_CYAN,
	COLOUR_MAX
};

/* The sequence that switches to it; "" if out takes none. */
const char *colour(FILE *out, enum colour c);

/* Is it a terminal that a line can be overwritten on? */
bool colour_escapes(FILE *out);

#endif
