/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of the cache: its files and its size limit. <build-id>-<hex>.cfi holds unwind tables, .btf the types of
 * a kernel (probes/kernel_types.h), .layout what debug information says about a runtime (layout/layout.h), .search the
 * result of a search (cfi_search_cache.h). A file's modification time is its last use, to the hour. The least recently
 * used files are removed first. Files with other names are left alone.
 */
#ifndef YRT_CFI_CACHE_DIR_H
#define YRT_CFI_CACHE_DIR_H

#include <types.h>

#include "binary/image.h"
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
/*
 * dir/<identity>-<hex><suffix>: the cache file for something made from an image; `which` distinguishes several. The
 * caller frees it. NULL: there is no directory, nothing identifies the image, or no memory.
 */
char *cache_path(const char *dir, const struct image *img, u64 which, const char *suffix);
/* A file of the cache is being used. */
void cache_touch(const char *path);
/* Reports that so much was added: from time to time the limit is enforced, with some room left for more. */
void cache_grew(const char *dir, u64 bytes);
/*
 * Opens a file that we own and that only its owner can write, so nobody else can shorten it under a mapping. -1: there
 * is none.
 */
int cache_open(const char *path, size_t *ret_size);
/* Writes a file of the cache, whole or not at all; a failure only means that it is made again next time. */
void cache_put(const char *dir, const char *path, const void *bytes, size_t size);

#endif
