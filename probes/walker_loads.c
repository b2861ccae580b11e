/* SPDX-License-Identifier: Apache-2.0 */
#include "walker_loads.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sample.skel.h"
#include "skeleton.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/thread_start.h"

#define HIGH_PRIORITY -20

struct walkers {
	struct object *object;
	struct sample *more; /* whose programs run; NULL: those of the object itself */
	u32 loaded, refused;
	int event;
	bool running;
	struct walkers_stats stats;
	pthread_t thread;
	/* of the thread, while it runs */
	struct sample *next;
	u32 choice;
	u64 begin_ns;
	struct error *failed;
	struct walkers_stats took;
};

struct error *walkers_create(struct object *object, u32 loaded, struct walkers **ret)
{
	struct walkers *w = calloc(1, sizeof(*w));

	if (!w)
		return &error_no_memory;
	w->object = object;
	w->loaded = loaded;
	w->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->event < 0) {
		free(w);
		return error_errno(errno, "cannot wait for BPF programs");
	}
	*ret = w;
	return NULL;
}

int walkers_fd(const struct walkers *w)
{
	return w->event;
}

static struct bpf_program *same_program(const struct sample *skel, const struct bpf_program *p)
{
	return bpf_object__find_program_by_name(skel->obj, bpf_program__name(p));
}

/* All maps but the constants, of which one is another. */
static int share_maps(struct sample *to, const struct sample *from)
{
	struct bpf_map *map;
	int code = 0;

	bpf_object__for_each_map(map, to->obj)
	{
		const struct bpf_map *shared = bpf_object__find_map_by_name(from->obj, bpf_map__name(map));

		if (!bpf_map__autocreate(shared))
			bpf_map__set_autocreate(map, false);
		else if (!code && map != to->maps.rodata)
			code = bpf_map__reuse_fd(map, bpf_map__fd(shared));
	}
	return code;
}

/* Those that take stacks, of those that are in use. */
static void choose_programs(struct sample *to, const struct sample *from)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, to->obj)
	{
		const struct bpf_program *used = same_program(from, p);

		bpf_program__set_autoload(p, object_table_of(to, p) && bpf_program__autoload(used));
		bpf_program__set_expected_attach_type(p, bpf_program__expected_attach_type(used));
	}
}

static int load(struct sample *to, const struct sample *from, u32 choice)
{
	int code = share_maps(to, from);

	if (code)
		return code;
	choose_programs(to, from);
	*to->rodata = *from->rodata;
	to->rodata->walkers = choice;
	code = sample__load(to);
	return code ? code : object_put_in_place(to);
}

static void *work(void *ctx)
{
	u64 one = 1;
	struct walkers *w = ctx;
	int code = -ENOMEM;

	setpriority(PRIO_PROCESS, 0, HIGH_PRIORITY); /* of this thread: stacks are cut until it is done */
	w->next = skeleton_open(w->choice, object_cache_dir(w->object));
	if (w->next)
		code = load(w->next, object_skeleton(w->object), w->choice);
	if (code)
		w->failed = error_hint(error_errno(-code, "cannot load the walker of a runtime that has appeared"),
		        "stacks end at its frames; YRT_DEBUG=1 prints the verifier's log");
	w->took = (struct walkers_stats){.ns = now_ns() - w->begin_ns};
	while (write(w->event, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	return NULL;
}

/* Takes over what the thread has done, and waits for it if need be: its event would wake who waits for it for ever. */
static struct error *finish(struct walkers *w)
{
	struct error *err;
	u64 count;

	pthread_join(w->thread, NULL);
	while (read(w->event, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	w->running = false;
	err = TAKE(w->failed);
	w->stats.loads++;
	w->stats.ns += w->took.ns;
	if (err) {
		w->refused |= w->choice & ~w->loaded;
		sample__destroy(TAKE(w->next));
		return err;
	}
	w->loaded = w->choice;
	sample__destroy(w->more);
	w->more = TAKE(w->next);
	return NULL;
}

void walkers_destroy(struct walkers *w)
{
	if (!w)
		return;
	if (w->running)
		error_free(finish(w));
	sample__destroy(w->more);
	close(w->event);
	free(w);
}

static struct error *start(struct walkers *w, u32 choice)
{
	int code;

	w->choice = choice;
	w->begin_ns = now_ns();
	code = thread_start(&w->thread, NULL, work, w);
	w->running = !code;
	return code ? error_errno(code, "cannot make a thread") : NULL;
}

struct error *walkers_want(struct walkers *w, u32 runtimes)
{
	struct pollfd done = {.fd = w->event, .events = POLLIN};
	struct error *err = NULL;

	if (w->running && poll(&done, 1, 0) > 0)
		err = finish(w);
	if (!err && !w->running && runtimes & ~(w->loaded | w->refused))
		err = start(w, w->loaded | runtimes);
	return err;
}

struct error *walkers_need(struct walkers *w, u32 runtimes)
{
	struct error *err = walkers_want(w, runtimes);

	return err || !w->running ? err : finish(w);
}

void walkers_stats(const struct walkers *w, struct walkers_stats *ret)
{
	*ret = w->stats;
}
