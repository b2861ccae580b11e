/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVM of hotspot_heap_fake.h with class loaders: that of the JVM itself, which has com.foo.Cache and others, whose
 * static field leads to an array, from there to a Cache, and from its field to a String.
 */
#ifndef YRT_HOTSPOT_REFS_FAKE_H
#define YRT_HOTSPOT_REFS_FAKE_H

#include "heap/heap.h"
#include "hotspot_heap_fake.h"
#include "runtime.h"
#include "runtime_heap.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtimes/hotspot/refs/hotspot_refs.h"

enum { /* offsets behind those of hotspot_vmstructs_fake.h, in the class's room */
	REFS_LINK = 72,
	REFS_LOADER = 80,
	REFS_MIRROR = 88,
	REFS_VTABLE = 96,
	REFS_ITABLE = 100,
	REFS_MAP = 104,
	REFS_KLASS = 112, /* sizeof InstanceKlass: the oop map follows */
	REFS_KLASS_BYTES = 128,
	REFS_KLASS_AT = 32, /* in a java.lang.Class */
	REFS_STATIC_AT = 40,
	REFS_FIELD_AT = 16,
};

struct refs_fake {
	struct fake f;
	u64 data, cache, caches, mirror; /* ClassLoaderData; classes; the Cache's java.lang.Class */
	u64 object, array, string;
};

static u64 refs_class(struct fake *f, u64 data, const char *name, s32 helper, u64 super)
{
	u64 at = fake_room(f, REFS_KLASS_BYTES);

	fake32(f, at + KLASS_HELPER, helper);
	fake64(f, at + KLASS_NAME, fake_symbol(f, name));
	fake64(f, at + KLASS_SUPER, super);
	fake64(f, at + REFS_LOADER, data);
	return at;
}

static void refs_describe(struct fake *f, u64 data)
{
	u64 e = f->types + f->ntypes++ * 16;

	fake64(f, e, fake_text(f, "InstanceKlass"));
	fake64(f, e + 8, REFS_KLASS);
	fake_field(f, "ClassLoaderDataGraph", "_head", "ClassLoaderData*", true, fake_pointer_to(f, data));
	fake_field(f, "ClassLoaderData", "_next", "ClassLoaderData*", false, 48);
	if (f->is.age == FAKE_8) {
		fake_field(f, "ClassLoaderData", "_class_loader", "oop", false, 0);
		fake_field(f, "Klass", "_next_sibling", "Klass*", false, REFS_LINK - 8);
		fake_field(f, "InstanceKlass", "_class_loader_data", "ClassLoaderData*", false, REFS_LOADER);
		fake_field(f, "Klass", "_java_mirror", "oop", false, REFS_MIRROR);
	} else {
		fake_field(f, "ClassLoaderData", "_klasses", "Klass*", false, 40);
		fake_field(f, "ClassLoaderData", "_class_loader", "OopHandle", false, 8);
		fake_field(f, "Klass", "_next_link", "Klass*", false, REFS_LINK);
		fake_field(f, "Klass", "_class_loader_data", "ClassLoaderData*", false, REFS_LOADER);
		fake_field(f, "Klass", "_java_mirror", "OopHandle", false, REFS_MIRROR);
	}
	fake_field(f, "Klass", "_vtable_len", "int", false, REFS_VTABLE);
	fake_field(f, "InstanceKlass", "_itable_len", "int", false, REFS_ITABLE);
	fake_field(f, "InstanceKlass", "_nonstatic_oop_map_size", "int", false, REFS_MAP);
	fake_field(f, "java_lang_Class", "_klass_offset", "int", true, fake_pointer_to(f, REFS_KLASS_AT));
	fake_field(f, "CollectedHeap", "_reserved", "MemRegion", false, 48);
	fake_field(f, "MemRegion", "_start", "HeapWord*", false, 0);
	fake_field(f, "MemRegion", "_word_size", "size_t", false, 8);
}

static void refs_objects(struct refs_fake *r)
{
	struct fake *f = &r->f;
	u32 header = fake_header(f, true), step = f->is.narrow_oops ? 4 : 8;

	r->string = fake_string(f, "kept", false);
	r->object = fake_room(f, 24);
	fake_object(f, r->object, r->cache);
	fake_oop(f, r->object + REFS_FIELD_AT, r->string);
	r->array = fake_room(f, header + 3 * step);
	fake_array(f, r->array, r->caches, 3);
	fake_oop(f, r->array + header + step, r->object);
	r->mirror = fake_room(f, 48);
	fake_object(f, r->mirror, f->mirror);
	fake32(f, r->mirror + MIRROR_SIZE_AT, 6);
	fake64(f, r->mirror + REFS_KLASS_AT, r->cache);
	fake_oop(f, r->mirror + REFS_STATIC_AT, r->array);
	fake64(f, r->cache + REFS_MIRROR, f->is.age == FAKE_8 ? r->mirror : fake_pointer_to(f, r->mirror));
}

static struct refs_fake *refs_create(struct fake_options options)
{
	const struct fake_java_field fields[] = {{"text", "Ljava/lang/String;", REFS_FIELD_AT, false},
	        {"kept", "[Lcom/foo/Cache;", REFS_STATIC_AT, true}};
	const u32 block[] = {REFS_FIELD_AT, 1};
	struct refs_fake *r = calloc(1, sizeof(*r));
	struct fake *f = &r->f, *plain = fake_create(options);

	*f = *plain;
	fake_destroy(plain);
	r->data = fake_room(f, 56);
	r->cache = refs_class(f, r->data, "com/foo/Cache", 24, f->object);
	r->caches = refs_class(f, r->data, "[Lcom/foo/Cache;",
	        (s32)(2u << 30 | fake_header(f, true) << 16 | (f->is.narrow_oops ? 2 : 3)), f->object);
	fake_fields(f, r->cache, fields, 2);
	fake32(f, r->cache + REFS_MAP, 1);
	fake_put(f, r->cache + REFS_KLASS, block, sizeof(block));
	fake64(f, r->cache + REFS_LINK, r->caches);
	fake64(f, r->data + 40, r->cache);
	refs_objects(r);
	refs_describe(f, r->data);
	fake_vmstructs(f);
	return r;
}

static struct error *refs_open(void *instance, const struct runtime_process *p, struct heap *h, void **ret)
{
	struct hotspot_refs *made;
	struct error *err = hotspot_refs_create(instance, p->memory, h, &made);

	*ret = made;
	return err;
}

static void refs_close(void *reader)
{
	hotspot_refs_destroy(reader);
}

static struct error *refs_roots(void *reader)
{
	return hotspot_refs_roots(reader);
}

static enum heap_seen refs_object(void *reader, u64 addr, u32 label, struct heap_object *ret)
{
	return hotspot_refs_object(reader, addr, label, ret);
}

static const struct runtime_heap_ops refs_ops = {
        .objects = "objects", .open = refs_open, .close = refs_close, .roots = refs_roots, .object = refs_object};

/* *err: of heap_read(). */
static struct heap *refs_heap(struct refs_fake *r, struct hotspot_heap_view *view, struct error **err)
{
	struct heap_options o = {.memory = 4 << 20, .references = true};
	struct runtime_process p = {.memory = &r->f.memory};
	struct heap *h;
	bool found;

	fake_check(heap_create(&r->f.memory, 0, &o, &h));
	*err = heap_read(h, &refs_ops, view, &p, &found);
	return h;
}

#endif
