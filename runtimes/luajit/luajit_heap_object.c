/* SPDX-License-Identifier: Apache-2.0 */
/* What an object refers to, and by which name. */
#include <ctype.h>
#include <stdio.h>

#include "luajit_heap_internal.h"
#include "luajit_trace.h"
#include "luajit_bytecode.h"

#define NAMED_MAX  64 /* a table with more keys than this holds data under them */
#define FRAMES_MAX 8192
#define SLOTS_MAX  (1u << 20)
#define ITEMS      (4096u) /* values of an array that are read at once */

/* --- tables --- */

struct entries {
	const struct luajit_table *t;
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

/* How a table refers to the value of a key. */
static u32 label_of(struct luajit_heap *r, const struct entries *e, u32 type, u64 addr)
{
	char text[48], label[64];
	u32 len;

	if (type != GCT_STRING || e->data || !luajit_heap_string(r, addr, text, sizeof(text), &len))
		return HEAP_ENTRY;
	if (len < sizeof(text) && is_name(text))
		snprintf(label, sizeof(label), ".%s", text);
	else
		snprintf(label, sizeof(label), "[\"%s%s\"]", text, len < sizeof(text) ? "" : "…");
	return heap_label(r->h, label);
}

static bool add_entry(struct luajit_heap *r, u64 key, u64 value, void *ctx)
{
	const struct entries *e = ctx;
	u64 key_addr, addr;
	u32 key_type = luajit_value(r, key, &key_addr), type = luajit_value(r, value, &addr);

	if (luajit_is_object(key_type) && (!e->weak_keys || key_type == GCT_STRING))
		heap_ref(r->h, HEAP_KEY | (key_type == GCT_STRING && !e->data ? HEAP_PART : 0), key_addr);
	if (luajit_is_object(type) && (!e->weak_values || type == GCT_STRING))
		heap_ref(r->h, label_of(r, e, key_type, key_addr), addr);
	return true;
}

static bool count_entry(struct luajit_heap *r, u64 key, u64 value, void *ctx)
{
	u64 unused;

	return luajit_value(r, key, &unused) != GCT_STRING || ++*(u32 *)ctx <= NAMED_MAX;
}

static void read_weakness(struct luajit_heap *r, struct entries *e)
{
	struct luajit_table mt;
	char mode[8];
	u64 addr;
	u32 len;

	if (!e->t->metatable || !luajit_heap_table(r, e->t->metatable, &mt) || mt.nodes > 256 ||
	        luajit_value(r, luajit_heap_field(r, &mt, "__mode"), &addr) != GCT_STRING ||
	        !luajit_heap_string(r, addr, mode, sizeof(mode), &len))
		return;
	e->weak_keys = strchr(mode, 'k');
	e->weak_values = strchr(mode, 'v');
}

static bool add_array(struct luajit_heap *r, const struct entries *e)
{
	const struct luajit_table *t = e->t;

	for (u32 i = 0; i < t->asize;) {
		u32 n = t->asize - i < ITEMS ? t->asize - i : ITEMS;
		const u8 *bytes = heap_bytes(r->h, t->array + 8ull * i, 8 * n);

		if (!bytes)
			return false;
		for (u32 k = 0; k < n; k++) {
			u64 addr;
			u32 type = luajit_value(r, luajit_word_at(bytes + 8ul * k), &addr);

			if (luajit_is_object(type) && (!e->weak_values || type == GCT_STRING))
				heap_ref(r->h, HEAP_ITEM, addr);
		}
		i += n;
	}
	return true;
}

/* What lj_tab_free() frees. */
static u64 table_size(const struct luajit_heap *r, const struct luajit_table *t)
{
	u64 size = r->at.table + 8ull * ((u32)t->colocated & 0x7f) + (u64)NODE_SIZE * t->nodes;

	return size + (t->colocated <= 0 ? 8ull * t->asize : 0);
}

static bool is_root_table(const struct luajit_heap *r, u64 addr)
{
	for (u32 i = 0; i < r->nvms; i++)
		if (addr == r->vms[i].loaded || addr == r->vms[i].globals || addr == r->vms[i].registry)
			return true;
	return false;
}

static enum heap_seen see_table(struct luajit_heap *r, u64 addr, struct heap_object *ret)
{
	struct luajit_table t;
	struct entries e = {.t = &t};
	u32 named = 0;

