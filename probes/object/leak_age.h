/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Ages of blocks: two classes for a doubling, from 1 us on. */
#ifndef YRT_LEAK_AGE_H
#define YRT_LEAK_AGE_H

#include <types.h>

#define LEAK_AGES 72 /* the last one has no end: it begins at 9.5 hours */

/* The class of an age. A microsecond is 1,024 ns here. */
static inline __attribute__((always_inline)) u32 leak_age(u64 ns)
{
	u64 us = ns >> 10, rest = us;
	u32 log = 0, age;

	for (u32 bits = 32; bits; bits /= 2)
		if (rest >> bits) {
			rest >>= bits;
			log += bits;
		}
	if (!us)
		return 0;
	age = 2 * log + 1 + (log ? us >> (log - 1) & 1 : 0);
	return age < LEAK_AGES ? age : LEAK_AGES - 1;
}

/* Where a class begins, in ns. */
static inline __attribute__((always_inline)) u64 leak_age_begin(u32 age)
{
	u32 log = age ? (age - 1) / 2 : 0;

	return age ? ((1ull << log) + ((age - 1) % 2 && log ? 1ull << (log - 1) : 0)) << 10 : 0;
}

#endif
