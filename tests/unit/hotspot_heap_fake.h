/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM of a few objects in a test's own memory: vmStructs tables as a libjvm exports them, classes, a TLAB, threads.
 * In the shapes of two ages: 8 (char[] in strings, Array<u2> of fields, threads in a chain, plain references) and 25
 * (bytes with a coder, the UNSIGNED5 stream, a ThreadsList, OopHandles), with the kinds of headers and references that
 * a test asks for.
 */
#ifndef YRT_HOTSPOT_HEAP_FAKE_H
#define YRT_HOTSPOT_HEAP_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "elf_file.h"
#include "binary/image.h"
#include "runtimes/hotspot/heap/hotspot_heap.h"
#include "symbols/symbols.h"

#define FAKE_BASE  0x100000ull
#define FAKE_BYTES 0x40000u

enum fake_age { FAKE_8, FAKE_25 };

struct fake_options {
	enum fake_age age;
	bool narrow_klass, compact, narrow_oops, coloured;
};

struct fake {
	struct memory memory;
	struct fake_options is;
	u8 bytes[FAKE_BYTES];
	u64 used;
	u32 reads, fail_at; /* fail_at: the number of a read that fails; 0: none */
	u64 table, entries, types, ntypes, ints, nints, vm_symbols;
	struct vmstructs *v;
	struct hotspot_layout layout;
	u64 object, bytes_array, chars_array, strings_array, string, thread, my_thread, mirror, chunk; /* classes */
	u64 tlab, top;       /* of the first thread */
	u64 at[6], sizes[6]; /* the objects in it */
	u64 java_thread[2], thread_object[2];
};

/* Offsets in the JVM's structures. */
enum {
	KLASS_HELPER = 8,
	KLASS_NAME = 24,
	KLASS_SUPER = 32,
	KLASS_POOL = 40,
	KLASS_FIELDS = 48,
	KLASS_COUNT = 56,
	KLASS_STREAM = 64,
	KLASS_BYTES = 72,
	POOL_BYTES = 32,
	THREAD_OBJ = 16,
	THREAD_TLAB = 64,
	THREAD_ALLOCATED = 112,
	THREAD_OS = 120,
	THREAD_NEXT = 128,
	THREAD_BYTES = 136,
	OS_TID = 8,
	SYMBOL_LENGTH = 4,
	SYMBOL_BODY = 6,
	HEAP_COUNT = 40,
	FLAG_BYTES = 24,
	THREAD_NAME_AT = 32,
	STRING_VALUE_AT = 24,
	STRING_CODER_AT = 32,
	MIRROR_SIZE_AT = 28,
	CHUNK_SIZE_AT = 24,
	ADDED_AT = 20,
	VM_SYMBOLS = 8,
	ADDED_NAME = 3,
	ADDED_SIGNATURE = 6,
};

static bool fake_read(struct memory *memory, void *dst, size_t size, uint64_t addr)
{
	struct fake *f = (struct fake *)memory;

	if (++f->reads == f->fail_at || addr < FAKE_BASE || addr - FAKE_BASE > FAKE_BYTES ||
	        size > FAKE_BYTES - (addr - FAKE_BASE))
		return false;
	memcpy(dst, f->bytes + (addr - FAKE_BASE), size);
	return true;
}

static u64 fake_room(struct fake *f, u64 size)
{
	u64 at = FAKE_BASE + f->used;

	f->used += (size + 7) & ~7ull;
	if (f->used > FAKE_BYTES)
		abort();
	return at;
}

static void fake_put(struct fake *f, u64 at, const void *from, size_t size)
{
	memcpy(f->bytes + (at - FAKE_BASE), from, size);
}

static void fake64(struct fake *f, u64 at, u64 v)
{
	fake_put(f, at, &v, 8);
}

static void fake32(struct fake *f, u64 at, u32 v)
{
	fake_put(f, at, &v, 4);
}

static void fake16(struct fake *f, u64 at, u16 v)
{
	fake_put(f, at, &v, 2);
}

