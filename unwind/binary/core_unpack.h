/* SPDX-License-Identifier: Apache-2.0 */
/* Cores that are packed (gzip, xz, zstd), or come through a pipe: as a file without a name, in $TMPDIR or /var/tmp. */
#ifndef YRT_CORE_UNPACK_H
#define YRT_CORE_UNPACK_H

#include <stdbool.h>
#include <types.h>

#include "error.h"

/* Are these the first bytes of something packed that core_unpack() knows? */
bool core_is_packed(const u8 *magic, size_t n);
/*
 * Copies fd, from where it is, to such a file, unpacked if it is packed. Holes stay holes. *cut: the packed data ends
 * early, and the file has what there was. *ret is the caller's to close.
 */
struct error *core_unpack(int fd, const char *path, int *ret, bool *cut);

#endif
