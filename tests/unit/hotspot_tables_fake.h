/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM of fake memory that describes itself: the four tables of vmStructs with every member that the layout knows,
 * at offsets of their own, and by them a code heap with an interpreter, a stub, two nmethods, their methods, and a
 * thread. Two shapes: as up to JDK 22, and as from 25 on.
 */
#ifndef YRT_HOTSPOT_TABLES_FAKE_H
#define YRT_HOTSPOT_TABLES_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/hotspot/code/hotspot_code.h"
#include "runtimes/hotspot/layout/hotspot_layout.h"
#include "runtimes/hotspot/layout/hotspot_vmstructs.h"

#define FAKE_BASE     0x7f0000000000ull
#define FAKE_BYTES    (128u << 10)
#define FAKE_TABLES   4096u /* offsets: tables; names; objects; the code heap */
#define FAKE_NAMES    (32u << 10)
#define FAKE_OBJECTS  (64u << 10)
#define FAKE_CODE     (96u << 10)
#define FAKE_CODE_END (FAKE_CODE + (16u << 10)) /* committed */
#define FAKE_SEGMENT  7
#define FAKE_TYPES    64
#define FAKE_KIND     3

enum fake_shape { FAKE_17, FAKE_25, FAKE_SHAPES };

struct fake_type {
	char name[40];
	u32 size;
};

struct hotspot_fake {
	struct memory memory;
	u8 bytes[FAKE_BYTES];
	u32 reads, fail; /* the number of the first read that fails, as all behind it; 0: none */
	enum fake_shape shape;
	struct vmstructs_symbols symbols;
	u32 put[VMSTRUCTS_TABLES]; /* where the next entry goes */
	u32 names, objects, code;
	struct fake_type types[FAKE_TYPES];
	u32 ntypes;
	u64 interpreter, stub, nmethod[2], method[2]; /* blobs and Methods */
	u64 heap, thread;
};

static inline bool hotspot_fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct hotspot_fake *f = (struct hotspot_fake *)mem;
	u64 at = addr - FAKE_BASE;

	if ((++f->reads >= f->fail && f->fail) || at > FAKE_BYTES || size > FAKE_BYTES - at)
		return false;
	memcpy(dst, f->bytes + at, size);
	return true;
}

static inline void fake_poke(struct hotspot_fake *f, u64 addr, u64 value, u32 size)
{
	memcpy(f->bytes + (addr - FAKE_BASE), &value, size);
}

static inline u64 fake_peek(struct hotspot_fake *f, u64 addr, u32 size)
{
	u64 value = 0;

	memcpy(&value, f->bytes + (addr - FAKE_BASE), size);
	return value;
}

static inline u64 fake_text(struct hotspot_fake *f, const char *text)
{
	u32 at = f->names;

	strcpy((char *)f->bytes + at, text);
	f->names += strlen(text) + 1;
	return FAKE_BASE + at;
}

static inline u64 fake_object(struct hotspot_fake *f, u32 size)
{
	u32 at = f->objects;

	f->objects += (size + 15) & ~15u;
	return FAKE_BASE + at;
}

/* --- the tables: an entry has its columns one after the other --- */

static inline void fake_symbols(struct hotspot_fake *f)
{
	static const u32 columns[VMSTRUCTS_TABLES] = {6, 2, 2, 2};
	u32 at = 8;

	f->put[0] = FAKE_TABLES;
	f->put[1] = f->put[0] + (16u << 10);
	f->put[2] = f->put[1] + (4u << 10);
	f->put[3] = f->put[2] + (2u << 10);
	for (u32 t = 0; t < VMSTRUCTS_TABLES; t++) {
		f->symbols.table[t] = at;
		fake_poke(f, FAKE_BASE + at, FAKE_BASE + f->put[t], 8);
		f->symbols.stride[t] = at += 8;
		fake_poke(f, FAKE_BASE + at, 8 * columns[t], 8);
		for (u32 i = 0; i < columns[t]; i++) {
			f->symbols.column[t][i] = at += 8;
			fake_poke(f, FAKE_BASE + at, 8 * i, 8);
		}
		at += 8;
	}
}

static inline void fake_entry(struct hotspot_fake *f, u32 table, const u64 *words, u32 n)
{
	for (u32 i = 0; i < n; i++, f->put[table] += 8)
		fake_poke(f, FAKE_BASE + f->put[table], words[i], 8);
}

