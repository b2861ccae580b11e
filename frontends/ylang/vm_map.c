/* SPDX-License-Identifier: Apache-2.0 */
/* Maps and aggregates: hash tables whose keys are numbers and strings. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "unwind/grow.h"
#include "vm_state.h"

static const struct y_str *string_of(u64 v)
{
	static const struct y_str empty;

	return v ? (const struct y_str *)v : &empty;
}

static bool same_key(enum y_type type, u64 a, u64 b)
{
	const struct y_str *s = string_of(a), *t = string_of(b);

	return type == Y_STR ? s->len == t->len && !memcmp(s->bytes, t->bytes, s->len) : a == b;
}

static u64 hash_keys(const struct y_map *m, const u64 *keys)
{
	u64 hash = 0;

	for (u32 i = 0; i < m->nkeys; i++) {
		const struct y_str *s = m->keys[i] == Y_STR ? string_of(keys[i]) : NULL;

		hash = s ? XXH3_64bits_withSeed(s->bytes, s->len, hash + 1)
		         : XXH3_64bits_withSeed(&keys[i], sizeof(keys[i]), hash + 1);
	}
	return hash;
}

static bool same_keys(const struct y_map *m, const u64 *a, const u64 *b)
{
	for (u32 i = 0; i < m->nkeys; i++)
		if (!same_key(m->keys[i], a[i], b[i]))
			return false;
	return true;
}

struct y_entry *y_table_find(const struct y_table *t, const u64 *keys)
{
	u32 mask = t->index_size - 1;

	if (!t->index_size)
		return NULL;
	for (u32 i = (u32)hash_keys(t->map, keys) & mask; t->index[i]; i = (i + 1) & mask) {
		struct y_entry *e = t->entries[t->index[i] - 1];

		if (!e->gone && same_keys(t->map, e->keys, keys))
			return e;
	}
	return NULL;
}

static void free_entry(struct y_table *t, struct y_entry *e)
{
	for (u32 i = 0; i < t->map->nkeys; i++)
		if (t->map->keys[i] == Y_STR)
			free((void *)e->keys[i]);
	if (t->map->is_agg && e->value)
		free(((struct y_aggregate *)e->value)->buckets);
	if (t->map->is_agg || t->map->value == Y_STR)
		free((void *)e->value);
	free(e);
}

/* The index anew, twice as large where it is half full, without entries that are gone. */
static bool rebuild(struct y_table *t)
{
	u32 size = t->index_size ? t->index_size : 64, n = 0, *index;

	while (size < 4 * (t->used + 1))
		size *= 2;
	index = calloc(size, sizeof(*index));
	if (!index)
		return false;
	for (u32 i = 0; i < t->nentries; i++) {
		struct y_entry *e = t->entries[i];
		u32 at;

		if (e->gone) {
			free_entry(t, e);
			continue;
		}
		t->entries[n++] = e;
		for (at = (u32)hash_keys(t->map, e->keys) & (size - 1); index[at]; at = (at + 1) & (size - 1))
			;
		index[at] = n;
	}
	/* grow() goes by the number of entries alone */
	if (n < t->nentries && n) {
		struct y_entry **entries = NULL;

		for (u32 i = 0; i < n; i++) {
			if (grow(&entries, i, sizeof(*entries))) {
				free(entries);
				free(index);
				return false;
			}
			entries[i] = t->entries[i];
		}
		free(t->entries);
		t->entries = entries;
	}
	t->nentries = n;
	free(t->index);
	t->index = index;
	t->index_size = size;
	return true;
}

static bool keep_string(struct y_table *t, u64 *v)
{
	const struct y_str *s = string_of(*v);
	size_t size = sizeof(*s) + s->len;
	struct y_str *copy;

	if (*t->bytes + size > Y_TRACER_MOST)
		return false;
	copy = malloc(size);
	if (!copy)
		return false;
	*t->bytes += size;
	*v = (u64)memcpy(copy, s, size);
	return true;
}

static struct y_entry *make_entry(struct y_table *t, const u64 *keys)
{
	struct y_entry *e = calloc(1, sizeof(*e));
	struct y_aggregate *a;

	if (!e)
		return NULL;
	*t->bytes += sizeof(*e);
	for (u32 i = 0; i < t->map->nkeys; i++) {
		u64 key = keys[i];

		if (t->map->keys[i] == Y_STR && !keep_string(t, &key)) {
			free_entry(t, e);
			return NULL;
		}
		e->keys[i] = key;
	}
	if (!t->map->is_agg)
		return e;
	a = calloc(1, sizeof(*a));
	e->value = (u64)a;
	if (a && t->buckets)
		a->buckets = calloc(y_buckets(t->map), sizeof(*a->buckets));
	*t->bytes += sizeof(*a) + (t->buckets ? y_buckets(t->map) * sizeof(*a->buckets) : 0);
	if (!a || (t->buckets && !a->buckets)) {
		free_entry(t, e);
		return NULL;
	}
	return e;
}

