/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Untrusted text made safe: names of processes, files and functions come from targets, and may contain bytes that are
 * no UTF-8, or control characters that steer a terminal.
 */
#ifndef YRT_CLEAN_TEXT_H
#define YRT_CLEAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <types.h>

#define TEXT_REPLACEMENT 0xfffd
#define TEXT_CLEAN       (12 << 10) /* a string of a profile, each byte become three */

/* The code point at *s, which is not at its end, and moves past it. A byte that is no UTF-8 gives TEXT_REPLACEMENT. */
u32 text_next(const char **s);
/* The bytes of code point c into ret; their number. */
u32 text_encode(u32 c, char ret[4]);
/*
 * Whether c breaks lines, steers terminals or turns the direction of text: the controls of ASCII and Latin-1, the
 * separators U+2028 and U+2029, the marks, embeddings and isolates of bidirectional text.
 */
bool text_is_control(u32 c);
/* s as valid UTF-8, without controls, cut where it would not fit; its length. */
size_t text_clean(const char *s, char to[TEXT_CLEAN]);
/* A copy whose control characters, and bytes that are no UTF-8, are U+FFFD. NULL: out of memory, or text is NULL. */
char *clean_text(const char *text);

#endif
