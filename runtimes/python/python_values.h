/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a call as it begins (unwind/shared/value.h). They are the first of a frame's locals: those by
 * position, those by keyword only, *args, **kwargs. Objects are as in Include/cpython/longintrepr.h, floatobject.h,
 * unicodeobject.h, bytesobject.h, listobject.h, tupleobject.h and dictobject.h of 3.8 to 3.14, with the GIL.
 */
#ifndef YRT_PYTHON_VALUES_H
#define YRT_PYTHON_VALUES_H

#include "python_image.h"
#include "python_objects.h"
#include "runtime_calls.h"

#define PYTHON_VALUE_READS 16

/* Fills what is known of the arguments of a code object with these co_flags. */
void python_places(const struct python_reader *r, const struct python_image *image, u64 bias, u64 code, u32 flags,
        struct runtime_callee *c);
/*
 * As runtime_calls_ops.field: ".NAME" is an attribute that an instance has in its dict, "<MODULE.CLASS>.NAME" one that
 * instances of that class have in a slot, "[KEY]" what a dict has, "[2]" an element of a tuple.
 */
bool python_field(const struct python_reader *r, u64 runtime, const char *way, struct value_places *v, u32 slot);
/*
 * Writes 3, -0.5, 'text', b'bytes', True, None, <list of 3>, <class Shop>, or <Shop> of anything else. Names of classes
 * are read from the process.
 */
void python_value(const struct python_reader *r, const struct python_image *image, u64 bias,
        const struct runtime_value *v, FILE *out);

#endif
