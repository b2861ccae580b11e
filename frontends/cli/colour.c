/* SPDX-License-Identifier: Apache-2.0 */
#include "colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool colour_escapes(FILE *out)
{
	const char *term = getenv("TERM");

	return term && strcmp(term, "dumb") != 0 && isatty(fileno(out));
}

static bool takes_colours(FILE *out)
{
	const char *no = getenv("NO_COLOR");

	return !(no && *no) && colour_escapes(out);
}

const char *colour(FILE *out, enum colour c)
{
	static const char *const codes[COLOUR_MAX] = {
	        [COLOUR_NONE] = "\033[0m",
	        [COLOUR_BOLD] = "\033[1m",
	        [COLOUR_FAINT] = "\033[2m",
	        [COLOUR_INVERSE] = "\033[7m",
	        [COLOUR_RED] = "\033[31m",
	        [COLOUR_GREEN] = "\033[32m",
	        [COLOUR_YELLOW] = "\033[33m",
	        [COLOUR_BLUE] = "\033[34m",
	        [COLOUR_MAGENTA] = "\033[35m",
	        [COLOUR_CYAN] = "\033[36m",
	};

	return takes_colours(out) ? codes[c] : "";
}
