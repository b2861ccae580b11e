/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that unpacks a section ahead of a reader that goes from its start to its end. */
#ifndef YRT_DWARF_READ_AHEAD_H
#define YRT_DWARF_READ_AHEAD_H

#include <types.h>

#include "unpack.h"

struct read_ahead;

/*
 * From where u is, to base + that offset, in steps of SECTION_CHUNK, up to size. u is the thread's until
 * read_ahead_stop(), and so are the bytes from where it is to where it may go. NULL: no thread.
 */
struct read_ahead *read_ahead_start(struct unpacker *u, u8 *base, u64 size);
/* Waits until all before offset is there; it may go on to limit meanwhile. False: it never will be. */
bool read_ahead_wait(struct read_ahead *a, u64 offset, u64 limit);
void read_ahead_stop(struct read_ahead *a);

#endif
