/* SPDX-License-Identifier: Apache-2.0 */
/* What formats share: hostile names made safe, and the end of a stream. */
#ifndef YRT_FORMAT_TEXT_H
#define YRT_FORMAT_TEXT_H

#include <stdio.h>

#include "unwind/profile.h"

#define TEXT_REPLACEMENT 0xfffd

/* The code point at *s, which is not at its end, and moves past it. A byte that is no UTF-8 gives TEXT_REPLACEMENT. */
u32 text_next(const char **s);
/* The bytes of code point c into ret; their number. */
u32 text_encode(u32 c, char ret[4]);
/* Whether c breaks lines or steers terminals: the controls of ASCII and Latin-1, and the separators U+2028 and U+2029. */
bool text_is_control(u32 c);
/* The name to show: "[unknown]" if there is none. */
const char *text_name(const struct profile_function *fn);
/* Flushes out. If anything written to it failed, the error says that WHAT could not be written. */
struct error *text_finish(FILE *out, const char *what);

#endif
