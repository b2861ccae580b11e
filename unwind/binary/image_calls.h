/* SPDX-License-Identifier: Apache-2.0 */
/* Direct calls in a stretch of code, by their bytes: a hundred times faster than disassembling it. */
#ifndef YRT_IMAGE_CALLS_H
#define YRT_IMAGE_CALLS_H

#include <types.h>

#include "image.h"

#define IMAGE_CALLS_MAX (512u << 10) /* bytes; longer stretches are left out */

/*
 * Calls each() with the target of each `call rel32` that the bytes of [start, end) may be, in order, until it returns
 * false. Other instructions and data can look like one.
 */
void image_calls(struct image *img, u64 start, u64 end, bool (*each)(void *ctx, u64 target), void *ctx);

#endif
