/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The own work of Go's runtime, as one frame each in a view of Go: (gc), (gc assist), (scheduler), (sysmon). A function
 * of the runtime begins it; its callees belong to it as far as they are the runtime's.
 */
#ifndef YRT_GO_FOLD_H
#define YRT_GO_FOLD_H

#include "go_table.h"
#include "shared/frame.h"

/*
 * Are frames[i] of a stack, leaf first, and its callers such work? *ret is the frame that stands for them; the result
 * is how many they are, 0: no.
 */
u32 go_fold(struct go_table *t, u64 bias, const struct frame *frames, u32 i, u32 n, struct frame *ret);
/* The name of a frame by go_fold(); NULL: it is another. */
const char *go_fold_name(const struct frame *f);

#endif
