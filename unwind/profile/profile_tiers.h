/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one function one box, however it was compiled. In a profile, script code that was seen interpreted, compiled by
 * the quick or the optimising JIT, inlined or not, certain or not, is a function of its own for each of these until the
 * profile is drawn.
 */
#ifndef YRT_PROFILE_TIERS_H
#define YRT_PROFILE_TIERS_H

#include "profile.h"

/*
 * Merges functions of the same name, module and file that differ only in kind (KIND_SCRIPT, KIND_SCRIPT_BASELINE,
 * KIND_SCRIPT_JIT) and FRAME_INLINED. The result has the kind of most of its samples, and is inlined if most are;
 * profile_function.tiers has the shares. FRAME_APPROX functions become a function of their own, of the same kind. It is
 * merged with the certain one below the same node, and counts as certain unless most of its samples are approximate.
 * Functions in C, stubs and guesses stay as they are. p is finished, and no function is added to it later.
 */
struct error *profile_merge_tiers(struct profile *p);

#endif