static inline void fake_field(struct hotspot_fake *f, const char *type, const char *field, const char *text, u64 offset)
{
	fake_entry(f, 0, (u64[]){fake_text(f, type), fake_text(f, field), fake_text(f, text), 0, offset, 0}, 6);
}

/* Returns the address of the variable. */
static inline u64 fake_static(struct hotspot_fake *f, const char *type, const char *field, u64 value)
{
	u64 at = fake_object(f, 8);

	fake_poke(f, at, value, 8);
	fake_entry(f, 0, (u64[]){fake_text(f, type), fake_text(f, field), fake_text(f, "address"), 1, 0, at}, 6);
	return at;
}

static inline void fake_size(struct hotspot_fake *f, const char *type, u64 size)
{
	fake_entry(f, 1, (u64[]){fake_text(f, type), size}, 2);
}

static inline void fake_constant(struct hotspot_fake *f, const char *name, s64 value)
{
	fake_entry(f, 2, (u64[]){fake_text(f, name), (u32)value}, 2);
}

/* --- members at offsets of their own: each takes its place behind those before it in its type --- */

static inline struct fake_type *fake_type(struct hotspot_fake *f, const char *name, size_t len)
{
	for (u32 i = 0; i < f->ntypes; i++)
		if (strlen(f->types[i].name) == len && !strncmp(f->types[i].name, name, len))
			return &f->types[i];
	snprintf(f->types[f->ntypes].name, sizeof(f->types[0].name), "%.*s", (int)len, name);
	/* behind a virtual table; an nmethod's members behind those of CodeBlob */
	f->types[f->ntypes].size = !strncmp(name, "nmethod", len)          ? 128
	                           : !strncmp(name, "CompiledMethod", len) ? 256
	                                                                   : 8;
	return &f->types[f->ntypes++];
}

/* Those that the other shape has. */
static inline bool fake_lacks(const struct hotspot_fake *f, const char *name)
{
	static const char *const only_17[] = {"CodeBlob._code_begin", "scopes_data_begin",
	        "nmethod._dependencies_offset", "nmethod._metadata_offset", "handler_begin",
	        "InstanceKlass._source_file_name_index", NULL};
	static const char *const only_25[] = {"CodeBlob._kind", "CodeBlob._code_offset", "CodeBlob._mutable_data",
	        "CodeBlob._relocation_size", "nmethod._immutable_data", "nmethod._scopes_data_offset",
	        "nmethod._deopt_", "CodeBlobKind", NULL};
	const char *const *names = f->shape == FAKE_17 ? only_25 : only_17;

	for (; *names; names++)
		if (strstr(name, *names))
			return true;
	return false;
}

/* In words, and the bytes it takes. */
static inline const char *fake_words(const char *field, u32 *size)
{
	static const char *const pointers[] = {"_name", "_code_begin", "_mutable_data", "_method", "_scopes_data_begin",
	        "_immutable_data", "_constMethod", "_code", "_constants", "_pool_holder", "_stub_buffer", "_start",
	        "_top", "_end", "_osthread", "_threadObj", "_low", "_high", "_low_boundary", "_high_boundary", NULL};

	*size = 4;
	if (!strcmp(field, "_memory") || !strcmp(field, "_segmap") || !strcmp(field, "_tlab")) {
		*size = 48;
		return !strcmp(field, "_tlab") ? "ThreadLocalAllocBuffer" : "VirtualSpace";
	}
	if (!strcmp(field, "_body[0]")) {
		*size = 1;
		return "u1";
	}
	for (const char *const *p = pointers; *p; p++)
		if (!strcmp(field, *p)) {
			*size = 8;
			return "char*";
		}
	return "int";
}

static inline void fake_member(struct hotspot_fake *f, const char *name)
{
	size_t len = strcspn(name, "|");
	const char *dot = memchr(name, '.', len);
	char field[64], type[40];
	struct fake_type *t;
	const char *text;
	u32 size;

	if (fake_lacks(f, name) || !strncmp(name, "sizeof ", 7))
		return;
	if (!strncmp(name, "constant ", 9)) {
		fake_constant(f, name + 9, FAKE_KIND);
		return;
	}
	snprintf(field, sizeof(field), "%.*s", (int)(name + len - dot - 1), dot + 1);
	t = fake_type(f, name, dot - name);
	text = fake_words(field, &size);
	t->size = (t->size + (size >= 8 ? 7 : 3)) & ~(size >= 8 ? 7u : 3u);
	strcpy(type, t->name);
	fake_field(f, type, field, text, t->size);
	t->size += size;
}

