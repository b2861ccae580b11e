/* SPDX-License-Identifier: Apache-2.0 */
/* A small flame graph inside a report: the root on top, from where stacks part on; colours are the page's style. */
#ifndef YRT_REPORT_PICTURE_H
#define YRT_REPORT_PICTURE_H

#include <stdio.h>

#include "unwind/profile/profile.h"

struct error *picture_write(const struct profile *p, FILE *out);

#endif
