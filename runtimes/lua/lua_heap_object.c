/* SPDX-License-Identifier: Apache-2.0 */
/* What an object refers to, and by which name. */
#include <ctype.h>
#include <stdio.h>

#include "lua_heap_internal.h"
#include "lua_names.h"
#include "lua_proto.h"

#define NAMED_MAX  64 /* a table with more keys than this holds data under them */
#define ITEMS      4096u
#define SLOTS_MAX  (1u << 20)
#define CONSTANTS  (1u << 16)
#define FRAMES_MAX 10000
#define CALLS_MAX  (1u << 17)

/* --- tables --- */

struct entries {
	const struct lua_table *t;
	u32 named;
	bool data, weak_keys, weak_values;
};

static bool is_name(const char *text)
{
	if (!isalpha((u8)text[0]) && text[0] != '_')
		return false;
	while (*text && (isalnum((u8)*text) || *text == '_'))
		text++;
	return !*text;
}

static u32 label_of(struct lua_heap *r, const struct entries *e, struct lua_value key)
{
	char text[48], label[64];
	u32 len;

	if (key.type != LUA_STRING || e->data || !lua_heap_string(r, key.addr, text, sizeof(text), &len))
		return HEAP_ENTRY;
	if (len < sizeof(text) && is_name(text))
		snprintf(label, sizeof(label), ".%s", text);
	else
		snprintf(label, sizeof(label), "[\"%s%s\"]", text, len < sizeof(text) ? "" : "…");
	return heap_label(r->h, label);
}

static bool add_entry(struct lua_heap *r, struct lua_value key, struct lua_value value, void *ctx)
{
	const struct entries *e = ctx;

	if (key.object && (!e->weak_keys || key.type == LUA_STRING))
		heap_ref(r->h, HEAP_KEY | (key.type == LUA_STRING && !e->data ? HEAP_PART : 0), key.addr);
	if (value.object && (!e->weak_values || value.type == LUA_STRING))
		heap_ref(r->h, label_of(r, e, key), value.addr);
	return true;
}

static bool count_entry(struct lua_heap *r, struct lua_value key, struct lua_value value, void *ctx)
{
	struct entries *e = ctx;

	return key.type != LUA_STRING || ++e->named <= NAMED_MAX;
}

static void read_weakness(struct lua_heap *r, struct entries *e)
{
	struct lua_table mt;
	struct lua_value value;
	char mode[8];
	u32 len;

	if (!e->t->metatable || !lua_heap_table(r, e->t->metatable, &mt) || mt.nodes > 256)
		return;
	value = lua_heap_field(r, &mt, "__mode");
	if (value.type != LUA_STRING || !lua_heap_string(r, value.addr, mode, sizeof(mode), &len))
		return;
	e->weak_keys = strchr(mode, 'k');
	e->weak_values = strchr(mode, 'v');
}

static bool add_values(struct lua_heap *r, u64 start, u32 n, u32 label, bool weak)
{
	for (u32 i = 0; i < n;) {
		u32 here = n - i < ITEMS ? n - i : ITEMS;
		const u8 *bytes = heap_bytes(r->h, start + (u64)VALUE * i, VALUE * here);

		if (!bytes)
			return false;
		for (u32 k = 0; k < here; k++) {
			struct lua_value v = lua_value_of(r, lua_word_at(bytes + (size_t)VALUE * k),
			        lua_u32_at(bytes + (size_t)VALUE * k + 8) & 0xff);

			if (v.object && (!weak || v.type == LUA_STRING))
				heap_ref(r->h, label, v.addr);
		}
		i += here;
	}
	return true;
}

static bool is_root_table(const struct lua_heap *r, u64 addr)
{
	for (u32 i = 0; i < r->nstates; i++)
		if (addr == r->states[i].loaded || addr == r->states[i].globals || addr == r->states[i].registry)
			return true;
	return false;
}

