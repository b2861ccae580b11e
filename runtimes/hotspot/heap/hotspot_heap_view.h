/* SPDX-License-Identifier: Apache-2.0 */
/* What hotspot_heap.c, hotspot_classes.c, hotspot_java.c and hotspot_threads.c share. */
#ifndef YRT_HOTSPOT_HEAP_VIEW_H
#define YRT_HOTSPOT_HEAP_VIEW_H

#include "runtimes/hotspot/walk/hotspot.h"
#include "hotspot_heap.h"

/* How the size of an object comes from its class. */
enum hotspot_size_kind {
	SIZE_FIXED,       /* by the layout helper */
	SIZE_ARRAY,       /* and by its length */
	SIZE_MIRROR,      /* java.lang.Class: in a field of it, with its statics */
	SIZE_STACK_CHUNK, /* jdk.internal.vm.StackChunk: with the frames in it */
};

struct hotspot_class {
	u64 klass, symbol;
	enum hotspot_size_kind kind;
	u32 size;          /* of an instance; an array: of its header */
	u32 log2_element;  /* of an array */
	u32 stack_size_at; /* of a StackChunk: offset of the field "size" */
};

/* How references are kept in the heap and in OopHandles. */
enum hotspot_oop_kind { OOP_PLAIN, OOP_NARROW, OOP_COLOURED /* generational ZGC: address << n | colour */ };

/* Offsets beside those of struct hotspot_layout. Of those that not every JDK has: 0 for none. */
struct hotspot_heap_offsets {
	u64 super, constants;                 /* Klass, InstanceKlass */
	u64 fields, fields_count;             /* InstanceKlass._fields, up to 20 */
	u64 fieldinfo;                        /* InstanceKlass._fieldinfo_stream, from 21 */
	u64 array_data;                       /* Array<u1> and Array<u2>: behind the length */
	u64 vm_symbols;                       /* address of Symbol::_vm_symbols */
	u64 list_length, list_threads;        /* ThreadsList, from 10 */
	u64 thread_next;                      /* JavaThread._next, 8 and 9 */
	u64 collecting;                       /* CollectedHeap._is_gc_active, from 21 _is_stw_gc_active */
	bool array_data_known, thread_handle; /* JavaThread._threadObj is an OopHandle (14 and later) */
};

/* Names of threads at the last two looks: a thread may be gone when its first stack arrives. */
struct hotspot_named;
struct hotspot_kept_names {
	struct hotspot_named *names[2];
	u32 n[2];
	u64 next_ns; /* not before then another look */
};

/* Where the JavaThread of a thread is. */
struct hotspot_thread_place {
	u64 at;
	pid_t tid;
};

struct hotspot_heap_view {
	const struct vmstructs *v;
	const struct hotspot_layout *l;
	struct hotspot_heap_offsets at;
	u64 thread_list; /* address of the static field: ThreadsSMRSupport::_java_thread_list, or Threads::_thread_list
	                  */
	u64 collected_heap; /* the same: Universe::_collectedHeap */
	bool ready;
	/* read from the process once it is initialised */
	enum hotspot_oop_kind oops;
	u64 oop_base, klass_base;
	u32 oop_shift, klass_shift;
	bool narrow_klass;
	bool silent_refills;  /* C1's code takes TLABs and memory from eden by itself (FastTLABRefill, up to 10) */
	bool concurrent;      /* its collector moves objects while threads go on */
	bool no_tlabs;        /* -XX:-UseTLAB: what JDK 8 to 11 have in the fields was never set */
	u32 mark_klass_shift; /* compact headers: where the class is in the mark word; 0: not compact */
	u32 alignment;
	struct hotspot_z z; /* coloured references: how to find where objects are now; granules 0: not known (yet) */
	u32 z_tries;
	bool views;    /* ZGC of one generation: z is of hotspot_z_find_views() */
	u64 heap_base; /* ZGC: what is added to an offset to make an address; 0: hotspot_heap_base() was not called */
	u32 mirror_size_at; /* in a java.lang.Class; 0: unknown */
	/* found when first needed: offsets in objects; 0: not yet */
	u32 thread_name, string_value, string_coder;
	bool string_coded;             /* has a coder: 9 and later */
	bool string_sought;            /* by its class */
	struct hotspot_class *classes; /* hash table, by klass */
	u32 nclasses, capacity;
	struct hotspot_kept_names kept;
	struct hotspot_thread_place *places; /* at the last look, by tid */
	u64 places_list;                     /* what thread_list held then */
	u32 nplaces;
	u64 places_next_ns; /* not before then another look */
};

/* Reads what the JVM decides at start. False: it has not got there yet, or makes no sense. */
bool hotspot_heap_ready(struct hotspot_heap_view *h, struct memory *m);

/* hotspot_classes.c: NULL: this is no class (or no memory). Valid until the next call. */
const struct hotspot_class *hotspot_class_of(struct hotspot_heap_view *h, struct memory *m, u64 klass);
/* They are looked at again: the address of a class may be another's by now. */
void hotspot_classes_forget(struct hotspot_heap_view *h);
bool hotspot_symbol(const struct hotspot_heap_view *h, struct memory *m, u64 symbol, char *ret, size_t size);
/* name and signature: addresses of Symbols, 0: not readable. offset: in an object; of a static field in the
 * java.lang.Class. */
