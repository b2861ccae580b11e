/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls the place that a finding names: of a loop that asks a database, the line of the loop. */
#ifndef YRT_REPORT_CALLERS_H
#define YRT_REPORT_CALLERS_H

#include "match.h"

#define CALLERS_MAX 2

/*
 * The program's own functions above the first site of m, the nearest first, each if half of the site's stacks go
 * through it. ret: CALLERS_MAX functions of p, *n of them are set.
 */
struct error *callers_find(const struct match *m, const struct profile *p, const struct libraries *l, u32 *ret, u32 *n);

#endif
