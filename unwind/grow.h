/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_GROW_H
#define YRT_GROW_H

#include <stdlib.h>
#include <types.h>

#include "error.h"

/*
 * Makes room for one more in an array that has n elements of size bytes; array points to the pointer to it, NULL at
 * first. Its size follows from n alone, as it doubles: an array that grows here is not reallocated elsewhere, and holds
 * nothing behind n. On failure it stays as it is.
 */
static inline struct error *grow(void *array, u32 n, size_t size)
{
	void *grown;

	if (n && (n < 16 || n & (n - 1)))
		return NULL;
	grown = reallocarray(*(void **)array, n ? 2 * (size_t)n : 16, size);
	if (!grown)
		return &error_no_memory;
	*(void **)array = grown;
	return NULL;
}

#endif
