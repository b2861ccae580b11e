/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of files whose symbols are missing: they are called after their file. */
#ifndef YRT_PROFILE_UNNAMED_H
#define YRT_PROFILE_UNNAMED_H

#include <stddef.h>

#include "profile.h"

/* Of a finished profile: the image that has most of the frames without a name (0: none), and its share of all frames,
 * 0 to 1. */
u32 profile_unnamed(const struct profile *p, double *share);
/* What of its symbols is missing and what brings them back, as a sentence. Returns ret. */
char *profile_unnamed_text(const struct profile *p, u32 image, char *ret, size_t size);

#endif
