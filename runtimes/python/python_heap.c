/* SPDX-License-Identifier: Apache-2.0 */
#include "python_heap.h"

#include <stdio.h>
#include <stdlib.h>

#include "python_heap_internal.h"

#define THREADS_MAX 4096
#define FRAME_STEPS 16
#define STEPS_MAX   (1u << 22) /* words of all frames that are looked at; lists of them may loop */
#define STATE_MAX   (1u << 12) /* bytes of a thread state */
#define INTERP_MAX  (1u << 19) /* bytes of an interpreter */
#define MODULE_DICT 16         /* PyModuleObject.md_dict */

struct error *python_heap_open(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct heap *h, void **ret)
{
	u32 version = image->version >> 8 << 8;
	struct python_heap *heap;

	*ret = NULL;
	if (version < 0x03080000 || version >= PYTHON_V3_16)
		return error_new(ERROR_UNSUPPORTED, "the heap of Python 3.%u is not read, only of 3.8 to 3.15",
		        version >> 16 & 0xff);
	heap = calloc(1, sizeof(*heap));
	if (!heap)
		return &error_no_memory;
	*heap = (struct python_heap){.h = h, .image = image, .bias = bias, .longer = image->layout->ob_type.at - 8u};
	heap->r = (struct python_reader){
	        .mem = p->memory, .l = image->layout, .version = image->version, .left = &heap->left};
	heap->left = UINT32_MAX;
	heap->labels = (struct python_labels){.dict = heap_label(h, "__dict__"),
	        .globals = heap_label(h, "(globals)"),
	        .type = heap_label(h, "__class__")};
	*ret = heap;
	return NULL;
}

void python_heap_close(void *reader)
{
	struct python_heap *p = reader;

	for (u32 i = 0; i < p->ntypes; i++) {
		free(p->types[i]->slots);
		free(p->types[i]);
	}
	free(p->types);
	table_free(&p->type_at);
	table_free(&p->key_label);
	free(p);
}

/* --- modules --- */

static void module_root(struct python_heap *p, u64 name, u64 module)
{
	char text[256];
	u32 root;

	python_heap_text(p, name, text, sizeof(text));
	if (!*text || !python_heap_is_object(p, module))
		return;
	root = heap_root(p->h, 0, HEAP_LASTING, text);
	heap_root_ref(p->h, root, p->labels.globals | HEAP_PART,
	        python_heap_word(p, python_heap_at(p, module) + MODULE_DICT));
	heap_root_ref(p->h, root, HEAP_PART, module);
}

static void modules(struct python_heap *p, u64 interp)
{
	const struct python_layout *l = p->r.l;
	struct layout_member at = l->interp_modules.size ? l->interp_modules : l->interp_modules_old;
	u64 dict = at.size ? python_heap_word(p, interp + at.at) : 0;
	struct python_entry entry;
	struct python_dict d;

	if (!python_dict_open(&p->r, dict, &d))
		return;
	for (u32 i = 0; i < d.n && python_dict_entry(&p->r, &d, i, &entry); i++)
		if (entry.key && entry.value)
			module_root(p, entry.key, entry.value);
}

/* --- threads --- */

static u64 first_frame(struct python_heap *p, u64 ts)
{
	const struct python_layout *l = p->r.l;
	u64 cframe;

	if (l->ts_frame_object.size)
		return python_heap_word(p, ts + l->ts_frame_object.at);
	if (l->ts_current_frame.size)
		return python_heap_word(p, ts + l->ts_current_frame.at);
	cframe = python_heap_word(p, ts + l->ts_cframe.at);
	return cframe ? python_heap_word(p, cframe + l->cf_frame.at) : 0;
}

static void one_frame(struct python_heap *p, u32 thread, u64 frame)
{
	char name[256];
	u64 code = python_heap_frame_code(p, frame);

	if (!code)
		return;
	python_heap_code_name(p, code, name, sizeof(name));
	p->root = heap_root(p->h, thread, HEAP_STACKS, name);
	if (p->r.l->ts_frame_object.size)
		heap_root_ref(p->h, p->root, HEAP_PART, frame);
	python_heap_frame(p, frame);
	p->root = 0;
}

