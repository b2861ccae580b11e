/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler, from its parts to its first targets. */
#include "sampler_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <types.h>
#include <unistd.h>

#include "select_find.h"
#include "skeleton.h"
#include "unwind/cleanup.h"
#include "unwind/error.h"
#include "unwind/now.h"
#include "unwind/process/prefetch.h"
#include "unwind/runtime.h"
#include "unwind/table.h"

/*
 * Which walkers a profile of one process or of the whole machine begins with: those of runtimes that the processes seem
 * to have, by the names of the files that one process of each program has mapped (runtime_ops.files). This is a guess,
 * made without opening any of these files. A walker too many costs some milliseconds; one too few is loaded when a
 * sample meets its runtime (walker_loads.h), or of one process before it is sampled.
 */

#define LINE_BYTES 512

struct guess {
	const char *proc;
	struct table programs; /* that were looked at */
	u32 runtimes;
};

static bool is_named(const struct runtime_ops *r, const char *line)
{
	for (const char *const *name = r->files; *name; name++)
		if (strstr(line, *name))
			return true;
	return false;
}

/* The same of one process; 0: none of its files has such a name. */
static u32 walkers_guess_of(const char *proc, pid_t pid)
{
	cleanup(fclose) FILE *maps = NULL;
	char path[64], line[LINE_BYTES];
	u32 ret = 0;

	snprintf(path, sizeof(path), "%s/%d/maps", proc, pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		for (const struct runtime_ops *const *r = runtimes; *r; r++)
			if ((*r)->files && is_named(*r, line))
				ret |= 1u << (*r)->id;
	return ret;
}

/* Of many processes of one program one is looked at. */
static struct error *guess(void *ctx, pid_t pid)
{
	struct guess *g = ctx;
	struct stat st;
	char path[64];
	u64 key;

	snprintf(path, sizeof(path), "%s/%d/exe", g->proc, pid);
	if (stat(path, &st)) /* a thread of the kernel, or gone */
		return NULL;
	key = (st.st_ino ^ st.st_dev << 40) * 0x9e3779b97f4a7c15 | 1;
	if (table_get(&g->programs, key))
		return NULL;
	g->runtimes |= walkers_guess_of(g->proc, pid);
	return table_put(&g->programs, key, 0);
}

/* proc: "/proc". *ret: bit n is the runtime of id n. */
static struct error *walkers_guess(const char *proc, u32 *ret)
{
	struct guess g = {.proc = proc};
	struct error *err;

	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		g.runtimes |= (*r)->files ? 0 : 1u << (*r)->id;
	err = each_process(proc, guess, &g);
	table_free(&g.programs);
	*ret = g.runtimes;
	return err;
}

static struct process *find_process(void *ctx, u32 number)
{
	struct sampler *s = ctx;

	return targets_find(&s->targets, number);
}

static struct error *stack_of_event(void *ctx, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct sampler *s = ctx;

	return s->ops->stack(s->event, record, frames, n);
}

static struct error *seen_by_event(void *ctx, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct sampler *s = ctx;

	return s->ops->seen(s->event, record, frames, n);
}

static bool name_kernel(void *ctx, u64 addr, char *text, size_t size)
{
	return object_name_kernel(((struct sampler *)ctx)->object, addr, text, size);
}

static struct error *create_parts(struct sampler *s)
{
	const struct sampler_options *o = &s->options;
	struct object_options object = {.depth = o->depth,
	        .no_kernel = o->no_kernel,
	        .no_user = o->no_user,
	        .by_thread = o->collect.threads || o->collect.ntids,
	        .times = o->collect.times,
	        .everyone = o->everyone,
	        .measure = o->measure,
	        .rarely_read = sampler_poll_ms(o) > POLL_MS,
	        .event = o->event,
	        .of_event = o->of_event,
	        .cache_dir = o->cache_dir};
	struct error *err = object_create(&object, &s->object);

	if (!err)
		err = arena_create(object_slabs(s->object), &s->arena);
	if (!err)
		err = modules_create(s->arena, o->cache_dir, &s->modules);
	if (err)
		return err;
	s->modules->features = o->features | (o->collect.lock_only ? FEATURE_LOCK : 0) |
	                       (o->collect.names.expand & EXPAND_LOOP ? FEATURE_AWAITERS : 0) |
	                       (s->ops->locks || s->ops->futex ? FEATURE_AWAITED : 0);
	if (o->everyone)
		modules_make_later(s->modules, TABLES_SMALLEST_FIRST);
	s->modules->complain = o->warn;
	s->modules->complain_ctx = o->ctx;
	s->options.collect.stack = s->ops->stack ? stack_of_event : NULL;
	s->options.collect.seen = s->ops->seen ? seen_by_event : NULL;
	s->options.collect.stack_ctx = s;
	s->options.collect.names.reason = s->ops->reason;
	s->options.collect.names.object = s->ops->object;
	s->options.collect.names.kernel = name_kernel;
	s->options.collect.names.kernel_ctx = s;
	s->options.collect.names.reason_kind = s->ops->kind;
	s->options.collect.names.object_kind = s->ops->object_kind;
	s->options.collect.queued = s->ops->queued;
	s->options.collect.idle = o->no_idle ? s->ops->idle : NULL;
	s->options.collect.locks = s->ops->locks;
	s->options.collect.futex = s->ops->futex;
	s->options.collect.names.leads_to_program = s->ops->leads_to_program;
	err = s->ops->stack ? NULL : name_reader_create(&s->reader);
	if (err)
		return err;
	s->options.collect.names.reader = s->reader;
	return collector_create(s->modules, &o->collect, find_process, s, &s->collector);
}

static struct error *create_poll(struct sampler *s)
{
	struct epoll_event read = {.events = EPOLLIN | EPOLLET, .data.u64 = TAG_NAMES};
	struct error *err = mmap_watch_create(&s->watch);

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || (s->reader && epoll_ctl(s->epoll, EPOLL_CTL_ADD, name_reader_fd(s->reader), &read))) {
		error_free(err);
		return error_errno(errno, "cannot wait for samples");
	}
	if (err == &error_no_memory)
		return err;
	if (err)
		s->options.warn(s->options.ctx, err);
	return s->watch ? mmap_watch_poll(s->watch, s->epoll, TAG_MMAP) : NULL;
}

