/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual threads as tasks that wait without a thread (runtime_tasks.h). */
#include "hotspot_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cleanup.h"
#include "grow.h"
#include "hotspot_frozen.h"
#include "hotspot_instance.h"
#include "runtime.h"
#include "table.h"
#include "unwind.h"
#include "walk.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtimes/hotspot/memory/hotspot_blocks.h"

/*
 * Virtual threads (21 on) without a carrier: the list of them, and the stack of one. They are found where
 * Thread.dump_to_file finds them: in jdk.internal.vm.ThreadContainers. Its root has those that were started directly
 * (unless -Djdk.trackAllThreads=false); the others are executors and scopes.
 */

/*
 * State that shows where a virtual thread's frames are: if it is equal before and after reading them, they are of one
 * moment.
 */
struct hotspot_parked {
	u64 cont, chunk; /* Continuation and its innermost StackChunk, 0: none (yet) */
	u64 state_at;
	u32 state;
};

/* The keys of a java.util.concurrent.ConcurrentHashMap, in which the JDK keeps its threads. */

/* What is known of the classes: zero at first. */
struct hotspot_keys {
	u64 node;                             /* ConcurrentHashMap.Node itself */
	u32 table, key, next, first, resized; /* offsets; 0: not yet */
	u32 left;                             /* budget: nodes still to visit */
};

#define MAP       "java/util/concurrent/ConcurrentHashMap"
#define NODE      "Ljava/util/concurrent/ConcurrentHashMap$Node;"
#define SLOTS_MAX (1u << 24)
#define TABLES    4 /* one that is being resized leads to the next */
#define HEADER    24

struct table_of_nodes {
	u64 at; /* of the first slot */
	u32 n, slot;
};

static bool read_table(struct hotspot_heap_view *h, struct memory *m, u64 array, struct table_of_nodes *ret)
{
	u8 header[HEADER];
	const struct hotspot_class *c;

	if (!array || array & 7 || !memory_read(m, header, sizeof(header), array))
		return false;
	c = hotspot_class_of(h, m, hotspot_header_class(h, header));
	if (!c || c->kind != SIZE_ARRAY || (1u << c->log2_element) != (h->oops == OOP_NARROW ? 4 : 8))
		return false;
	memcpy(&ret->n, header + hotspot_length_at(h), 4);
	ret->at = array + c->size;
	ret->slot = 1u << c->log2_element;
	return ret->n <= SLOTS_MAX;
}

/* What is in a slot but is no plain node: 0, or the first node of a tree. *resized: the table where the slot's are. */
static u64 other_node(
        struct hotspot_keys *k, struct hotspot_heap_view *h, struct memory *m, u64 node, u64 klass, u64 *resized)
{
	if (hotspot_super_named(h, m, klass, MAP "$TreeBin") == klass)
		return hotspot_declared_field(h, m, node, MAP "$TreeBin", "first",
		               "Ljava/util/concurrent/ConcurrentHashMap$TreeNode;", &k->first)
		               ? hotspot_load_oop(h, m, node + k->first)
		               : 0;
	if (hotspot_super_named(h, m, klass, MAP "$ForwardingNode") == klass &&
	        hotspot_declared_field(h, m, node, MAP "$ForwardingNode", "nextTable", "[" NODE, &k->resized))
		*resized = hotspot_load_oop(h, m, node + k->resized);
	return hotspot_super_named(h, m, klass, MAP "$TreeNode") == klass ? node : 0;
}

/* All nodes of a slot. */
static bool each_node(struct hotspot_keys *k, struct hotspot_heap_view *h, struct memory *m, u64 node, u64 *resized,
        bool (*each)(void *ctx, u64 key), void *ctx)
{
	u64 key;

	for (bool first = true; node && k->left; k->left--, first = false) {
		u64 klass = hotspot_object_class(h, m, node);

		if (!klass)
			return true;
		if (first && klass != k->node && hotspot_super_named(h, m, klass, MAP "$Node") != klass) {
			node = other_node(k, h, m, node, klass, resized);
			if (!node)
				return true;
		}
		if (!hotspot_declared_field(h, m, node, MAP "$Node", "key", "Ljava/lang/Object;", &k->key) ||
		        !hotspot_declared_field(h, m, node, MAP "$Node", "next", NODE, &k->next))
			return true;
		k->node = k->node ? k->node : hotspot_super_named(h, m, klass, MAP "$Node");
		key = hotspot_load_oop(h, m, node + k->key);
		if (key && !each(ctx, key))
			return false;
		node = hotspot_load_oop(h, m, node + k->next);
	}
	return true;
}

