/* SPDX-License-Identifier: Apache-2.0 */
/* What to say where there is no place to probe. */
#ifndef YRT_HIT_MISSING_H
#define YRT_HIT_MISSING_H

#include "hit_spec.h"
#include "probes/targets.h"

/* matched: there was a file of that name. */
struct error *hit_missing(const struct hit_spec *s, bool matched, const struct targets *targets);

#endif
