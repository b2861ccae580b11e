/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_prefetch.h"

#include <string.h>

/* Addresses, 0 where there is none. */
struct step {
	u64 at[HOTSPOT_PREFETCH_MAX];
};

static void fetch(struct hotspot_blocks *b, const struct step *s, u32 n, u32 offset)
{
	u64 at[HOTSPOT_PREFETCH_MAX] = {0};

	for (u32 i = 0; i < n; i++)
		at[i] = s->at[i] ? s->at[i] + offset : 0;
	hotspot_blocks_prefetch(b, at, n);
}

/* The number at an offset of each; 0 where it can not be read. */
static void take(struct hotspot_blocks *b, const struct step *from, u32 n, struct layout_member m, struct step *ret)
{
	for (u32 i = 0; i < n; i++) {
		ret->at[i] = 0;
		if (from->at[i] &&
		        !memory_read(hotspot_blocks_kept(b), &ret->at[i], m.size < 8 ? m.size : 8, from->at[i] + m.at))
			ret->at[i] = 0;
	}
}

/* The pointers at an offset of each. */
static void follow(struct hotspot_blocks *b, const struct step *from, u32 n, struct layout_member m, struct step *ret)
{
	fetch(b, from, n, m.at);
	take(b, from, n, (struct layout_member){m.at, 8}, ret);
}

/* PcDescs, scopes, metadata: behind the code, or in memory of their own. */
static void fetch_tables(const struct hotspot_layout *l, struct hotspot_blocks *b, const struct step *nmethods, u32 n)
{
	const struct layout_member members[] = {l->nm_scopes_data_begin, l->nm_immutable_data, l->blob_mutable_data};

	for (u32 i = 0; i < sizeof(members) / sizeof(*members); i++) {
		struct step at;

		if (!members[i].size)
			continue;
		follow(b, nmethods, n, members[i], &at);
		fetch(b, &at, n, 0);
	}
}

/* A Symbol of the pool, by its index in a member of ConstMethod. */
static void fetch_symbols(const struct hotspot_layout *l, struct hotspot_blocks *b, const struct step *constants,
        const struct step *pools, u32 n, struct layout_member index)
{
	struct step at, symbols;

	take(b, constants, n, index, &at);
	for (u32 i = 0; i < n; i++)
		at.at[i] = at.at[i] && pools->at[i] ? pools->at[i] + l->pool_size.at + 8 * (at.at[i] & 0xffff) : 0;
	follow(b, &at, n, (struct layout_member){0, 8}, &symbols);
	fetch(b, &symbols, n, 0);
}

void hotspot_prefetch(const struct hotspot_layout *l, struct hotspot_blocks *b, const u64 *nmethods, u32 n)
{
	struct step first = {{0}}, methods, constants, pools, holders, symbols;

	memcpy(first.at, nmethods, n * sizeof(*nmethods));
	fetch(b, &first, n, 0);
	follow(b, &first, n, l->nm_method, &methods);
	fetch_tables(l, b, &first, n);
	follow(b, &methods, n, l->method_const, &constants);
	follow(b, &constants, n, l->const_pool, &pools);
	follow(b, &pools, n, l->pool_holder, &holders);
	follow(b, &holders, n, l->klass_name, &symbols);
	fetch(b, &symbols, n, 0);
	fetch_symbols(l, b, &constants, &pools, n, l->const_name);
	fetch_symbols(l, b, &constants, &pools, n, l->const_signature);
}
