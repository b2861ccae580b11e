/* SPDX-License-Identifier: Apache-2.0 */
/* How far apart two names are, to guess which one was meant. */
#ifndef YRT_EDIT_DISTANCE_H
#define YRT_EDIT_DISTANCE_H

#include <stdbool.h>
#include <string.h>
#include <types.h>

#define EDIT_MOST 64u /* letters of a name */

/*
 * Damerau's distance in its simple form (optimal string alignment): letters to insert, delete or replace, and
 * neighbours to exchange, until a is b; UINT32_MAX: a name is longer.
 */
static inline u32 edit_distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);
	u32 rows[3][EDIT_MOST + 1] = {0}; /* of letter i of a in rows[i % 3] */

	if (na > EDIT_MOST || nb > EDIT_MOST)
		return UINT32_MAX;
	for (u32 j = 0; j <= nb; j++)
		rows[0][j] = j;
	for (u32 i = 1; i <= na; i++) {
		u32 *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		row[0] = i;
		for (u32 j = 1; j <= nb; j++) {
			u32 best = above[j] < row[j - 1] ? above[j] + 1 : row[j - 1] + 1;
			u32 replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
			bool turned = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];

			row[j] = best < replaced ? best : replaced;
			if (turned && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
	}
	return rows[na % 3][nb];
}

#endif
