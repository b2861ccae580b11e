/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what compilers make of one function: "take_gil.lto_priv.0", "f.isra.1", "f.part.0.cold" (GCC, Clang). */
#ifndef YRT_COMPILER_COPY_H
#define YRT_COMPILER_COPY_H

#include <stdbool.h>
#include <string.h>

/* Does such a suffix begin here, behind a function's name? part: also one of what is no whole copy. */
static inline bool compiler_copy(const char *suffix, bool part)
{
	static const char *const suffixes[] = {".isra", ".constprop", ".lto_priv", ".llvm", ".part", ".cold"};
	enum { WHOLE = 4 };

	for (size_t i = 0; i < (part ? sizeof(suffixes) / sizeof(*suffixes) : WHOLE); i++) {
		size_t n = strlen(suffixes[i]);

		if (!strncmp(suffix, suffixes[i], n) && (!suffix[n] || suffix[n] == '.'))
			return true;
	}
	return false;
}

#endif
