/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_waits.h"

#include <stdio.h>
#include <string.h>

#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtime.h"
#include "runtimes/hotspot/names/hotspot_text.h"

#define ANONYMOUS      1     /* ObjectMonitor::ANONYMOUS_OWNER */
#define LOCK_STACK_MAX 64    /* words; LockStack::CAPACITY is 8 */
#define BLOCKED        0x400 /* JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER */
#define SYMBOL_MAX     512
#define STACK_MAX      (1ull << 34)

/* An ObjectMonitor, read once. */
struct monitor {
	u64 at, object, owner, locker;
};

static u64 field(const struct vmstructs *v, const char *type, const char *name)
{
	u64 ret;

	return vmstructs_field(v, type, name, &ret, NULL) ? ret : 0;
}

/* The fields were Thread's before they were JavaThread's. */
static u64 thread_field(const struct vmstructs *v, const char *name)
{
	u64 ret = field(v, "JavaThread", name);

	return ret ? ret : field(v, "Thread", name);
}

static void find_offsets(const struct hotspot_heap_view *h, struct hotspot_waits *w)
{
	const struct vmstructs *v = h->v;

	w->current = field(v, "JavaThread", "_vthread");
	w->current = w->current ? w->current : h->l->thread_obj.at;
	w->pending = thread_field(v, "_current_pending_monitor");
	w->waiting = thread_field(v, "_current_waiting_monitor");
	w->stack_base = thread_field(v, "_stack_base");
	w->stack_size = thread_field(v, "_stack_size");
	w->owner_id = thread_field(v, "_monitor_owner_id");
	w->lock_stack = thread_field(v, "_lock_stack");
	w->stack_locker = field(v, "ObjectMonitor", "_stack_locker");
	w->lock_stack_top = field(v, "LockStack", "_top");
	w->lock_stack_base = field(v, "LockStack", "_base[0]");
	w->monitors = vmstructs_field(v, "ObjectMonitor", "_object", &w->object, NULL) &&
	              vmstructs_field(v, "ObjectMonitor", "_owner", &w->owner, NULL);
	if (!vmstructs_static(v, "java_lang_Class", "_klass_offset", &w->mirror_at))
		w->mirror_at = 0;
}

static void class_text(struct hotspot_waits *w, struct memory *m, u64 klass, char *ret, size_t size)
{
	char text[SYMBOL_MAX];
	u64 symbol;

	*ret = 0;
	if (klass && memory_read(m, &symbol, 8, klass + w->heap->l->klass_name.at) &&
	        hotspot_symbol(w->heap, m, symbol, text, sizeof(text)))
		hotspot_text_class((const u8 *)text, strlen(text), ret, size);
}

/* Of a java.lang.Class the class that it stands for too: what static synchronized methods lock. */
static void object_text(struct hotspot_waits *w, struct memory *m, u64 object, char ret[RUNTIME_WAIT_TEXT])
{
	u64 klass = hotspot_object_class(w->heap, m, object), of;
	size_t n;
	s32 at;

	class_text(w, m, klass, ret, RUNTIME_WAIT_TEXT);
	n = strlen(ret);
	if (strcmp(ret, "java.lang.Class") || !w->mirror_at || !memory_read(m, &at, 4, w->mirror_at) ||
	        !memory_read(m, &of, 8, object + (u64)at) || !hotspot_class_of(w->heap, m, of))
		return;
	snprintf(ret + n, RUNTIME_WAIT_TEXT - n, " for ");
	n = strlen(ret);
	class_text(w, m, of, ret + n, RUNTIME_WAIT_TEXT - n);
}

/* The object of a monitor is behind a handle since 16, and was a plain reference before. */
static u64 monitor_object(struct hotspot_waits *w, struct memory *m, u64 monitor)
{
	u64 at = monitor + w->object,
	    object = w->heap->at.thread_handle ? hotspot_load_handle(w->heap, m, at, true) : 0;

	if (!hotspot_object_class(w->heap, m, object))
		object = hotspot_load_handle(w->heap, m, at, false);
	return hotspot_object_class(w->heap, m, object) ? object : 0;
}

/* References of threads have no colour. */
static u64 stacked_oop(struct hotspot_waits *w, struct memory *m, u64 at)
{
	u64 ret;

	if (w->heap->oops != OOP_COLOURED)
		return hotspot_load_handle(w->heap, m, at, false);
	return memory_read(m, &ret, 8, at) ? ret : 0;
}

static bool has_locked(struct hotspot_waits *w, struct memory *m, u64 thread, u64 object)
{
	u64 first = w->lock_stack + w->lock_stack_base;
	u32 top;

	if (!w->lock_stack || !memory_read(m, &top, 4, thread + w->lock_stack + w->lock_stack_top) || top < first ||
	        top > first + 8ull * LOCK_STACK_MAX)
		return false;
	for (u64 at = first; at < top; at += 8)
		if (stacked_oop(w, m, thread + at) == object)
			return true;
	return false;
}

