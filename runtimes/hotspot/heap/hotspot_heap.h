/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in the heap of a JVM, read from outside: their classes and sizes; and the JVM's threads with what they
 * allocated. For java-alloc and names of threads. All reads may be torn, because the target keeps running.
 */
#ifndef YRT_HOTSPOT_HEAP_H
#define YRT_HOTSPOT_HEAP_H

#include "runtimes/hotspot/layout/hotspot_layout.h"
#include "binary/memory.h"

struct hotspot_heap_view; /* of one process */

struct error *hotspot_heap_view_create(
        const struct vmstructs *v, const struct hotspot_layout *l, struct hotspot_heap_view **ret);
void hotspot_heap_view_destroy(struct hotspot_heap_view *h); /* NULL is fine */

/*
 * The object that covers addr, its class and its size in bytes. Found by a walk from start, where an object begins, up
 * to addr (a TLAB is parsable from its start to its top). False: the walk met something that is no object.
 */
bool hotspot_object_covering(
        struct hotspot_heap_view *h, struct memory *m, u64 start, u64 addr, u64 *object, u64 *klass, u64 *size);
/*
 * The same by its end, if that is known: backwards from addr, not before start, to a header whose size leads to end.
 * Fast for small objects. False: no header leads to end, or the object has changed since it was made (end 0: always).
 */
bool hotspot_object_ending(struct hotspot_heap_view *h, struct memory *m, u64 start, u64 addr, u64 end, u64 *object,
        u64 *klass, u64 *size);
/*
 * Calls each for the objects from start (where one begins) up to end, until it returns false. Returns where it stopped:
 * at end or behind it, or at the object where each said so, or at what is no object.
 */
u64 hotspot_each_object(struct hotspot_heap_view *h, struct memory *m, u64 start, u64 end,
        bool (*each)(void *ctx, u64 object, u64 klass, u64 size), void *ctx);
/* Distinguishes a Klass from a later one at the same address: for hotspot_detail(HOTSPOT_CLASS, …). */
bool hotspot_class_cookie(struct hotspot_heap_view *h, struct memory *m, u64 klass, u32 *ret);

struct hotspot_thread {
	u64 at;        /* JavaThread */
	pid_t tid;     /* as the target's own pid namespace numbers it */
	u64 allocated; /* bytes of this thread so far, exact: _allocated_bytes + what is used of its TLAB */
	u64 tlab_start, tlab_top, tlab_end;
	char name[128]; /* java.lang.Thread.name, UTF-8 */
};

struct hotspot_anchor;
/* Where threads note their last frame of Java. ret->list is 0 if this JVM does not say. */
void hotspot_anchor_find(const struct hotspot_heap_view *h, struct hotspot_anchor *ret);
/* All Java threads now, at most max; returns how many. Without names: name is "". */
u32 hotspot_threads(struct hotspot_heap_view *h, struct memory *m, struct hotspot_thread *ret, u32 max, bool names);
/*
 * runtime_ops.thread_name, for the thread tid of /proc/PID/task. From time to time all names are read and kept, so that
 * a thread is known too that ended in its first samples. This does not work in a pid namespace of its own, where the
 * number of a thread that is gone cannot be found.
 */
bool hotspot_thread_name(struct hotspot_heap_view *h, struct memory *m, pid_t pid, pid_t tid, char *ret, size_t size);
/* Where it counts them (u32), 0 if unknown. */
u64 hotspot_collections_at(struct hotspot_heap_view *h, struct memory *m);
/* Number of collections so far; 0 if unknown. What was read between two equal numbers did not move. */
u32 hotspot_collections(struct hotspot_heap_view *h, struct memory *m);
/* Of those the ones that moved everything (CollectedHeap::_total_full_collections); 0: none, or unknown. */
u32 hotspot_full_collections(struct hotspot_heap_view *h, struct memory *m);
/* Its collector stops all threads before it moves objects, and hotspot_collecting() says when. */
bool hotspot_stops_to_collect(struct hotspot_heap_view *h, struct memory *m);
/* All threads stand for a collection: from just before it is counted until it is over. */
bool hotspot_collecting(struct hotspot_heap_view *h, struct memory *m);
/* Until it is over: meanwhile objects are in two places. False: it does not end for long, as in a stopped JVM. */
bool hotspot_await_collection(struct hotspot_heap_view *h, struct memory *m);

#endif
