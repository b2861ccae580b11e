/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which places in a file's code are called or jumped to from the rest of it, found by displacements, without
 * disassembly.
 */
#ifndef YRT_LUAJIT_CALLERS_H
#define YRT_LUAJIT_CALLERS_H

#include "binary/image.h"

/*
 * Calls each() with the targets in [start, end) of what looks like a call or jump elsewhere in .text: each once, and
 * SEARCH_RESULT_MAX at most (Envoy 1.40: 12). Bytes in the middle of an instruction may look like one, too. A .text of
 * 70 MB takes some 17 ms besides reading it, so they are kept (cfi/cfi_search_cache.h).
 */
void luajit_callers(struct image *img, u64 start, u64 end, void (*each)(void *ctx, u64 target), void *ctx);

#endif
