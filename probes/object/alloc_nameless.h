/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of jemalloc and mimalloc in a file that was stripped, as Rust's programs have them: by their code. Each
 * function that hands out blocks compares the size with that of the largest small one, and looks up what it is to take
 * with (size + 7) / 8 (a multiple of a word):
 *
 *	jemalloc 5	4096	a byte of sz_size2index_tab (sc.h, sz.h)
 *	mimalloc 2, 3	1024	a pointer of the heap's pages_free_direct (types.h, internal.h)
 *
 * What is compared and looked up is followed from the registers of the arguments, so the same says which argument is
 * the size. A function counts if it uses the table that most of them use. One that frees stores its argument as the
 * head of a list, before anything is called, and looks up its extent (bits 30 and up: rtree.h), segment (32 MiB) or
 * page (bits 29 and up).
 */
#ifndef YRT_ALLOC_NAMELESS_H
#define YRT_ALLOC_NAMELESS_H

#include "alloc_functions.h"

enum alloc_nameless { ALLOC_NAMELESS_JEMALLOC, ALLOC_NAMELESS_MIMALLOC, ALLOC_NAMELESS_KINDS };

/*
 * Adds those of a file, by its unwind tables. None is added if none that allocates, or none that frees, was found: what
 * is seen in part only would be wrong.
 */
void alloc_nameless_find(struct image *img, enum alloc_nameless kind, struct alloc_functions *ret);

#endif
