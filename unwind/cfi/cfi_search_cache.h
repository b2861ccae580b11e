/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of searches through files, a few numbers each, kept for the next run beside the unwind tables
 * (cfi_cache_dir.h): in <identity>-<hash>.search, by image_identity(), the file's size and the name of the search.
 * Files below SEARCH_FILE_MIN bytes have none, because searching them is fast.
 */
#ifndef YRT_CFI_SEARCH_CACHE_H
#define YRT_CFI_SEARCH_CACHE_H

#include <stdbool.h>
#include <types.h>

#include "binary/image.h"

#define SEARCH_FILE_MIN   (256u << 10)
#define SEARCH_RESULT_MAX 512u /* at most */

struct search_result {
	u64 values[SEARCH_RESULT_MAX];
	u32 n;
};

/*
 * search: the name of the search, with a version to raise when the search changes. False: the cache has no result, or
 * a corrupt one. The caller should check the values against the file where it can.
 */
bool search_cache_load(const struct image *img, const char *search, struct search_result *ret);
void search_cache_store(const struct image *img, const char *search, const struct search_result *found);

#endif