static u64 fake_text(struct fake *f, const char *text)
{
	u64 at = fake_room(f, strlen(text) + 1);

	fake_put(f, at, text, strlen(text) + 1);
	return at;
}

static u64 fake_pointer_to(struct fake *f, u64 value)
{
	u64 at = fake_room(f, 8);

	fake64(f, at, value);
	return at;
}

/* Rows of vmStructs: type, field, its type in words, static, offset or address. */
static void fake_field(struct fake *f, const char *type, const char *field, const char *text, bool is_static, u64 value)
{
	u64 e = f->table + f->entries++ * 48;

	fake64(f, e, fake_text(f, type));
	fake64(f, e + 8, fake_text(f, field));
	fake64(f, e + 16, fake_text(f, text));
	fake32(f, e + 24, is_static);
	fake64(f, e + (is_static ? 40 : 32), value);
}

static void fake_flag(struct fake *f, u64 flags, u32 number, const char *name, u64 value)
{
	fake64(f, flags + number * FLAG_BYTES, fake_pointer_to(f, value));
	fake64(f, flags + number * FLAG_BYTES + 8, fake_text(f, name));
}

static void fake_flags(struct fake *f)
{
	u64 flags = fake_room(f, 8 * FLAG_BYTES), e = f->types + f->ntypes++ * 16;
	const char *type = f->is.age == FAKE_8 ? "Flag" : "JVMFlag";

	fake_flag(f, flags, 0, "UseCompressedOops", f->is.narrow_oops);
	fake_flag(f, flags, 1, "UseCompressedClassPointers", f->is.narrow_klass);
	fake_flag(f, flags, 2, "ObjectAlignmentInBytes", 8);
	fake_flag(f, flags, 3, "UseCompactObjectHeaders", f->is.compact);
	fake_flag(f, flags, 4, "UseZGC", f->is.coloured);
	fake64(f, e, fake_text(f, type));
	fake64(f, e + 8, FLAG_BYTES);
	fake_field(f, type, "flags", "Flag*", true, fake_pointer_to(f, flags));
	fake_field(f, type, "numFlags", "size_t", true, fake_pointer_to(f, 5));
	fake_field(f, type, "_addr", "None", false, 0);
	fake_field(f, type, "_name", "const char*", false, 8);
}

/* The lists of all exported variables, with their values in fake memory. */
static void fake_export(struct fake *f, struct bytes *symbols, struct bytes *names, const char *name, u64 value)
{
	put32(symbols, names->n);
	put8(symbols, STB_GLOBAL << 4 | STT_OBJECT);
	put8(symbols, 0);
	put16(symbols, 1);
	put64(symbols, fake_pointer_to(f, value));
	put64(symbols, 8);
	put(names, name, strlen(name) + 1);
}

static void fake_exports(struct fake *f, struct bytes *symbols, struct bytes *names)
{
	const struct {
		const char *name;
		u64 value;
	} all[] = {{"gHotSpotVMStructs", f->table}, {"gHotSpotVMStructEntryArrayStride", 48},
	        {"gHotSpotVMStructEntryTypeNameOffset", 0}, {"gHotSpotVMStructEntryFieldNameOffset", 8},
	        {"gHotSpotVMStructEntryTypeStringOffset", 16}, {"gHotSpotVMStructEntryIsStaticOffset", 24},
	        {"gHotSpotVMStructEntryOffsetOffset", 32}, {"gHotSpotVMStructEntryAddressOffset", 40},
	        {"gHotSpotVMTypes", f->types}, {"gHotSpotVMTypeEntryArrayStride", 16},
	        {"gHotSpotVMTypeEntryTypeNameOffset", 0}, {"gHotSpotVMTypeEntrySizeOffset", 8},
	        {"gHotSpotVMIntConstants", f->ints}, {"gHotSpotVMIntConstantEntryArrayStride", 16},
	        {"gHotSpotVMIntConstantEntryNameOffset", 0}, {"gHotSpotVMIntConstantEntryValueOffset", 8},
	        {"gHotSpotVMLongConstants", f->ints}, {"gHotSpotVMLongConstantEntryArrayStride", 16},
	        {"gHotSpotVMLongConstantEntryNameOffset", 0}, {"gHotSpotVMLongConstantEntryValueOffset", 8}};

	for (u32 i = 0; i < sizeof(all) / sizeof(*all); i++)
		fake_export(f, symbols, names, all[i].name, all[i].value);
}

