/* SPDX-License-Identifier: Apache-2.0 */
/* A function of a profile as a report names it. */
#ifndef YRT_REPORT_PLACE_H
#define YRT_REPORT_PLACE_H

#include "findings.h"

#define NAME_LENGTH 512

/* "render (pages.py:19)": where it is executed most. Libraries' functions as they are named. Returns ret. */
char *place_name(const struct libraries *l, const struct profile_function *f, char *ret, size_t size);
/* With the text of its line, if it is the program's own and its file has not changed since e began. */
struct error *place_make(const struct libraries *l, const struct profile_function *fn, double share,
        const struct evidence *e, struct finding_site *ret);
void place_free(struct finding_site *s);

#endif
