/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_alloc.h"

#include <stdio.h>
#include <stdlib.h>

#include "binary/proc_path.h"
#include "cleanup.h"
#include "runtimes/hotspot/walk/hotspot.h"
#include "hotspot_alloc_survey.h"
#include "hotspot_alloc_leaf.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtimes/hotspot/hotspot_instance.h"
#include "runtime.h"

#define HEADER_BYTES 16 /* mark and class */

static struct hotspot_heap_view *heap_of(void *data)
{
	return ((struct hotspot_instance *)data)->heap;
}

static void forget_collections(struct runtime_alloc *r)
{
	u32 left = 0;

	for (u32 i = 0; i < r->nsites; i++)
		if (r->site[i].kind != ALLOC_COLLECTION)
			r->site[left++] = r->site[i];
	r->nsites = left;
}

static struct error *sites(void *data, const struct runtime_process *p, struct runtime_alloc *ret)
{
	struct hotspot_instance *instance = data;
	const struct hotspot_layout *l = instance->layout;
	struct error *err;
	char root[64];

	if (!instance->heap)
		return error_hint(
		        error_new(ERROR_UNSUPPORTED, "the JVM of process %d is still starting", p->pid), "try again");
	proc_path(root, sizeof(root), p->pid, "root");
	err = hotspot_alloc_sites(instance->image->file, root, ret);
	if (err)
		return err;
	if (!hotspot_stops_to_collect(instance->heap, p->memory))
		forget_collections(ret);
	if (instance->heap->silent_refills) {
		ret->missed = "this JVM's C1 takes buffers from the heap unseen; what its code allocates there is "
		              "missed, large arrays above all";
		ret->remedy = "start it with -XX:-FastTLABRefill or -XX:+UseG1GC; JDK 11 and later report all";
	}
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

/* Its own tables: the instance's may be read, and go, in another thread. */
struct reader {
	struct memory *memory;
	struct vmstructs *v;
	struct layout *origins;
	const struct hotspot_layout *l;
	struct hotspot_heap_view *heap;
};

static void close_reader(void *data)
{
	struct reader *r = data;

	if (!r)
		return;
	hotspot_heap_view_destroy(r->heap);
	layout_destroy(r->origins);
	vmstructs_destroy(r->v);
	memory_destroy(r->memory);
	free(r);
}

static struct error *read_tables(struct reader *r, const struct hotspot_instance *instance)
{
	struct error *err = vmstructs_read(instance->image->symbols, r->memory, instance->bias, &r->v);

	if (!err && !r->v)
		err = error_new(ERROR_UNSUPPORTED, "the JVM is still starting");
	if (!err)
		err = hotspot_layout_find(r->v, &r->origins);
	if (err)
		return err;
	r->l = r->origins->values;
	return hotspot_heap_view_create(r->v, r->l, &r->heap);
}

static struct error *open_reader(void *data, const struct runtime_process *p, void **ret)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct error *err;

	if (!r)
		return &error_no_memory;
	r->memory = memory_live(p->pid);
	err = r->memory ? read_tables(r, data) : &error_no_memory;
	if (err) {
		close_reader(r);
		return err;
	}
	*ret = r;
	return NULL;
}

static bool class_frame(void *data, u64 klass, struct frame *ret)
{
	struct reader *r = data;
	u32 cookie;

	if (!hotspot_class_cookie(r->heap, r->memory, klass, &cookie))
		return false;
	ret->where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, 0, klass);
	ret->detail = hotspot_detail(HOTSPOT_CLASS, cookie);
	return true;
}

/* Is the last object of the thread's buffer still the one that ends there? */
static bool stands_still(const struct reader *r, const struct alloc_object *o)
{
	const struct hotspot_layout *l = r->l;
	u64 now[2];

	return memory_read(r->memory, &now[0], 8, o->thread + l->tlab.at + l->tlab_start.at) &&
	       memory_read(r->memory, &now[1], 8, o->thread + l->tlab.at + l->tlab_top.at) && now[0] == o->start &&
	       now[1] == o->end;
}

static u32 collections(void *data)
{
	struct reader *r = data;

	return hotspot_collections(r->heap, r->memory) + 1;
}

/* Do objects lie where they were? *passed: all threads stand, what they had begun to allocate is whole. */
static bool in_place(struct reader *r, u32 gc, bool *passed)
{
	u32 now = gc ? collections(r) : 0;

	if (now == gc)
		return true;
	/* the next one has begun: what it copies stays until threads go on */
	*passed = now == gc + 1 && !r->heap->concurrent && hotspot_collecting(r->heap, r->memory);
	return *passed;
}

static enum alloc_answer object(void *data, const struct alloc_object *o, struct frame *ret, u64 *size)
{
	struct reader *r = data;
	bool fresh = o->thread && o->end && !o->passed && stands_still(r, o), passed = false;
	u64 at = 0, klass;
	bool found = (hotspot_object_ending(r->heap, r->memory, o->start, o->addr, o->end, &at, &klass, size) ||
	                     hotspot_object_covering(r->heap, r->memory, o->start, o->addr, &at, &klass, size)) &&
	             !(o->end && at + *size != o->end) && class_frame(r, klass, ret);

	/* what lies behind the mark may be of an object that was there before the last collection */
	if (!in_place(r, o->gc, &passed))
		return ALLOC_MOVED;
	return found && (passed || !fresh || o->addr >= at + HEADER_BYTES) ? ALLOC_KNOWN : ALLOC_NOT_YET;
}

struct survey {
	struct reader *r;
	void (*each)(void *ctx, const struct frame *class, u64 bytes, u64 objects);
	void *ctx;
};

static void count(void *data, u64 klass, u64 bytes, u64 objects)
{
	const struct survey *c = data;
	struct frame class;

	c->each(c->ctx, klass && class_frame(c->r, klass, &class) ? &class : NULL, bytes, objects);
}

/* Collections move what lies there; classes go with them at the earliest. */
static bool survey(void *data, const struct alloc_object *buffer,
        void (*each)(void *ctx, const struct frame *class, u64 bytes, u64 objects), void *ctx)
{
	struct reader *r = data;
	struct survey c = {r, each, ctx};
	bool passed;

	return buffer->gc && in_place(r, buffer->gc, &passed) &&
	       hotspot_alloc_survey(r->heap, r->memory, buffer->start, buffer->end, count, &c);
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

const struct runtime_alloc_ops hotspot_alloc_ops = {
        .sites = sites,
        .threads = threads,
        .place = place,
        .open = open_reader,
        .close = close_reader,
        .object = object,
        .class_frame = class_frame,
        .survey = survey,
        .collections = collections,
        .is_runtime_internal = hotspot_alloc_is_internal,
};
