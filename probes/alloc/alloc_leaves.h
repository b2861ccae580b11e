/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost frames of a stack that was taken where an object was made: the runtime knows more about that place than
 * about other leaves. It is asked once for each place.
 */
#ifndef YRT_ALLOC_LEAVES_H
#define YRT_ALLOC_LEAVES_H

#include <types.h>

#include "probes/targets.h"
#include "unwind/error.h"

struct alloc_leaves;

struct error *alloc_leaves_create(const struct targets *targets, struct alloc_leaves **ret);
void alloc_leaves_destroy(struct alloc_leaves *l);
/* Replaces frames by exact ones (runtime_alloc_ops.place). process: its number. */
struct error *alloc_leaves_place(struct alloc_leaves *l, u32 process, struct frame *frames, u32 n);
/* How many of the innermost frames are a library's function (memset) by which the runtime fills the object. */
u32 alloc_leaves_filling(const struct alloc_leaves *l, u32 process, const struct frame *frames, u32 n);

#endif
