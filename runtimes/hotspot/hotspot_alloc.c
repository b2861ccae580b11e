/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_alloc.h"

#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"
#include "hotspot.h"
#include "hotspot_alloc_leaf.h"
#include "hotspot_instance.h"
#include "runtime.h"

#define HEADER_BYTES 16 /* mark and class */

static struct hotspot_heap_view *heap_of(void *data)
{
	return ((struct hotspot_instance *)data)->heap;
}

static struct error *sites(void *data, const struct runtime_process *p, struct runtime_alloc *ret)
{
	struct hotspot_instance *instance = data;
	const struct hotspot_layout *l = instance->layout;
	struct error *err;
	char root[64];

	if (!instance->heap)
		return error_hint(
		        error_new(ERROR_UNSUPPORTED, "the JVM of process %d is only starting", p->pid), "try again");
	snprintf(root, sizeof(root), "/proc/%d/root", p->pid);
	err = hotspot_alloc_sites(instance->image->file, root, ret);
	if (err)
		return err;
	ret->collections_at = hotspot_collections_at(instance->heap, p->memory);
	ret->buffer_start = l->tlab.at + l->tlab_start.at;
	ret->buffer_top = l->tlab.at + l->tlab_top.at;
	ret->buffer_end = l->tlab.at + l->tlab_end.at;
	return NULL;
}

static u32 threads(void *data, const struct runtime_process *p, struct alloc_thread *ret, u32 max)
{
	struct hotspot_heap_view *heap = heap_of(data);
	cleanup(free) struct hotspot_thread *all = calloc(max, sizeof(*all));
	u32 n = heap && all ? hotspot_threads(heap, p->memory, all, max, false) : 0;

	for (u32 i = 0; i < n; i++)
		ret[i] = (struct alloc_thread){.tid = all[i].tid, .thread = all[i].at, .allocated = all[i].allocated};
	return n;
}

static bool class_frame(void *data, const struct runtime_process *p, u64 klass, struct frame *ret)
{
	struct hotspot_heap_view *heap = heap_of(data);
	u32 cookie;

	if (!heap || !hotspot_class_cookie(heap, p->memory, klass, &cookie))
		return false;
	ret->where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, klass);
	ret->detail = hotspot_detail(HOTSPOT_CLASS, cookie);
	return true;
}

/* Is the last object of the thread's buffer still the one that ends there? */
static bool stands_still(const struct hotspot_layout *l, struct memory *m, u64 thread, u64 start, u64 end)
{
	u64 now[2];

	return memory_read(m, &now[0], 8, thread + l->tlab.at + l->tlab_start.at) &&
	       memory_read(m, &now[1], 8, thread + l->tlab.at + l->tlab_top.at) && now[0] == start && now[1] == end;
}

static bool object(void *data, const struct runtime_process *p, u64 thread, u64 start, u64 addr, u64 end, u32 gc,
        struct frame *ret, u64 *size)
{
	const struct hotspot_layout *l = ((struct hotspot_instance *)data)->layout;
	struct hotspot_heap_view *heap = heap_of(data);
	bool fresh = heap && thread && end && stands_still(l, p->memory, thread, start, end);
	u64 at, klass;

	if (!heap || (!hotspot_object_ending(heap, p->memory, start, addr, end, &at, &klass, size) &&
	                     !hotspot_object_covering(heap, p->memory, start, addr, &at, &klass, size)))
		return false;
	/* what lies behind the mark may be of an object that was there before the last collection */
	if ((fresh && addr < at + HEADER_BYTES) || (end && at + *size != end))
		return false;
	if (gc && hotspot_collections(heap, p->memory) + 1 != gc)
		return false;
	return class_frame(data, p, klass, ret);
}

/* The innermost frame of compiled code, if nothing but stubs (as those that copy arrays) lies inside it. */
static void place(void *data, const struct runtime_process *p, struct frame *frames, u32 n)
{
	struct hotspot_instance *instance = data;
	const struct hotspot_layout *l = instance->layout;
	u32 i = 0;

	while (i < n && frame_kind(&frames[i]) == FRAME_SCRIPT && frame_runtime(&frames[i]) == RUNTIME_HOTSPOT &&
	        hotspot_kind(&frames[i]) == HOTSPOT_STUB)
		i++;
	if (i < n && frame_kind(&frames[i]) == FRAME_SCRIPT && frame_runtime(&frames[i]) == RUNTIME_HOTSPOT &&
	        hotspot_kind(&frames[i]) == HOTSPOT_NMETHOD)
		hotspot_alloc_leaf(l, instance->code, p->memory, l->tlab.at + l->tlab_top.at,
		        l->tlab.at + l->tlab_end.at, &frames[i]);
}

static u32 collections(void *data, const struct runtime_process *p)
{
	struct hotspot_heap_view *heap = heap_of(data);

	return heap ? hotspot_collections(heap, p->memory) + 1 : 0;
}

const struct runtime_alloc_ops hotspot_alloc_ops = {
        .sites = sites,
        .threads = threads,
        .object = object,
        .place = place,
        .class_frame = class_frame,
        .collections = collections,
};
