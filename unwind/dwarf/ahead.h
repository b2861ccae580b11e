/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that unpacks a section some way ahead of who reads it from its start to its end. */
#ifndef YRT_DWARF_AHEAD_H
#define YRT_DWARF_AHEAD_H

#include <types.h>

#include "unpack.h"

struct ahead;

/*
 * From where u is, to base + that offset, in steps of SECTION_CHUNK, up to size. u is the thread's until ahead_stop(),
 * and so are the bytes from where it is to where it may go. NULL: no thread.
 */
struct ahead *ahead_start(struct unpacker *u, u8 *base, u64 size);
/* Waits until all before offset is there; it may go on to limit meanwhile. False: it never will be. */
bool ahead_wait(struct ahead *a, u64 offset, u64 limit);
void ahead_stop(struct ahead *a);

#endif
