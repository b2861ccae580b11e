/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_search_cache.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "cfi_cache_dir.h"
#include "cleanup.h"

#define MAGIC 0x31646e6966747279 /* "yrtfind1" */

/* The values follow. */
struct head {
	u64 magic;
	u64 sum; /* of the values */
};

/* NULL: nothing is kept of it. */
static char *path_of(const struct image *img, const char *search)
{
	u64 hash = XXH3_64bits_withSeed(search, strlen(search), img->size);

	return img->size < SEARCH_FILE_MIN ? NULL : cache_path(img->cache_dir, img, hash, ".search");
}

bool search_cache_load(const struct image *img, const char *search, struct search_result *ret)
{
	cleanup(free) char *path = path_of(img, search);
	size_t size, values;
	cleanup(close) int fd = path ? cache_open(path, &size) : -1;
	struct head head;

	if (fd < 0 || size < sizeof(head) || size > sizeof(head) + sizeof(ret->values) || size % sizeof(u64))
		return false;
	values = size - sizeof(head);
	if (read(fd, &head, sizeof(head)) != sizeof(head) || read(fd, ret->values, values) != (ssize_t)values)
		return false;
	ret->n = (u32)(values / sizeof(u64));
	return head.magic == MAGIC && head.sum == XXH3_64bits(ret->values, values);
}

void search_cache_store(const struct image *img, const char *search, const struct search_result *found)
{
	cleanup(free) char *path = path_of(img, search);
	size_t values = found->n * sizeof(*found->values);
	struct {
		struct head head;
		u64 values[SEARCH_RESULT_MAX];
	} file = {{MAGIC, XXH3_64bits(found->values, values)}, {0}};

	if (!path)
		return;
	memcpy(file.values, found->values, values);
	cache_put(img->cache_dir, path, &file, sizeof(file.head) + values);
}
