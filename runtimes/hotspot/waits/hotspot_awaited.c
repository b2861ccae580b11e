/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_awaited.h"

#include "runtimes/hotspot/heap/hotspot_heap_view.h"

#define MONITOR_HANDLE 16 /* the first whose ObjectMonitor has its object behind a handle (8247281); 8 says 25 */

static u32 version_of(const struct hotspot_heap_view *h, struct memory *m)
{
	u32 ret;
	u64 at;

	return vmstructs_static(h->v, "Abstract_VM_Version", "_vm_major_version", &at) &&
	                       memory_read(m, &ret, sizeof(ret), at)
	               ? ret
	               : 0;
}

/* The java.lang.Thread of any thread; 0: there is none yet. */
static u64 any_thread(struct hotspot_heap_view *h, struct memory *m)
{
	u64 ret = 0;

	if (!h->nplaces)
		hotspot_places_renew(h, m, false);
	for (u32 i = 0; !ret && i < h->nplaces; i++) {
		ret = hotspot_load_handle(h, m, h->places[i].at + h->l->thread_obj.at, h->at.thread_handle);
		ret = hotspot_object_class(h, m, ret) ? ret : 0;
	}
	return ret;
}

/* java.lang.Class is the class of each class's mirror, which is behind a handle since 10. */
static void find_mirrors(const struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, u64 klass,
        struct hotspot_awaited *ret)
{
	u64 mirror;
	u32 at;

	if (!w->mirror_at || !memory_read(m, &at, 4, w->mirror_at) || at > UINT16_MAX ||
	        !vmstructs_field(h->v, "Klass", "_java_mirror", &mirror, NULL))
		return;
	ret->mirrored = (u16)at;
	for (int handle = 1; handle >= 0 && !ret->class_klass; handle--) {
		u64 of = hotspot_object_class(h, m, hotspot_load_handle(h, m, klass + mirror, handle));

		if (of && hotspot_super_named(h, m, of, "java/lang/Class") == of)
			ret->class_klass = of;
	}
}

/* Where the JVM notes that it collects garbage with all threads standing; 0: not known. */
static u64 collecting_at(const struct hotspot_heap_view *h, struct memory *m)
{
	u64 heap;

	return h->at.collecting && memory_read(m, &heap, 8, h->collected_heap) && heap ? heap + h->at.collecting : 0;
}

void hotspot_awaited_find(
        struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, struct hotspot_awaited *ret)
{
	u32 version = version_of(h, m);
	u64 thread;

	if (!version || !hotspot_waits_ready(w, h, m) || !w->monitors || w->pending > UINT16_MAX ||
	        w->waiting > UINT16_MAX || w->object > UINT16_MAX || w->current > UINT16_MAX)
		return;
	thread = any_thread(h, m);
	if (!thread)
		return;
	*ret = (struct hotspot_awaited){
	        .oop_base = h->oop_base,
	        .klass_base = h->klass_base,
	        .collecting_at = collecting_at(h, m),
	        .pending = (u16)w->pending,
	        .waiting = (u16)w->waiting,
	        .object = (u16)w->object,
	        .thread_obj = (u16)w->current,
	        .klass_name = (u16)h->l->klass_name.at,
	        .monitor_place = h->at.thread_handle && version >= MONITOR_HANDLE ? HOTSPOT_IN_HANDLE : HOTSPOT_IN_VM,
	        .thread_place = h->at.thread_handle ? HOTSPOT_IN_HANDLE : HOTSPOT_IN_VM,
	        .oops = (u8)h->oops,
	        .oop_shift = (u8)h->oop_shift,
	        .narrow_klass = h->narrow_klass,
	        .klass_shift = (u8)h->klass_shift,
	        .mark_klass_shift = (u8)h->mark_klass_shift,
	};
	if (hotspot_declared_field(
	            h, m, thread, "java/lang/Thread", "parkBlocker", "Ljava/lang/Object;", &w->blocker) &&
	        w->blocker <= UINT16_MAX)
		ret->blocker = (u16)w->blocker;
	find_mirrors(w, h, m, hotspot_object_class(h, m, thread), ret);
}