/* A single node may be the one that all tables without a hash part share: that has no key, and never had. */
static u32 own_nodes(struct lua_heap *r, const struct lua_table *t)
{
	const u8 *node = t->nodes == 1 ? heap_bytes(r->h, t->node, r->at.node_size) : NULL;

	return t->nodes > 1 || (node && node[r->at.key_tag] & TYPE_BITS) ? t->nodes : 0;
}

static enum heap_seen see_table(struct lua_heap *r, u64 addr, struct heap_object *ret)
{
	struct lua_table t;
	struct entries e = {.t = &t};

	if (!lua_heap_table(r, addr, &t))
		return HEAP_TORN;
	ret->size = r->at.table + (u64)VALUE * t.asize + (u64)r->at.node_size * own_nodes(r, &t);
	if (is_root_table(r, addr))
		return HEAP_OBJECT; /* its entries are roots */
	read_weakness(r, &e);
	if (!lua_heap_each(r, &t, count_entry, &e))
		return HEAP_TORN;
	e.data = e.named > NAMED_MAX;
	if (!lua_heap_each(r, &t, add_entry, &e) || !add_values(r, t.array, t.asize, HEAP_ITEM, e.weak_values))
		return HEAP_TORN;
	if (t.metatable)
		heap_ref(r->h, heap_label(r->h, "metatable"), t.metatable);
	return HEAP_OBJECT;
}

/* --- functions --- */

static void function_name(struct lua_heap *r, u64 proto, char *ret, size_t size)
{
	struct frame_name name = {0};
	struct frame f = {.where = frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, proto)};
	u32 cookie;

	snprintf(ret, size, "?");
	if (!lua_proto_cookie(r->image, r->p->memory, proto, &cookie))
		return;
	f.detail = (u64)cookie << LUA_COOKIE_BITS | LUA_NO_POS;
	if (!lua_name_frame(r->names, r->p, &f, 0, 1, &name))
		return;
	if (name.definition)
		snprintf(ret, size, "%s%s(%s:%u)", name.name, name.name[0] ? " " : "", name.file, name.definition);
	else
		snprintf(ret, size, "%s%s(%s)", name.name, name.name[0] ? " " : "", name.file);
}

static u32 function_type(struct lua_heap *r, u64 proto, const char *word)
{
	u64 key = word[0] == 'p' ? proto : proto | 1;
	u32 type = heap_type(r->h, key, NULL);
	char name[2 * NAME_MAX_BYTES + 16], text[sizeof(name) + 16];

	if (type)
		return type;
	function_name(r, proto, name, sizeof(name));
	snprintf(text, sizeof(text), "%s %s", word, name);
	return heap_type(r->h, key, text);
}

static enum heap_seen see_c_function(struct lua_heap *r, u64 addr, u32 n, struct heap_object *ret)
{
	ret->type = heap_type(r->h, 16, "function in C");
	ret->size = r->at.closure_upvalues + (u64)VALUE * n;
	return add_values(r, addr + r->at.closure_upvalues, n, heap_label(r->h, "upvalue"), false) ? HEAP_OBJECT
	                                                                                           : HEAP_TORN;
}

/* The name of an upvalue: of 5.1 a TString, later the first member of an Upvaldesc of 16 bytes. */
static u32 upvalue_label(struct lua_heap *r, u64 upvalues, u32 n, u32 number)
{
	u32 step = r->version == 501 ? 8 : 16, len;
	const u8 *bytes = number < n ? heap_bytes(r->h, upvalues + (u64)step * number, 8) : NULL;
	char text[64];

	if (!bytes || !lua_heap_string(r, lua_word_at(bytes), text, sizeof(text), &len) || !text[0])
		return heap_label(r->h, "upvalue");
	return heap_label(r->h, text);
}

/*
 * In 5.3 an upvalue is no object: what it holds is told by the function, which has a share of its bytes, as it counts
 * how many functions have it (lfunc.h: UpVal.refcount behind v).
 */
