/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_POOLS_BIRTH_H
#define YRT_POOLS_BIRTH_H

#include <stdbool.h>
#include <types.h>

#include "unwind/binary/image.h"

/*
 * Where a function that makes a pool has its address in rax, at an instruction that the kernel emulates: the jump
 * behind the first "test rax, rax" that follows a call. start, end, *ret: in the file's address space. False: its code
 * has none.
 */
bool pools_birth(struct image *img, u64 start, u64 end, u64 *ret);

#endif
