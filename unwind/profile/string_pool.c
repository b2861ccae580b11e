/* SPDX-License-Identifier: Apache-2.0 */
#include "string_pool.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "grow.h"

#define SLAB_SIZE (64 << 10)
#define SLABS_MAX 1024

struct string_slab {
	struct string_slab *next;
	char bytes[];
};

struct text {
	const char *s;
	size_t length;
};

static bool same_string(const void *ctx, u32 index, const void *wanted)
{
	const struct string_pool *pool = ctx;
	const struct text *t = wanted;
	const char *s = pool->strings[index - 1];

	return !strncmp(s, t->s, t->length) && !s[t->length];
}

static struct error *copy(struct string_pool *pool, const struct text *t, const char **ret)
{
	char *s;

	if (pool->slab_size - pool->slab_used < t->length + 1) {
		struct string_slab *slab = malloc(sizeof(*slab) + SLAB_SIZE);

		if (!slab)
			return &error_no_memory;
		slab->next = pool->slabs;
		pool->slabs = slab;
		pool->nslabs++;
		pool->slab_size = SLAB_SIZE;
		pool->slab_used = 0;
	}
	s = pool->slabs->bytes + pool->slab_used;
	memcpy(s, t->s, t->length);
	s[t->length] = 0;
	pool->slab_used += t->length + 1;
	*ret = s;
	return NULL;
}

static struct error *add(struct string_pool *pool, const struct text *t, u32 hash, u32 *ret)
{
	struct error *err = index_table_reserve(&pool->table);

	if (!err)
		err = grow(&pool->strings, pool->n, sizeof(*pool->strings));
	if (!err)
		err = copy(pool, t, &pool->strings[pool->n]);
	if (err)
		return err;
	*ret = ++pool->n;
	index_table_put(&pool->table, hash, *ret);
	return NULL;
}

struct error *string_pool_add(struct string_pool *pool, const char *s, const char **ret)
{
	struct text t = {s, s ? strnlen(s, STRING_MAX) : 0};
	u32 hash = t.length ? (u32)XXH3_64bits(t.s, t.length) : 0, index;
	struct error *err = NULL;

	*ret = "";
	if (!t.length)
		return NULL;
	index = index_table_find(&pool->table, hash, same_string, pool, &t);
	if (!index && pool->nslabs >= SLABS_MAX) {
		*ret = "[profile full]";
		return NULL;
	}
	if (!index)
		err = add(pool, &t, hash, &index);
	if (!err)
		*ret = pool->strings[index - 1];
	return err;
}

void string_pool_free(struct string_pool *pool)
{
	while (pool->slabs) {
		struct string_slab *slab = pool->slabs;

		pool->slabs = slab->next;
		free(slab);
	}
	index_table_free(&pool->table);
	free(pool->strings);
}