static void put_of_event(void *ctx, const void *data, size_t size)
{
	sampler_record(ctx, data, size);
}

static void take_all_for_event(void *ctx)
{
	sampler_take_all(ctx);
}

static struct error *create_event(struct sampler *s)
{
	s->host = (struct event_host){.options = &s->options,
	        .object = s->object,
	        .targets = &s->targets,
	        .collector = s->collector,
	        .put = put_of_event,
	        .take_all = take_all_for_event,
	        .ctx = s};
	return s->ops->create(&s->host, &s->event);
}

struct error *sampler_create(const struct sampler_options *options, struct sampler **ret)
{
	struct sampler *s = calloc(1, sizeof(*s));
	struct error *err;

	if (!s)
		return &error_no_memory;
	s->options = *options;
	s->epoll = -1;
	s->created_ns = now_ns();
	s->ops = options->event;
	err = create_parts(s);
	if (!err)
		err = create_poll(s);
	if (err) {
		sampler_destroy(s);
		return err;
	}
	s->targets = (struct targets){.object = s->object,
	        .modules = s->modules,
	        .watch = s->watch,
	        .follow = options->follow,
	        .everyone = options->everyone,
	        .selection = options->selection,
	        .warn = options->warn,
	        .ctx = options->ctx};
	*ret = s;
	return NULL;
}

/* Of what is only to come nobody knows yet what it will be, and it may be over before a load is. */
static struct error *choose_walkers(const struct sampler *s, u32 *ret)
{
	const struct sampler_options *o = &s->options;
	struct error *err;

