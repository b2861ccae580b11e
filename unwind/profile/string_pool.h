/* SPDX-License-Identifier: Apache-2.0 */
/* One copy of each string, so that equal strings have equal addresses. A zeroed pool is empty. */
#ifndef YRT_STRING_POOL_H
#define YRT_STRING_POOL_H

#include "index_table.h"

#define STRING_MAX (4u << 10)

struct string_pool {
	struct index_table table;
	const char **strings; /* number i of the table is strings[i - 1] */
	u32 n;
	struct string_slab *slabs;
	size_t slab_used, slab_size;
	u32 nslabs;
};

/*
 * *ret is the pool's copy of s, "" for NULL. A longer one than STRING_MAX is cut; if the pool has 64 MiB, new strings
 * are "[profile full]". Only fails for memory.
 */
struct error *string_pool_add(struct string_pool *pool, const char *s, const char **ret);
void string_pool_free(struct string_pool *pool);

#endif