struct y_entry *y_table_add(struct y_table *t, const u64 *keys)
{
	struct y_entry *e = y_table_find(t, keys);
	u32 at;

	if (e)
		return e;
	if (t->used < t->map->most && *t->bytes < Y_TRACER_MOST &&
	        (2 * (t->nentries + 1) < t->index_size || rebuild(t)))
		e = make_entry(t, keys);
	if (!e || grow(&t->entries, t->nentries, sizeof(*t->entries))) {
		if (e)
			free_entry(t, e);
		t->lost++;
		return NULL;
	}
	t->entries[t->nentries++] = e;
	t->used++;
	for (at = (u32)hash_keys(t->map, keys) & (t->index_size - 1); t->index[at]; at = (at + 1) & (t->index_size - 1))
		;
	t->index[at] = t->nentries;
	return e;
}

bool y_table_set(struct y_table *t, struct y_entry *e, u64 value)
{
	if (t->map->value == Y_STR) {
		if (!keep_string(t, &value)) {
			t->lost++;
			return false;
		}
		free((void *)e->value);
	}
	e->value = value;
	return true;
}

void y_table_delete(struct y_table *t, const u64 *keys)
{
	struct y_entry *e = y_table_find(t, keys);

	if (e) {
		e->gone = true;
		t->used--;
	}
}

void y_table_clear(struct y_table *t)
{
	for (u32 i = 0; i < t->nentries; i++)
		free_entry(t, t->entries[i]);
	free(t->entries);
	free(t->index);
	t->entries = NULL;
	t->index = NULL;
	t->nentries = t->used = t->index_size = 0;
}

void y_aggregate_add(const struct y_map *m, struct y_aggregate *a, s64 value)
{
	a->min = !a->count || value < a->min ? value : a->min;
	a->max = !a->count || value > a->max ? value : a->max;
	a->count++;
	a->sum = (s64)((u64)a->sum + (u64)value);
	if (a->buckets)
		a->buckets[y_bucket(m, value)]++;
}

s64 y_aggregate_get(const struct y_aggregate *a, enum y_agg what)
{
	switch (what) {
	case Y_COUNT:
		return (s64)a->count;
	case Y_SUM:
		return a->sum;
	case Y_MIN:
		return a->min;
	case Y_MAX:
		return a->max;
	default:
		return a->count ? a->sum / (s64)a->count : 0;
	}
}

/* --- order --- */

static int compare_one(enum y_type type, u64 a, u64 b)
{
	if (type == Y_STR) {
		const struct y_str *s = string_of(a), *t = string_of(b);
		int c = memcmp(s->bytes, t->bytes, s->len < t->len ? s->len : t->len);

		return c ? c : (s->len > t->len) - (s->len < t->len);
	}
	if (type == Y_F64) {
		double x, y;

		memcpy(&x, &a, sizeof(x));
		memcpy(&y, &b, sizeof(y));
		return (x > y) - (x < y);
	}
	return type == Y_I64 ? ((s64)a > (s64)b) - ((s64)a < (s64)b) : (a > b) - (a < b);
}

static int by_key(const void *x, const void *y, void *ctx)
{
	const struct y_entry *a = *(struct y_entry *const *)x, *b = *(struct y_entry *const *)y;
	const struct y_map *m = ctx;
	int c = 0;

	for (u32 i = 0; !c && i < m->nkeys; i++)
		c = compare_one(m->keys[i], a->keys[i], b->keys[i]);
	return c;
}

/* An aggregate counts by its sum. */
static int by_value(const void *x, const void *y, void *ctx)
{
	const struct y_entry *a = *(struct y_entry *const *)x, *b = *(struct y_entry *const *)y;
	const struct y_map *m = ctx;
	int c = m->is_agg ? compare_one(Y_I64, (u64)((struct y_aggregate *)a->value)->sum,
	                            (u64)((struct y_aggregate *)b->value)->sum)
	                  : compare_one(m->value, a->value, b->value);

	return c ? -c : by_key(x, y, ctx);
}

struct y_entry **y_table_sorted(const struct y_table *t, u64 top, u32 *n)
{
	struct y_entry **all = t->used ? malloc(t->used * sizeof(*all)) : NULL;

	*n = 0;
	for (u32 i = 0; all && i < t->nentries; i++)
		if (!t->entries[i]->gone)
			all[(*n)++] = t->entries[i];
	if (*n)
		qsort_r(all, *n, sizeof(*all), top == UINT64_MAX ? by_key : by_value, (void *)t->map);
	*n = *n < top ? *n : (u32)top;
	return all;
}
