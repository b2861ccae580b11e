/* SPDX-License-Identifier: Apache-2.0 */
/* What a function takes, by its code. */
#ifndef YRT_HIT_CODE_H
#define YRT_HIT_CODE_H

#include "unwind/binary/image.h"

/*
 * How many arguments it has in general registers: up to the last that it reads before it writes to it and before it
 * calls others. What it only passes on is not seen.
 */
u32 hit_code_arguments(struct image *img, u64 addr);

#endif
