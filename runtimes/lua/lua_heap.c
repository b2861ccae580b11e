/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_heap.h"

#include <stdio.h>
#include <stdlib.h>

#include "lua_heap_internal.h"
#include "lua_names.h"
#include "lua_states.h"

#define STRINGS_MAX     (1u << 30)
#define STATE           2048 /* bytes of a global_State that are looked at */
#define TYPES_OF_VALUES 9
#define METAMETHODS     (25 + TYPES_OF_VALUES)

/* In the order of struct lua_objects. Redis's 5.1 has a member more in tables; 5.2 is built with either order. */
static const struct {
	u32 version;
	struct lua_objects at;
} shapes[] = {
        {501, {64, 11, 56, 16, 24, 32, 40, 16, 24, 40, 11, 24, 40, 16, 40, 16, 32, 24}},
        {501, {72, 16, 64, 24, 32, 40, 40, 16, 24, 40, 11, 24, 40, 16, 40, 16, 32, 24}},
        {502, {64, 11, 56, 16, 24, 32, 40, 16, 24, 32, 10, 0, 40, 16, 40, 16, 32, 24}},
        {502, {56, 11, 12, 40, 16, 24, 40, 16, 24, 32, 10, 0, 40, 16, 40, 16, 32, 24}},
        {503, {56, 11, 12, 40, 16, 24, 32, 16, 24, 32, 10, 0, 32, 0, 40, 16, 24, 32}},
        {504, {56, 11, 12, 40, 16, 24, 24, 16, 9, 32, 10, 0, 40, 16, 32, 24, 16, 40}},
};

/* --- values and tables --- */

bool lua_heap_string(struct lua_heap *r, u64 addr, char *ret, size_t size, u32 *len)
{
	const u8 *bytes = heap_bytes(r->h, addr, STRING_HEAD);
	size_t n;

	if (!bytes || lua_object_type(r, bytes[HEAD_TT]) != LUA_STRING)
		return false;
	*len = r->version >= 503 && !(bytes[HEAD_TT] & 0x10) ? bytes[11] : lua_u32_at(bytes + STRING_LENGTH);
	n = *len < size ? *len : size - 1;
	bytes = heap_bytes(r->h, addr + STRING_HEAD + *len, 1);
	if (!bytes || *bytes)
		return false; /* a NUL follows its text */
	bytes = n ? heap_bytes(r->h, addr + STRING_HEAD, (u32)n) : NULL;
	if (n && !bytes)
		return false;
	if (n)
		memcpy(ret, bytes, n);
	ret[n] = '\0';
	return true;
}

/* 5.4: alimit may be less than the array; the array then is the next power of two (ltable.c: luaH_realasize). */
static u32 array_size(const struct lua_heap *r, const u8 *table)
{
	u32 n = lua_u32_at(table + r->at.table_size), power = 1;

	if (r->version < 504 || !(table[10] & 0x80) || !(n & (n - 1)))
		return n;
	while (power < n && power < 1u << 30)
		power *= 2;
	return power;
}

bool lua_heap_table(struct lua_heap *r, u64 addr, struct lua_table *ret)
{
	const u8 *bytes = heap_bytes(r->h, addr, r->at.table);
	u8 lsize;

	if (!bytes || lua_object_type(r, bytes[HEAD_TT]) != LUA_TABLE)
		return false;
	lsize = bytes[r->at.lsizenode];
	*ret = (struct lua_table){.addr = addr,
	        .array = lua_word_at(bytes + r->at.array),
	        .metatable = lua_word_at(bytes + r->at.metatable),
	        .node = lua_word_at(bytes + r->at.node),
	        .asize = array_size(r, bytes)};
	if (lsize > 27 || ret->asize > 1u << 28)
		return false;
	ret->nodes = 1u << lsize;
	/* a table without a hash part has the one node that all share, which is empty and no heap memory */
	return true;
}

