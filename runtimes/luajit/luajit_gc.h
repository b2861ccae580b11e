/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a stack the garbage collector begins. Only its functions store the state "collecting" as a constant into
 * global_State.vmstate (lj_gc_step() and lj_gc_fullgc() of lj_gc.c, beta3 of 2017 to 2026), which identifies them in a
 * stripped file too.
 */
#ifndef YRT_LUAJIT_GC_H
#define YRT_LUAJIT_GC_H

#include "luajit.h"
#include "luajit_layout.h"

#define LUAJIT_GC_FUNCTIONS 8

struct luajit_gc {
	u64 start[LUAJIT_GC_FUNCTIONS], end[LUAJIT_GC_FUNCTIONS]; /* file addresses */
	u32 n;
};

struct image;
/* vm: where the VM's code is, near which they are looked for first. */
void luajit_gc_find(struct image *img, const struct luajit_layout *l, u64 vm, struct luajit_gc *ret);

/*
 * struct runtime_ops.expand for native frames: puts the frame "(gc)" right outside the first function of the collector,
 * inside its callers. If the walker has seen the state, it puts the frame outside of all native frames; finalizers run
 * in other states.
 */
u32 luajit_gc_order(const struct luajit_gc *gc, u64 bias, const struct frame *frames, u32 i, u32 n, struct frame *ret,
        u32 max, u32 *eaten);

#endif