/*
 * Calls each for the keys of a map, until it returns false. set: the map, or the result of keySet() or newKeySet().
 * Keys that come and go meanwhile may be missing. False: each() returned false.
 */
static bool hotspot_each_key(struct hotspot_keys *k, struct hotspot_heap_view *h, struct memory *m, u64 set,
        bool (*each)(void *ctx, u64 key), void *ctx)
{
	u64 map = hotspot_object_field(h, m, set, "map", "L" MAP ";"), array, resized = 0;
	struct table_of_nodes t;

	map = map ? map : set;
	if (!map || !hotspot_declared_field(h, m, map, MAP, "table", "[" NODE, &k->table))
		return true;
	array = hotspot_load_oop(h, m, map + k->table);
	for (u32 i = 0; i < TABLES && read_table(h, m, array, &t); i++, array = resized, resized = 0)
		for (u32 slot = 0; slot < t.n && k->left; slot++)
			if (!each_node(k, h, m, hotspot_load_oop(h, m, t.at + (u64)slot * t.slot), &resized, each, ctx))
				return false;
	return true;
}

#define CONTAINERS_MAX 65536
#define SCOPES_MAX     256
#define THREADS_MAX    65536
#define NODES_MAX      (1u << 20)
#define SET            "Ljava/util/Set;"
#define SCOPE          "Ljdk/internal/vm/StackableScope;"

struct search {
	struct hotspot_heap_view *h;
	struct memory *m;
	struct hotspot_keys keys;
	u64 *containers; /* to be looked at */
	u32 ncontainers;
	bool (*each)(void *ctx, struct memory *m, u64 thread);
	void *ctx;
};

static void add_container(struct search *s, u64 object)
{
	struct error *err;

	if (!object || s->ncontainers == CONTAINERS_MAX)
		return;
	err = grow(&s->containers, s->ncontainers, sizeof(*s->containers));
	if (!err)
		s->containers[s->ncontainers++] = object;
	error_free(err);
}

/* A thread's StructuredTaskScopes are scopes, each with a ThreadFlock. */
static void add_scopes(struct search *s, u64 thread)
{
	u64 at = hotspot_object_field(s->h, s->m, thread, "headStackableScopes", SCOPE);

	for (u32 i = 0; i < SCOPES_MAX && at; i++, at = hotspot_object_field(s->h, s->m, at, "previous", SCOPE))
		add_container(s, hotspot_object_field(s->h, s->m, at, "flock", "Ljdk/internal/misc/ThreadFlock;"));
}

static bool is_virtual(struct search *s, u64 object)
{
	u64 klass = hotspot_object_class(s->h, s->m, object);

	return klass && hotspot_super_named(s->h, s->m, klass, "java/lang/VirtualThread") == klass;
}

static bool add_virtual(void *ctx, u64 object)
{
	struct search *s = ctx;

	add_scopes(s, object);
	return !is_virtual(s, object) || s->each(s->ctx, s->m, object);
}

/* The registry has WeakReferences. */
static bool add_registered(void *ctx, u64 reference)
{
	struct search *s = ctx;

	add_container(s, hotspot_object_field(s->h, s->m, reference, "referent", "Ljava/lang/Object;"));
	return true;
}

