/* SPDX-License-Identifier: Apache-2.0 */
/* The line number table of a method, which follows its bytecodes (code/compressedStream, oops/method.cpp). */
#ifndef YRT_HOTSPOT_LINES_H
#define YRT_HOTSPOT_LINES_H

#include <types.h>

/* The line of a bytecode; 0: unknown. no_zero: as in hotspot_unsigned5.h. */
u32 hotspot_line(const u8 *table, u32 size, bool no_zero, u32 bci);
/* How many bytes the table has, with the 0 at its end; 0: it does not end within size. */
u32 hotspot_lines_size(const u8 *table, u32 size, bool no_zero);

#endif