static void frames(struct python_heap *p, u32 thread, u64 ts)
{
	u64 frame = first_frame(p, ts);

	bool objects = p->r.l->ts_frame_object.size;

	while (frame && p->steps < STEPS_MAX) {
		p->steps += FRAME_STEPS;
		one_frame(p, thread, frame);
		frame = python_heap_word(p, frame + (objects ? p->r.l->fo_back.at : p->r.l->f_previous.at));
	}
}

/*
 * What of a thread state and of an interpreter is searched for objects, in bytes: PyThreadState, and PyInterpreterState
 * without its lists of free objects, whose unused places still have the addresses of objects that were taken from them,
 * and up to 3.11 without the cache of methods, which borrows what is in it. From 3.12 on an interpreter has the dicts
 * of static types. Up to 3.9 the free lists are not in it; from 3.14 on they are linked.
 */
struct extents {
	u32 thread, interp, free, free_end;
};

static const struct extents known_extents[] = {
        [8] = {264, 2720, 0, 0},
        [9] = {264, 5656, 0, 0},
        [10] = {280, 9776, 0, 0}, /* up to its free lists */
        [11] = {360, 9056, 3624, 7128},
        [12] = {288, 383552, 269824, 273400},
        [13] = {304, 194968, 10952, 14496},
};

/* From 3.13 on the sizes are in _Py_DebugOffsets, with which _PyRuntime begins. */
static struct extents extents(struct python_heap *p)
{
	u32 minor = p->r.version >> 16 & 0xff;
	u64 offsets = p->bias + p->image->runtime, interp, thread;
	struct extents ret = {0};

	if (minor < sizeof(known_extents) / sizeof(*known_extents))
		ret = known_extents[minor];
	if (p->r.version < PYTHON_V3_13)
		return ret;
	interp = python_heap_word(p, offsets + 8ull * 6);
	thread = python_heap_word(p, offsets + 8ull * (p->r.version < PYTHON_V3_14 ? 19 : 22));
	ret.interp = interp < INTERP_MAX && interp > ret.free_end ? (u32)interp : INTERP_MAX;
	ret.thread = thread < STATE_MAX ? (u32)thread : STATE_MAX;
	return ret;
}

/* Words of a structure that are objects, whatever they are for. */
static void scan(struct python_heap *p, u32 root, u64 addr, u32 bytes)
{
	for (u32 at = 0; at + 8 <= bytes; at += 8) {
		u64 value = python_heap_word(p, addr + at);

		if (python_heap_is_object(p, value))
			heap_root_ref(p->h, root, HEAP_MAYBE, value);
	}
}

static void thread_name(struct python_heap *p, u64 interp, u64 ts, char *ret, size_t size)
{
	u64 threading = python_module(&p->r, interp, "threading"),
	    ident = python_heap_word(p, ts + p->r.l->ts_thread_id.at);
	struct python_entry entry;
	struct python_dict d;
	u64 id, name;

	snprintf(ret, size, "thread 0x%lx", ident);
	if (!threading || !python_dict_open(&p->r, python_dict_find(&p->r, threading, "_active"), &d))
		return;
	for (u32 i = 0; i < d.n && python_dict_entry(&p->r, &d, i, &entry); i++) {
		if (!entry.value || !python_int(&p->r, entry.key, &id) || id != ident)
			continue;
		name = python_attribute(&p->r, entry.value, "_name");
		if (name)
			python_heap_text(p, name, ret, size);
		return;
	}
}

static void threads(struct python_heap *p, u64 interp, u32 bytes)
{
	const struct python_layout *l = p->r.l;
	struct layout_member head = l->interp_threads.size ? l->interp_threads : l->interp_tstate_head;
	u32 all = heap_root(p->h, 0, HEAP_STACKS, "(threads)");
	u64 ts = python_heap_word(p, interp + head.at);
	char name[128];

	for (u32 i = 0; ts && i < THREADS_MAX && p->steps < STEPS_MAX; i++) {
		u32 root;

		thread_name(p, interp, ts, name, sizeof(name));
		root = heap_root(p->h, all, HEAP_STACKS, name);
		frames(p, root, ts);
		scan(p, root, ts, bytes);
		ts = python_heap_word(p, ts + l->ts_next.at);
	}
}