static void fake_check(struct error *err)
{
	if (err)
		abort();
}

static void fake_vmstructs(struct fake *f)
{
	static struct elf_file file;
	static struct bytes symbols, names;
	struct vmstructs_symbols *found;
	struct image *img;

	symbols.n = names.n = 0;
	put8(&names, 0);
	for (u32 i = 0; i < 24; i++)
		put8(&symbols, 0);
	fake_exports(f, &symbols, &names);
	elf_start(&file);
	elf_section(&file, ".dynsym", SHT_DYNSYM, SHF_ALLOC, symbols.at, symbols.n);
	file.sh[1].sh_entsize = 24;
	file.sh[1].sh_link = 2;
	elf_section(&file, ".dynstr", SHT_STRTAB, SHF_ALLOC, names.at, names.n);
	elf_finish(&file, true);
	fake_check(image_from_memory(elf_copy(&file), file.n, "libjvm.so", &img));
	fake_check(symbols_load(img, ""));
	fake_check(vmstructs_symbols_find(img, &found));
	if (!found)
		abort();
	fake_check(vmstructs_read(found, &f->memory, 0, &f->v));
	if (!f->v)
		abort();
	free(found);
	image_put(img);
}

static u64 fake_symbol(struct fake *f, const char *text)
{
	u64 at = fake_room(f, SYMBOL_BODY + strlen(text));

	fake16(f, at + SYMBOL_LENGTH, strlen(text));
	fake_put(f, at + SYMBOL_BODY, text, strlen(text));
	return at;
}

static u64 fake_class(struct fake *f, const char *name, s32 helper, u64 super)
{
	u64 at = fake_room(f, KLASS_BYTES);

	fake32(f, at + KLASS_HELPER, helper);
	fake64(f, at + KLASS_NAME, fake_symbol(f, name));
	fake64(f, at + KLASS_SUPER, super);
	return at;
}

static u32 fake_header(const struct fake *f, bool array)
{
	if (f->is.compact)
		return array ? 12 : 8;
	return f->is.narrow_klass ? (array ? 16 : 12) : array ? 24 : 16;
}

static u64 fake_array_class(struct fake *f, const char *name, u32 log2)
{
	u32 tag = name[1] == 'L' || name[1] == '[' ? 2u : 3u;

	return fake_class(f, name, (s32)(tag << 30 | fake_header(f, true) << 16 | log2), f->object);
}

struct fake_java_field {
	const char *name, *signature;
	u32 offset;
};

/* A field that the VM adds to each class. */
static u64 fake_injected(struct fake *f, u64 p)
{
	const u8 stream[] = {ADDED_NAME, ADDED_SIGNATURE, ADDED_AT, 0, 2};

	for (u32 i = 0; i < sizeof(stream); i++) /* UNSIGNED5 adds 1 */
		f->bytes[p++ - FAKE_BASE] = 1 + stream[i];
	return p;
}

