/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gc.total counts besides objects that others refer to: strings that only the VM or C code knows, by the table of
 * all strings, and the VM's own memory.
 */

#include "luajit_heap_internal.h"

#define TABLE_LEAST 256u /* LJ_MIN_STRTAB */
#define LOOK        64
#define STRINGS_MAX (1u << 20)
#define HEAP_MAX    (64ull << 20) /* strings of larger heaps lie too far apart to be read in any order */

struct strings {
	u64 table;
	u32 mask, n;
};

/* From 2020 on the low bit of an entry says how the strings behind it are hashed. */
static u64 bucket(struct luajit_heap *r, const struct strings *s, u32 number)
{
	const u8 *bytes = heap_bytes(r->h, s->table + (u64)number * r->at.ref, r->at.ref);

	return bytes ? luajit_ref_at(r, bytes) & ~1ull : 0;
}

static bool is_string(struct luajit_heap *r, u64 addr)
{
	const u8 *bytes = heap_bytes(r->h, addr, r->layout->str_size.at);

	return bytes && bytes[r->layout->l_gct.at] == GCT_STRING;
}

/* global_State has a pointer to the table, its mask, the number of strings: strhash …, later struct StrInternState. */
static bool find_strings(struct luajit_heap *r, u64 g, struct strings *ret)
{
	for (u32 at = 0; at + 16 <= r->layout->gg_g.size; at += 8) {
		const u8 *bytes = heap_bytes(r->h, g + at, 16);
		u32 seen = 0;

		if (!bytes)
			return false;
		*ret = (struct strings){luajit_word_at(bytes), luajit_u32_at(bytes + 8), luajit_u32_at(bytes + 12)};
		if (!ret->table || ret->table & 7 || ret->mask < TABLE_LEAST - 1 || ret->mask & (ret->mask + 1) ||
		        ret->n > STRINGS_MAX || !ret->n || ret->mask > 4 * STRINGS_MAX)
			continue;
		for (u32 i = 0; i < LOOK; i++) {
			u64 addr = bucket(r, ret, i);

			seen += addr && is_string(r, addr);
			if (addr && !is_string(r, addr))
				seen = 0, i = LOOK;
		}
		if (seen)
			return true;
	}
	return false;
}

static void add_strings(struct luajit_heap *r, const struct luajit_heap_vm *vm, const struct strings *s)
{
	u32 left = s->n + LOOK, len;
	char text[8];

	for (u32 i = 0; i <= s->mask; i++)
		for (u64 at = bucket(r, s, i), next; at && left; at = next, left--) {
			if (!luajit_heap_string(r, at, text, sizeof(text), &len) ||
			        !memory_read(r->p->memory, &next, sizeof(next), at))
				break;
			next = luajit_ref_at(r, (const u8 *)&next);
			heap_block(r->h, vm->strings_root, at, r->types[GCT_STRING], luajit_heap_string_size(r, len));
		}
}

static void add_own(struct luajit_heap *r, const struct luajit_heap_vm *vm)
{
	const struct luajit_layout *l = r->layout;
	u64 j = vm->g - l->gg_g.at + l->gg_j.at, traces = luajit_vms_read(r->p->memory, j, l->j_sizetrace);

	heap_block(r->h, vm->own_root, 0, heap_type(r->h, 32, "VM: GG_State"), l->gg_dispatch.at + l->gg_dispatch.size);
	if (traces && traces <= STRINGS_MAX)
		heap_block(r->h, vm->own_root, 0, heap_type(r->h, 33, "VM: table of traces"), traces * r->at.ref);
}

struct error *luajit_heap_own(void *reader)
{
	struct luajit_heap *r = reader;

	for (u32 i = 0; i < r->nvms; i++) {
		const struct luajit_heap_vm *vm = &r->vms[i];
		struct strings s;

		add_own(r, vm);
		if (!find_strings(r, vm->g, &s)) {
			heap_note(r->h, "VMs whose table of strings was not found");
			continue;
		}
		heap_block(r->h, vm->own_root, 0, heap_type(r->h, 34, "VM: table of strings"),
		        (s.mask + 1ull) * r->at.ref);
		if (luajit_vms_read(r->p->memory, vm->g, r->layout->g_gc_total) > HEAP_MAX)
			heap_note(r->h, "VMs so large that strings which no object refers to were not looked for");
		else
			add_strings(r, vm, &s);
	}
	return NULL;
}
