/* SPDX-License-Identifier: Apache-2.0 */
/* Where the code of native frames lies. */
#ifndef YRT_FRAME_CODE_H
#define YRT_FRAME_CODE_H

#include <arch.h>

#include "shared/frame.h"

/* In the instruction that runs, or that called the frame inside: a return address may be another function's. */
static inline u64 frame_code(const struct frame *f)
{
	return frame_addr(f) - (frame_flags(f) & FRAME_RETADDR ? ARCH_CALL_BACK : 0);
}

/*
 * Of the native frames from frames[i] on, frames[n - 1] at most: the index behind the outermost one that is in one of
 * these functions, as those of a collector. i: none is. start, end: file addresses; bias: of the file.
 */
static inline u32 frame_behind(
        const u64 *start, const u64 *end, u32 nfunctions, u64 bias, const struct frame *frames, u32 i, u32 n)
{
	u32 behind = i;

	for (; i < n && frame_kind(&frames[i]) == FRAME_NATIVE; i++) {
		u64 at = frame_code(&frames[i]) - bias;

		for (u32 k = 0; k < nfunctions; k++)
			if (at >= start[k] && at < end[k])
				behind = i + 1;
	}
	return behind;
}

#endif
