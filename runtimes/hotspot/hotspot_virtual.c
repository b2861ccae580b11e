/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_virtual.h"

#include <stdlib.h>

#include "cleanup.h"
#include "grow.h"
#include "hotspot_frozen.h"
#include "runtimes/hotspot/heap/hotspot_keys.h"

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

static bool add_thread(void *ctx, u64 object)
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
		if (sets[i] && !hotspot_each_key(&s->keys, s->h, s->m, sets[i], add_thread, s))
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

bool hotspot_each_virtual(struct hotspot_instance *instance, struct memory *m,
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