struct error *python_heap_roots(void *reader)
{
	struct python_heap *p = reader;
	u64 interp[PYTHON_INTERPRETERS_MAX];
	u32 n = python_interpreters(&p->r, p->bias + p->image->runtime, interp);
	struct extents e = extents(p);

	if (!n)
		return error_new(ERROR_UNSUPPORTED, "Python has no interpreter yet, or ended");
	for (u32 i = 0; i < n; i++) {
		u32 root;

		modules(p, interp[i]);
		threads(p, interp[i], e.thread);
		root = heap_root(p->h, 0, HEAP_RUNTIME, "(interpreter)");
		scan(p, root, interp[i], e.free ? e.free : e.interp);
		if (e.free)
			scan(p, root, interp[i] + e.free_end, e.interp - e.free_end);
	}
	return NULL;
}

/* --- what the collector knows --- */

#define GENERATION      24 /* struct gc_generation: PyGC_Head, threshold, count */
#define GENERATIONS_MAX 4  /* in a row: three and the permanent one; from 3.14 on young, two old ones, permanent */
#define TRACKED_MAX     (1u << 28)
#define LINK            (~3ull) /* the lowest bits are flags */

static u64 link_at(struct python_heap *p, u64 addr)
{
	return python_heap_word(p, addr) & LINK;
}

/* Is this the head of a list: does what follows lead back to it? */
static bool is_list(struct python_heap *p, u64 head)
{
	u64 next = head ? link_at(p, head) : 0, last = head ? link_at(p, head + 8) : 0;

	return next && last && link_at(p, next + 8) == head && link_at(p, last) == head;
}

/* Objects lie behind their links; the head of a list has none behind it. 0: the list changed meanwhile. */
static u64 find_head(struct python_heap *p, u64 object)
{
	u64 first = object - PYTHON_GC_HEAD, at = link_at(p, first);

	for (u32 i = 0; at && at != first && i < TRACKED_MAX; i++, at = link_at(p, at))
		if (!python_heap_is_object(p, at + PYTHON_GC_HEAD))
			return is_list(p, at) ? at : 0;
	return 0;
}

/* An immortal one's count says nothing. */
static u64 count_of(struct python_heap *p, u64 object)
{
	u64 count = python_heap_word(p, object);

	if (p->r.version < PYTHON_V3_12)
		return count;
	return (s32)count < 0 ? 0 : (u32)count;
}

static void give_list(struct python_heap *p, u64 head)
{
	u64 at = link_at(p, head);

	for (u32 i = 0; at && at != head && i < TRACKED_MAX; i++, at = link_at(p, at)) {
		if (!python_heap_is_object(p, at + PYTHON_GC_HEAD)) {
			heap_torn(p->h);
			return;
		}
		heap_candidate(p->h, at + PYTHON_GC_HEAD, count_of(p, at + PYTHON_GC_HEAD));
	}
}

/* The generations lie side by side in the interpreter, or in _PyRuntime. */
struct error *python_heap_all(void *reader)
{
	struct python_heap *p = reader;
	u64 head = p->tracked ? find_head(p, p->tracked) : 0;

	if (p->longer)
		return error_new(ERROR_UNSUPPORTED, "--unreachable: a free-threaded Python has no lists of what its "
		                                    "collector knows");

	if (!head)
		return error_new(ERROR_UNSUPPORTED, "--unreachable: the lists of Python's collector changed while they "
		                                    "were read: --pause stops the process for it");
	for (u32 i = 1; i < GENERATIONS_MAX && is_list(p, head - GENERATION); i++)
		head -= GENERATION;
	for (u32 i = 0; i < GENERATIONS_MAX && is_list(p, head + i * GENERATION); i++)
		give_list(p, head + i * GENERATION);
	return NULL;
}
