/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a function of the program itself, or of a library that it uses? Rules say what is a library (rule.h): by folders
 * of packages and shared libraries, by packages where a runtime keeps no path. What a program has in its own folder is
 * its own.
 */
#ifndef YRT_REPORT_OWN_H
#define YRT_REPORT_OWN_H

#include "rule.h"

/* A frame of code that people can change something in: no part of a runtime or of the kernel. */
bool is_code(const struct profile_function *f);
bool is_own(const struct libraries *l, const struct profile_function *f);
/* Its name as patterns see it. */
void matched_name(const struct profile_function *f, char *ret, size_t size);
/* Does it match? Names are compared without the executed line, and without what a compiler adds to its copies. */
bool term_matches(const struct term *t, const struct libraries *l, const struct profile_function *f);

#endif