static inline void fake_sizes(struct hotspot_fake *f)
{
	fake_size(f, "int", 4);
	fake_size(f, "HeapBlock", f->shape == FAKE_17 ? 16 : 8);
	for (u32 i = 0; i < f->ntypes; i++)
		fake_size(f, f->types[i].name, (f->types[i].size + 7) & ~7u);
}

static inline void fake_tables(struct hotspot_fake *f)
{
	const struct layout_schema *schema = &hotspot_layout_schema;

	fake_symbols(f);
	for (u32 i = 0; i < schema->n; i++)
		fake_member(f, schema->fields[i].name);
	fake_sizes(f);
	fake_field(f, "GrowableArrayBase", "_len", "int", 0);
	fake_field(f, "GrowableArray<int>", "_data", "int*", 8);
	fake_field(f, "ThreadsList", "_length", "const uint", 4);
	fake_field(f, "ThreadsList", "_threads", "JavaThread *const *const", 16);
}

/* --- what the tables describe, by the layout that was read from them --- */

static inline void fake_set(struct hotspot_fake *f, u64 object, struct layout_member m, u64 value)
{
	fake_poke(f, object + m.at, value, m.size);
}

/* A block of the code heap, its header and its segments; returns where a blob goes. */
static inline u64 fake_block(struct hotspot_fake *f, const struct hotspot_layout *l, u32 size)
{
	u32 header = l->block_size.at, segments = (size + header + (1u << FAKE_SEGMENT) - 1) >> FAKE_SEGMENT;
	u64 at = FAKE_BASE + f->code;
	u64 segmap = FAKE_BASE + FAKE_CODE_END;

	fake_poke(f, at, segments, header / 2);
	fake_poke(f, at + header / 2, 1, 1);
	for (u32 i = 0; i < segments; i++)
		fake_poke(f, segmap + ((f->code - FAKE_CODE) >> FAKE_SEGMENT) + i, i, 1);
	f->code += segments << FAKE_SEGMENT;
	return at + header;
}

/* size: of the blob; its code begins behind head bytes and ends at data. */
static inline u64 fake_blob(
        struct hotspot_fake *f, const struct hotspot_layout *l, const char *name, u32 head, u32 data, u32 size)
{
	u64 at = fake_block(f, l, size);

	fake_set(f, at, l->blob_name, fake_text(f, name));
	fake_set(f, at, l->blob_size, size);
	fake_set(f, at, l->blob_data_offset, data);
	if (l->blob_code_begin.size)
		fake_set(f, at, l->blob_code_begin, at + head);
	else
		fake_set(f, at, l->blob_code_offset, head);
	return at;
}

static inline u64 fake_symbol(struct hotspot_fake *f, const struct hotspot_layout *l, const char *text)
{
	u64 at = fake_object(f, l->symbol_body.at + strlen(text));

	fake_set(f, at, l->symbol_length, strlen(text));
	memcpy(f->bytes + (at - FAKE_BASE) + l->symbol_body.at, text, strlen(text));
	return at;
}

static inline u64 fake_method(struct hotspot_fake *f, const struct hotspot_layout *l, const char *name)
{
	u64 method = fake_object(f, 256), constant = fake_object(f, 256), klass = fake_object(f, 256);
	u64 pool = fake_object(f, l->pool_size.at + 64);

	fake_set(f, method, l->method_const, constant);
	fake_set(f, constant, l->const_pool, pool);
	fake_set(f, constant, l->const_name, 1);
	fake_set(f, constant, l->const_signature, 2);
	fake_set(f, constant, l->const_code_size, 40);
	fake_set(f, pool, l->pool_length, 4);
	fake_set(f, pool, l->pool_holder, klass);
	fake_poke(f, pool + l->pool_size.at + 8, fake_symbol(f, l, name), 8);
	fake_poke(f, pool + l->pool_size.at + 16, fake_symbol(f, l, "()V"), 8);
	fake_set(f, klass, l->klass_name, fake_symbol(f, l, "com/foo/Bar"));
	return method;
}

