/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Blocks that debug registers watch, as BPF and leak_watch.c share them. */
#ifndef YRT_LEAK_TRAP_H
#define YRT_LEAK_TRAP_H

#include <types.h>

#define LEAK_TRAPS  16 /* blocks at once, of all targets */
#define LEAK_RANGES 48
#define LEAK_CODES  64 /* allocators: files in processes */

/* struct malloc_chunk.mchunk_size of glibc, malloc/malloc.c */
#define LEAK_HEADER_BITS        7ull
#define LEAK_HEADER_PREV_IN_USE 1ull
#define LEAK_HEADER_MAPPED      2ull

enum leak_trap_state {
	LEAK_TRAP_NONE,
	LEAK_TRAP_ARMED,
	LEAK_TRAP_FREED,
	LEAK_TRAP_BLIND, /* from now on the block may be freed without a write to it */
};

struct leak_trap {
	u64 block, word;
	u64 header_at, header; /* of glibc: 0: there is none to watch */
	u32 tgid, code;
	u32 state, traps;
};

/* Of an allocator, in a process: what writes to a block there says that it is the program's no more. */
struct leak_code {
	u64 from[LEAK_RANGES], to[LEAK_RANGES];
};

#endif