	if (!luajit_heap_table(r, addr, &t))
		return HEAP_TORN;
	ret->size = table_size(r, &t);
	if (is_root_table(r, addr))
		return HEAP_OBJECT; /* its entries are roots */
	read_weakness(r, &e);
	if (!luajit_heap_each(r, &t, count_entry, &named))
		return HEAP_TORN;
	e.data = named > NAMED_MAX;
	if (!luajit_heap_each(r, &t, add_entry, &e) || !add_array(r, &e))
		return HEAP_TORN;
	if (t.metatable)
		heap_ref(r->h, heap_label(r->h, "metatable"), t.metatable);
	return HEAP_OBJECT;
}

/* --- functions --- */

/* The name of an upvalue, of those that the prototype keeps for debugging. */
static const char *upvalue_name(const struct luajit_heap *r, const u8 *proto, u64 addr, u32 size, u32 number)
{
	const struct luajit_layout *l = r->layout;
	u64 at = luajit_ref_at(r, proto + l->proto_uvinfo.at) - addr;

	for (u32 i = 0; at < size; i++) {
		size_t room = size - at, n = strnlen((const char *)proto + at, room);

		if (n == room || i == number)
			return n == room ? "" : (const char *)proto + at;
		at += n + 1;
	}
	return "";
}

/* "handler (app.lua:42)" */
static void function_name(struct luajit_heap *r, u64 proto, char *ret, size_t size)
{
	struct frame_name name = {0};
	struct frame f = {.where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, proto)};
	u32 first = 0;

	memory_read(r->p->memory, &first, sizeof(first), proto + r->layout->proto_size.at);
	f.detail = luajit_detail(LUAJIT_LUA, 0, luajit_cookie(r->image->vm.bc_patched, first));
	if (!luajit_name_frame(r->names, r->p, &f, 0, 1, &name))
		snprintf(ret, size, "?");
	else if (name.definition)
		snprintf(ret, size, "%s%s(%s:%u)", name.name, name.name[0] ? " " : "", name.file, name.definition);
	else
		snprintf(ret, size, "%s%s(%s)", name.name, name.name[0] ? " " : "", name.file);
}

/* word: "function", or "proto" */
static u32 function_type(struct luajit_heap *r, u64 proto, const char *word)
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

static bool is_globals(const struct luajit_heap *r, u64 addr)
{
	for (u32 i = 0; i < r->nvms; i++)
		if (addr == r->vms[i].globals)
			return true;
	return false;
}

static enum heap_seen see_lua_function(
        struct luajit_heap *r, u64 proto, const u64 *upvalues, u32 n, struct heap_object *ret)
{
	const struct luajit_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, proto, l->proto_size.at);
	u32 size = bytes && bytes[l->l_gct.at] == GCT_PROTO ? luajit_u32_at(bytes + l->proto_sizept.at) : 0;
	char names[256][48];

	if (size < l->proto_size.at || size > HEAP_BYTES_MAX)
		return HEAP_TORN;
	bytes = heap_bytes(r->h, proto, size);
	if (!bytes)
		return HEAP_TORN;
	for (u32 i = 0; i < n; i++)
		snprintf(names[i], sizeof(names[i]), "%s", upvalue_name(r, bytes, proto, size, i));
	for (u32 i = 0; i < n; i++)
		heap_ref(r->h, heap_label(r->h, names[i][0] ? names[i] : "upvalue") | HEAP_PART, upvalues[i]);
	heap_ref(r->h, heap_label(r->h, "proto"), proto);
	ret->type = function_type(r, proto, "function");
	ret->size = r->at.function_upvalues + (u64)r->at.ref * n;
	return HEAP_OBJECT;
}

static u32 c_function_type(struct luajit_heap *r, u8 ffid)
{
	const char *name = ffid > 1 ? r->image->builtins.names[ffid] : NULL;
	char text[128];

	if (!name)
		return heap_type(r->h, 16, "function in C");
	snprintf(text, sizeof(text), "function %s", name);
	return heap_type(r->h, 256ull + ffid, text);
}

static enum heap_seen see_c_function(struct luajit_heap *r, u64 addr, u32 n, u8 ffid, struct heap_object *ret)
{
	const u8 *bytes = heap_bytes(r->h, addr + r->at.c_upvalues, 8 * n);

	if (n && !bytes)
		return HEAP_TORN;
	for (u32 i = 0; i < n; i++) {
		u64 to;

		if (luajit_is_object(luajit_value(r, luajit_word_at(bytes + 8ul * i), &to)))
			heap_ref(r->h, heap_label(r->h, "upvalue"), to);
	}
	ret->type = c_function_type(r, ffid);
	ret->size = r->at.c_upvalues + 8ull * n;
	return HEAP_OBJECT;
}

