/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_event.h"

#include <stdlib.h>

#include "probes/event.h"
#include "probes/sampler.h"

struct tlab_event {
	struct tlab *alloc;
	struct tlab_summary summary;
};

static void destroy(void *event)
{
	struct tlab_event *e = event;

	if (e)
		tlab_destroy(e->alloc);
	free(e);
}

static struct error *create(const struct event_host *host, void **ret)
{
	const struct sampler_options *o = host->options;
	const struct tlab_event_options *own = o->of_event;
	struct tlab_options options = {.interval = own->interval,
	        .frequency = o->frequency,
	        .share = own->share,
	        .threads = o->collect.threads,
	        .object = host->object,
	        .targets = host->targets,
	        .collector = host->collector,
	        .warn = o->warn,
	        .ctx = o->ctx};
	struct tlab_event *e = calloc(1, sizeof(*e));
	struct error *err = e ? tlab_create(&options, &e->alloc) : &error_no_memory;

	if (err)
		destroy(e);
	else
		*ret = e;
	return err;
}

static struct error *attach(void *event, pid_t pid, bool required)
{
	return tlab_attach(((struct tlab_event *)event)->alloc, pid, required);
}

/* A program that is only starting has no runtime yet: tlab_poll() finds it. */
static struct error *start(void *event, bool at_exec)
{
	return at_exec ? NULL : tlab_start(((struct tlab_event *)event)->alloc);
}

static struct error *poll(void *event, u64 now_ns)
{
	return tlab_poll(((struct tlab_event *)event)->alloc, now_ns);
}

static struct error *stop(void *event)
{
	return tlab_stop(((struct tlab_event *)event)->alloc);
}

static struct error *finish(void *event)
{
	return tlab_finish(((struct tlab_event *)event)->alloc);
}

static struct error *stack(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	return tlab_stack(((struct tlab_event *)event)->alloc, record, frames, n);
}

static void stats(void *event, struct sampler_stats *st)
{
	struct tlab_event *e = event;

	tlab_summary(e->alloc, &e->summary);
	st->of_event = &e->summary;
}

const struct event_ops tlab_event = {
        .name = "tlab",
        .unit = "bytes",
        .more = "objects",
        .slots = 4,
        .prepare = tlab_object_prepare,
        .create = create,
        .destroy = destroy,
        .attach = attach,
        .start = start,
        .poll = poll,
        .stop = stop,
        .finish = finish,
        .stats = stats,
        .stack = stack,
        .words = &tlab_words,
};