/* Of the root it is in a static field, VTHREADS from 22 on. */
static bool look_into(struct search *s, u64 container)
{
	u64 klass = hotspot_object_class(s->h, s->m, container);
	const u64 sets[] = {hotspot_object_field(s->h, s->m, container, "threads", SET),
	        hotspot_object_field(s->h, s->m, container, "virtualThreads", SET),
	        hotspot_static_field(s->h, s->m, klass, "THREADS", SET),
	        hotspot_static_field(s->h, s->m, klass, "VTHREADS", SET)};

	for (u32 i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (sets[i] && !hotspot_each_key(&s->keys, s->h, s->m, sets[i], add_virtual, s))
			return false;
	return true;
}

static void add_platform_scopes(struct search *s)
{
	cleanup(free) struct hotspot_thread *threads = calloc(THREADS_MAX, sizeof(*threads));
	u32 n = threads ? hotspot_threads(s->h, s->m, threads, THREADS_MAX, false) : 0;

	for (u32 i = 0; i < n; i++)
		add_scopes(s, hotspot_load_handle(
		                      s->h, s->m, threads[i].at + s->h->l->thread_obj.at, s->h->at.thread_handle));
}

/*
 * Calls each for all of them, each a java.lang.VirtualThread, until it returns false. One may come twice. False: each
 * has said so. m: memory that may be as old as the search.
 */
static bool hotspot_each_virtual(struct hotspot_instance *instance, struct memory *m,
        bool (*each)(void *ctx, struct memory *m, u64 thread), void *ctx)
{
	struct search s = {.h = instance->heap, .m = m, .keys.left = NODES_MAX, .each = each, .ctx = ctx};
	u64 containers = hotspot_loaded_with(
	        s.h, m, hotspot_vm_class(instance, m, "java/lang/Thread"), "jdk/internal/vm/ThreadContainers");
	bool all = true;

	if (!containers)
		return true;
	add_container(&s, hotspot_static_field(s.h, m, containers, "ROOT_CONTAINER",
	                          "Ljdk/internal/vm/ThreadContainers$RootContainer;"));
	hotspot_each_key(&s.keys, s.h, m, hotspot_static_field(s.h, m, containers, "CONTAINER_REGISTRY", SET),
	        add_registered, &s);
	add_platform_scopes(&s);
	for (u32 i = 0; all && i < s.ncontainers; i++)
		all = look_into(&s, s.containers[i]);
	free(s.containers);
	return all;
}

/*
 * The stack of a virtual thread without a carrier. Its innermost chunk is copied and walked by the Java walker as if
 * its frames had been returned to (hotspot_frames.h). Afterwards the chunk in the target must still equal the copy. The
 * other chunks do not change as long as that does not.
 */

#define VS_FROZEN 0x4a00u /* HS_FROZEN of hotspot_frames.h: cursor 0 */
#define COPY_MAX  (1u << 20)
#define KEY       2 /* of no thread */

struct copied {
	struct memory memory;      /* what this is to others */
	struct memory *now, *code; /* the heap as it is now; code may be as old as the search */
	u64 code_low, code_high;
	u64 at, size;
	u8 *bytes;
};

static bool read_copied(struct memory *m, void *dst, size_t size, uint64_t addr)
{
	const struct copied *c = (const struct copied *)m;

	if (addr - c->at >= c->size || size > c->size - (addr - c->at))
		return memory_read(addr >= c->code_low && addr < c->code_high ? c->code : c->now, dst, size, addr);
	memcpy(dst, c->bytes + (addr - c->at), size);
	return true;
}

struct start {
	const struct hotspot_vm *vm;
	const struct hotspot_parked *parked;
};

/* At the barrier, as if a chunk before had been left whose parent is the continuation's tail. */
static void start(const void *ctx, struct walk *w)
{
	const struct start *s = ctx;
	const struct hotspot_frozen *f = &s->vm->frozen;

	w->reg[REG_PC] = s->vm->return_barrier;
	w->valid = 1u << REG_PC | 1u << REG_SP;
	w->vm_state = VS_FROZEN;
	w->ncursors = 1;
	w->cursor[0] =
	        (struct walk_cursor){.key = KEY, .more = {s->parked->cont + f->tail - f->parent, 0, s->parked->cont}};
}

/* All of it in one go, with its state before and behind it: what thaws it has changed the state first. */
static bool read_chunk(struct memory *m, const struct hotspot_parked *parked, u8 *bytes, u64 size)
{
	u32 before, after;
	const struct memory_piece pieces[] = {
	        {&before, parked->state_at, 4}, {bytes, parked->chunk, size}, {&after, parked->state_at, 4}};

	return memory_read_pieces(m, pieces, 3) == 3 && before == parked->state && after == parked->state;
}

/*
 * The frames of a virtual thread without a carrier, leaf first, at most max. *n: how many. m: as above. False: its
 * innermost chunk has changed meanwhile, or has no frame, as when a collector has moved it away.
 */
static bool hotspot_parked_stack(struct hotspot_instance *instance, const struct runtime_process *p, struct memory *m,
        const struct hotspot_parked *parked, struct frame *frames, u32 max, u32 *n, u32 *stop)
{
	const struct hotspot_vm *vm =
	        instance->nclaims ? arena_at(p->arena, instance->claims[0].config, sizeof(*vm)) : NULL;
	const struct start s = {vm, parked};
	struct copied c = {.memory.read = read_copied, .now = p->memory, .code = m, .at = parked->chunk};
	cleanup(free) u8 *bytes = NULL;
	u32 words;

	*n = 0;
	if (!vm || !vm->frozen.stack || !memory_read(p->memory, &words, 4, parked->chunk + vm->frozen.size))
		return false;
	c.code_low = vm->cache_low;
	c.code_high = vm->cache_high;
	c.size = vm->frozen.stack + words * 8ull;
	c.size = c.size < COPY_MAX ? c.size : COPY_MAX;
	c.bytes = bytes = malloc(2 * c.size);
	if (!bytes || !read_chunk(p->memory, parked, bytes, c.size))
		return false;
	*stop = unwind_task(p, &c.memory, start, &s, frames, max, n);
	return *n && read_chunk(p->memory, parked, bytes + c.size, c.size) && !memcmp(bytes, bytes + c.size, c.size);
}

#define DEPTH_MAX 1024
#define TASKS_MAX 262144
#define TRIES     4
#define ROUNDS    64
#define SUSPENDED (1u << 8)

/* VirtualThread's states have other numbers in each JDK: they are its static fields. */
enum activity { ENDED, UNSTARTED, RUNS, PINNED, READY, PARKED };
static const struct {
	const char *name, *text;
	enum activity activity;
} states[] = {
        {"NEW", "not started", UNSTARTED},
        {"STARTED", "has not run yet", UNSTARTED},
        {"RUNNABLE", "ready to run", READY},
        {"UNPARKED", "ready to run", READY},
        {"YIELDED", "ready to run", READY},
        {"UNBLOCKED", "ready to run", READY},
        {"PARKED", "parked", PARKED},
        {"TIMED_PARKED", "parked for a time", PARKED},
        {"BLOCKED", "waits for a monitor", PARKED},
        {"WAIT", "waits in Object.wait()", PARKED},
        {"TIMED_WAIT", "waits in Object.wait() for a time", PARKED},
        {"PINNED", "parked, pinned to its thread", PINNED},
        {"TIMED_PINNED", "parked for a time, pinned to its thread", PINNED},
        {"TERMINATED", "", ENDED},
};
#define STATES (sizeof(states) / sizeof(states[0]))

struct listing {
	struct hotspot_instance *instance;
	const struct runtime_process *p;
	struct error *(*add)(void *ctx, const struct runtime_task *t);
	void *ctx;
	struct error *err;
	struct table seen; /* numbers of those that were added */
	u32 collections;
	bool fields;         /* what follows is known */
	u32 numbers[STATES]; /* of states; ~0: this JDK has none such */
	u32 state, cont, carrier, number;
	struct frame frames[DEPTH_MAX];
};

static bool find_fields(struct listing *l, struct memory *m, u64 klass)
{
	struct hotspot_heap_view *h = l->instance->heap;
	u64 mirror;
	u32 at;

	if (l->fields)
		return true;
	mirror = hotspot_class_mirror(h, m, klass);
	for (u32 i = 0; i < STATES; i++)
		if (!mirror || !hotspot_java_field(h, m, klass, states[i].name, "I", &at) ||
		        !memory_read(m, &l->numbers[i], 4, mirror + at))
			l->numbers[i] = ~0u;
	l->fields = hotspot_java_field(h, m, klass, "state", "I", &l->state) &&
	            hotspot_java_field(h, m, klass, "cont", "Ljdk/internal/vm/Continuation;", &l->cont) &&
	            hotspot_java_field(h, m, klass, "carrierThread", "Ljava/lang/Thread;", &l->carrier) &&
	            hotspot_inherited_field(h, m, klass, "tid", "J", &l->number);
	return l->fields;
}

static bool read_parked(const struct listing *l, u64 thread, struct hotspot_parked *ret)
{
	const struct hotspot_heap_view *h = l->instance->heap;

	*ret = (struct hotspot_parked){
	        .cont = hotspot_load_oop(h, l->p->memory, thread + l->cont), .state_at = thread + l->state};
	if (!ret->cont || !memory_read(l->p->memory, &ret->state, 4, ret->state_at))
		return false;
	ret->chunk = hotspot_load_oop(h, l->p->memory, ret->cont + l->instance->freezing.frozen.tail);
	return true;
}

static bool same(const struct hotspot_parked *a, const struct hotspot_parked *b)
{
	return a->cont == b->cont && a->chunk == b->chunk && a->state == b->state;
}

/* What is between two states runs. */
static enum activity activity_of(const struct listing *l, u32 state, const char **text)
{
	*text = "running";
	for (u32 i = 0; i < STATES; i++)
		if (l->numbers[i] == (state & ~SUSPENDED)) {
			*text = states[i].text;
			return states[i].activity;
		}
	return RUNS;
}

static void tell_thread(struct listing *l, struct memory *m, u64 thread, struct runtime_task *t)
{
	struct hotspot_heap_view *h = l->instance->heap;
	size_t n = strlen(t->state);
	pid_t tid = hotspot_thread_of_object(
	        &l->instance->waits, h, m, hotspot_load_oop(h, l->p->memory, thread + l->carrier));

	if (tid)
		snprintf(t->state + n, sizeof(t->state) - n, ", on thread %d", tid);
}

/* What it waits for, if that is of the same moment as its stack. */
static void tell_blocker(
        struct listing *l, struct memory *m, u64 thread, const struct hotspot_parked *parked, struct runtime_task *t)
{
	struct runtime_wait wait = {0};
	struct hotspot_parked after;
	size_t n = strlen(t->state);

	if (!hotspot_parked_for(&l->instance->waits, l->instance->heap, m, thread, &wait) || !*wait.type ||
	        !read_parked(l, thread, &after) || !same(parked, &after))
		return;
	n += (size_t)snprintf(t->state + n, sizeof(t->state) - n, ": waits for %s", wait.type);
	if (*wait.holder_name && n < sizeof(t->state))
		snprintf(t->state + n, sizeof(t->state) - n, ", held by %s", wait.holder_name);
	else if (wait.holder && n < sizeof(t->state))
		snprintf(t->state + n, sizeof(t->state) - n, ", held by thread %d", wait.holder);
}

/* What it says of itself is of one moment if it is the same after its stack was read. */
static bool read_stack(struct listing *l, struct memory *m, u64 thread, struct hotspot_parked *parked,
        enum activity *activity, struct runtime_task *t)
{
	struct hotspot_parked after;
	const char *text;

	for (u32 i = 0; i < TRIES && read_parked(l, thread, parked); i++) {
		*activity = activity_of(l, parked->state, &text);
		snprintf(t->state, sizeof(t->state), "%s", text);
		t->nframes = 0;
		t->stop = *activity == RUNS || *activity == PINNED ? STOP_NO_USER : STOP_ROOT_RUNTIME;
		if (*activity < READY || (*activity == READY && !parked->chunk))
			return true;
		if (parked->chunk &&
		        hotspot_parked_stack(
		                l->instance, l->p, m, parked, l->frames, DEPTH_MAX, &t->nframes, &t->stop) &&
		        read_parked(l, thread, &after) && same(parked, &after))
			return true;
	}
	t->nframes = 0;
	t->stop = STOP_VM_FROZEN;
	return false;
}

static void put_name(struct listing *l, struct memory *m, u64 thread, struct runtime_task *t)
{
	char name[RUNTIME_TASK_TEXT - 32];

	if (hotspot_java_thread_name(l->instance->heap, m, thread, name, sizeof(name)) && *name)
		snprintf(t->name, sizeof(t->name), "#%lu %s", t->id, name);
	else
		snprintf(t->name, sizeof(t->name), "#%lu", t->id);
}

/* A collector has moved objects since the search began, or does. */
static bool moved(const struct listing *l)
{
	return hotspot_collections(l->instance->heap, l->p->memory) != l->collections ||
	       hotspot_collecting(l->instance->heap, l->p->memory);
}

static bool add_thread(void *ctx, struct memory *m, u64 thread)
{
	struct listing *l = ctx;
	struct hotspot_parked parked;
	struct runtime_task t = {.frames = l->frames, .stop = STOP_VM_BROKEN};
	enum activity activity = RUNS;
	bool stands;
	u64 key;

	if (!find_fields(l, m, hotspot_object_class(l->instance->heap, m, thread)) ||
	        !memory_read(m, &t.id, 8, thread + l->number))
		return true;
	key = XXH3_64bits(&t.id, sizeof(t.id)) | 1;
	if (table_get(&l->seen, key))
		return true;
	stands = read_stack(l, m, thread, &parked, &activity, &t);
	if (moved(l))
		return false;
	if (stands && activity == ENDED)
		return true;
	t.on_thread = stands && (activity == RUNS || activity == PINNED);
	if (!stands)
		snprintf(t.state, sizeof(t.state), "moved whenever it was read");
	else if (t.on_thread)
		tell_thread(l, m, thread, &t);
	else if (activity == PARKED)
		tell_blocker(l, l->p->memory, thread, &parked, &t);
	put_name(l, m, thread, &t);
	l->err = table_put(&l->seen, key, 1);
	l->err = l->err ? l->err : l->add(l->ctx, &t);
	return !l->err && l->seen.used < TASKS_MAX;
}

/* Where objects have moved the search begins again. */
static struct error *search(struct listing *l, struct hotspot_blocks *blocks)
{
	bool all = false;

	for (u32 i = 0; !l->err && !all && i < ROUNDS && l->seen.used < TASKS_MAX; i++) {
		struct memory *m;

		if (!hotspot_await_collection(l->instance->heap, l->p->memory))
			break;
		l->fields = false; /* they were read from what may have moved */
		m = hotspot_blocks_renew(blocks, l->p->memory);
		l->collections = hotspot_collections(l->instance->heap, l->p->memory);
		all = hotspot_each_virtual(l->instance, m, add_thread, l) && !moved(l);
	}
	if (l->err || all)
		return l->err;
	return error_new(ERROR_UNSUPPORTED, "process %d: %zu virtual threads are shown, it may have more", l->p->pid,
	        l->seen.used);
}

static struct error *why_not(const struct runtime_process *p, const char *missing)
{
	return error_new(
	        ERROR_UNSUPPORTED, "process %d: its virtual threads are not listed: %s is not known", p->pid, missing);
}

static struct error *list(void *data, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx)
{
	struct hotspot_instance *instance = data;
	struct hotspot_blocks *blocks = NULL;
	struct listing *l = NULL;
	struct error *err = NULL;
	const char *missing;

	if (instance->refused)
		return why_not(p, "its layout");
	if (!instance->freezes || !hotspot_heap_ready(instance->heap, p->memory))
		return NULL; /* it has none, or is only starting */
	if (!instance->freezing.frozen.stack) {
		missing = hotspot_frozen_missing(instance, p->memory);
		return missing ? why_not(p, missing) : NULL;
	}
	l = calloc(1, sizeof(*l));
	blocks = hotspot_blocks_create();
	if (l && blocks) {
		*l = (struct listing){.instance = instance, .p = p, .add = add, .ctx = ctx};
		err = search(l, blocks);
		table_free(&l->seen);
	} else {
		err = &error_no_memory;
	}
	hotspot_blocks_destroy(blocks);
	free(l);
	return err;
}

const struct runtime_tasks_ops hotspot_tasks = {.kind = "virtual thread", .kinds = "virtual threads", .list = list};
