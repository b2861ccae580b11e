/* SPDX-License-Identifier: Apache-2.0 */
/* From a pc in Go's code to the functions that are there. */
#ifndef YRT_GO_NAMES_H
#define YRT_GO_NAMES_H

#include "go_table.h"
#include "runtime.h"

#define GO_INLINED_MAX 64 /* of one place */

/* The functions at a native frame, innermost first, as frames of Go; returns how many; 0: the address is in none. */
u32 go_expand_frame(struct go_table *t, u64 bias, const struct frame *f, struct frame *ret, u32 max);
bool go_name_frame(struct go_table *t, u64 bias, const struct frame *f, struct frame_name *ret);
bool go_is_wrapper(const char *name, const char *file);

#endif
