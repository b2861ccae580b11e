/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_heap.h"

#include <stdio.h>
#include <stdlib.h>

#include "luajit_heap_internal.h"

#define CTYPE_WORDS 8
#define TRACES_MAX  65536

static const struct luajit_objects objects_64 = {
        .ref = 8,
        .slots = 2,
        .table = 64,
        .colocated = 11,
        .array = 16,
        .metatable = 32,
        .node = 40,
        .asize = 48,
        .hmask = 52,
        .upvalue = 48,
        .closed = 10,
        .tv = 16,
        .v = 32,
        .userdata = 48,
        .env = 16,
        .len = 24,
        .cdata = 16,
        .ctype = 10,
        .nups = 11,
        .function_upvalues = 40,
        .c_upvalues = 48,
};

static const struct luajit_objects objects_32 = {
        .ref = 4,
        .slots = 1,
        .table = 32,
        .colocated = 7,
        .array = 8,
        .metatable = 16,
        .node = 20,
        .asize = 24,
        .hmask = 28,
        .upvalue = 24,
        .closed = 6,
        .tv = 8,
        .v = 16,
        .userdata = 24,
        .env = 8,
        .len = 12,
        .cdata = 8,
        .ctype = 6,
        .nups = 7,
        .function_upvalues = 20,
        .c_upvalues = 32,
};

void luajit_heap_shape(struct luajit_heap *r)
{
	r->at = luajit_gc64(r->layout) ? objects_64 : objects_32;
}

/* --- VMs --- */

static u64 table_of(struct luajit_heap *r, u64 value)
{
	u64 addr;

	return luajit_value(r, value, &addr) == GCT_TABLE ? addr : 0;
}

/* global_State.registrytv is the value of a table that has what require() loaded. Its place differs by version. */
static bool find_registry(struct luajit_heap *r, struct luajit_heap_vm *vm)
{
	u32 size = r->layout->gg_g.size;

	for (u32 at = 0; at + 8 <= size; at += 8) {
		const u8 *bytes = heap_bytes(r->h, vm->g + at, 8);
		struct luajit_table t;
		u64 table = bytes ? table_of(r, luajit_word_at(bytes)) : 0;

		if (!table || !luajit_heap_table(r, table, &t))
			continue;
		vm->loaded = table_of(r, luajit_heap_field(r, &t, "_LOADED"));
		if (vm->loaded) {
			vm->registry = table;
			return true;
		}
	}
	return false;
}

/* CTState, which cur_L, jit_base and its own address precede: it points to its lua_State and its global_State. */
static u64 find_ctypes(struct luajit_heap *r, u64 g)
{
	u64 at = g + r->layout->g_jit_base.at + r->layout->g_jit_base.size, state;
	const u8 *bytes = heap_bytes(r->h, at, r->at.ref);

	state = bytes ? luajit_ref_at(r, bytes) : 0;
	bytes = state ? heap_bytes(r->h, state, 8 * CTYPE_WORDS) : NULL;
	for (u32 i = 1; bytes && i < CTYPE_WORDS; i++)
		if (luajit_word_at(bytes + 8ul * i) == g)
			return state;
	return 0;
}

static void find_vm(struct luajit_heap *r, struct luajit_heap_vm *vm)
{
	const struct luajit_layout *l = r->layout;
	const u8 *bytes;

	vm->main_thread = luajit_vms_read(r->p->memory, vm->g, l->g_mainthref);
	vm->ctypes = find_ctypes(r, vm->g);
	bytes = heap_bytes(r->h, vm->main_thread + l->l_cframe.at - r->at.ref, r->at.ref); /* env lies before cframe */
	vm->globals = bytes ? luajit_ref_at(r, bytes) : 0;
	snprintf(vm->name, sizeof(vm->name), "VM 0x%lx", vm->g);
	if (!find_registry(r, vm))
		heap_note(r->h, "VMs whose registry was not found: what it keeps is missing");
}

