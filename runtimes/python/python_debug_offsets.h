/* SPDX-License-Identifier: Apache-2.0 */
/* _Py_DebugOffsets: how CPython 3.13 and later describe their own layout, at the beginning of _PyRuntime. */
#ifndef YRT_PYTHON_DEBUG_OFFSETS_H
#define YRT_PYTHON_DEBUG_OFFSETS_H

#include "layout/layout.h"

/*
 * Fills a layout from the initial content of _PyRuntime in the file. *ret stays NULL if that is not there or is of
 * another version than 3.13 to 3.15 (the order of its members is another in each).
 */
struct error *python_debug_offsets(struct image *img, u32 version, struct layout **ret);

#endif