	*ret = WALKERS_ALL;
	if (!o->everyone && ((o->selection && !s->targets.nprocesses) || (s->command && o->follow)))
		return NULL;
	*ret = 0;
	err = o->everyone ? walkers_guess("/proc", ret) : NULL;
	*ret |= s->targets.recognised | (s->command ? modules_runtimes(s->modules) : 0);
	return err;
}

static struct error *watch_fd(struct sampler *s, int fd, u64 tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) ? error_errno(errno, "cannot wait for samples") : NULL;
}

static struct error *begin_load(struct sampler *s, u32 walkers)
{
	s->loading = true;
	s->loaded = walkers;
	return object_begin(s->object, walkers);
}

/* The programs are loaded while the regions of the one process are made. */
static void on_recognised(void *ctx, u32 runtimes)
{
	struct sampler *s = ctx;

	if (!s->loading)
		s->failed = begin_load(s, runtimes);
}

static struct error *load_object(struct sampler *s)
{
	struct error *err = TAKE(s->failed);
	u32 walkers;

	if (!err && !s->loading) {
		err = choose_walkers(s, &walkers);
		if (!err)
			err = begin_load(s, walkers);
	}
	return err ? err : object_load(s->object);
}

/* What the names of its files did not show of the one process. Without it everything else is still seen. */
static struct error *need_walkers(struct sampler *s)
{
	struct error *err = s->guessed ? walkers_need(s->walkers, s->targets.recognised) : NULL;

	if (err && err != &error_no_memory) {
		s->options.warn(s->options.ctx, err);
		err = NULL;
	}
	return err;
}

struct error *sampler_load(struct sampler *s)
{
	struct error *err;

	if (s->walkers)
		return NULL;
	err = load_object(s);
	if (!err)
		err = walkers_create(s->object, s->loaded, &s->walkers);
	if (!err)
		err = need_walkers(s);
	if (!err)
		err = watch_fd(s, walkers_fd(s->walkers), TAG_WALKERS);
	if (!err)
		err = watch_fd(s, object_ring_fd(s->object), TAG_RING);
	if (!err)
		err = create_event(s);
	if (!err)
		err = targets_mapped(&s->targets, 0); /* a JIT has gone on meanwhile */
	return err ? err : targets_announce(&s->targets);
}

void sampler_destroy(struct sampler *s)
{
	if (!s)
		return;
	command_destroy(s->command);
	s->ops->destroy(s->event);
	walkers_destroy(s->walkers);
	mmap_watch_destroy(s->watch);
	collector_destroy(s->collector);
	name_reader_destroy(s->reader);
	backlog_free(&s->backlog);
	targets_free(&s->targets);
	modules_destroy(s->modules);
	arena_destroy(s->arena);
	object_destroy(s->object);
	if (s->epoll >= 0)
		close(s->epoll);
	error_free(s->failed);
	free(s);
}

struct error *sampler_attach(struct sampler *s, pid_t pid, bool only)
{
	struct error *err, *refused;

	s->guessed = only && !s->loading ? walkers_guess_of("/proc", pid) : 0;
	if (s->guessed) /* while its files are read */
		s->failed = begin_load(s, s->guessed);
	s->modules->recognised = only ? on_recognised : NULL;
	s->modules->recognised_ctx = s;
	err = targets_add(&s->targets, pid, object_new_instance(s->object));
	s->modules->recognised = NULL;
	if (!err && !s->ops->attach)
		return NULL;
	refused = sampler_load(s); /* a missing permission is reported before a wrong pid */
	if (err && refused)
		error_free(TAKE(err));
	if (err || refused)
		return err ? err : refused;
	return s->ops->attach(s->event, pid, !s->options.follow);
}

struct error *sampler_start_command(struct sampler *s, char *const *argv)
{
	pid_t pid;
	struct error *err = command_create(argv, &s->command);

	if (err)
		return err;
	pid = command_pid(s->command);
	err = prefetch_prepare(s->modules, argv);
	return err ? err : targets_add(&s->targets, pid, object_new_instance(s->object));
}
