/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_HEX_TEXT_H
#define YRT_HEX_TEXT_H

#include <stddef.h>
#include <types.h>

/* n bytes as 2 * n digits, and a zero behind them. */
static inline void hex_text(const u8 *bytes, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*ret++ = digits[bytes[i] >> 4];
		*ret++ = digits[bytes[i] & 15];
	}
	*ret = 0;
}

#endif
