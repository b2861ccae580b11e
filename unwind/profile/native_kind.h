/* SPDX-License-Identifier: Apache-2.0 */
/* The language of native code, as far as its linkage name shows it. */
#ifndef YRT_NATIVE_KIND_H
#define YRT_NATIVE_KIND_H

#include <string.h>

#include "profile.h"

static inline enum profile_kind native_kind(const char *mangled, bool vm)
{
	size_t len = strlen(mangled);

	if (vm)
		return KIND_VM;
	/* Rust's old scheme looks like C++ but for the hash of 16 digits at its end */
	if (!strncmp(mangled, "_R", 2) ||
	        (!strncmp(mangled, "_ZN", 3) && len > 23 && !strncmp(mangled + len - 20, "17h", 3)))
		return KIND_RUST;
	return strncmp(mangled, "_Z", 2) ? KIND_NATIVE : KIND_CXX;
}

#endif
