/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which places in a file's code are called or jumped to from the rest of it, found by displacements. Only functions
 * that have one are disassembled.
 */
#ifndef YRT_LUAJIT_CALLERS_H
#define YRT_LUAJIT_CALLERS_H

#include "binary/image.h"

/*
 * Calls each() with the targets in [start, end) of calls and jumps elsewhere in .text: each once, and
 * SEARCH_RESULT_MAX at most (Envoy 1.40: 12). Bytes in the middle of an instruction may look like one; those count only
 * where no FDE tells where instructions begin. img->cfi must be there. A .text of 70 MB takes some 17 ms besides
 * reading it, so they are kept (cfi/cfi_search_cache.h).
 */
void luajit_callers(struct image *img, u64 start, u64 end, void (*each)(void *ctx, u64 target), void *ctx);

#endif