/* Gives a class the fields, and one before them that is none of those that are looked for. */
static void fake_fields(struct fake *f, u64 klass, const struct fake_java_field *fields, u32 n)
{
	u64 pool = fake_room(f, POOL_BYTES + (2 * n + 3) * 8), array = fake_room(f, 4 + (n + 1) * 12 + 64),
	    p = array + 4;
	const struct fake_java_field other = {"other", "J", 16};

	fake64(f, klass + KLASS_POOL, pool);
	fake64(f, klass + (f->is.age == FAKE_8 ? KLASS_FIELDS : KLASS_STREAM), array);
	fake16(f, klass + KLASS_COUNT, n + 1);
	if (f->is.age == FAKE_25) {
		f->bytes[p++ - FAKE_BASE] = n + 2; /* fields, and one injected: UNSIGNED5 adds 1 */
		f->bytes[p++ - FAKE_BASE] = 2;
	}
	for (u32 i = 0; i <= n; i++) {
		const struct fake_java_field *d = i ? &fields[i - 1] : &other;
		u32 name = 1 + 2 * i, words[] = {2, name, name + 1, 0, d->offset << 2, 0};

		fake64(f, pool + POOL_BYTES + name * 8, fake_symbol(f, d->name));
		fake64(f, pool + POOL_BYTES + name * 8 + 8, fake_symbol(f, d->signature));
		if (f->is.age == FAKE_8) {
			for (u32 k = 0; k < 6; k++, p += 2)
				fake16(f, p, words[k]);
			continue;
		}
		for (u32 k = 0; k < 5; k++) /* name, signature, offset, access, flags: the first has an initial value */
			f->bytes[p++ - FAKE_BASE] = 1 + (u32[]){name, name + 1, d->offset, 2, i == 0}[k];
		if (i == 0)
			f->bytes[p++ - FAKE_BASE] = 1 + 7;
	}
	p = f->is.age == FAKE_8 ? p : fake_injected(f, p);
	fake32(f, array, f->is.age == FAKE_8 ? (n + 1) * 6 : p - array - 4);
}

static void fake_object(struct fake *f, u64 at, u64 klass)
{
	u64 narrow = (klass - FAKE_BASE) >> 3;

	fake64(f, at, f->is.compact ? narrow << 42 | 1 : 1);
	if (!f->is.compact && f->is.narrow_klass)
		fake32(f, at + 8, narrow);
	else if (!f->is.compact)
		fake64(f, at + 8, klass);
}

static void fake_array(struct fake *f, u64 at, u64 klass, u32 length)
{
	fake_object(f, at, klass);
	fake32(f, at + (f->is.compact ? 8 : f->is.narrow_klass ? 12 : 16), length);
}

static void fake_oop(struct fake *f, u64 at, u64 object)
{
	if (f->is.narrow_oops)
		fake32(f, at, (object - FAKE_BASE) >> 3);
	else
		fake64(f, at, f->is.coloured && object ? object << 14 | 1 << 13 | 0x510 : object);
}

static u64 fake_string(struct fake *f, const char *text, bool wide)
{
	u32 n = strlen(text), header = fake_header(f, true);
	u64 value = fake_room(f, header + 2 * n), at = fake_room(f, 40);

	wide |= f->is.age == FAKE_8;
	for (u32 i = 0; i < n; i++) {
		if (wide)
			fake16(f, value + header + 2 * i, (u8)text[i]);
		else
			f->bytes[value + header + i - FAKE_BASE] = text[i];
	}
	if (f->is.age == FAKE_8)
		fake_array(f, value, f->chars_array, n);
	else
		fake_array(f, value, f->bytes_array, wide ? 2 * n : n);
	fake_object(f, at, f->string);
	fake_oop(f, at + STRING_VALUE_AT, value);
	if (f->is.age == FAKE_25)
		f->bytes[at + STRING_CODER_AT - FAKE_BASE] = wide;
	return at;
}

static void fake_classes(struct fake *f)
{
	const struct fake_java_field thread[] = {{"name", "Ljava/lang/String;", THREAD_NAME_AT}};
	const struct fake_java_field chunk[] = {{"size", "I", CHUNK_SIZE_AT}};
	const struct fake_java_field old[] = {{"value", "[C", STRING_VALUE_AT}};
	const struct fake_java_field coded[] = {{"value", "[B", STRING_VALUE_AT}, {"coder", "B", STRING_CODER_AT}};

	f->object = fake_class(f, "java/lang/Object", 16, 0);
	f->bytes_array = fake_array_class(f, "[B", 0);
	f->chars_array = fake_array_class(f, "[C", 1);
	f->strings_array = fake_array_class(f, "[[Ljava/lang/String;", f->is.narrow_oops ? 2 : 3);
	f->string = fake_class(f, "java/lang/String", 40, f->object);
	f->thread = fake_class(f, "java/lang/Thread", 48, f->object);
	f->my_thread = fake_class(f, "com/foo/MyThread", 56, f->thread);
	f->mirror = fake_class(f, "java/lang/Class", 1, f->object);
	f->chunk = fake_class(f, "jdk/internal/vm/StackChunk", 56 | 1, f->object);
	fake_fields(f, f->thread, thread, 1);
	fake_fields(f, f->chunk, chunk, 1);
	fake_fields(f, f->string, f->is.age == FAKE_8 ? old : coded, f->is.age == FAKE_8 ? 1 : 2);
}