static bool has_on_stack(struct hotspot_waits *w, struct memory *m, u64 thread, u64 address)
{
	u64 base, size;

	return w->stack_base && w->stack_size && memory_read(m, &base, 8, thread + w->stack_base) &&
	       memory_read(m, &size, 8, thread + w->stack_size) && size < STACK_MAX && address < base &&
	       address >= base - size;
}

static bool is_owner(struct hotspot_waits *w, struct memory *m, u64 thread, const struct monitor *mon)
{
	u64 id;

	if (mon->owner == ANONYMOUS)
		return mon->locker ? has_on_stack(w, m, thread, mon->locker) : has_locked(w, m, thread, mon->object);
	if (w->owner_id)
		return memory_read(m, &id, 8, thread + w->owner_id) && id == mon->owner;
	return thread == mon->owner || has_on_stack(w, m, thread, mon->owner);
}

/* By address, which needs no reads; then by what each thread has. */
static pid_t search_owner(struct hotspot_waits *w, struct memory *m, const struct monitor *mon)
{
	const struct hotspot_thread_place *places = w->heap->places;
	u32 n = w->heap->nplaces, i = 0;

	while (i < n && places[i].at != mon->owner)
		i++;
	for (i = i < n ? i : 0; i < n; i++)
		if (is_owner(w, m, places[i].at, mon)) {
			w->last = places[i].at;
			return places[i].tid;
		}
	return 0;
}

/* Numbers are never used again, so what was a virtual thread's once always is. */
static bool is_virtual(const struct hotspot_waits *w, const struct monitor *mon)
{
	return mon->owner == w->last_virtual;
}

static void find_owner(struct hotspot_waits *w, struct memory *m, const struct monitor *mon, struct runtime_wait *ret)
{
	bool numbered = w->owner_id && mon->owner != ANONYMOUS;

	if (!mon->owner)
		return;
	ret->holder = w->last && is_owner(w, m, w->last, mon) ? hotspot_tid_of(w->heap, m, w->last) : 0;
	ret->holder = ret->holder ? ret->holder : search_owner(w, m, mon);
	if (!ret->holder && !is_virtual(w, mon) && hotspot_places_renew(w->heap, m, numbered))
		ret->holder = search_owner(w, m, mon);
	if (ret->holder || !numbered)
		return;
	w->last_virtual = mon->owner;
	snprintf(ret->holder_name, sizeof(ret->holder_name), "virtual thread %lu", mon->owner);
}

static bool waits_for_monitor(
        struct hotspot_waits *w, struct memory *m, u64 thread, u64 at, enum lock_kind kind, struct runtime_wait *ret)
{
	struct monitor mon = {0};

	if (!w->monitors || !at || !memory_read(m, &mon.at, 8, thread + at) || !mon.at)
		return false;
	mon.object = monitor_object(w, m, mon.at);
	if (!mon.object)
		return false;
	ret->kind = kind;
	ret->at = mon.object;
	object_text(w, m, mon.object, ret->type);
	if (w->stack_locker && !memory_read(m, &mon.locker, 8, mon.at + w->stack_locker))
		mon.locker = 0;
	if (kind == LOCK_MONITOR && memory_read(m, &mon.owner, 8, mon.at + w->owner))
		find_owner(w, m, &mon, ret);
	return true;
}

static u64 thread_object(struct hotspot_waits *w, struct memory *m, u64 thread)
{
	return hotspot_load_handle(w->heap, m, thread + w->heap->l->thread_obj.at, w->heap->at.thread_handle);
}

static u64 current_object(struct hotspot_waits *w, struct memory *m, u64 thread)
{
	return hotspot_load_handle(w->heap, m, thread + w->current, w->heap->at.thread_handle);
}

/* Thread.threadStatus, from 19 on in Thread.holder. */
static bool is_blocked(struct hotspot_waits *w, struct memory *m, u64 thread)
{
	u64 object = thread_object(w, m, thread), holder;
	u32 status;

	if (!object)
		return false;
	if (!w->holder &&
	        hotspot_declared_field(w->heap, m, object, "java/lang/Thread", "threadStatus", "I", &w->status))
		return memory_read(m, &status, 4, object + w->status) && status & BLOCKED;
	if (!hotspot_declared_field(
	            w->heap, m, object, "java/lang/Thread", "holder", "Ljava/lang/Thread$FieldHolder;", &w->holder))
		return false;
	holder = hotspot_load_oop(w->heap, m, object + w->holder);
	return holder &&
	       hotspot_declared_field(
	               w->heap, m, holder, "java/lang/Thread$FieldHolder", "threadStatus", "I", &w->holder_status) &&
	       memory_read(m, &status, 4, holder + w->holder_status) && status & BLOCKED;
}

