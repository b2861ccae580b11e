/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds groups of frames that are the same in every stack (runtime_ops.fold_group) into one frame each, in a profile
 * that was recorded unfolded.
 */
#ifndef YRT_PROFILE_FOLD_H
#define YRT_PROFILE_FOLD_H

#include "profile.h"

/*
 * A copy of old in which each run of functions that a runtime calls a fold group (runtime_ops.fold_group), with native
 * ones between, is one function, as runtime_ops.expand would have made it. flags: enum expand_flag. The result is
 * finished and the caller's.
 */
struct error *fold_profile(const struct profile *old, u32 flags, struct profile **ret);

#endif
