/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a function is left, by its instructions: each ret, and each jump out of it (a tail call, before which the stack
 * pointer is what it was at the entry). Its code is disassembled from start to end, with the parts that the compiler
 * placed elsewhere: "f.cold", and what it jumps to while it has a frame, as unwind rows tell.
 *
 * Where such a jump leads may depend on flags or registers. A jump within a frame stays in the function (a switch); of
 * others it is looked at when they are reached (struct latency_jump). A jump to the function's own start is a loop, a
 * call of itself in place of a return, or follows a call that made the stack larger: the same call goes on.
 *
 * What is not known for certain is refused.
 */
#ifndef YRT_HIT_EXITS_H
#define YRT_HIT_EXITS_H

#include "latency.h"
#include "unwind/binary/image.h"
#include "unwind/error.h"

#define HIT_EXITS_MAX 256

struct hit_exits {
	u32 n;
	struct hit_exit {
		bool again;               /* the call begins once more */
		bool asks;                /* only if the jump says so */
		bool tail;                /* a jump to another function, whose return is the call's */
		u64 to;                   /* of such a jump: where to, in the file; 0: by registers or jump.slot */
		struct latency_jump jump; /* at: in the file */
	} of[HIT_EXITS_MAX];
};

/*
 * what: for errors. symbols_load() of the image was called; its unwind rows help if it has them, and bound a function
 * that has no symbol.
 */
struct error *hit_exits_find(const char *what, struct image *img, u64 start, struct hit_exits *ret);
/* The same, also of a function that never returns. */
struct error *hit_exits_sweep(const char *what, struct image *img, u64 start, struct hit_exits *ret);

#endif