static bool waits_in_wait(struct hotspot_waits *w, struct memory *m, u64 thread, struct runtime_wait *ret)
{
	u64 monitor;

	if (!w->waiting || !memory_read(m, &monitor, 8, thread + w->waiting) || !monitor)
		return false;
	return waits_for_monitor(
	        w, m, thread, w->waiting, is_blocked(w, m, thread) ? LOCK_MONITOR : LOCK_CONDITION, ret);
}

/* The JavaThread of a java.lang.Thread; 0: it has none at this moment. */
static u64 java_thread(struct hotspot_waits *w, struct memory *m, u64 thread)
{
	u64 ret;

	return hotspot_declared_field(w->heap, m, thread, "java/lang/Thread", "eetop", "J", &w->eetop) &&
	                       memory_read(m, &ret, 8, thread + w->eetop)
	               ? ret
	               : 0;
}

/* A virtual thread, and the thread that runs it if one does. */
static u64 describe_virtual(struct hotspot_waits *w, struct memory *m, u64 thread, struct runtime_wait *ret)
{
	u64 number, carrier;

	if (hotspot_declared_field(w->heap, m, thread, "java/lang/Thread", "tid", "J", &w->number) &&
	        memory_read(m, &number, 8, thread + w->number))
		snprintf(ret->holder_name, sizeof(ret->holder_name), "virtual thread %lu", number);
	if (!hotspot_declared_field(
	            w->heap, m, thread, "java/lang/VirtualThread", "carrierThread", "Ljava/lang/Thread;", &w->carrier))
		return 0;
	carrier = hotspot_load_oop(w->heap, m, thread + w->carrier);
	return carrier ? java_thread(w, m, carrier) : 0;
}

static void find_synchronizer_owner(struct hotspot_waits *w, struct memory *m, u64 lock, struct runtime_wait *ret)
{
	u64 owner = hotspot_load_oop(w->heap, m, lock + w->synchronizer_owner), thread;

	if (!owner)
		return;
	if (hotspot_super_named(w->heap, m, hotspot_object_class(w->heap, m, owner), "java/lang/BaseVirtualThread"))
		thread = describe_virtual(w, m, owner, ret);
	else
		thread = java_thread(w, m, owner);
	ret->holder = thread ? hotspot_tid_of(w->heap, m, thread) : 0;
}

/* object: its java.lang.Thread. */
static bool waits_for_synchronizer(struct hotspot_waits *w, struct memory *m, u64 object, struct runtime_wait *ret)
{
	static const char ownable[] = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
	u64 blocker;

	if (!object || !hotspot_declared_field(w->heap, m, object, "java/lang/Thread", "parkBlocker",
	                       "Ljava/lang/Object;", &w->blocker))
		return false;
	blocker = hotspot_load_oop(w->heap, m, object + w->blocker);
	if (!hotspot_object_class(w->heap, m, blocker))
		return false;
	ret->at = blocker;
	object_text(w, m, blocker, ret->type);
	ret->kind = hotspot_super_named(w->heap, m, hotspot_object_class(w->heap, m, blocker), ownable) ? LOCK_OBJECT
	                                                                                                : LOCK_PARK;
	if (ret->kind == LOCK_OBJECT && hotspot_declared_field(w->heap, m, blocker, ownable, "exclusiveOwnerThread",
	                                        "Ljava/lang/Thread;", &w->synchronizer_owner))
		find_synchronizer_owner(w, m, blocker, ret);
	return true;
}

bool hotspot_waits_ready(struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m)
{
	if (!hotspot_heap_ready(h, m))
		return false;
	if (!w->heap)
		find_offsets(h, w);
	w->heap = h;
	return true;
}

bool hotspot_waits_for(struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m,
        const struct runtime_thread *t, struct runtime_wait *ret)
{
	u64 thread;

	if (!hotspot_waits_ready(w, h, m))
		return false;
	thread = hotspot_thread_at(h, m, t->tid);
	return thread &&
	       (waits_for_monitor(w, m, thread, w->pending, LOCK_MONITOR, ret) || waits_in_wait(w, m, thread, ret) ||
	               waits_for_synchronizer(w, m, current_object(w, m, thread), ret));
}

bool hotspot_parked_for(
        struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, u64 object, struct runtime_wait *ret)
{
	return hotspot_waits_ready(w, h, m) && waits_for_synchronizer(w, m, object, ret);
}

pid_t hotspot_thread_of_object(struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, u64 object)
{
	u64 thread = object && hotspot_waits_ready(w, h, m) ? java_thread(w, m, object) : 0;

	return thread ? hotspot_tid_of(h, m, thread) : 0;
}