static bool add_upvalue(struct lua_heap *r, u64 upvalue, u32 label, u64 *size)
{
	const u8 *bytes;
	u64 v, users;

	if (r->version != 503) {
		heap_ref(r->h, label | HEAP_PART, upvalue);
		return true;
	}
	bytes = upvalue ? heap_bytes(r->h, upvalue, 16) : NULL;
	v = bytes ? lua_word_at(bytes) : 0;
	users = bytes ? lua_word_at(bytes + 8) : 0;
	users = users ? users : 1;
	*size += (r->at.upvalue + (upvalue >> 4) % users) / users;
	return !v || add_values(r, v, 1, label, false);
}

static enum heap_seen see_function(struct lua_heap *r, u64 addr, u8 tt, struct heap_object *ret)
{
	const struct lua_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, addr, r->at.closure_upvalues);
	u64 upvalues[256], env, proto, names;
	u32 nnames;
	bool is_c;
	u8 n;

	if (!bytes)
		return HEAP_TORN;
	n = bytes[r->at.nups];
	is_c = r->version == 501 ? bytes[l->cl_is_c.at] : (tt & VARIANT_BITS) == (LUA_FUNCTION | 2 << 4);
	env = r->at.env ? lua_word_at(bytes + r->at.env) : 0;
	proto = lua_word_at(bytes + l->cl_p.at);
	if (env && !is_root_table(r, env))
		heap_ref(r->h, heap_label(r->h, "env"), env);
	if (is_c)
		return see_c_function(r, addr, n, ret);
	bytes = heap_bytes(r->h, addr + r->at.closure_upvalues, 8u * n);
	if (n && !bytes)
		return HEAP_TORN;
	if (n)
		memcpy(upvalues, bytes, 8ul * n);
	bytes = heap_bytes(r->h, proto, 128);
	if (!bytes)
		return HEAP_TORN;
	names = lua_word_at(bytes + l->p_upvalues.at);
	nnames = lua_u32_at(bytes + l->p_sizeupvalues.at);
	ret->size = r->at.closure_upvalues + 8ull * n;
	for (u32 i = 0; i < n; i++)
		if (!add_upvalue(r, upvalues[i], upvalue_label(r, names, nnames, i), &ret->size))
			return HEAP_TORN;
	heap_ref(r->h, heap_label(r->h, "proto"), proto);
	ret->type = function_type(r, proto, "function");
	return HEAP_OBJECT;
}

static enum heap_seen see_upvalue(struct lua_heap *r, u64 addr, u32 label, struct heap_object *ret)
{
	const u8 *bytes = heap_bytes(r->h, addr, r->at.upvalue);
	u64 v = bytes ? lua_word_at(bytes + r->at.upvalue_v) : 0;

	ret->size = r->at.upvalue;
	return v && add_values(r, v, 1, label & ~HEAP_FLAGS, false) ? HEAP_OBJECT : HEAP_TORN;
}

static enum heap_seen see_proto(struct lua_heap *r, u64 addr, struct heap_object *ret)
{
	const struct lua_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, addr, 128);
	u32 sizek, sizep, sizecode;
	u64 k, p, source;

	if (!bytes)
		return HEAP_TORN;
	sizek = lua_u32_at(bytes + l->p_sizek.at);
	sizep = lua_u32_at(bytes + l->p_sizep.at);
	sizecode = lua_u32_at(bytes + l->p_sizecode.at);
	k = lua_word_at(bytes + l->p_k.at);
	p = lua_word_at(bytes + l->p_p.at);
	source = lua_word_at(bytes + l->p_source.at);
	if (sizek > CONSTANTS || sizep > CONSTANTS || sizecode > LUA_CODE_MAX)
		return HEAP_TORN;
	ret->size = 120 + (u64)VALUE * sizek + 8ull * sizep + 4ull * sizecode +
	            (u64)lua_u32_at(bytes + l->p_sizelineinfo.at) * (r->version == 504 ? 1 : 4) +
	            16ull * lua_u32_at(bytes + l->p_sizelocvars.at) +
	            (r->version == 501 ? 8ull : 16ull) * lua_u32_at(bytes + l->p_sizeupvalues.at);
	if (!add_values(r, k, sizek, heap_label(r->h, "constant"), false))
		return HEAP_TORN;
	bytes = sizep ? heap_bytes(r->h, p, 8 * sizep) : NULL;
	for (u32 i = 0; bytes && i < sizep; i++)
		heap_ref(r->h, heap_label(r->h, "inner"), lua_word_at(bytes + 8ul * i));
	if (source)
		heap_ref(r->h, heap_label(r->h, "source"), source);
	ret->type = function_type(r, addr, "proto");
	return HEAP_OBJECT;
}

