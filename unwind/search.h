/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binary search by any condition:
 *
 *	u32 i = SEARCH(n, k, list[k].end <= addr);
 *
 * The result is the number of items for which the condition holds, which is the index of the first for which it does
 * not (n: it holds for all). Items for which it holds must come first; k is an item's index.
 */
#ifndef YRT_SEARCH_H
#define YRT_SEARCH_H

#include <types.h>

#define SEARCH(n, k, condition)                                                                                        \
	({                                                                                                             \
		u32 search_low = 0, search_high = (n);                                                                 \
                                                                                                                       \
		while (search_low < search_high) {                                                                     \
			u32 k = search_low + (search_high - search_low) / 2;                                           \
                                                                                                                       \
			if (condition)                                                                                 \
				search_low = k + 1;                                                                    \
			else                                                                                           \
				search_high = k;                                                                       \
		}                                                                                                      \
		search_low;                                                                                            \
	})

#endif