bool lua_heap_each(struct lua_heap *r, const struct lua_table *t,
        bool (*each)(struct lua_heap *r, struct lua_value key, struct lua_value value, void *ctx), void *ctx)
{
	u32 size = r->at.node_size, most = (u32)(sizeof(r->block) / size);

	for (u32 i = 0; i < t->nodes;) {
		u32 n = t->nodes - i < most ? t->nodes - i : most;
		u8 block[sizeof(r->block)];
		const u8 *bytes = heap_bytes(r->h, t->node + (u64)i * size, n * size);

		if (!bytes)
			return false;
		memcpy(block, bytes, (size_t)n * size);
		for (u32 k = 0; k < n; k++) {
			const u8 *node = block + (size_t)k * size;
			u32 tag = r->version == 501 ? lua_u32_at(node + 8) : node[8];
			u32 key_tag = r->version == 501 ? lua_u32_at(node + r->at.key_tag) : node[r->at.key_tag];
			struct lua_value value = lua_value_of(r, lua_word_at(node), tag);
			struct lua_value key = lua_value_of(r, lua_word_at(node + r->at.key), key_tag);

			if (tag & TYPE_BITS && !each(r, key, value, ctx))
				return true;
		}
		i += n;
	}
	return true;
}

struct field {
	const char *name;
	struct lua_value value;
};

static bool is_field(struct lua_heap *r, struct lua_value key, struct lua_value value, void *ctx)
{
	struct field *f = ctx;
	char text[64];
	u32 len;

	if (key.type != LUA_STRING || !lua_heap_string(r, key.addr, text, sizeof(text), &len) ||
	        strcmp(text, f->name) != 0)
		return true;
	f->value = value;
	return false;
}

struct lua_value lua_heap_field(struct lua_heap *r, const struct lua_table *t, const char *name)
{
	struct field f = {.name = name};

	lua_heap_each(r, t, is_field, &f);
	return f.value;
}

/* --- states --- */

static u64 field_table(struct lua_heap *r, u64 table, const char *name)
{
	struct lua_table t;
	struct lua_value value;

	if (!table || !lua_heap_table(r, table, &t))
		return 0;
	value = lua_heap_field(r, &t, name);
	return value.type == LUA_TABLE ? value.addr : 0;
}

static bool is_read(struct lua_heap *r, struct lua_value key, struct lua_value value, void *ctx)
{
	char text[8];
	u32 len;

	*(bool *)ctx = !key.object || key.type != LUA_STRING || lua_heap_string(r, key.addr, text, sizeof(text), &len);
	return *(bool *)ctx;
}

/* Table.lastfree, behind Table.node, leads into the hash part. */
static bool has_hash(struct lua_heap *r, const struct lua_table *t)
{
	const u8 *bytes = heap_bytes(r->h, t->addr + r->at.node + 8, 8);
	u64 free = bytes ? lua_word_at(bytes) : 0;

	return t->node && free >= t->node && free <= t->node + (u64)r->at.node_size * t->nodes;
}

/* Are tables laid out so: are all keys of the registry and of package.loaded what they say? */
static bool fits(struct lua_heap *r, struct lua_heap_state *s)
{
	struct lua_table registry, loaded;
	bool whole = false;

	s->loaded = field_table(r, s->registry, "_LOADED");
	s->globals = field_table(r, s->loaded, "_G");
	return s->globals && lua_heap_table(r, s->registry, &registry) && lua_heap_table(r, s->loaded, &loaded) &&
	       has_hash(r, &registry) && has_hash(r, &loaded) && lua_heap_each(r, &registry, is_read, &whole) &&
	       whole && lua_heap_each(r, &loaded, is_read, &whole) && whole;
}

static void try_state(void *ctx, u64 thread, u64 g)
{
	struct lua_heap *r = ctx;
	struct lua_heap_state s = {.thread = thread, .g = g};
	u8 registry[VALUE];
	bool found = false;

	if (r->nstates == STATES_MAX ||
	        !memory_read(r->p->memory, registry, sizeof(registry), g + r->layout->g_registry.at) ||
	        (lua_u32_at(registry + 8) & TYPE_BITS) != LUA_TABLE)
		return;
	s.registry = lua_word_at(registry);
	for (u32 i = 0; !found && i < sizeof(shapes) / sizeof(*shapes); i++) {
		if (shapes[i].version != r->version)
			continue;
		r->at = shapes[i].at;
		found = fits(r, &s);
	}
	if (!found)
		return;
	snprintf(s.name, sizeof(s.name), "state 0x%lx", thread);
	r->states[r->nstates++] = s;
	lua_names_see(r->names, g);
}

