/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints untrusted text on a terminal. Names of processes, files and functions come from targets, and may contain
 * control characters that steer the user's terminal. All such text is printed through this file (or through the
 * formats' text.h), or cleaned by clean_text().
 */
#ifndef YRT_SAY_H
#define YRT_SAY_H

#include "unwind/clean_text.h"
#include "unwind/error.h"

/* "yrt: note: …" on stderr, a line. */
void say_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same of an error, its hint on a line below. Frees it. */
void say_note_error(struct error *err);

#endif
