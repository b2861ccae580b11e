/* SPDX-License-Identifier: Apache-2.0 */
#include "go_release.h"

#include <string.h>

#define INLINE_STRING 2 /* flag of .go.buildinfo since 1.18: the version is text behind its head, debug/buildinfo */

/* Before 1.18 .go.buildinfo points to a string's head. */
bool go_release(struct go_table *t, char *ret)
{
	u64 addr, size, at, len = 0;
	u8 flags, length;

	if (!image_section_range(t->file.img, ".go.buildinfo", &addr, &size) || !go_u8(&t->file, addr + 15, &flags))
		return false;
	if (flags & INLINE_STRING) {
		if (!go_u8(&t->file, addr + 32, &length))
			return false;
		at = addr + 33;
		len = length;
	} else if (!go_u64(&t->file, addr + 16, &addr) || !go_u64(&t->file, addr, &at) ||
	           !go_u64(&t->file, addr + 8, &len)) {
		return false;
	}
	if (!len || len >= GO_RELEASE_MAX || !go_read(&t->file, ret, (u32)len, at))
		return false;
	ret[len] = 0;
	return !strncmp(ret, "go", 2) || !strncmp(ret, "devel", 5);
}
