/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of hotspot_refs.h share. Facts about the JVM are those of instanceKlass.hpp (oop maps behind vtable
 * and itable, of all fields that refer to objects), instanceRefKlass.hpp (the referent of a java.lang.ref.Reference is
 * not among them), instanceMirrorKlass.hpp (static fields in the java.lang.Class), classLoaderData.hpp, jniHandles.hpp
 * and oopStorage.inline.hpp, JDK 8 to 28.
 */
#ifndef YRT_HOTSPOT_REFS_INTERNAL_H
#define YRT_HOTSPOT_REFS_INTERNAL_H

#include "hotspot_refs.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtimes/hotspot/heap/hotspot_spaces.h"
#include "runtimes/hotspot/heap/hotspot_z_places.h"
#include "table.h"

#define THREADS_MAX 65536
#define PIECE       (1u << 16) /* of an array that is read at once */

/* A word of an object, or a static field's of a java.lang.Class. */
struct refs_word {
	u32 at, label;
	bool thread_local; /* a static field, declared as a ThreadLocal */
};

struct refs_words {
	struct refs_word *items; /* malloc'd; sorted by at */
	u32 n;
};

enum refs_kind { REFS_INSTANCE, REFS_OBJECTS /* an array of them */, REFS_NONE, REFS_CLASS, REFS_CHUNK };

struct refs_class {
	u64 klass;
	u32 type;    /* heap_type() */
	u32 item;    /* of an array: the label of its items */
	u32 size;    /* of an instance, or of an array's header */
	bool mortal; /* its loader may be unloaded, and is not as long as there is an object */
	bool statics_read, is_loader;
	u32 referent; /* of the entry of a thread's ThreadLocals: where its ThreadLocal is; else 0 */
	enum refs_kind kind;
	struct refs_words words, statics;
	u64 mirror; /* address of its java.lang.Class; 0: not known */
	u32 named;  /* if mortal: hotspot_refs_class_label() */
};

/* Where the JVM says things; 0: it does not. */
struct refs_offsets {
	u64 loaders;                       /* address of ClassLoaderDataGraph::_head */
	u64 next, klasses, loader, hidden; /* ClassLoaderData; hidden: a byte */
	u64 link, of_loader, mirror;       /* Klass */
	u64 vtable_length, itable_length, oop_map_words, instance_klass;
	u64 cache, resolved, pool_resolved; /* ConstantPool, ConstantPoolCache; the pool itself in 8 */
	u64 mirror_klass;                   /* in a java.lang.Class */
	u64 handles_top, handles_next, thread_handles;
	u64 stack_base, stack_size, global_handles;
	bool loader_handle, mirror_handle;
	bool has_storages; /* JNI references are in OopStorages, not in JNIHandleBlocks (10 and later) */
};

struct hotspot_refs {
	struct hotspot_heap_view *view;
	struct memory *m;
	struct heap *h;
	struct refs_offsets at;
	struct refs_class **classes; /* each stays where it is */
	u32 nclasses;
	u32 unknown;                            /* looked for, and none */
	struct table class_at;                  /* from a Klass to its number + 1; 0: it is none */
	struct table loader_at;                 /* from a loader's object to its ClassLoaderData */
	struct table thread_locals;             /* from a ThreadLocal to the label of the static field that has it */
	struct hotspot_spaces spaces, unfilled; /* the heap; in it buffers of threads. In order of address */
	struct hotspot_z_places *z;             /* NULL: another collector */
	struct {
		u32 constants, referent;
	} labels;
	u8 piece[PIECE];
};

/* May the classes of a ClassLoaderData be unloaded? */
bool hotspot_refs_is_mortal(struct hotspot_refs *r, u64 data);
/* The class of objects at this address; NULL: there is none. Stays valid. */
struct refs_class *hotspot_refs_class(struct hotspot_refs *r, u64 klass);
/* Static fields that refer to objects, of the class that a java.lang.Class stands for. */
const struct refs_words *hotspot_refs_statics(struct hotspot_refs *r, struct refs_class *c);
/* Calls each for the classes of a ClassLoaderData until it returns false. */
void hotspot_refs_each_class(
        struct hotspot_refs *r, u64 loader, bool (*each)(void *ctx, struct refs_class *c), void *ctx);
/* What threads have in the ThreadLocals of its static fields is called by these. */
void hotspot_refs_name_thread_locals(struct hotspot_refs *r, struct refs_class *c);
/* A label for people: "class com.foo.Bar". */
u32 hotspot_refs_class_label(struct hotspot_refs *r, const struct refs_class *c);
/* The array of a class's resolved constants (strings, method handles); 0: none. */
u64 hotspot_refs_constants(struct hotspot_refs *r, const struct refs_class *c);
/* Calls each for the words from addr that may refer to objects, as full and as compressed references. */
void hotspot_refs_scan(struct hotspot_refs *r, u64 addr, u64 size, void (*each)(void *ctx, u64 object), void *ctx);

/* The reference that these bytes of an object are. */
u64 hotspot_refs_decode(struct hotspot_refs *r, const u8 *bytes);
/* The reference in a field of a VM structure, or behind an OopHandle there; 0: null or not readable. */
u64 hotspot_refs_handle(struct hotspot_refs *r, u64 addr, bool handle);
/* Of a word that may be the address of an object: by which the object is known. 0: none. */
u64 hotspot_refs_object_at(struct hotspot_refs *r, u64 word);
u64 hotspot_refs_word(struct hotspot_refs *r, u64 addr); /* 0: unreadable, too */

static inline u64 hotspot_refs_key(u64 addr)
{
	addr *= 0x9e3779b97f4a7c15ull;
	return (addr ^ addr >> 29) | 1ull << 63;
}

#endif
