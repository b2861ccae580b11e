/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_cache.h"

#include <stdint.h>
#include <stdlib.h>
#include <xxhash.h>

u64 hotspot_cache_key(u64 a, u64 b)
{
	u64 both[2] = {a, b}, key = XXH3_64bits(both, sizeof(both));

	return key ? key : 1;
}

void *hotspot_cache_get(const struct hotspot_cache *c, u64 key)
{
	u64 *entry = table_get(&c->table, key);

	return entry ? (void *)(uintptr_t)*entry : NULL;
}

void hotspot_cache_clear(struct hotspot_cache *c)
{
	for (size_t i = 0; i < c->table.capacity; i++)
		if (c->table.entries[i].key)
			free((void *)(uintptr_t)c->table.entries[i].value);
	table_free(&c->table);
	c->bytes = 0;
}

bool hotspot_cache_put(struct hotspot_cache *c, u64 key, void *entry, size_t bytes)
{
	u64 *old;

	bytes += sizeof(struct table_entry);
	if (c->bytes + bytes > c->max)
		hotspot_cache_clear(c);
	old = table_get(&c->table, key);
	if (old) {
		free((void *)(uintptr_t)*old);
		*old = (u64)(uintptr_t)entry;
	} else if (table_put(&c->table, key, (u64)(uintptr_t)entry)) {
		free(entry);
		return false;
	}
	c->bytes += bytes;
	return true;
}
