/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a function is left, by its instructions: each ret, and each jump out of it (a tail call, before which the stack
 * pointer is what it was at the entry). Its code is disassembled from start to end, with the part that the compiler
 * placed elsewhere ("f.cold"). What is not known for certain is refused: a jump through a register or a table, a
 * conditional jump out, and a jump to the function's own first instruction, unless it follows a call that made the
 * stack larger.
 */
#ifndef YRT_HIT_EXITS_H
#define YRT_HIT_EXITS_H

#include "unwind/binary/image.h"
#include "unwind/error.h"

#define HIT_EXITS_MAX 256

struct hit_exits {
	u64 addr[HIT_EXITS_MAX]; /* in the file */
	u32 n;
	u64 again; /* the jump by which a call begins once more, on a larger stack; 0: none */
};

/* what: for errors. symbols_load() of the image was called. */
struct error *hit_exits_find(const char *what, struct image *img, u64 start, struct hit_exits *ret);

#endif