#define FAKE_PCS    4
#define FAKE_SCOPES 32
#define FAKE_HEAD   320u
#define FAKE_BODY   128u

/* Three PcDescs and the one behind the code. */
static inline void fake_pcs(struct hotspot_fake *f, const struct hotspot_layout *l, u64 at)
{
	static const s32 offsets[FAKE_PCS] = {-1, 20, 64, FAKE_BODY + 1};

	for (u32 i = 0; i < FAKE_PCS; i++) {
		fake_poke(f, at + i * l->pc_desc_size.at + l->pc_desc_pc.at, (u32)offsets[i], 4);
		fake_poke(f, at + i * l->pc_desc_size.at + l->pc_desc_scope.at, i, 4);
	}
}

/* Where its tables lie: behind the code, in the order metadata, scopes, PcDescs. */
static inline void fake_nmethod_tables_17(struct hotspot_fake *f, const struct hotspot_layout *l, u64 at, u64 method)
{
	u32 metadata = FAKE_HEAD + FAKE_BODY, scopes = metadata + 16, pcs = scopes + FAKE_SCOPES;

	fake_poke(f, at + metadata, method, 8);
	fake_set(f, at, l->nm_metadata_offset, metadata);
	fake_set(f, at, l->nm_scopes_data_begin, at + scopes);
	fake_set(f, at, l->nm_scopes_pcs_offset, pcs);
	fake_set(f, at, l->nm_dependencies_offset, pcs + FAKE_PCS * l->pc_desc_size.at);
	fake_pcs(f, l, at + pcs);
}

/* In memory of their own: PcDescs, scopes; and relocations, metadata. */
static inline void fake_nmethod_tables_25(struct hotspot_fake *f, const struct hotspot_layout *l, u64 at, u64 method)
{
	u32 size = FAKE_PCS * l->pc_desc_size.at;
	u64 immutable = fake_object(f, 16 + size + FAKE_SCOPES), mutable = fake_object(f, 64);

	fake_set(f, at, l->nm_immutable_data, immutable);
	fake_set(f, at, l->nm_immutable_data_size, 16 + size + FAKE_SCOPES);
	fake_set(f, at, l->nm_scopes_pcs_offset, 16);
	fake_set(f, at, l->nm_scopes_data_offset, 16 + size);
	fake_set(f, at, l->blob_mutable_data, mutable);
	fake_set(f, at, l->blob_relocation_size, 16);
	fake_set(f, at, l->blob_mutable_data_size, 32);
	fake_poke(f, mutable + 16, method, 8);
	fake_pcs(f, l, immutable + 16);
}

static inline u64 fake_nmethod(struct hotspot_fake *f, const struct hotspot_layout *l, u64 method, u32 id, u32 level)
{
	u64 at = fake_blob(f, l, "nmethod", FAKE_HEAD, FAKE_HEAD + FAKE_BODY, FAKE_HEAD + FAKE_BODY + 256);

	fake_set(f, at, l->blob_frame_size, 6);
	fake_set(f, at, l->blob_frame_complete, 12);
	fake_set(f, at, l->nm_method, method);
	fake_set(f, at, l->nm_compile_id, id);
	fake_set(f, at, l->nm_level, level);
	fake_set(f, at, l->nm_entry_bci, (u32)-1);
	fake_set(f, at, l->nm_orig_pc_offset, 24);
	fake_set(f, method, l->method_code, at);
	if (f->shape == FAKE_17) {
		fake_nmethod_tables_17(f, l, at, method);
	} else {
		fake_set(f, at, l->blob_kind, FAKE_KIND);
		fake_nmethod_tables_25(f, l, at, method);
	}
	return at;
}

static inline u64 fake_heap(struct hotspot_fake *f, const struct hotspot_layout *l)
{
	u64 heap = fake_object(f, l->heap_size.at), memory = heap + l->heap_memory.at, map = heap + l->heap_segmap.at;

	fake_set(f, memory, l->space_low_boundary, FAKE_BASE + FAKE_CODE);
	fake_set(f, memory, l->space_low, FAKE_BASE + FAKE_CODE);
	fake_set(f, memory, l->space_high, FAKE_BASE + FAKE_CODE_END);
	fake_set(f, memory, l->space_high_boundary, FAKE_BASE + FAKE_CODE + (1 << 20));
	fake_set(f, map, l->space_low, FAKE_BASE + FAKE_CODE_END);
	fake_set(f, heap, l->heap_log2_segment, FAKE_SEGMENT);
	memset(f->bytes + FAKE_CODE_END, 0xff, (FAKE_CODE_END - FAKE_CODE) >> FAKE_SEGMENT);
	return heap;
}

