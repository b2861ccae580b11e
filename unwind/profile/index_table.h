/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of indexes into an array of the caller's: open addressing with linear probing, at most two thirds full.
 * Index 0 is never stored: it means "none". Zeroed, a table is empty.
 */
#ifndef YRT_INDEX_TABLE_H
#define YRT_INDEX_TABLE_H

#include <types.h>

#include "error.h"

struct index_table {
	struct index_slot {
		u32 hash;
		u32 index; /* 0: empty */
	} * slots;
	u32 size; /* a power of two */
	u32 used;
};

typedef bool index_same(const void *ctx, u32 index, const void *wanted);

/* The index with this hash that same() says is wanted; 0: none. */
u32 index_table_find(const struct index_table *t, u32 hash, index_same *same, const void *ctx, const void *wanted);
/* Makes room for one more, which index_table_put() then adds. Only fails for memory. */
struct error *index_table_reserve(struct index_table *t);
void index_table_put(struct index_table *t, u32 hash, u32 index);
/* Empties it, and keeps its memory. */
void index_table_clear(struct index_table *t);
void index_table_free(struct index_table *t);

#endif
