/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LuaJIT's structures for `yrt y` (runtime_types.h): lj_obj.h of all of 2.1, of which only the size of
 * references, global_State and what the layout has (luajit_layout.h) differ between builds.
 */
#ifndef YRT_LUAJIT_TYPES_H
#define YRT_LUAJIT_TYPES_H

#include "layout/layout_types.h"

extern const struct layout_type luajit_types[];
s64 luajit_types_place(const void *values, const char *name);

#endif