static inline u64 fake_thread(struct hotspot_fake *f, const struct hotspot_layout *l)
{
	u64 thread = fake_object(f, 512), os = fake_object(f, 256);

	fake_set(f, thread, l->osthread, os);
	fake_set(f, os, l->os_thread_id, 4711);
	fake_set(f, thread + l->tlab.at, l->tlab_start, FAKE_BASE);
	fake_set(f, thread + l->tlab.at, l->tlab_top, FAKE_BASE + 64);
	fake_set(f, thread + l->tlab.at, l->tlab_end, FAKE_BASE + 512);
	return thread;
}

static inline void fake_roots(struct hotspot_fake *f, const struct hotspot_layout *l)
{
	u64 array = fake_object(f, 16), data = fake_object(f, 8), list = fake_object(f, 32),
	    threads = fake_object(f, 8);
	u64 queue = fake_object(f, 64);

	fake_poke(f, array, 1, 4);
	fake_poke(f, array + 8, data, 8);
	fake_poke(f, data, f->heap, 8);
	fake_poke(f, list + 4, 1, 4);
	fake_poke(f, list + 16, threads, 8);
	fake_poke(f, threads, f->thread, 8);
	fake_set(f, queue, l->queue_buffer, f->interpreter + 64);
	fake_set(f, queue, l->queue_limit, 512);
	fake_static(f, "CodeCache", "_heaps", array);
	fake_static(f, "CodeCache", "_low_bound", FAKE_BASE + FAKE_CODE);
	fake_static(f, "CodeCache", "_high_bound", FAKE_BASE + FAKE_CODE + (1 << 20));
	fake_static(f, "AbstractInterpreter", "_code", queue);
	fake_static(f, "ThreadsSMRSupport", "_java_thread_list", list);
}

static inline struct layout *fake_layout(struct hotspot_fake *f, struct vmstructs **v)
{
	struct layout *l;

	if (vmstructs_read(&f->symbols, &f->memory, FAKE_BASE, v) || !*v || hotspot_layout_find(*v, &l))
		abort();
	return l;
}

static inline void fake_jvm(struct hotspot_fake *f, enum fake_shape shape)
{
	const struct hotspot_layout *l;
	struct layout *origins;
	struct vmstructs *v;

	memset(f, 0, sizeof(*f));
	f->memory.read = hotspot_fake_read;
	f->shape = shape;
	f->names = FAKE_NAMES;
	f->objects = FAKE_OBJECTS;
	f->code = FAKE_CODE;
	fake_tables(f);
	origins = fake_layout(f, &v);
	l = origins->values;
	f->heap = fake_heap(f, l);
	f->interpreter = fake_blob(f, l, "Interpreter", 64, 64 + 1024, 64 + 1024);
	f->stub = fake_blob(f, l, "resolve_static_call", 128, 128 + 64, 128 + 64);
	fake_set(f, f->stub, l->blob_frame_size, 4);
	for (u32 i = 0; i < 2; i++) {
		f->method[i] = fake_method(f, l, i ? "second" : "first");
		f->nmethod[i] = fake_nmethod(f, l, f->method[i], 100 + i, 3 + i);
	}
	f->thread = fake_thread(f, l);
	fake_roots(f, l);
	layout_destroy(origins);
	vmstructs_destroy(v);
}

/* For fuzzers: what lies behind the tables becomes what the input says, in (place, length, bytes). */
static inline void fake_overwrite(struct hotspot_fake *f, const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t at = FAKE_OBJECTS + (data[0] | data[1] << 8) % (FAKE_BYTES - FAKE_OBJECTS - 32),
		       n = data[2] & 31;

		data += 3;
		size -= 3;
		n = n < size ? n : size;
		memcpy(f->bytes + at, data, n);
		data += n;
		size -= n;
	}
}

#endif
