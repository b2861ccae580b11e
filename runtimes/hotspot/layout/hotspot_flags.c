/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_flags.h"

#include <string.h>

#define FLAGS_MAX 8192
#define NAME_SIZE 64
#define ENTRY_MAX 128
#define BATCH     32 /* flags that are read at once, also by threads with a small stack */

struct flag_table {
	u64 at, count, stride;
	u64 name, addr; /* offsets in an entry */
};

static bool find_table(const struct vmstructs *v, struct memory *m, struct flag_table *ret)
{
	static const char *const types[] = {"JVMFlag", "Flag"};
	u64 flags, count;

	for (u32 i = 0; i < 2; i++) {
		const char *type = types[i];

		if (!vmstructs_type_size(v, type, &ret->stride) || !vmstructs_static(v, type, "flags", &flags) ||
		        !vmstructs_static(v, type, "numFlags", &count) ||
		        !vmstructs_field(v, type, "_name", &ret->name, NULL) ||
		        !vmstructs_field(v, type, "_addr", &ret->addr, NULL))
			continue;
		return memory_read(m, &ret->at, 8, flags) && memory_read(m, &ret->count, 8, count) &&
		       ret->stride >= 16 && ret->stride <= ENTRY_MAX && ret->name <= ret->stride - 8 &&
		       ret->addr <= ret->stride - 8 && ret->count <= FLAGS_MAX;
	}
	return false;
}

static bool read_value(struct memory *m, u64 addr, const char *name, struct hotspot_flag *flags, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		if (flags[i].found || strcmp(flags[i].name, name) != 0)
			continue;
		flags[i].value = 0;
		if (flags[i].size > 8 || !memory_read(m, &flags[i].value, flags[i].size, addr))
			return false;
		flags[i].found = true;
	}
	return true;
}

/* The names of entries[0..n), each at a place of its own: one call reads the most of them. */
static bool read_names(struct memory *m, const u64 *at, char (*names)[NAME_SIZE], u32 n)
{
	struct memory_piece pieces[BATCH];
	u32 done = 0;

	for (u32 i = 0; i < n; i++)
		pieces[i] = (struct memory_piece){names[i], at[i], NAME_SIZE - 1};
	while (done < n) {
		done += memory_read_pieces(m, pieces + done, n - done);
		if (done == n)
			break;
		names[done][0] = 0; /* none, or at the end of what is mapped */
		if (at[done] && !memory_string(m, names[done], NAME_SIZE, at[done]))
			return false;
		done++;
	}
	for (u32 i = 0; i < n; i++)
		names[i][NAME_SIZE - 1] = 0;
	return true;
}

static bool read_batch(
        const struct flag_table *t, struct memory *m, u64 first, u32 n, struct hotspot_flag *flags, u32 nflags)
{
	u8 entries[BATCH * ENTRY_MAX];
	char names[BATCH][NAME_SIZE];
	u64 at[BATCH], addr;

	if (!memory_read(m, entries, n * t->stride, t->at + first * t->stride))
		return false;
	for (u32 i = 0; i < n; i++)
		memcpy(&at[i], entries + i * t->stride + t->name, 8);
	if (!read_names(m, at, names, n))
		return false;
	for (u32 i = 0; i < n; i++) {
		memcpy(&addr, entries + i * t->stride + t->addr, 8);
		if (!read_value(m, addr, names[i], flags, nflags))
			return false;
	}
	return true;
}

bool hotspot_flags_read(const struct vmstructs *v, struct memory *m, struct hotspot_flag *flags, u32 n)
{
	struct flag_table t;
	bool good = find_table(v, m, &t);

	for (u32 i = 0; i < n; i++)
		flags[i].found = false;
	for (u64 i = 0; good && i < t.count; i += BATCH)
		good = read_batch(&t, m, i, t.count - i < BATCH ? t.count - i : BATCH, flags, n);
	for (u32 i = 0; !good && i < n; i++)
		flags[i].found = false;
	return good;
}