/* --- the others --- */

static enum heap_seen see_userdata(struct lua_heap *r, u64 addr, struct heap_object *ret)
{
	const u8 *bytes = heap_bytes(r->h, addr, 40);
	u64 mt, len;
	u16 values = 0;

	if (!bytes)
		return HEAP_TORN;
	mt = lua_word_at(bytes + r->at.userdata_metatable);
	len = lua_word_at(bytes + r->at.userdata_len);
	if (r->version == 504)
		memcpy(&values, bytes + 10, sizeof(values));
	if (r->version <= 502) {
		u64 env = lua_word_at(bytes + r->at.userdata_value);

		if (env && !is_root_table(r, env))
			heap_ref(r->h, heap_label(r->h, "env"), env);
	} else if (r->version == 503) {
		struct lua_value v = lua_value_of(r, lua_word_at(bytes + 32), bytes[10]);

		if (v.object)
			heap_ref(r->h, heap_label(r->h, "value"), v.addr);
	} else if (values && !add_values(r, addr + 40, values, heap_label(r->h, "value"), false)) {
		return HEAP_TORN;
	}
	ret->size = len + (values ? 40 + (u64)VALUE * values : r->at.userdata);
	if (mt)
		heap_ref(r->h, heap_label(r->h, "metatable"), mt);
	return HEAP_OBJECT;
}

static enum heap_seen see_string(struct lua_heap *r, u64 addr, struct heap_object *ret)
{
	char text[8];
	u32 len;

	if (!lua_heap_string(r, addr, text, sizeof(text), &len))
		return HEAP_TORN;
	ret->size = STRING_HEAD + (u64)len + 1;
	return HEAP_OBJECT;
}

/* What a frame is called: by its function, which lies in the slot below its own. */
static u32 frame_label(struct lua_heap *r, u64 slot)
{
	const u8 *bytes = heap_bytes(r->h, slot, VALUE);
	struct lua_value f =
	        bytes ? lua_value_of(r, lua_word_at(bytes), lua_u32_at(bytes + 8) & 0xff) : (struct lua_value){0};
	char name[2 * NAME_MAX_BYTES + 16];
	bool is_c;

	bytes = f.object && f.type == LUA_FUNCTION ? heap_bytes(r->h, f.addr, r->at.closure_upvalues) : NULL;
	if (!bytes)
		return heap_label(r->h, "function in C");
	is_c = r->version == 501 ? bytes[r->layout->cl_is_c.at]
	                         : (bytes[HEAD_TT] & VARIANT_BITS) == (LUA_FUNCTION | 2 << 4);
	if (is_c)
		return heap_label(r->h, "function in C");
	function_name(r, lua_word_at(bytes + r->layout->cl_p.at), name, sizeof(name));
	return heap_label(r->h, name);
}

