/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that make all objects of a language, for <view>-alloc (probes/object/alloc.h). */
#ifndef YRT_RUNTIME_ALLOCATOR_H
#define YRT_RUNTIME_ALLOCATOR_H

#include <types.h>

#include "shared/alloc_shape.h"

struct runtime_process;

#define RUNTIME_ALLOCATORS_MAX 512

struct runtime_allocator {
	const char *symbol; /* of the runtime's file; what people call it if addr is set */
	u64 addr;           /* in the process; 0: where the symbol is */
	enum alloc_shape shape;
	u32 operand; /* of ALLOC_AT and ALLOC_BEFORE: ALLOC_COOKIE_OPERAND */
};

struct runtime_allocator_ops {
	const struct runtime_allocator *named; /* up to symbol NULL, where find() knows none; may be NULL */
	/*
	 * Finds those that only the running program knows, and returns their number. Adds to *unknown the number of
	 * places that also allocate but are not in ret: their sizes are not known, or ret is full. NULL: there are
	 * none.
	 */
	u32 (*find)(void *instance, const struct runtime_process *p,
	        struct runtime_allocator ret[RUNTIME_ALLOCATORS_MAX], u32 *unknown);
	const char *missing; /* why there may be none, and what to do: for a hint */
};

#endif
