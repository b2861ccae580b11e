/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of the cache: what is in it, and its limit. A file's time of change is when it was used last, to the
 * hour. What was used least recently goes first. Files of other names are left alone.
 */
#ifndef YRT_CFI_CACHE_DIR_H
#define YRT_CFI_CACHE_DIR_H

#include <types.h>

#include "error.h"

#define CACHE_LIMIT_MB 64u

struct cache_use {
	u32 files;
	u64 bytes;
};

/* Bytes: $YRT_CACHE_MB MiB, or CACHE_LIMIT_MB. */
u64 cache_limit(void);
/* What dir holds; nothing if it is not there. */
struct error *cache_use(const char *dir, struct cache_use *ret);
/* Removes files, those used least recently first, until at most limit bytes are left. What went. */
struct error *cache_shrink(const char *dir, u64 limit, struct cache_use *removed);
/* A file of the cache is being used. */
void cache_touch(const char *path);
/* So much was added: now and then the limit is enforced, with some room left for more. */
void cache_grew(const char *dir, u64 bytes);

#endif