static void name_types(struct luajit_heap *r)
{
	static const char *const names[GCT_TYPES] = {[GCT_STRING] = "string",
	        [GCT_UPVALUE] = "upvalue",
	        [GCT_THREAD] = "thread",
	        [GCT_PROTO] = "proto",
	        [GCT_FUNCTION] = "function",
	        [GCT_TRACE] = "trace",
	        [GCT_CDATA] = "cdata",
	        [GCT_TABLE] = "table",
	        [GCT_USERDATA] = "userdata"};

	for (u32 i = GCT_STRING; i < GCT_TYPES; i++)
		r->types[i] = heap_type(r->h, i, names[i]);
}

struct error *luajit_heap_open(const struct luajit_image *image, u64 bias, struct luajit_names *names,
        const struct runtime_process *p, struct heap *h, void **ret)
{
	struct luajit_heap *r = calloc(1, sizeof(*r));
	struct luajit_vms vms;
	struct error *err;

	*ret = NULL;
	if (!r)
		return &error_no_memory;
	*r = (struct luajit_heap){.h = h, .p = p, .image = image, .names = names, .layout = image->layout};
	luajit_heap_shape(r);
	err = luajit_vms_find(image, bias, p, LUAJIT_VMS_MEMORY, &vms);
	if (!err && vms.n)
		r->vms = calloc(vms.n, sizeof(*r->vms));
	if (!err && vms.n && !r->vms)
		err = &error_no_memory;
	for (u32 i = 0; !err && i < vms.n; i++) {
		r->vms[r->nvms].g = vms.g[i];
		find_vm(r, &r->vms[r->nvms++]);
	}
	if (err || !r->nvms) {
		luajit_heap_close(r);
		return err;
	}
	free(vms.g);
	name_types(r);
	*ret = r;
	return NULL;
}

void luajit_heap_close(void *reader)
{
	struct luajit_heap *r = reader;

	free(r->vms);
	free(r);
}

/* --- roots --- */

struct root_table {
	const struct luajit_heap_vm *vm;
	u32 root;
	const struct luajit_table *loaded; /* of the globals: what is not told again */
};

static bool label_text(struct luajit_heap *r, u64 key, char *ret, size_t size)
{
	u64 addr;
	u32 type = luajit_value(r, key, &addr), len;

	if (type == GCT_STRING)
		return luajit_heap_string(r, addr, ret, size, &len);
	snprintf(ret, size, "[%s]",
	        type == GCT_TABLE      ? "table"
	        : type == GCT_FUNCTION ? "function"
	        : type == 3            ? "light userdata"
	                               : "reference");
	return true;
}

static bool add_root_entry(struct luajit_heap *r, u64 key, u64 value, void *ctx)
{
	const struct root_table *t = ctx;
	char text[96];
	u64 addr, key_addr;
	u32 type = luajit_value(r, value, &addr);

	if (luajit_is_object(luajit_value(r, key, &key_addr)))
		heap_root_ref(r->h, t->root, HEAP_KEY | HEAP_PART, key_addr);
	if (!luajit_is_object(type) || !label_text(r, key, text, sizeof(text)))
		return true;
	if (addr == t->vm->loaded || addr == t->vm->globals)
		return true; /* roots of their own */
	if (t->loaded && luajit_heap_field(r, t->loaded, text) == value)
		return true; /* a module that is a global, too */
	heap_root_ref(r->h, t->root, heap_label(r->h, text), addr);
	return true;
}

/* The array part of the registry has what luaL_ref() keeps. */
static void add_root_items(struct luajit_heap *r, u32 root, const struct luajit_table *t)
{
	for (u32 i = 0; i < t->asize; i++) {
		const u8 *bytes = heap_bytes(r->h, t->array + 8ull * i, 8);
		u64 addr;

		if (bytes && luajit_is_object(luajit_value(r, luajit_word_at(bytes), &addr)))
			heap_root_ref(r->h, root, heap_label(r->h, "[reference]"), addr);
	}
}

static void add_table(struct luajit_heap *r, const struct luajit_heap_vm *vm, u32 parent, const char *name, u64 addr,
        const struct luajit_table *loaded)
{
	struct luajit_table t;
	struct root_table root = {.vm = vm, .loaded = loaded};

	if (!addr || !luajit_heap_table(r, addr, &t))
		return;
	root.root = heap_root(r->h, parent, HEAP_LASTING, name);
	heap_root_ref(r->h, root.root, HEAP_PART, addr);
	luajit_heap_each(r, &t, add_root_entry, &root);
	add_root_items(r, root.root, &t);
	if (t.metatable)
		heap_root_ref(r->h, root.root, heap_label(r->h, "metatable"), t.metatable);
}

