/* SPDX-License-Identifier: Apache-2.0 */
/* Findings among one another: which says more than which, and which comes first. */
#ifndef YRT_REPORT_RANK_H
#define YRT_REPORT_RANK_H

#include "findings.h"

/* Does a finding say more than this rule would? */
bool findings_replace(const struct rules *rules, const struct finding *all, u32 n, const struct rule *rule);
/*
 * What takes the time of the rule's view may be what the rule is about, in a library that it does not know. So it says
 * nothing of a view whose finding names a place only.
 */
bool findings_leave_unexplained(const struct rules *rules, struct finding *all, u32 n, const struct rule *rule);
/* What a finding says less well than another goes with that one, or away. */
struct error *findings_drop_replaced(const struct rules *rules, struct finding *all, u32 *n);
/* What follows from computing too much, and goes away with it, comes behind what takes so much of the CPU time. */
void findings_put_behind_causes(struct finding *all, u32 n);
/* For qsort(): the gravest first. */
int findings_by_weight(const void *a, const void *b);

#endif
