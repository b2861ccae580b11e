/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from 64-bit keys to 64-bit values. Keys are hashes already and never 0. Open addressing; it grows at
 * 3/4.
 */
#ifndef YRT_TABLE_H
#define YRT_TABLE_H

#include <types.h>

#include "error.h"

struct table_entry {
	u64 key, value;
};

struct table {
	struct table_entry *entries;
	size_t capacity, used; /* capacity is 0 or a power of two */
};

/* The value of key, or NULL. Valid until the next table_put(). */
u64 *table_get(const struct table *t, u64 key);
struct error *table_put(struct table *t, u64 key, u64 value);
void table_clear(struct table *t);
void table_free(struct table *t);

#endif