static enum heap_seen see_function(struct luajit_heap *r, u64 addr, struct heap_object *ret)
{
	const struct luajit_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, addr, r->at.function_upvalues);
	u64 upvalues[256], env, proto;
	u8 ffid, n;

	if (!bytes || bytes[l->l_gct.at] != GCT_FUNCTION)
		return HEAP_TORN;
	ffid = bytes[l->fn_ffid.at];
	n = bytes[r->at.nups];
	env = luajit_ref_at(r, bytes + r->at.env);
	proto = luajit_ref_at(r, bytes + l->fn_pc.at) - l->proto_size.at;
	if (!is_globals(r, env))
		heap_ref(r->h, heap_label(r->h, "env"), env);
	if (ffid)
		return see_c_function(r, addr, n, ffid, ret);
	bytes = heap_bytes(r->h, addr + r->at.function_upvalues, (u32)r->at.ref * n);
	if (n && !bytes)
		return HEAP_TORN;
	for (u32 i = 0; i < n; i++)
		upvalues[i] = luajit_ref_at(r, bytes + (size_t)r->at.ref * i);
	return see_lua_function(r, proto, upvalues, n, ret);
}

/* To people an upvalue belongs to its function: its name is that of its value. */
static enum heap_seen see_upvalue(struct luajit_heap *r, u64 addr, u32 label, struct heap_object *ret)
{
	const u8 *bytes = heap_bytes(r->h, addr, r->at.upvalue);
	u64 value, to;

	if (!bytes)
		return HEAP_TORN;
	value = luajit_word_at(bytes + r->at.tv);
	if (!bytes[r->at.closed]) { /* it is in the stack of a thread */
		bytes = heap_bytes(r->h, luajit_ref_at(r, bytes + r->at.v), 8);
		if (!bytes)
			return HEAP_TORN;
		value = luajit_word_at(bytes);
	}
	if (luajit_is_object(luajit_value(r, value, &to)))
		heap_ref(r->h, label & ~HEAP_FLAGS, to);
	ret->size = r->at.upvalue;
	return HEAP_OBJECT;
}

/* Collectable constants lie below k. */
static enum heap_seen see_proto(struct luajit_heap *r, u64 addr, struct heap_object *ret)
{
	const struct luajit_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, addr, l->proto_size.at);
	u32 size = bytes ? luajit_u32_at(bytes + l->proto_sizept.at) : 0, n;
	u64 k, name;

	if (size < l->proto_size.at || size > HEAP_BYTES_MAX)
		return HEAP_TORN;
	k = luajit_ref_at(r, bytes + l->proto_k.at);
	name = luajit_ref_at(r, bytes + l->proto_chunkname.at);
	n = luajit_u32_at(bytes + l->proto_k.at + r->at.ref + (r->at.ref == 8 ? 8 : 4)); /* behind k: gclist, sizekgc */
	if (k - addr > size || (u64)n * r->at.ref > k - addr)
		return HEAP_TORN;
	bytes = heap_bytes(r->h, k - (u64)n * r->at.ref, n * r->at.ref);
	if (n && !bytes)
		return HEAP_TORN;
	for (u32 i = 0; i < n; i++)
		heap_ref(r->h, heap_label(r->h, "constant"), luajit_ref_at(r, bytes + (size_t)i * r->at.ref));
	heap_ref(r->h, heap_label(r->h, "chunk"), name);
	ret->type = function_type(r, addr, "proto");
	ret->size = size;
	return HEAP_OBJECT;
}

/* --- the others --- */

static enum heap_seen see_userdata(struct luajit_heap *r, u64 addr, struct heap_object *ret)
{
	const u8 *bytes = heap_bytes(r->h, addr, r->at.userdata);
	u64 env, mt;

	if (!bytes)
		return HEAP_TORN;
	env = luajit_ref_at(r, bytes + r->at.env);
	mt = luajit_ref_at(r, bytes + r->at.metatable);
	ret->size = r->at.userdata + (u64)luajit_u32_at(bytes + r->at.len);
	if (mt)
		heap_ref(r->h, heap_label(r->h, "metatable"), mt);
	if (env && !is_globals(r, env))
		heap_ref(r->h, heap_label(r->h, "env"), env);
	return HEAP_OBJECT;
}

/* Since 2020 a string of 4 n bytes is rounded up (lj_str.h: lj_str_size); its id made the length move. */
u64 luajit_heap_string_size(const struct luajit_heap *r, u64 len)
{
	const struct luajit_layout *l = r->layout;
	bool rounded = l->str_len.at >= l->l_gct.at + 11;

	return l->str_size.at + (rounded ? (len + 4) & ~3ull : len + 1);
}

