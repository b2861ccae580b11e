/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that are recognised by their bytes, because the code behind them has no usual frame. */
#include <string.h>

#include "cfi_code_state.h"

#define CLONE       56
#define CLONE3      435
#define CLONE_REACH 48 /* musl's clone() sets the number first, then moves its arguments */

u32 code_sigreturn_size(const u8 *code, size_t size)
{
	static const u8 wide[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05},
	                narrow[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};

	if (size >= sizeof(wide) && !memcmp(code, wide, sizeof(wide)))
		return sizeof(wide);
	return size >= sizeof(narrow) && !memcmp(code, narrow, sizeof(narrow)) ? sizeof(narrow) : 0;
}

/* Is clone() or clone3() what the instructions before a system call choose? */
static bool chooses_clone(const u8 *code, size_t before)
{
	static const u8 zeroed[] = {0x31, 0xc0, 0xb0, CLONE};
	u32 number;

	if (before >= 5 && code[-5] == 0xb8) {
		memcpy(&number, code - 4, sizeof(number));
		return number == CLONE || number == CLONE3;
	}
	for (size_t i = sizeof(zeroed); i <= before && i <= CLONE_REACH; i++)
		if (!memcmp(code - i, zeroed, sizeof(zeroed)))
			return true;
	return false;
}

u32 code_newborn_size(const u8 *code, size_t before, size_t size)
{
	u32 n = 2;

	if (size < 7 || code[0] != 0x0f || code[1] != 0x05)
		return 0;
	n += code[n] == 0x48;
	if (code[n] != 0x85 || code[n + 1] != 0xc0 || (code[n + 2] & 0xf0) != 0x70)
		return 0;
	return chooses_clone(code, before) ? n + 4 : 0;
}
