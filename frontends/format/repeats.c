/* SPDX-License-Identifier: Apache-2.0 */
#include "repeats.h"

#define FOLD_PERIOD 16 /* frames that repeat */
#define FOLD_TURNS  4  /* of them that are folded, at least */

/* How often do the frames from i on repeat after `period` of them, as whole turns? */
static u32 turns_of(const u32 *functions, u32 n, u32 i, u32 period)
{
	u32 k = i + period;

	while (k < n && functions[k] == functions[k - period])
		k++;
	return (k - i) / period;
}

u32 repeats(const u32 *functions, u32 n, u32 i, u32 *turns)
{
	for (u32 period = 1; period <= FOLD_PERIOD; period++) {
		*turns = turns_of(functions, n, i, period);
		if (*turns >= FOLD_TURNS)
			return period;
	}
	*turns = 1;
	return 1;
}
