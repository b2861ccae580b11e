/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a JVM, read by the page and kept for some milliseconds. Data that is named at one time is close together
 * (methods of a class, symbols, the nmethods of a stack), and may be as old as these milliseconds.
 */
#ifndef YRT_HOTSPOT_BLOCKS_H
#define YRT_HOTSPOT_BLOCKS_H

#include "binary/memory.h"

struct hotspot_blocks;

struct hotspot_blocks *hotspot_blocks_create(void);    /* NULL: no memory */
void hotspot_blocks_destroy(struct hotspot_blocks *b); /* NULL is fine */
/* m, read through b; valid until the next call. */
struct memory *hotspot_blocks_of(struct hotspot_blocks *b, struct memory *m);
/* The same, without any page that was read before. */
struct memory *hotspot_blocks_renew(struct hotspot_blocks *b, struct memory *m);
/* The same, with all pages that were read since then. */
struct memory *hotspot_blocks_kept(struct hotspot_blocks *b);

#define HOTSPOT_PREFETCH_MAX 64

/* Reads the pages of these addresses (n <= HOTSPOT_PREFETCH_MAX; 0: none) that are not there yet, in one go, as far as
 * they can be read. */
void hotspot_blocks_prefetch(struct hotspot_blocks *b, const uint64_t *at, uint32_t n);

/* What is read through b, without it. */
struct memory *hotspot_blocks_direct(const struct hotspot_blocks *b);

#endif