/* One object of each kind after the other. */
static void fake_tlab(struct fake *f)
{
	u32 header = fake_header(f, true), element = f->is.narrow_oops ? 4 : 8;
	const u64 sizes[6] = {16, (header + 13 + 7) & ~7u, (header + 5 * element + 7) & ~7u, 104,
	        56 + (100 + (f->is.narrow_oops ? 4 : 2)) * 8, 40};

	f->tlab = f->top = fake_room(f, 4096);
	for (u32 i = 0; i < 6; i++) {
		f->at[i] = f->top;
		f->sizes[i] = sizes[i];
		f->top += sizes[i];
	}
	fake_object(f, f->at[0], f->object);
	fake_array(f, f->at[1], f->bytes_array, 13);
	fake_array(f, f->at[2], f->strings_array, 5);
	fake_object(f, f->at[3], f->mirror);
	fake32(f, f->at[3] + MIRROR_SIZE_AT, 13);
	fake_object(f, f->at[4], f->chunk);
	fake32(f, f->at[4] + CHUNK_SIZE_AT, 100);
	fake_object(f, f->at[5], f->string);
}

static void fake_thread(struct fake *f, u32 i, const char *name, u64 klass, bool wide)
{
	u64 at = fake_room(f, THREAD_BYTES), os = fake_room(f, 16), object = fake_room(f, 56);

	f->java_thread[i] = at;
	f->thread_object[i] = object;
	fake_object(f, object, klass);
	fake_oop(f, object + THREAD_NAME_AT, fake_string(f, name, wide));
	fake32(f, os + OS_TID, 100 + i);
	fake64(f, at + THREAD_OS, os);
	fake64(f, at + THREAD_ALLOCATED, 1000 * (i + 1));
	if (f->is.age == FAKE_8) {
		fake64(f, at + THREAD_OBJ, object);
	} else {
		u64 handle = fake_room(f, 8);

		fake64(f, handle, f->is.coloured ? object << 14 | 1 << 13 | 0x510 : object);
		fake64(f, at + THREAD_OBJ, handle);
	}
}

static void fake_threads(struct fake *f)
{
	u64 list;

	fake_thread(f, 0, "main", f->thread, false);
	fake_thread(f, 1, "allocator \xe9", f->my_thread, true);
	fake64(f, f->java_thread[0] + THREAD_TLAB, f->tlab);
	fake64(f, f->java_thread[0] + THREAD_TLAB + 8, f->top);
	fake64(f, f->java_thread[0] + THREAD_TLAB + 24, f->tlab + 4096);
	if (f->is.age == FAKE_8) {
		fake64(f, f->java_thread[0] + THREAD_NEXT, f->java_thread[1]);
		fake_field(f, "JavaThread", "_next", "JavaThread*", false, THREAD_NEXT);
		fake_field(f, "JavaThread", "_threadObj", "oop", false, THREAD_OBJ);
		fake_field(f, "Threads", "_thread_list", "JavaThread*", true, fake_pointer_to(f, f->java_thread[0]));
		return;
	}
	list = fake_room(f, 32);
	fake32(f, list + 4, 2);
	fake64(f, list + 16, fake_pointer_to(f, f->java_thread[0]));
	fake_pointer_to(f, f->java_thread[1]);
	fake_field(f, "ThreadsSMRSupport", "_java_thread_list", "ThreadsList*", true, fake_pointer_to(f, list));
	fake_field(f, "ThreadsList", "_length", "const uint", false, 4);
	fake_field(f, "ThreadsList", "_threads", "JavaThread *const *const", false, 16);
	fake_field(f, "JavaThread", "_threadObj", "OopHandle", false, THREAD_OBJ);
}

