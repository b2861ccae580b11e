/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a target through a cache of 1 MiB blocks, so that a heap is read in few large reads. A block is what
 * was there at one moment, more or less: it is not read again until it has been evicted, or was forgotten. Pages that
 * cannot be read fail alone.
 */
#ifndef YRT_HEAP_CACHE_H
#define YRT_HEAP_CACHE_H

#include <types.h>

#include "binary/memory.h"
#include "error.h"

struct heap_cache;

/* pid: read ahead only pages that hold data; 0: all. limit: bytes of blocks kept, at least some. below is not owned. */
struct error *heap_cache_create(struct memory *below, pid_t pid, u64 limit, struct heap_cache **ret);
void heap_cache_destroy(struct heap_cache *c); /* NULL is fine */

/* The same as a struct memory; it belongs to the cache. */
struct memory *heap_cache_memory(struct heap_cache *c);
/* Valid until the next call; size <= HEAP_BYTES_MAX. NULL: unreadable. */
const void *heap_cache_bytes(struct heap_cache *c, u64 addr, u32 size);
/* Should a miss read its whole block, or its page only? The first is better for many reads in order of address. */
void heap_cache_ahead(struct heap_cache *c, bool whole);
/* These bytes' pages are read again when they are needed. */
void heap_cache_forget(struct heap_cache *c, u64 addr, u64 size);
void heap_cache_forget_all(struct heap_cache *c);
/*
 * Copies what is there now in stretches in order of address, in place of earlier copies: it is not read again, and
 * never evicted. False: no memory; what was copied stays.
 */
struct heap_stretch;
bool heap_cache_keep(struct heap_cache *c, const struct heap_stretch *stretches, u32 n);
/* What of [start, end) holds data, in stretches of whole blocks behind those that are there already. */
struct error *heap_cache_held(struct heap_cache *c, u64 start, u64 end, struct heap_stretch **stretches, u32 *n);
u64 heap_cache_kept(const struct heap_cache *c); /* bytes of copies; NULL is fine */
/* Which part of the copied pages, by some of them, is not any more what it was. */
double heap_cache_changed(const struct heap_cache *c);
void heap_cache_release(struct heap_cache *c); /* no copies any more */
/* The memory that it reads. */
struct memory *heap_cache_below(struct heap_cache *c);

#endif
