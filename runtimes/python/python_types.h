/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython's structures for `yrt y` (runtime_types.h): what the layout (python_layout.h) has, the heads of objects and
 * types (Include/object.h, the same from 3.6 on), and the collector's lists of 3.10 to 3.12 (pycore_interp.h: gc; where
 * it is in each minor version was read from debug information of 3.10.13, 3.11.2, 3.11.7 and 3.12.1).
 */
#ifndef YRT_PYTHON_TYPES_H
#define YRT_PYTHON_TYPES_H

#include "layout/layout_types.h"

extern const struct layout_type python_types[];
s64 python_types_place(const void *values, const char *name);

#endif