static void name_types(struct lua_heap *r)
{
	static const char *const names[LUA_TYPES] = {[LUA_STRING] = "string",
	        [LUA_TABLE] = "table",
	        [LUA_FUNCTION] = "function",
	        [LUA_USERDATA] = "userdata",
	        [LUA_THREAD] = "thread",
	        [LUA_PROTO] = "proto",
	        [LUA_UPVALUE] = "upvalue"};

	for (u32 i = LUA_STRING; i < LUA_TYPES; i++)
		r->types[i] = heap_type(r->h, i, names[i]);
}

struct error *lua_heap_open(const struct lua_image *image, struct lua_names *names, const struct runtime_process *p,
        struct heap *h, void **ret)
{
	u32 version = image->vm.version;
	struct lua_heap *r;
	struct error *err;

	*ret = NULL;
	if (version > 504 || !image->layout->l_g.size || !image->layout->g_registry.size || !image->layout->p_p.size)
		return error_new(
		        ERROR_UNSUPPORTED, "the objects of %s are not read, only those of 5.1 to 5.4", image->release);
	r = calloc(1, sizeof(*r));
	if (!r)
		return &error_no_memory;
	r->h = h;
	r->p = p;
	r->image = image;
	r->layout = image->layout;
	r->names = names;
	r->version = version;
	err = lua_states(image, p, try_state, r);
	if (err || !r->nstates) {
		free(r);
		return err;
	}
	name_types(r);
	*ret = r;
	return NULL;
}

void lua_heap_close(void *reader)
{
	free(reader);
}

/* --- roots --- */

struct root_table {
	const struct lua_heap_state *state;
	u32 root;
	const struct lua_table *loaded; /* of the globals: what is not told again */
};

static bool add_root_entry(struct lua_heap *r, struct lua_value key, struct lua_value value, void *ctx)
{
	const struct root_table *t = ctx;
	char text[96] = "[reference]";
	u32 len;

	if (key.object)
		heap_root_ref(r->h, t->root, HEAP_KEY | HEAP_PART, key.addr);
	if (!value.object || value.addr == t->state->loaded || value.addr == t->state->globals)
		return true; /* roots of their own */
	if (key.type == LUA_STRING && !lua_heap_string(r, key.addr, text, sizeof(text), &len))
		return true;
	if (t->loaded && lua_heap_field(r, t->loaded, text).addr == value.addr)
		return true; /* a module that is a global, too */
	heap_root_ref(r->h, t->root, heap_label(r->h, text), value.addr);
	return true;
}

static void add_table(struct lua_heap *r, const struct lua_heap_state *s, u32 parent, const char *name, u64 addr,
        const struct lua_table *loaded)
{
	struct root_table root = {.state = s, .loaded = loaded};
	struct lua_table t;

	if (!addr || !lua_heap_table(r, addr, &t))
		return;
	root.root = heap_root(r->h, parent, HEAP_LASTING, name);
	heap_root_ref(r->h, root.root, HEAP_PART, addr);
	lua_heap_each(r, &t, add_root_entry, &root);
	for (u32 i = 0; i < t.asize; i++) {
		const u8 *bytes = heap_bytes(r->h, t.array + (u64)VALUE * i, VALUE);
		struct lua_value v = bytes ? lua_value_of(r, lua_word_at(bytes), lua_u32_at(bytes + 8) & 0xff)
		                           : (struct lua_value){0};

		if (v.object && v.addr != s->globals && v.addr != s->thread)
			heap_root_ref(r->h, root.root, heap_label(r->h, "[reference]"), v.addr);
	}
	if (t.metatable)
		heap_root_ref(r->h, root.root, heap_label(r->h, "metatable"), t.metatable);
}

