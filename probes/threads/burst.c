/* SPDX-License-Identifier: Apache-2.0 */
#include "burst.h"

#include <stdio.h>
#include <stdlib.h>

#include "probes/sampler.h"
#include "unwind/profile/thread_names.h"

#define SECONDS   0.1
#define FREQUENCY 499

struct burst {
	struct sampler *sampler;
};

static u32 thread_node(const struct profile *p, u32 wanted)
{
	size_t len;
	u32 tid;

	for (u32 i = p->nodes[0].child; i; i = p->nodes[i].sibling)
		if (thread_of_function(&p->functions[p->nodes[i].function], &tid, &len) && tid == wanted)
			return i;
	return 0;
}

static struct error *attach(struct burst *b, const struct burst_options *o, const struct burst_thread *threads, u32 n)
{
	u32 attached = 0;

	for (u32 i = 0; i < n; i++) {
		struct error *err = NULL;
		u32 k = 0;

		while (k < i && threads[k].pid != threads[i].pid)
			k++;
		if (k == i)
			err = sampler_attach(b->sampler, threads[i].pid, n == 1);
		if (err == &error_no_memory)
			return err;
		attached += !err;
		if (err)
			o->warn(o->ctx, err);
	}
	return attached ? NULL : error_new(ERROR_NO_PROCESS, "the processes have exited");
}

struct error *burst_take(const struct burst_options *o, struct burst_thread *threads, u32 n, struct burst **ret)
{
	struct sampler_options options = {.event = &clock_event,
	        .frequency = FREQUENCY,
	        .duration_s = SECONDS,
	        .depth = o->depth,
	        .no_user = o->no_user,
	        .no_kernel = o->no_kernel,
	        .cache_dir = o->cache_dir,
	        .collect = o->collect,
	        .warn = o->warn,
	        .ctx = o->ctx};
	struct burst *b = calloc(1, sizeof(*b));
	volatile sig_atomic_t stop = 0;
	struct error *err = b ? sampler_create(&options, &b->sampler) : &error_no_memory;

	if (!err)
		err = attach(b, o, threads, n);
	if (!err)
		err = sampler_run(b->sampler, &stop);
	if (err) {
		burst_destroy(b);
		return err;
	}
	profile_finish(sampler_profile(b->sampler));
	for (u32 i = 0; i < n; i++)
		threads[i].seen = thread_node(sampler_profile(b->sampler), threads[i].tid);
	*ret = b;
	return NULL;
}

void burst_destroy(struct burst *b)
{
	if (!b)
		return;
	sampler_destroy(b->sampler);
	free(b);
}

static u32 heaviest_child(const struct profile *p, u32 node)
{
	u32 best = 0;

	for (u32 i = p->nodes[node].child; i; i = p->nodes[i].sibling)
		if (!best || p->nodes[i].total > p->nodes[best].total)
			best = i;
	return best && p->nodes[best].total > p->nodes[node].self ? best : 0;
}

static struct error *graft_function(const struct profile *from, u32 node, struct profile *to, u32 *at)
{
	struct profile_function f = from->functions[from->nodes[node].function];
	struct error *err = NULL;
	u32 function, image = f.image;

	f.image = 0;
	if (image)
		err = profile_image(to, from->images[image].path, from->images[image].build_id, &f.image);
	if (!err)
		err = profile_function(to, 0, &f, false, &function);
	return err ? err : profile_child(to, *at, function, at);
}

struct error *burst_graft(const struct burst *b, const struct burst_thread *threads, u32 n, struct profile *to)
{
	const struct profile *from = sampler_profile(b->sampler);
	struct error *err = NULL;

	for (u32 i = 0; !err && i < n; i++) {
		u32 at = 0, node = threads[i].seen ? thread_node(from, threads[i].tid) : 0;

		if (!node)
			continue;
		for (; !err && node; node = heaviest_child(from, node))
			err = graft_function(from, node, to, &at);
		if (!err)
			profile_add(to, at, 1);
	}
	return err;
}
