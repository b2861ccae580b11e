/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slabs of the arena, as maps that BPF reads. Each change of the map of them waits for all running programs, some
 * milliseconds. So one change adds all new slabs and some spare ones; the first happens while the programs are
 * verified.
 */
#include <errno.h>
#include <sys/mman.h>

#include "object_internal.h"
#include "unwind/cleanup.h"
#include "unwind/thread_start.h"

#define SPARE_SLABS 8 /* known to BPF before they are needed */

static struct slabs *of_source(struct arena_source *source)
{
	return (struct slabs *)((char *)source - offsetof(struct slabs, source));
}

static struct error *make_map(struct slabs *s)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(
	        BPF_MAP_TYPE_ARRAY, "yrt_slab", sizeof(u32), ARENA_SLAB_SIZE + ARENA_SLAB_PAD, 1, &options);

	if (fd < 0)
		return errno == EPERM ? object_explain_load(errno) : error_errno(errno, "cannot create a BPF map");
	s->fd[s->nmade++] = fd;
	return NULL;
}

static struct error *make_slab(struct arena_source *source, u32 i, void **ret)
{
	struct slabs *s = of_source(source);
	struct error *err = i < s->nmade ? NULL : make_map(s);
	void *slab;

	if (err)
		return err;
	slab = mmap(NULL, ARENA_SLAB_SIZE + ARENA_SLAB_PAD, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd[i], 0);
	if (slab == MAP_FAILED)
		return error_errno(errno, "cannot map a BPF map");
	s->n = i + 1;
	*ret = slab;
	return NULL;
}

static void drop_slab(struct arena_source *source, u32 i, void *slab)
{
	(void)source;
	(void)i;
	munmap(slab, ARENA_SLAB_SIZE + ARENA_SLAB_PAD);
}

void slabs_create(struct slabs *s)
{
	s->source = (struct arena_source){.make = make_slab, .done = drop_slab};
	s->outer = -1;
}

static struct error *make_spares(struct slabs *s)
{
	struct error *err = NULL;

	while (!err && s->nmade < s->n + SPARE_SLABS && s->nmade < ARENA_SLABS_MAX)
		err = make_map(s);
	return err;
}

/* Those from npublished to end. */
static struct error *put(struct slabs *s, u32 end)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	u32 n = end - s->npublished, keys[ARENA_SLABS_MAX];

	for (u32 i = 0; i < n; i++)
		keys[i] = s->npublished + i;
	if (bpf_map_update_batch(s->outer, keys, &s->fd[s->npublished], &n, &options))
		for (u32 i = s->npublished; i < end; i++)
			if (bpf_map_update_elem(s->outer, &i, &s->fd[i], BPF_ANY))
				return error_errno(errno, "cannot pass a table to BPF");
	return NULL;
}

static void *work(void *ctx)
{
	struct slabs *s = ctx;

	s->failed = put(s, s->end);
	return NULL;
}

struct error *slabs_begin(struct slabs *s, int *fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);
	struct error *err = make_spares(s);

	if (err)
		return err;
	options.inner_map_fd = (u32)s->fd[0];
	s->outer = bpf_map_create(
	        BPF_MAP_TYPE_ARRAY_OF_MAPS, "slabs", sizeof(u32), sizeof(u32), ARENA_SLABS_MAX, &options);
	if (s->outer < 0)
		return error_errno(errno, "cannot create a BPF map");
	s->end = s->nmade;
	s->running = !thread_start(&s->thread, NULL, work, s);
	*fd = s->outer;
	return NULL;
}

static struct error *finish(struct slabs *s)
{
	if (!s->running)
		return NULL;
	pthread_join(s->thread, NULL);
	s->running = false;
	if (!s->failed)
		s->npublished = s->end;
	return TAKE(s->failed);
}

struct error *slabs_publish(struct slabs *s)
{
	struct error *err = finish(s);

	if (err || s->n <= s->npublished)
		return err;
	err = make_spares(s);
	if (!err)
		err = put(s, s->nmade);
	if (!err)
		s->npublished = s->nmade;
	return err;
}

void slabs_destroy(struct slabs *s)
{
	error_free(finish(s));
	for (u32 i = 0; i < s->nmade; i++)
		close(s->fd[i]);
	if (s->outer >= 0)
		close(s->outer);
}
