/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof of a step by the frame pointer through code that nothing describes, from the code of both functions. It holds
 * if
 * - the function that contains pc begins with push %rbp; mov %rsp, %rbp, its frame is there at pc, and nothing but its
 *   epilogues changes rbp; and
 * - the return address is behind a call of that function, of one that goes on to it by a jump, or through a register or
 *   a word of memory.
 * A function begins where the call leads, or at the nearest such prologue before pc at a multiple of 16 bytes. What
 * belongs to it is found by its jumps. Doubt means that the step is not proven.
 */
#ifndef YRT_FRAME_PROOF_H
#define YRT_FRAME_PROOF_H

#include <types.h>

#include "binary/image.h"

/* A place in a file. */
struct frame_place {
	struct image *img;
	u64 addr;
};

/*
 * pc: where the function was interrupted, or (returned) an address that it was about to return to. *left: how many
 * instructions may still be looked at.
 */
bool frame_proof_holds(struct frame_place pc, bool returned, struct frame_place caller, u64 *left);

#endif
