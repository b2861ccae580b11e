/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a finding as a small tree: the share with everything below a frame, that of the frame itself, and its
 * name. The way to the place that the finding names comes first, then what is heaviest. What is cut is said.
 */
#ifndef YRT_REPORT_FINDING_TREE_H
#define YRT_REPORT_FINDING_TREE_H

#include <stdio.h>

#include "unwind/error.h"
#include "unwind/profile/profile.h"

/* p: finished. site: the plain name of the function, or "". part: of all, what p is: shares are multiplied by it. */
struct error *finding_tree_write(const struct profile *p, const char *site, double part, FILE *out);

#endif