struct hotspot_declared {
	u64 name, signature;
	u32 offset;
	bool is_static;
};
/*
 * Calls each for the fields that a class declares itself, from 21 on also for those that the VM has added to it, until
 * it returns false. False: they could not be read to the end.
 */
bool hotspot_each_field(struct hotspot_heap_view *h, struct memory *m, u64 klass,
        bool (*each)(void *ctx, const struct hotspot_declared *f), void *ctx);
/*
 * The offset of a field that this class declares itself, or that the VM has added to it (21 on), by name and signature
 * ("I", "Ljava/lang/String;").
 */
bool hotspot_java_field(
        struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *signature, u32 *offset);

/* The class itself or a super class of it, by name ("java/lang/Thread"); 0: none. */
u64 hotspot_super_named(struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name);

/* hotspot_heap.c: class and size of the object whose first HOTSPOT_HEADER_MAX bytes are header; false: it is none. What
 * cannot be read of the header is HOTSPOT_UNKNOWN, which is no length that an array has. */
#define HOTSPOT_HEADER_MAX 24 /* mark, class, length */
#define HOTSPOT_UNKNOWN    0xff
bool hotspot_object_size(
        struct hotspot_heap_view *h, struct memory *m, u64 addr, const u8 *header, u64 *klass, u64 *size);
/* ZGC: finds where it keeps what it has moved. False: another collector, or not given. */
bool hotspot_heap_base(struct hotspot_heap_view *h, struct memory *m);
/* hotspot_java.c: where the object of a reference of 8 bytes is now, as it was stored; 0: null or not known. */
u64 hotspot_decode_oop(const struct hotspot_heap_view *h, struct memory *m, u64 oop);
/* the reference at addr in the heap, decoded; 0: null or not readable. */
u64 hotspot_load_oop(const struct hotspot_heap_view *h, struct memory *m, u64 addr);
/* Where java.lang.String, whose class this is, has its characters: char[] in 8, byte[] with a coder since 9. */
bool hotspot_find_string(struct hotspot_heap_view *h, struct memory *m, u64 klass);
/* Characters of 1 byte, or of 2 (wide), in UTF-8. */
void hotspot_java_text(const u8 *chars, u32 units, bool wide, char *ret, size_t size);
/* Behind an OopHandle, or a plain field of a VM structure (handle false). */
u64 hotspot_load_handle(const struct hotspot_heap_view *h, struct memory *m, u64 addr, bool handle);
/* The class of an object by its first 16 bytes; 0: none. Of one that was moved its compact header does not have it. */
u64 hotspot_header_class(const struct hotspot_heap_view *h, const u8 *header);
u64 hotspot_class_in(const struct hotspot_heap_view *h, struct memory *m, const u8 *header);
/*
 * Where an object is now whose first bytes these are: its first word leads to its copy, while it is moved and until
 * its place is used again (markWord.hpp, shenandoahForwarding.inline.hpp). 0: it was not moved.
 */
u64 hotspot_moved_to(const u8 *header);
u32 hotspot_length_at(const struct hotspot_heap_view *h); /* offset of an array's length */
/* hotspot_loaded.c: the class of this name that the loader of another has loaded; 0: none (yet). */
u64 hotspot_loaded_with(struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name);
/* The class of an object; 0 if there is no object at that address. */
u64 hotspot_object_class(struct hotspot_heap_view *h, struct memory *m, u64 object);
/* The java.lang.Class of a class, where its static fields are. */
u64 hotspot_class_mirror(struct hotspot_heap_view *h, struct memory *m, u64 klass);
/* As hotspot_java_field(), of a class or one above it. */
bool hotspot_inherited_field(
        struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *signature, u32 *offset);
/* The offset of a field that the class of an object, or the one above it that is called so, declares; *ret: 0 at first,
 * then kept. */
bool hotspot_declared_field(struct hotspot_heap_view *h, struct memory *m, u64 object, const char *class,
        const char *name, const char *signature, u32 *ret);
/* What a field of an object, or of a class, refers to; 0: null, or there is no such field. */
u64 hotspot_object_field(
        struct hotspot_heap_view *h, struct memory *m, u64 object, const char *name, const char *signature);
u64 hotspot_static_field(
        struct hotspot_heap_view *h, struct memory *m, u64 klass, const char *name, const char *signature);
/* hotspot_threads.c: the JavaThread of this number in the target's own pid namespace; 0: none that is known. */
u64 hotspot_thread_at(struct hotspot_heap_view *h, struct memory *m, pid_t tid);
/* The number of a JavaThread there; 0: it has none (any more). */
pid_t hotspot_tid_of(const struct hotspot_heap_view *h, struct memory *m, u64 thread);
/*
 * Updates the list of all threads. False: not now, because it was updated a moment ago; never if they must be current.
 */
bool hotspot_places_renew(struct hotspot_heap_view *h, struct memory *m, bool must);
/* The thread of this number in the target's own pid namespace. */
bool hotspot_thread_of(struct hotspot_heap_view *h, struct memory *m, pid_t tid, struct hotspot_thread *ret);
/* hotspot_thread_names.c */
void hotspot_kept_names_free(struct hotspot_kept_names *k);
/* java.lang.Thread.name in UTF-8. */
bool hotspot_java_thread_name(struct hotspot_heap_view *h, struct memory *m, u64 thread, char *ret, size_t size);

#endif
