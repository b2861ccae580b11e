/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of targets over a run, as the kernel counts it: resident pages, and anonymous ones among them. */
#ifndef YRT_LEAK_CURVE_H
#define YRT_LEAK_CURVE_H

#include "leak.h"

struct targets;

/* Adds a point. Past LEAK_CURVE points each second one goes, and step_ns doubles. */
void leak_curve_add(struct leak_summary *s, const struct targets *t, u64 since_ns, u64 *step_ns);

#endif
