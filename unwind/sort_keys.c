/* SPDX-License-Identifier: Apache-2.0 */
#include "sort_keys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <types.h>

#include "cleanup.h"

#define DIGIT_BITS   8
#define DIGITS       (64 / DIGIT_BITS)
#define DIGIT_VALUES (1u << DIGIT_BITS)
#define FEW          64 /* qsort() is faster up to here */

static u64 key_of(const u8 *record)
{
	u64 key;

	memcpy(&key, record, sizeof(key));
	return key;
}

static int compare(const void *a, const void *b)
{
	u64 x = key_of(a), y = key_of(b);

	return (x > y) - (x < y);
}

/* The bits that differ between any two of them; 0 also if they are in order. */
static u64 differing(const u8 *records, size_t n, size_t size)
{
	u64 first = key_of(records), before = first, differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < n; i++) {
		u64 key = key_of(records + i * size);

		differ |= key ^ first;
		sorted &= key >= before;
		before = key;
	}
	return sorted ? 0 : differ;
}

static void sort_by_digit(u8 *to, const u8 *from, size_t n, size_t size, u32 shift)
{
	size_t at[DIGIT_VALUES] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[key_of(from + i * size) >> shift & (DIGIT_VALUES - 1)]++;
	for (u32 d = 0; d < DIGIT_VALUES; d++) {
		size_t count = at[d];

		at[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(to + size * at[key_of(from + i * size) >> shift & (DIGIT_VALUES - 1)]++, from + i * size, size);
}

void sort_keys(void *records, size_t n, size_t size)
{
	u64 differ = n ? differing(records, n, size) : 0;
	cleanup(free) u8 *other = differ && n > FEW ? reallocarray(NULL, n, size) : NULL;
	u8 *from = records, *to = other;

	if (!differ)
		return;
	if (!other) {
		qsort(records, n, size, compare);
		return;
	}
	for (u32 i = 0; i < DIGITS; i++) {
		u8 *next = from;

		if (!(differ >> (i * DIGIT_BITS) & (DIGIT_VALUES - 1)))
			continue;
		sort_by_digit(to, from, n, size, i * DIGIT_BITS);
		from = to;
		to = next;
	}
	if (from == other)
		memcpy(records, other, n * size);
}
