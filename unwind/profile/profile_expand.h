/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a profile in which some functions are replaced by chains of functions. */
#ifndef YRT_PROFILE_EXPAND_H
#define YRT_PROFILE_EXPAND_H

#include <types.h>

#include "error.h"
#include "profile.h"

/*
 * chain: the functions (of the profile to) that replace function, which is fn in the old profile, outermost first; *n
 * 0: nothing does, and its caller gets its counts. NULL: it stays as it is. The result is not finished and has no meta;
 * *ret is the caller's.
 */
struct error *expand_profile(const struct profile *old,
        struct error *(*chain)(void *ctx, struct profile *to, const struct profile_function *fn, u32 function,
                const u32 **ret, u32 *n),
        void *ctx, struct profile **ret);

#endif
