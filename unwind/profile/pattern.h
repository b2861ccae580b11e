/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of -I and -X: POSIX extended regular expressions that match somewhere in the name of a frame. */
#ifndef YRT_PATTERN_H
#define YRT_PATTERN_H

#include <regex.h>
#include <types.h>

#include "error.h"

struct pattern { /* starts as zero, which matches nothing */
	regex_t regex;
	bool set;
};

/* text: NULL leaves the pattern as it is. */
struct error *pattern_compile(const char *text, struct pattern *ret);
bool pattern_matches(const struct pattern *p, const char *name);
void pattern_free(struct pattern *p);

#endif
