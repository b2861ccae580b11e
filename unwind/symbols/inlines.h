/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that a compiler inlined at an address, with files and lines. They come from the debug information of an
 * image: its own, or its separate debug file's (symbols_debug_file()), with what dwz moved to an alternate file.
 *
 * It is read on demand and within bounds (tens of MiB, whatever the file's size), but not while samples arrive: the
 * first address may have to unpack everything before its unit.
 */
#ifndef YRT_INLINES_H
#define YRT_INLINES_H

#include <types.h>

#include "error.h"
#include "binary/image.h"

#define INLINES_MAX 256u

struct inline_frame {
	const char *name; /* linkage (mangled) name, else the plain one; NULL: unknown. Owned by struct inlines */
	const char *file; /* with its directory as far as that is known; NULL: unknown. Owned by struct inlines */
	u32 line, column; /* 0: unknown */
	u32 definition;   /* the line where the function is declared; 0: unknown */
};

struct inlines;

/* root as for symbols_load(). *ret is NULL if there is no debug information. img is referenced. */
struct error *inlines_open(struct image *img, const char *root, struct inlines **ret);
/* The same of a separate debug file that came from elsewhere. */
struct error *inlines_open_debug(struct image *debug, const char *root, struct inlines **ret);
void inlines_close(struct inlines *in);
/* Gives back all memory but that of names and files that were returned; more can be looked up. */
void inlines_rest(struct inlines *in);
/*
 * The frames at addr (file address), innermost first; the last one is the function itself. At most INLINES_MAX, valid
 * until the next call. *n is 0 if nothing is known about addr; it is one frame without a name if only the line is
 * known. Fails only for memory: corrupt parts are left out.
 */
struct error *inlines_find(struct inlines *in, u64 addr, const struct inline_frame **ret, u32 *n);
/*
 * The same for n addresses, in the order that reads the file once, from start to end, and names after that in the order
 * of the strings: calls found with the index of each address.
 */
struct error *inlines_find_all(struct inlines *in, const u64 *addrs, u32 n,
        struct error *(*found)(void *ctx, u32 index, const struct inline_frame *frames, u32 n), void *ctx);

#endif