static enum heap_seen see_string(struct luajit_heap *r, u64 addr, struct heap_object *ret)
{
	char text[8];
	u32 len;

	if (!luajit_heap_string(r, addr, text, sizeof(text), &len))
		return HEAP_TORN;
	ret->size = luajit_heap_string_size(r, len);
	return HEAP_OBJECT;
}

/*
 * struct CType: info, size, sib, next, name. Returns the bytes of an object of this type, if they are the same for all:
 * lj_cdata_free() in lj_cdata.c. Attributes stand before the type that they are of; a function's object is its address.
 */
static u32 size_of_ctype(const struct luajit_heap *r, u64 types, u32 id)
{
	enum { LAST_OF_SIZE = 5, ATTRIBUTE = 8, DEEPEST = 32 };
	const u8 *bytes = NULL;

	for (u32 i = 0; i < DEEPEST; i++) {
		bytes = heap_bytes(r->h, types + (u64)id * (r->at.ref == 8 ? 24 : 16), 8);
		if (!bytes || luajit_u32_at(bytes) >> 28 != ATTRIBUTE)
			break;
		id = luajit_u32_at(bytes) & 0xffff;
	}
	if (!bytes)
		return 0;
	return luajit_u32_at(bytes) >> 28 <= LAST_OF_SIZE ? luajit_u32_at(bytes + 4) : 8;
}

/* A cdata whose size its type does not say has more in front. */
static enum heap_seen see_cdata(struct luajit_heap *r, u64 addr, struct heap_object *ret)
{
	const u8 *bytes = heap_bytes(r->h, addr, r->at.cdata);
	u32 id = 0, size = 0;
	u64 types = 0;
	bool variable;

	if (!bytes)
		return HEAP_TORN;
	memcpy(&id, bytes + r->at.ctype, 2);
	variable = bytes[r->layout->l_gct.at - 1] & 0x80; /* LJ_GC_CDATA_VAR, in marked */
	ret->size = r->at.cdata;
	if (variable) {
		bytes = heap_bytes(r->h, addr - 8, 8); /* struct GCcdataVar: offset, extra, len */
		if (!bytes)
			return HEAP_TORN;
		ret->size = luajit_u32_at(bytes + 4) + (bytes[2] | (u32)bytes[3] << 8); /* extra has both heads */
	} else if (r->nvms && r->vms[0].ctypes && memory_read(r->p->memory, &types, 8, r->vms[0].ctypes)) {
		size = size_of_ctype(r, types, id);
	}
	ret->size += size == ~0u ? 0 : size;
	return HEAP_OBJECT;
}

static enum heap_seen see_trace(struct luajit_heap *r, u64 addr, struct heap_object *ret)
{
	const struct luajit_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, addr, l->trace_size.at);
	u64 behind = addr + ((l->trace_size.at + 7u) & ~7u), proto;
	u32 nins, nk;
	u16 nsnap, nsnapmap;

	if (!bytes)
		return HEAP_TORN;
	nins = luajit_u32_at(bytes + l->trace_nins.at);
	nk = luajit_u32_at(bytes + l->trace_nk.at);
	if (l->trace_nins.size == 2) {
		nins &= 0xffff;
		nk &= 0xffff;
	}
	memcpy(&nsnap, bytes + l->trace_nsnap.at, 2);
	memcpy(&nsnapmap, bytes + l->trace_nsnapmap.at, 2);
	proto = luajit_ref_at(r, bytes + l->trace_startpt.at);
	if (nk > LUAJIT_REF_BIAS || nins < LUAJIT_REF_BIAS || nins > 2 * LUAJIT_REF_BIAS ||
	        luajit_word_at(bytes + l->trace_ir.at) + 8ull * nk != behind)
		return HEAP_TORN; /* trace_save() puts the IR right behind it */
	ret->size = behind - addr + 8ull * (nins - nk) + (u64)nsnap * l->snap_size.at + 4ull * nsnapmap;
	heap_ref(r->h, heap_label(r->h, "start"), proto);
	return HEAP_OBJECT;
}

/* --- threads --- */

/* The function of the frame at a base, and the base of the one below; 0: it is the last. */
static u64 frame_below(struct luajit_heap *r, u64 base, u64 *function)
{
	const u8 *bytes = heap_bytes(r->h, base - 8ull * r->at.slots, 8ul * r->at.slots);
	u64 link, at;
	u32 instruction;

	*function = 0;
	if (!bytes)
		return 0;
	*function = luajit_word_at(bytes) & (r->at.ref == 8 ? (1ull << 47) - 1 : 0xffffffff);
	link = r->at.ref == 8 ? luajit_word_at(bytes + 8) : luajit_u32_at(bytes + 4);
	if ((link & 3) != LUAJIT_LINK_LUA)
		return base - (link & ~7ull);
	at = link - 4;
	if (!memory_read(r->p->memory, &instruction, 4, at))
		return 0;
	return base - 8ull * (r->at.slots + luajit_operand_a(instruction));
}

