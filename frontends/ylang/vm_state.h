/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the VM share: strings, maps, and what is printed. */
#ifndef YRT_YLANG_VM_STATE_H
#define YRT_YLANG_VM_STATE_H

#include "pages.h"
#include "vm.h"

#define Y_TRACER_MOST (256ull << 20)

struct y_str { /* never changed once it is made */
	u32 len;
	bool cut;
	char bytes[];
};

struct y_aggregate {
	u64 count;
	s64 sum, min, max;
	u64 *buckets; /* NULL: nobody prints a histogram of it */
};

struct y_entry {
	u64 keys[Y_KEYS_MOST]; /* of a string: struct y_str * */
	u64 value;             /* of an aggregate: struct y_aggregate * */
	bool gone;
};

struct y_table {
	const struct y_map *map;
	bool buckets;
	struct y_entry **entries; /* in the order they came */
	u32 nentries, used, index_size;
	u32 *index;       /* by hash: 1 + number of an entry */
	u64 *bytes, lost; /* of all tables together */
};

struct y_entry *y_table_find(const struct y_table *t, const u64 *keys);
/* NULL: it is full, which is counted. */
struct y_entry *y_table_add(struct y_table *t, const u64 *keys);
bool y_table_set(struct y_table *t, struct y_entry *e, u64 value);
void y_table_delete(struct y_table *t, const u64 *keys);
void y_table_clear(struct y_table *t);
void y_aggregate_add(const struct y_map *m, struct y_aggregate *a, s64 value);
s64 y_aggregate_get(const struct y_aggregate *a, enum y_agg what);
/* The entries as _foreach has them; malloc'd; NULL: none, or no memory. top: UINT64_MAX: by key, all. */
struct y_entry **y_table_sorted(const struct y_table *t, u64 top, u32 *n);

/* print.c */
struct y_printed {
	u64 value;
	u64 status, at;
};
void y_print_format(FILE *out, const struct y_format *f, const struct y_printed *values);
void y_print_table(FILE *out, const struct y_table *t, enum y_shape shape);
/* print_json.c: the same as an object of JSON. */
void y_json_format(FILE *out, const struct y_format *f, const struct y_printed *values);
void y_json_table(FILE *out, const struct y_table *t, enum y_shape shape);
/* Text of the target, made safe; the characters that it has. */
u32 y_put_text(FILE *out, const char *bytes, u32 len);

#endif
