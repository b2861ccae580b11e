/* SPDX-License-Identifier: Apache-2.0 */
/* A small flame graph inside a report: the root on top, from where stacks part on; colours are the page's style. */
#ifndef YRT_REPORT_PICTURE_H
#define YRT_REPORT_PICTURE_H

#include <stdio.h>

#include "unwind/profile/profile.h"

/* From where the stacks part; where half of them and more go through the site, from a little above it. */
struct error *picture_write(const struct profile *p, const char *site, FILE *out);

#endif
