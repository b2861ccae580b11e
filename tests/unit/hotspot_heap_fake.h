/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM of a few objects in a test's own memory: classes, a TLAB, threads. In the shapes of two ages: 8 (char[] in
 * strings, Array<u2> of fields, threads in a chain, plain references) and 25 (bytes with a coder, the UNSIGNED5 stream,
 * a ThreadsList, OopHandles), with the kinds of headers and references that a test asks for.
 */
#ifndef YRT_HOTSPOT_HEAP_FAKE_H
#define YRT_HOTSPOT_HEAP_FAKE_H

#include "hotspot_vmstructs_fake.h"

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
	bool is_static;
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
	const struct fake_java_field other = {"other", "J", 16, false};

	fake64(f, klass + KLASS_POOL, pool);
	fake64(f, klass + (f->is.age == FAKE_8 ? KLASS_FIELDS : KLASS_STREAM), array);
	fake16(f, klass + KLASS_COUNT, n + 1);
	if (f->is.age == FAKE_25) {
		f->bytes[p++ - FAKE_BASE] = n + 2; /* fields, and one injected: UNSIGNED5 adds 1 */
		f->bytes[p++ - FAKE_BASE] = 2;
	}
	for (u32 i = 0; i <= n; i++) {
		const struct fake_java_field *d = i ? &fields[i - 1] : &other;
		u32 access = d->is_static ? 8 : 2, name = 1 + 2 * i,
		    words[] = {access, name, name + 1, 0, d->offset << 2, 0};

		fake64(f, pool + POOL_BYTES + name * 8, fake_symbol(f, d->name));
		fake64(f, pool + POOL_BYTES + name * 8 + 8, fake_symbol(f, d->signature));
		if (f->is.age == FAKE_8) {
			for (u32 k = 0; k < 6; k++, p += 2)
				fake16(f, p, words[k]);
			continue;
		}
		for (u32 k = 0; k < 5; k++) /* name, signature, offset, access, flags: the first has an initial value */
			f->bytes[p++ - FAKE_BASE] = 1 + (u32[]){name, name + 1, d->offset, access, i == 0}[k];
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
	const struct fake_java_field thread[] = {{"name", "Ljava/lang/String;", THREAD_NAME_AT, false}};
	const struct fake_java_field chunk[] = {{"size", "I", CHUNK_SIZE_AT, false}};
	const struct fake_java_field old[] = {{"value", "[C", STRING_VALUE_AT, false}};
	const struct fake_java_field coded[] = {
	        {"value", "[B", STRING_VALUE_AT, false}, {"coder", "B", STRING_CODER_AT, false}};

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

static inline void fake_destroy(struct fake *f)
{
	vmstructs_destroy(f->v);
	free(f);
}

#endif
