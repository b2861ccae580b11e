/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_GROW_H
#define YRT_GROW_H

#include <stdlib.h>
#include <types.h>

#include "error.h"

/*
 * Makes room for one more element in an array of n elements of size bytes. array points to the pointer to the array,
 * which is NULL at first. The capacity follows from n alone (it doubles), so nothing else may reallocate the array, or
 * store anything behind element n. On failure the array is unchanged.
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
