/* SPDX-License-Identifier: Apache-2.0 */
/* A JVM's memory in a test's own, and its vmStructs tables as a libjvm exports them. */
#ifndef YRT_HOTSPOT_VMSTRUCTS_FAKE_H
#define YRT_HOTSPOT_VMSTRUCTS_FAKE_H

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
	bool narrow_klass, compact, narrow_oops, coloured, views, shenandoah; /* views: ZGC of one generation */
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
	fake_flag(f, flags, 4, "UseZGC", f->is.coloured || f->is.views);
	fake_flag(f, flags, 5, "UseShenandoahGC", f->is.shenandoah);
	fake64(f, e, fake_text(f, type));
	fake64(f, e + 8, FLAG_BYTES);
	fake_field(f, type, "flags", "Flag*", true, fake_pointer_to(f, flags));
	fake_field(f, type, "numFlags", "size_t", true, fake_pointer_to(f, 6));
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

#endif