static void fake_narrow(struct fake *f, bool old, const char *type, const char *member)
{
	char base[64], shift[64];

	snprintf(base, sizeof(base), "%s%s_base", old ? member : "", old ? "." : "");
	snprintf(shift, sizeof(shift), "%s%s_shift", old ? member : "", old ? "." : "");
	fake_field(f, old ? "Universe" : type, base, "address", true, fake_pointer_to(f, FAKE_BASE));
	fake_field(f, old ? "Universe" : type, shift, "int", true, fake_pointer_to(f, 3));
}

static void fake_vm_symbols(struct fake *f)
{
	f->vm_symbols = fake_room(f, VM_SYMBOLS * 8);
	fake64(f, f->vm_symbols + ADDED_NAME * 8, fake_symbol(f, "added"));
	fake64(f, f->vm_symbols + ADDED_SIGNATURE * 8, fake_symbol(f, "I"));
	fake_field(f, "Symbol", "_vm_symbols[0]", "Symbol*", true, f->vm_symbols);
}

static void fake_describe(struct fake *f)
{
	bool old = f->is.age == FAKE_8;
	u64 heap = fake_room(f, 64);

	fake32(f, heap + HEAP_COUNT, 7);
	fake_field(f, "Universe", "_collectedHeap", "CollectedHeap*", true, fake_pointer_to(f, heap));
	fake_field(f, "java_lang_Class", "_oop_size_offset", "int", true, fake_pointer_to(f, MIRROR_SIZE_AT));
	fake_field(f, "Klass", "_super", "Klass*", false, KLASS_SUPER);
	fake_field(f, "InstanceKlass", "_constants", "ConstantPool*", false, KLASS_POOL);
	if (old) {
		fake_field(f, "InstanceKlass", "_fields", "Array<u2>*", false, KLASS_FIELDS);
		fake_field(f, "InstanceKlass", "_java_fields_count", "u2", false, KLASS_COUNT);
	} else {
		fake_field(f, "InstanceKlass", "_fieldinfo_stream", "Array<u1>*", false, KLASS_STREAM);
	}
	fake_narrow(f, old, "CompressedOops", "_narrow_oop");
	fake_narrow(f, old, "CompressedKlassPointers", "_narrow_klass");
	if (f->is.coloured)
		fake_field(f, "ZGlobalsForVMStructs", "_ZPointerLoadShift", "size_t*", false, 24);
	fake64(f, f->ints, fake_text(f, "markWord::klass_shift"));
	fake64(f, f->ints + 8, 42);
	fake_flags(f);
	fake_vm_symbols(f);
}

static void fake_layout(struct hotspot_layout *l)
{
#define AT(slot, offset) l->slot = (struct layout_member){offset, 8}
	AT(klass_name, KLASS_NAME);
	AT(klass_layout_helper, KLASS_HELPER);
	AT(symbol_length, SYMBOL_LENGTH);
	AT(symbol_body, SYMBOL_BODY);
	AT(pool_size, POOL_BYTES);
	AT(tlab, THREAD_TLAB);
	AT(tlab_start, 0);
	AT(tlab_top, 8);
	AT(tlab_end, 24);
	AT(allocated_bytes, THREAD_ALLOCATED);
	AT(osthread, THREAD_OS);
	AT(os_thread_id, OS_TID);
	AT(thread_obj, THREAD_OBJ);
	AT(collector_count, HEAP_COUNT);
#undef AT
}

static struct fake *fake_create(struct fake_options options)
{
	struct fake *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->memory.read = fake_read;
	f->is = options;
	f->used = 8;
	f->table = fake_room(f, 48 * 40);
	f->types = fake_room(f, 64);
	f->ints = fake_room(f, 64);
	fake_classes(f);
	fake_tlab(f);
	fake_threads(f);
	fake_describe(f);
	fake_layout(&f->layout);
	fake_vmstructs(f);
	return f;
}

static void fake_destroy(struct fake *f)
{
	vmstructs_destroy(f->v);
	free(f);
}

#endif
