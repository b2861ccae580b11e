/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_ENDS_WITH_H
#define YRT_ENDS_WITH_H

#include <stdbool.h>
#include <string.h>

static inline bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

#endif
