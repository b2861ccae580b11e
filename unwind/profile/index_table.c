/* SPDX-License-Identifier: Apache-2.0 */
#include "index_table.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_MIN 64

u32 index_table_find(const struct index_table *t, u32 hash, index_same *same, const void *ctx, const void *wanted)
{
	for (u32 i = hash & (t->size - 1); t->size && t->slots[i].index; i = (i + 1) & (t->size - 1))
		if (t->slots[i].hash == hash && same(ctx, t->slots[i].index, wanted))
			return t->slots[i].index;
	return 0;
}

void index_table_put(struct index_table *t, u32 hash, u32 index)
{
	u32 i = hash & (t->size - 1);

	while (t->slots[i].index)
		i = (i + 1) & (t->size - 1);
	t->slots[i] = (struct index_slot){hash, index};
	t->used++;
}

struct error *index_table_reserve(struct index_table *t)
{
	struct index_table bigger = {.size = t->size ? t->size * 2 : TABLE_MIN};

	if (t->used < t->size / 3 * 2)
		return NULL;
	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return &error_no_memory;
	for (u32 i = 0; i < t->size; i++)
		if (t->slots[i].index)
			index_table_put(&bigger, t->slots[i].hash, t->slots[i].index);
	free(t->slots);
	*t = bigger;
	return NULL;
}

void index_table_clear(struct index_table *t)
{
	if (t->slots)
		memset(t->slots, 0, t->size * sizeof(*t->slots));
	t->used = 0;
}

void index_table_free(struct index_table *t)
{
	free(t->slots);
}
