/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that unpacks a section ahead of a reader that goes from its start to its end. */
#ifndef YRT_DWARF_READ_AHEAD_H
#define YRT_DWARF_READ_AHEAD_H

#include <types.h>

#include "unpack.h"

struct read_ahead;

/*
 * Unpacks from u's position up to size, in steps of SECTION_CHUNK, to base + offset. Until read_ahead_stop(), u belongs
 * to the thread, and so do the bytes from its position to the limit. NULL: no thread.
 */
struct read_ahead *read_ahead_start(struct unpacker *u, u8 *base, u64 size);
/*
 * Waits until everything before offset is unpacked; the thread may meanwhile go on to limit. False: it never will be.
 */
bool read_ahead_wait(struct read_ahead *a, u64 offset, u64 limit);
void read_ahead_stop(struct read_ahead *a);

#endif
