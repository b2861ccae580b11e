/* SPDX-License-Identifier: Apache-2.0 */
/* From a pc in Go's code to the functions that are there. */
#ifndef YRT_GO_NAMES_H
#define YRT_GO_NAMES_H

#include "go_table.h"
#include "runtime.h"

#define GO_INLINED_MAX 64 /* of one place */

/* The function that a frame is in, and where, in the file: of a call the last byte. */
bool go_frame_function(struct go_table *t, u64 bias, const struct frame *f, u64 *pc, struct go_function *fn);
/*
 * The functions at a native frame, innermost first, as frames of Go, all with its address (of a call the last byte);
 * returns how many; 0: the address is in none.
 */
u32 go_expand_frame(struct go_table *t, u64 bias, const struct frame *f, struct frame *ret, u32 max);
/* Where one of them is being executed: pc, or what stands for a call of what was inlined. inlined: as in go_detail().
 */
u64 go_frame_place(struct go_table *t, const struct go_function *fn, u64 pc, u32 inlined);
bool go_name_frame(struct go_table *t, u64 bias, const struct frame *f, struct frame_name *ret);
/* As runtime_ops.functions. */
struct error *go_functions(
        struct image *img, struct error *(*add)(void *ctx, u64 start, u64 end, const char *name), void *ctx);
bool go_is_wrapper(const char *name, const char *file);

#endif
