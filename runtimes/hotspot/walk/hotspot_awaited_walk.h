/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Part of hotspot_walk.c: the class of the object that a thread waits for (FEATURE_AWAITED). Java code has its
 * JavaThread in r15. From there the ObjectMonitor is found that the thread wants or waits on (objectMonitor.cpp, 8 to
 * 25), and the java.lang.Thread whose parkBlocker it has parked for. The thread is not running when this is read, so
 * the data is of this wait. But objects may move meanwhile: while a collector moves them with all threads stopped,
 * references already lead to the new places, which may still hold other objects. Nothing that was read during that time
 * counts.
 */
#ifndef YRT_HOTSPOT_AWAITED_WALK_H
#define YRT_HOTSPOT_AWAITED_WALK_H

#include "walk.h"
#include "hotspot.h"
#include "hotspot_find_walk.h"

#define HS_ASKED 0x61776168u /* vm_mark: Java's first frame was seen */

/* The object that a reference leads to; 0: none, or not known. */
WALK_GLOBAL u64 hotspot_referent(struct walk *w, u64 at, u32 place)
{
	const struct hotspot_vm *vm;
	u64 ret;
	u32 low;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm || (place == HOTSPOT_IN_HANDLE && (!walk_read(w, &at, 8, at) || !at)))
		return 0;
	if (vm->awaited.oops == HOTSPOT_OOP_COLOURED)
		return hs_z_follow(w, at);
	if (vm->awaited.oops == HOTSPOT_OOP_NARROW && place == HOTSPOT_IN_HEAP)
		return walk_read(w, &low, 4, at) && low
		               ? vm->awaited.oop_base + ((u64)low << (vm->awaited.oop_shift & 63))
		               : 0;
	return walk_read(w, &ret, 8, at) ? ret : 0;
}

/* The class of an object; 0: not readable. */
WALK_GLOBAL u64 hotspot_class_at(struct walk *w, u64 object)
{
	const struct hotspot_vm *vm;
	u64 word = 0;
	u32 low;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm || !object || object & 7)
		return 0;
	if (vm->awaited.mark_klass_shift) {
		object = hs_moved_to(w, object);
		if (!object || !walk_read(w, &word, 8, object))
			return 0;
		low = (u32)(word >> (vm->awaited.mark_klass_shift & 63));
	} else if (vm->awaited.narrow_klass) {
		if (!walk_read(w, &low, 4, object + 8))
			return 0;
	} else {
		return walk_read(w, &word, 8, object + 8) ? word : 0;
	}
	return low ? vm->awaited.klass_base + ((u64)low << (vm->awaited.klass_shift & 63)) : 0;
}

/* The object that the thread in r15 waits for; 0: none. */
WALK_GLOBAL u64 hotspot_awaited_object(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 thread, monitor = 0, object;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return 0;
	thread = w->reg[DWREG_R15];
	if (!walk_read(w, &monitor, 8, thread + vm->awaited.pending))
		return 0;
	if (!monitor && vm->awaited.waiting && !walk_read(w, &monitor, 8, thread + vm->awaited.waiting))
		return 0;
	if (monitor)
		return hotspot_referent(w, monitor + vm->awaited.object, vm->awaited.monitor_place);
	if (!vm->awaited.blocker)
		return 0;
	object = hotspot_referent(w, thread + vm->awaited.thread_obj, vm->awaited.thread_place);
	return object ? hotspot_referent(w, object + vm->awaited.blocker, HOTSPOT_IN_HEAP) : 0;
}

static inline bool hs_is_collecting(struct walk *w)
{
	const struct hotspot_vm *vm = hs_vm(w);
	u8 active = 1;

	return vm && vm->awaited.collecting_at && (!walk_read(w, &active, 1, vm->awaited.collecting_at) || active);
}

/* Pushes the class, if there is one. */
WALK_GLOBAL int hotspot_push_awaited(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 object, klass, of, symbol;
	u32 kind = HOTSPOT_CLASS;

	WALK_CHECK(w);
	if (hs_is_collecting(w))
		return 0;
	object = hotspot_awaited_object(w);
	klass = hotspot_class_at(w, object);
	vm = hs_vm(w);
	if (!vm || !klass)
		return 0;
	if (klass == vm->awaited.class_klass && walk_read(w, &of, 8, object + vm->awaited.mirrored) && of) {
		klass = of;
		kind = HOTSPOT_MIRROR;
	}
	if (!walk_read(w, &symbol, 8, klass + vm->awaited.klass_name) || hs_is_collecting(w))
		return 0;
	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, FRAME_AWAITED, klass),
	        hotspot_detail(kind, (u32)(symbol >> 3)));
}

/* Before the innermost frame of Java, if native code has led there: what waits is no leaf. */
static inline void hs_push_awaited_once(struct walk *w)
{
	const struct hotspot_vm *vm;

	if (w->vm_mark || w->leaf || !walk_has(w, DWREG_R15))
		return;
	vm = hs_vm(w);
	if (!vm || !vm->awaited.pending)
		return;
	w->vm_mark = HS_ASKED;
	hotspot_push_awaited(w);
}

#endif
