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
 * Makes functions of the same name, module and file that differ in kind (KIND_SCRIPT, KIND_SCRIPT_BASELINE,
 * KIND_SCRIPT_JIT) and FRAME_INLINED alone one, of the kind that most of its samples are of, inlined if most are;
 * profile_function.tiers has their shares. Those that are FRAME_APPROX are one of their own, of the same kind: with the
 * certain one below the same node it is one node, certain unless most of its samples are approximate. Functions in C,
 * stubs, and what is a guess stay as they are. p is finished, and no function is added to it later.
 */
struct error *profile_merge_tiers(struct profile *p);

#endif
