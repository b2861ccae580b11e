/* SPDX-License-Identifier: Apache-2.0 */
/* How far apart two names are, to guess which one was meant. */
#ifndef YRT_EDIT_DISTANCE_H
#define YRT_EDIT_DISTANCE_H

#include <string.h>
#include <types.h>

#define EDIT_MOST 64u /* letters of a name */

/* Levenshtein's distance: letters to insert, delete or replace until a is b; UINT32_MAX: a name is longer. */
static inline u32 edit_distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);
	u32 row[EDIT_MOST + 1];

	if (na > EDIT_MOST || nb > EDIT_MOST)
		return UINT32_MAX;
	for (u32 j = 0; j <= nb; j++)
		row[j] = j;
	for (u32 i = 1; i <= na; i++) {
		u32 corner = row[0];

		row[0] = i;
		for (u32 j = 1; j <= nb; j++) {
			u32 above = row[j], best = above < row[j - 1] ? above + 1 : row[j - 1] + 1;
			u32 replaced = corner + (a[i - 1] != b[j - 1]);

			row[j] = best < replaced ? best : replaced;
			corner = above;
		}
	}
	return row[nb];
}

#endif
