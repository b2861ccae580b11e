/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a call as the interpreter reads the header of its function (unwind/shared/value.h): its base is in
 * rdx, and 1 + their number in eax (vm_x86.dasc, vm_x64.dasc of 2.0 to 2.1: BASE, NARGS:RD). Values are as in lj_obj.h:
 * TValue, LJ_TISNUM.
 */
#ifndef YRT_LUAJIT_VALUES_H
#define YRT_LUAJIT_VALUES_H

#include "luajit_image.h"
#include "runtime_calls.h"

/* Fills what is known of the arguments of a function with this prototype; its place is there. */
void luajit_places(const struct luajit_image *image, struct memory *mem, u64 proto, struct runtime_callee *c);
/* Writes nil, true, 0.1, "text", or <table> and the like. */
void luajit_value(const struct luajit_image *image, const struct runtime_value *v, FILE *out);

#endif
