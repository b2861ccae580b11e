/* SPDX-License-Identifier: Apache-2.0 */
/* What to do where functions have no names. */
#ifndef YRT_UNNAMED_H
#define YRT_UNNAMED_H

struct profile;

/*
 * Says which file's symbols are missing, and where they would be found, if much of a profile is in, or below, functions
 * of it that have no name. p is finished.
 */
void unnamed_note(const struct profile *p);

#endif