/* The slots of each frame from the running function on, by its CallInfo; those below the last one are the thread's. */
static bool add_frames(struct lua_heap *r, u64 thread, u64 stack, u64 top)
{
	const struct lua_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, thread, 128);
	u64 ci = bytes ? lua_word_at(bytes + l->l_ci.at) : 0, first, func;

	if (!ci)
		return false;
	first = r->version == 501 ? lua_word_at(bytes + l->l_base_ci.at) : 0;
	for (u32 i = 0; i < FRAMES_MAX && ci; i++) {
		bytes = heap_bytes(r->h, ci, l->ci_size.at);
		func = bytes ? lua_word_at(bytes + l->ci_func.at) : 0;
		if (func < stack || func > top || (func - stack) % VALUE)
			break;
		ci = r->version != 501 ? lua_word_at(bytes + l->ci_previous.at) : ci > first ? ci - l->ci_size.at : 0;
		if (func + VALUE < top &&
		        !add_values(r, func + VALUE, (u32)((top - func) / VALUE - 1), frame_label(r, func), false))
			return false;
		if (!add_values(r, func, 1, heap_label(r->h, "frame"), false))
			return false;
		top = func;
	}
	return add_values(r, stack, (u32)((top - stack) / VALUE), heap_label(r->h, "stack"), false);
}

/*
 * CallInfos beside lua_State (lstate.h): an array in 5.1, whose size follows base_ci behind that of the stack; from 5.3
 * on a list, whose length (nci) lies in the first words.
 */
static u64 calls_size(const struct lua_heap *r, u64 thread)
{
	const struct lua_layout *l = r->layout;
	u32 at = r->version == 501 ? l->l_base_ci.at + 12 : r->version == 503 ? 10 : 12;
	const u8 *bytes = r->version == 502 ? NULL : heap_bytes(r->h, thread + at, 4);
	u32 n = bytes ? lua_u32_at(bytes) : 0;

	if (r->version != 501)
		n &= UINT16_MAX;
	return n <= CALLS_MAX ? n * (u64)l->ci_size.at : 0;
}

/* sizeof(lua_State), with LUA_EXTRASPACE from 5.3 on, and in 5.1 the slot that its stack has beside the five */
static u64 thread_size(const struct lua_heap *r)
{
	static const u16 sizes[] = {200, 208, 216, 208};

	return sizes[r->version - 501];
}

static enum heap_seen see_thread(struct lua_heap *r, u64 addr, struct heap_object *ret)
{
	const struct lua_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, addr, 128);
	u64 stack, last, top;

	if (!bytes)
		return HEAP_TORN;
	stack = lua_word_at(bytes + l->l_stack.at);
	last = lua_word_at(bytes + l->l_stack_last.at);
	top = lua_word_at(bytes + THREAD_TOP);
	if (!stack) {
		ret->size = thread_size(r); /* it is being made, or closed */
		return HEAP_OBJECT;
	}
	if (top < stack || last < stack || top > last + 64ull * VALUE || last - stack > (u64)VALUE * SLOTS_MAX)
		return HEAP_TORN;
	ret->size = thread_size(r) + (last - stack) + 5ull * VALUE + calls_size(r, addr);
	return add_frames(r, addr, stack, top) ? HEAP_OBJECT : HEAP_TORN;
}

enum heap_seen lua_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret)
{
	struct lua_heap *r = reader;
	const u8 *bytes = heap_bytes(r->h, addr, HEAD_TT + 2);
	u8 tt = bytes ? bytes[HEAD_TT] & VARIANT_BITS : 0;
	u32 type = lua_object_type(r, tt);

	if (!bytes || type < LUA_STRING || type >= LUA_TYPES)
		return HEAP_TORN;
	ret->type = r->types[type];
	switch (type) {
	case LUA_STRING:
		return see_string(r, addr, ret);
	case LUA_TABLE:
		return see_table(r, addr, ret);
	case LUA_FUNCTION:
		return see_function(r, addr, tt, ret);
	case LUA_USERDATA:
		return see_userdata(r, addr, ret);
	case LUA_THREAD:
		return see_thread(r, addr, ret);
	case LUA_PROTO:
		return see_proto(r, addr, ret);
	default:
		return see_upvalue(r, addr, label, ret);
	}
}