static u32 frame_label(struct luajit_heap *r, u64 function)
{
	const struct luajit_layout *l = r->layout;
	const u8 *bytes = heap_bytes(r->h, function, r->at.function_upvalues);
	char text[2 * NAME_MAX_BYTES + 16];
	const char *name;
	u8 ffid;

	if (!bytes || bytes[l->l_gct.at] != GCT_FUNCTION)
		return HEAP_ANY;
	ffid = bytes[l->fn_ffid.at];
	name = r->image->builtins.names[ffid];
	if (ffid)
		return heap_label(r->h, ffid > 1 && name ? name : "function in C");
	function_name(r, luajit_ref_at(r, bytes + l->fn_pc.at) - l->proto_size.at, text, sizeof(text));
	return heap_label(r->h, text);
}

static bool add_slots(struct luajit_heap *r, u64 start, u64 end, u32 label)
{
	u32 n = (u32)((end - start) / 8);
	const u8 *bytes = end > start && n <= HEAP_BYTES_MAX / 8 ? heap_bytes(r->h, start, 8 * n) : NULL;

	for (u32 i = 0; bytes && i < n; i++) {
		u64 addr;

		if (luajit_is_object(luajit_value(r, luajit_word_at(bytes + 8ul * i), &addr)))
			heap_ref(r->h, label, addr);
	}
	return bytes || end <= start;
}

static enum heap_seen see_thread(struct luajit_heap *r, u64 addr, struct heap_object *ret)
{
	const struct luajit_layout *l = r->layout;
	struct memory *m = r->p->memory;
	u64 base = luajit_vms_read(m, addr, l->l_base), top = luajit_vms_read(m, addr, l->l_top);
	u64 stack = luajit_vms_read(m, addr, l->l_stack), most = luajit_vms_read(m, addr, l->l_maxstack), env = 0;
	u32 slots = 0, size = l->l_cframe.at + 8u;

	memory_read(m, &env, r->at.ref, addr + l->l_cframe.at - r->at.ref);
	memory_read(m, &slots, 4, addr + size);
	ret->size = 8ull * slots;
	for (u32 i = 0; i < r->nvms && addr != r->vms[i].main_thread; i++)
		if (i + 1 == r->nvms) /* a main thread is part of GG_State */
			ret->size += l->l_exdata2.size ? l->l_exdata2.at + 8u : (size + 4u + 7u) & ~7u;
	if (slots > SLOTS_MAX || most < stack || most - stack > 8ull * slots || base < stack || top < base)
		return HEAP_TORN;
	if (top > most + 128)
		top = most;
	if (!is_globals(r, env))
		heap_ref(r->h, heap_label(r->h, "env"), env);
	for (u32 i = 0; i < FRAMES_MAX && base > stack; i++) {
		u64 function, below = frame_below(r, base, &function);

		add_slots(r, base, top, frame_label(r, function));
		heap_ref(r->h, heap_label(r->h, "frame"), base - stack > 8ull * r->at.slots ? function : 0);
		top = base - 8ull * r->at.slots;
		if (!below || below >= base || below < stack)
			break;
		base = below;
	}
	return HEAP_OBJECT;
}

enum heap_seen luajit_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret)
{
	struct luajit_heap *r = reader;
	const u8 *bytes = heap_bytes(r->h, addr, r->layout->l_gct.at + 1);
	u8 gct = bytes ? bytes[r->layout->l_gct.at] : 0;

	if (!luajit_is_object(gct))
		return HEAP_TORN;
	ret->type = r->types[gct];
	switch (gct) {
	case GCT_STRING:
		return see_string(r, addr, ret);
	case GCT_UPVALUE:
		return see_upvalue(r, addr, label, ret);
	case GCT_THREAD:
		return see_thread(r, addr, ret);
	case GCT_PROTO:
		return see_proto(r, addr, ret);
	case GCT_FUNCTION:
		return see_function(r, addr, ret);
	case GCT_TRACE:
		return see_trace(r, addr, ret);
	case GCT_CDATA:
		return see_cdata(r, addr, ret);
	case GCT_TABLE:
		return see_table(r, addr, ret);
	default:
		return see_userdata(r, addr, ret);
	}
}