/* Metamethods' names, and metatables of types: references behind the state of C types (gcroot). */
static void add_vm_roots(struct luajit_heap *r, struct luajit_heap_vm *vm, u32 parent)
{
	const struct luajit_layout *l = r->layout;
	u32 root = heap_root(r->h, parent, HEAP_RUNTIME, "VM"), label = heap_label(r->h, "names, metatables of types");

	vm->own_root = root;
	vm->strings_root = heap_root(r->h, parent, HEAP_RUNTIME, "strings that no object refers to");
	for (u32 at = l->g_jit_base.at + 2u * r->at.ref; at + r->at.ref <= l->gg_g.size; at += r->at.ref) {
		const u8 *bytes = heap_bytes(r->h, vm->g + at, r->at.ref);
		u64 addr = bytes ? luajit_ref_at(r, bytes) : 0;

		bytes = addr && !(addr & 7) && addr >> 47 == 0 ? heap_bytes(r->h, addr, 16) : NULL;
		if (bytes && luajit_is_object(bytes[l->l_gct.at]))
			heap_root_ref(r->h, root, label, addr);
	}
}

static void add_traces(struct luajit_heap *r, const struct luajit_heap_vm *vm, u32 parent)
{
	const struct luajit_layout *l = r->layout;
	u64 j = vm->g - l->gg_g.at + l->gg_j.at, list = luajit_vms_read(r->p->memory, j, l->j_trace);
	u64 n = luajit_vms_read(r->p->memory, j, l->j_sizetrace);
	u32 root = heap_root(r->h, parent, HEAP_RUNTIME, "traces");

	for (u64 i = 1; i < n && i < TRACES_MAX; i++) {
		const u8 *bytes = heap_bytes(r->h, list + i * r->at.ref, r->at.ref);

		if (bytes)
			heap_root_ref(r->h, root, HEAP_ITEM, luajit_ref_at(r, bytes));
	}
}

struct error *luajit_heap_roots(void *reader)
{
	struct luajit_heap *r = reader;

	for (u32 i = 0; i < r->nvms; i++) {
		struct luajit_heap_vm *vm = &r->vms[i];
		u32 parent = r->nvms > 1 ? heap_root(r->h, 0, HEAP_LASTING, vm->name) : 0, threads;
		struct luajit_table loaded;
		bool has_loaded = vm->loaded && luajit_heap_table(r, vm->loaded, &loaded);

		add_table(r, vm, parent, "package.loaded", vm->loaded, NULL);
		add_table(r, vm, parent, "globals", vm->globals, has_loaded ? &loaded : NULL);
		add_table(r, vm, parent, "registry", vm->registry, NULL);
		threads = heap_root(r->h, parent, HEAP_STACKS, "threads");
		heap_root_ref(r->h, threads, heap_label(r->h, "main thread"), vm->main_thread);
		add_vm_roots(r, vm, parent);
		add_traces(r, vm, parent);
	}
	return NULL;
}

/* --- what a collection would free --- */

static bool is_listed(void *ctx, u64 addr)
{
	struct luajit_heap *r = ctx;
	u32 gct = r->layout->l_gct.at;
	const u8 *bytes = heap_bytes(r->h, addr, gct + 1);

	return bytes && luajit_is_object(bytes[gct]);
}

struct error *luajit_heap_all(void *reader)
{
	struct luajit_heap *r = reader;

	for (u32 i = 0; i < r->nvms; i++) {
		const struct luajit_heap_vm *vm = &r->vms[i];

		if (!vm->registry || !heap_candidate_list(r->h, vm->g, vm->g + r->layout->gg_g.size, r->at.ref,
		                             vm->registry, is_listed, r))
			return error_new(
			        ERROR_UNSUPPORTED, "--unreachable: the collector's list of %s was not found", vm->name);
	}
	return NULL;
}