/* Where global_State has the names of metamethods (tmname), the first of which is "__index"; 0: nowhere. */
static u32 find_names(struct lua_heap *r, const struct lua_heap_state *s)
{
	for (u32 at = 0; at < STATE; at += 8) {
		const u8 *bytes = heap_bytes(r->h, s->g + at, 8);
		u64 addr = bytes ? lua_word_at(bytes) : 0;
		char text[16];
		u32 len;

		if (addr && !(addr & 7) && lua_heap_string(r, addr, text, sizeof(text), &len) &&
		        !strcmp(text, "__index"))
			return at;
	}
	return 0;
}

/* Metatables of types (mt) lie right before these names, in 5.4 right behind them. */
static void add_state_roots(struct lua_heap *r, const struct lua_heap_state *s, u32 parent)
{
	u32 root = heap_root(r->h, parent, HEAP_RUNTIME, "state"), label = heap_label(r->h, "metatables of types");
	u32 names = find_names(r, s), before = 8 * TYPES_OF_VALUES;

	for (u32 at = names > before ? names - before : names; names && at < names + 8 * METAMETHODS; at += 8) {
		const u8 *bytes = heap_bytes(r->h, s->g + at, 8);
		u64 addr = bytes ? lua_word_at(bytes) : 0;
		struct lua_table t;

		if (addr && !(addr & 7) && addr != s->registry && lua_heap_table(r, addr, &t))
			heap_root_ref(r->h, root, label, addr);
	}
}

struct error *lua_heap_roots(void *reader)
{
	struct lua_heap *r = reader;

	for (u32 i = 0; i < r->nstates; i++) {
		const struct lua_heap_state *s = &r->states[i];
		u32 parent = r->nstates > 1 ? heap_root(r->h, 0, HEAP_LASTING, s->name) : 0, threads;
		struct lua_table loaded;

		add_table(r, s, parent, "package.loaded", s->loaded, NULL);
		if (lua_heap_table(r, s->loaded, &loaded))
			add_table(r, s, parent, "globals", s->globals, &loaded);
		add_table(r, s, parent, "registry", s->registry, NULL);
		threads = heap_root(r->h, parent, HEAP_STACKS, "threads");
		heap_root_ref(r->h, threads, heap_label(r->h, "main thread"), s->thread);
		add_state_roots(r, s, parent);
	}
	return NULL;
}

/* The table of all short strings (stringtable): first in global_State in 5.1, later right before the registry. */
struct error *lua_heap_own(void *reader)
{
	struct lua_heap *r = reader;

	for (u32 i = 0; i < r->nstates; i++) {
		const struct lua_heap_state *s = &r->states[i];
		u64 at = r->version == 501 ? s->g : s->g + r->layout->g_registry.at - 16;
		const u8 *bytes = heap_bytes(r->h, at, 16);
		u32 n = bytes ? lua_u32_at(bytes + 12) : 0, parent;

		if (!n || n & (n - 1) || n > STRINGS_MAX || !lua_word_at(bytes))
			continue;
		parent = r->nstates > 1 ? heap_root(r->h, 0, HEAP_LASTING, s->name) : 0;
		heap_block(r->h, heap_root(r->h, parent, HEAP_RUNTIME, "state"), 0,
		        heap_type(r->h, LUA_TYPES, "VM: table of strings"), 8ull * n);
	}
	return NULL;
}

/* --- what a collection would free --- */

static bool is_listed(void *ctx, u64 addr)
{
	struct lua_heap *r = ctx;
	const u8 *bytes = heap_bytes(r->h, addr, HEAD_TT + 1);
	u32 type = bytes ? lua_object_type(r, bytes[HEAD_TT]) : 0;

	return type >= LUA_STRING && type < LUA_TYPES;
}

struct error *lua_heap_all(void *reader)
{
	struct lua_heap *r = reader;

	for (u32 i = 0; i < r->nstates; i++)
		if (!heap_candidate_list(
		            r->h, r->states[i].g, r->states[i].g + STATE, 8, r->states[i].registry, is_listed, r))
			return error_new(ERROR_UNSUPPORTED, "--unreachable: the collector's list of %s was not found",
			        r->states[i].name);
	return NULL;
}
