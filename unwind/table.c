/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_FIRST 256

static struct table_entry *probe(const struct table *t, u64 key)
{
	size_t i = key & (t->capacity - 1);

	while (t->entries[i].key && t->entries[i].key != key)
		i = (i + 1) & (t->capacity - 1);
	return &t->entries[i];
}

u64 *table_get(const struct table *t, u64 key)
{
	struct table_entry *e;

	key |= !key;
	if (!t->capacity)
		return NULL;
	e = probe(t, key);
	return e->key ? &e->value : NULL;
}

static struct error *grow(struct table *t)
{
	struct table old = *t;

	t->capacity = old.capacity ? old.capacity * 2 : TABLE_FIRST;
	t->entries = calloc(t->capacity, sizeof(*t->entries));
	if (!t->entries) {
		*t = old;
		return &error_no_memory;
	}
	for (size_t i = 0; i < old.capacity; i++)
		if (old.entries[i].key)
			*probe(t, old.entries[i].key) = old.entries[i];
	free(old.entries);
	return NULL;
}

struct error *table_put(struct table *t, u64 key, u64 value)
{
	struct table_entry *e;
	struct error *err = NULL;

	key |= !key;
	if (4 * (t->used + 1) > 3 * t->capacity)
		err = grow(t);
	if (err)
		return err;
	e = probe(t, key);
	t->used += !e->key;
	*e = (struct table_entry){.key = key, .value = value};
	return NULL;
}

void table_clear(struct table *t)
{
	if (t->entries)
		memset(t->entries, 0, t->capacity * sizeof(*t->entries));
	t->used = 0;
}

void table_free(struct table *t)
{
	free(t->entries);
	*t = (struct table){0};
}
