/* SPDX-License-Identifier: Apache-2.0 */

#include "luajit_heap_internal.h"

#define ARRAY_MAX (1u << 28)
#define HASH_MAX  (1u << 27)

bool luajit_heap_string(struct luajit_heap *r, u64 addr, char *ret, size_t size, u32 *len)
{
	const struct luajit_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, addr, l->str_size.at);
	size_t n;

	if (!bytes || bytes[l->l_gct.at] != GCT_STRING)
		return false;
	*len = luajit_u32_at(bytes + l->str_len.at);
	n = *len < size ? *len : size - 1;
	bytes = heap_bytes(r->h, addr + l->str_size.at + *len, 1);
	if (!bytes || *bytes)
		return false; /* a NUL follows its text */
	bytes = heap_bytes(r->h, addr + l->str_size.at, (u32)n);
	if (n && !bytes)
		return false;
	if (n)
		memcpy(ret, bytes, n);
	ret[n] = '\0';
	return true;
}

bool luajit_heap_table(struct luajit_heap *r, u64 addr, struct luajit_table *ret)
{
	const u8 *bytes = heap_bytes(r->h, addr, r->at.table);
	u32 hmask;

	if (!bytes || bytes[r->layout->l_gct.at] != GCT_TABLE)
		return false;
	hmask = luajit_u32_at(bytes + r->at.hmask);
	*ret = (struct luajit_table){.array = luajit_ref_at(r, bytes + r->at.array),
	        .metatable = luajit_ref_at(r, bytes + r->at.metatable),
	        .node = luajit_ref_at(r, bytes + r->at.node),
	        .asize = luajit_u32_at(bytes + r->at.asize),
	        .nodes = hmask ? hmask + 1 : 0,
	        .colocated = (s8)bytes[r->at.colocated]};
	return ret->asize <= ARRAY_MAX && ret->nodes <= HASH_MAX && !(ret->nodes & (ret->nodes - 1));
}

bool luajit_heap_each(struct luajit_heap *r, const struct luajit_table *t,
        bool (*each)(struct luajit_heap *r, u64 key, u64 value, void *ctx), void *ctx)
{
	u32 most = sizeof(r->block) / NODE_SIZE;

	for (u32 i = 0; i < t->nodes;) {
		u32 n = t->nodes - i < most ? t->nodes - i : most;
		u8 block[sizeof(r->block)];
		const u8 *bytes = heap_bytes(r->h, t->node + (u64)i * NODE_SIZE, n * NODE_SIZE);

		if (!bytes)
			return false;
		memcpy(block, bytes, (size_t)n * NODE_SIZE);
		for (u32 k = 0; k < n; k++) {
			const u8 *node = block + (size_t)k * NODE_SIZE;
			u64 value = luajit_word_at(node), key = luajit_word_at(node + 8), unused;

			if (luajit_value(r, value, &unused) && !each(r, key, value, ctx))
				return true;
		}
		i += n;
	}
	return true;
}

struct field {
	const char *name;
	u64 value;
};

static bool is_field(struct luajit_heap *r, u64 key, u64 value, void *ctx)
{
	struct field *f = ctx;
	char text[64];
	u64 addr;
	u32 len;

	if (luajit_value(r, key, &addr) != GCT_STRING || !luajit_heap_string(r, addr, text, sizeof(text), &len) ||
	        strcmp(text, f->name) != 0)
		return true;
	f->value = value;
	return false;
}

u64 luajit_heap_field(struct luajit_heap *r, const struct luajit_table *t, const char *name)
{
	struct field f = {.name = name};

	luajit_heap_each(r, t, is_field, &f);
	return f.value;
}
