/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says in one sentence, and what it says of rules that found nothing. */
#ifndef YRT_REPORT_VERDICT_H
#define YRT_REPORT_VERDICT_H

#include "findings.h"

struct error *verdict_make(struct findings *f, const struct evidence *e);
/*
 * Adds what was seen, but is too little, and what is healthy. seen[i]: the title of rule i, if some of it was seen, but
 * less than it asks for; healthy[i]: nothing was. Both are left out where one of the n findings replaces the rule.
 */
struct error *verdict_add_rest(const struct rules *rules, char *const *seen, const bool *healthy,
        const struct evidence *e, struct finding *all, u32 n, struct findings *ret);

#endif
