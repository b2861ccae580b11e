/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost frames of a stack that was taken where an object was made: the runtime knows more about that place than
 * about other leaves. It is asked once for each place.
 */
#ifndef YRT_TLAB_LEAVES_H
#define YRT_TLAB_LEAVES_H

#include <types.h>

#include "probes/targets.h"
#include "unwind/error.h"

struct tlab_leaves;

struct error *tlab_leaves_create(const struct targets *targets, struct tlab_leaves **ret);
void tlab_leaves_destroy(struct tlab_leaves *l);
/* Replaces frames by exact ones (runtime_alloc_ops.place). process: its number. */
struct error *tlab_leaves_place(struct tlab_leaves *l, u32 process, struct frame *frames, u32 n);
/* How many of the innermost frames are a library's function (memset) by which the runtime fills the object. */
u32 tlab_leaves_filling(const struct tlab_leaves *l, u32 process, const struct frame *frames, u32 n);

#endif
