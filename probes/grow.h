/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_GROW_H
#define YRT_GROW_H

#include <stdlib.h>
#include <types.h>

#include "unwind/error.h"

/* Makes room for one more in an array that has n; it is larger than that by doubling, which n alone tells. */
static inline struct error *grow(void **array, u32 n, size_t size)
{
	void *grown;

	if (n && (n < 16 || n & (n - 1)))
		return NULL;
	grown = realloc(*array, (n ? 2 * (size_t)n : 16) * size);
	if (!grown)
		return &error_no_memory;
	*array = grown;
	return NULL;
}

#endif
