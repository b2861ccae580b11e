/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "cfi_cache_dir.h"
#include "cleanup.h"

#define MAGIC 0x316f6d656d747279 /* "yrtmemo1" */

/* The values follow. */
struct head {
	u64 magic;
	u64 sum; /* of the values */
};

/* NULL: nothing is kept of it. */
static char *path_of(const struct image *img, const char *search)
{
	u64 hash = XXH3_64bits_withSeed(search, strlen(search), img->size);

	return img->size < MEMO_FILE ? NULL : cache_path(img->cache_dir, img, hash, ".memo");
}

bool memo_load(const struct image *img, const char *search, struct memo *ret)
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

void memo_store(const struct image *img, const char *search, const struct memo *memo)
{
	cleanup(free) char *path = path_of(img, search);
	size_t values = memo->n * sizeof(*memo->values);
	struct {
		struct head head;
		u64 values[MEMO_VALUES];
	} file = {{MAGIC, XXH3_64bits(memo->values, values)}, {0}};

	if (!path)
		return;
	memcpy(file.values, memo->values, values);
	cache_put(img->cache_dir, path, &file, sizeof(file.head) + values);
}
