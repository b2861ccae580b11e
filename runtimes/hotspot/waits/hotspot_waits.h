/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Java threads wait for and who holds it, as the JVM itself keeps it (runtime_ops.waits_for):
 *
 *	monitors	JavaThread::_current_pending_monitor, in Object.wait() _current_waiting_monitor. The owner in
 *			ObjectMonitor::_owner is, up to 23, the JavaThread or an address in its stack (the BasicLock of
 *			a lock that was not inflated), from 24 on the number of its java.lang.Thread; 1 (21 and later):
 *			the thread whose LockStack has the object
 *			A thread that was notified is still in wait(): its threadStatus says that it wants the monitor.
 *	others		Thread.parkBlocker; the owner is AbstractOwnableSynchronizer.exclusiveOwnerThread
 *
 * (objectMonitor.hpp, lockStack.hpp, threadService.cpp of 8 to 25.)
 */
#ifndef YRT_HOTSPOT_WAITS_H
#define YRT_HOTSPOT_WAITS_H

#include <types.h>

#include "binary/memory.h"

struct hotspot_heap_view;
struct runtime_thread;
struct runtime_wait;

/* Offsets in VM structures: 0 where a JDK has none. In objects: 0 until first needed. */
struct hotspot_waits {
	struct hotspot_heap_view *heap;                                     /* NULL: not looked at yet */
	u64 pending, waiting, stack_base, stack_size, owner_id, lock_stack; /* JavaThread */
	u64 current;       /* JavaThread: the java.lang.Thread whose code it runs, a virtual one or its own */
	u64 object, owner; /* ObjectMonitor */
	u64 stack_locker;  /* ObjectMonitor, 24 and 25: the BasicLock of an anonymous owner */
	bool monitors;     /* both of them are known */
	u64 lock_stack_top, lock_stack_base; /* LockStack */
	u64 mirror_at;                       /* address of java_lang_Class::_klass_offset */
	u32 blocker, eetop, number, carrier, synchronizer_owner;
	u32 status, holder, holder_status; /* threadStatus: one that has a holder lacks the first */
	/* Many wait for the same: */
	u64 last;         /* JavaThread that held what was asked for last */
	u64 last_virtual; /* the same, number of a thread that is virtual */
};

/* Finds the offsets in VM structures. False: the JVM is only starting. */
bool hotspot_waits_ready(struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m);
bool hotspot_waits_for(struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m,
        const struct runtime_thread *t, struct runtime_wait *ret);
/* The same of a virtual thread that is parked, by its java.lang.Thread. */
bool hotspot_parked_for(
        struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, u64 object, struct runtime_wait *ret);
/* The number of the thread that a java.lang.Thread has; 0: none. */
pid_t hotspot_thread_of_object(struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, u64 object);

#endif
