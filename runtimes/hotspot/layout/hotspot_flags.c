/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_flags.h"

#include <string.h>

#define FLAGS_MAX 8192
#define NAME_SIZE 64
#define ENTRY_MAX 128

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

static bool read_flag(const struct flag_table *t, struct memory *m, u64 entry_at, struct hotspot_flag *flags, u32 n)
{
	u8 entry[ENTRY_MAX];
	char name[NAME_SIZE];
	u64 at, addr;

	if (!memory_read(m, entry, t->stride, entry_at))
		return false;
	memcpy(&at, entry + t->name, 8);
	memcpy(&addr, entry + t->addr, 8);
	return !at || (memory_string(m, name, sizeof(name), at) && read_value(m, addr, name, flags, n));
}

bool hotspot_flags_read(const struct vmstructs *v, struct memory *m, struct hotspot_flag *flags, u32 n)
{
	struct flag_table t;
	bool good = find_table(v, m, &t);

	for (u32 i = 0; i < n; i++)
		flags[i].found = false;
	for (u64 i = 0; good && i < t.count; i++)
		good = read_flag(&t, m, t.at + i * t.stride, flags, n);
	for (u32 i = 0; !good && i < n; i++)
		flags[i].found = false;
	return good;
}
