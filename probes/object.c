/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capabilities.h"
#include "code_watch.h"
#include "cpu_time.h"
#include "object_internal.h"
#include "skeleton.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/open_files.h"
#include "unwind/thread_start.h"
#include "used_maps.h"

/*
 * The slabs of the arena, as maps that BPF reads. Each change of the map of them waits for all running programs, some
 * milliseconds. So one change adds all new slabs and some spare ones; the first happens while the programs are
 * verified.
 */

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
	munmap(slab, ARENA_SLAB_SIZE + ARENA_SLAB_PAD);
}

static void slabs_create(struct slabs *s)
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

/*
 * Makes the map of slabs, in *fd, and lets a thread fill in existing slabs: a change of a map of maps waits for all
 * running programs, some milliseconds.
 */
static struct error *slabs_begin(struct slabs *s, int *fd)
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

/* BPF knows of all slabs in use after this. */
static struct error *slabs_publish(struct slabs *s)
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

static void slabs_destroy(struct slabs *s)
{
	error_free(finish(s));
	for (u32 i = 0; i < s->nmade; i++)
		close(s->fd[i]);
	if (s->outer >= 0)
		close(s->outer);
}

#define KERNEL_FRAMES 127
#define RING_PER_CPU  (256u << 10)
#define RING_MIN      (2u << 20)
#define RING_MAX      (16u << 20)
#define RING_EVERYONE (4u << 20) /* at least: while a large program is read all others send copies of their stacks */
#define EVERYONE      16384u     /* targets, where all that run are */

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN && getenv("YRT_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

static struct error *raise_limits(void)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	return open_files_need(OPEN_FILES_SAMPLING, OPEN_FILES_EACH_CPU);
}

static u32 ring_size(int ncpus, bool everyone)
{
	u32 size = everyone ? RING_EVERYONE : RING_MIN;

	while (size < RING_MAX && size < (u32)ncpus * RING_PER_CPU)
		size *= 2;
	return size;
}

static void set_knobs(struct object *o)
{
	const struct object_options *options = &o->options;
	struct sample *skel = o->skel;
	u32 chunks = (options->depth + KERNEL_FRAMES + CHUNK_FRAMES - 1) / CHUNK_FRAMES;
	u32 nslots = (u32)o->ncpus * options->event->slots, ring = ring_size(o->ncpus, options->everyone);

	skel->rodata->slots_per_cpu = options->event->slots;
	skel->rodata->chunks_per_slot = chunks;
	skel->rodata->max_frames = options->depth;
	skel->rodata->ring_wake = ring / 4;
	skel->rodata->with_kernel = !options->no_kernel;
	skel->rodata->with_user = !options->no_user;
	skel->rodata->by_thread = options->by_thread;
	skel->rodata->with_times = options->times;
	skel->rodata->everyone = options->everyone;
	skel->rodata->own_tgid = (u32)getpid();
	skel->rodata->wake_young = options->rarely_read;
	if (options->everyone)
		bpf_map__set_max_entries(skel->maps.processes, EVERYONE);
	bpf_map__set_max_entries(skel->maps.slots, nslots);
	bpf_map__set_max_entries(skel->maps.chunks, nslots * chunks);
	bpf_map__set_max_entries(skel->maps.ring, ring);
	skel->bss->weight = 1;
}

struct error *object_explain_load(int code)
{
	if (code == EPERM) /* the verifier says EACCES */
		return capabilities_no_bpf(code);
	if (code == EMFILE)
		return error_errno(code, "cannot load the BPF programs");
	if (code == ESRCH || code == ENOENT)
		return error_hint(error_new(ERROR_UNSUPPORTED, "the kernel has no BTF (/sys/kernel/btf/vmlinux)"),
		        "yrt needs a kernel built with CONFIG_DEBUG_INFO_BTF; `yrt doctor` says more");
	if (!libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL))
		return error_hint(error_new(ERROR_UNSUPPORTED, "the kernel is too old for the BPF programs"),
		        "yrt needs Linux 5.15 or later; `yrt doctor` shows what this machine permits");
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "the kernel does not accept the BPF programs: %s", strerror(code)),
	        "YRT_DEBUG=1 prints the verifier's log; `yrt doctor` shows what this machine permits");
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct object *o = ctx;

	o->record(o->record_ctx, data, size);
	return o->left && !--o->left ? -EAGAIN : 0;
}

bool object_is_of_event(const struct object *o, const struct bpf_program *p)
{
	return p != o->skel->progs.on_fork && p != o->skel->progs.on_exec && p != o->skel->progs.on_exit &&
	       p != o->skel->progs.on_free && p != o->skel->progs.find_level && p != o->skel->progs.name_kernel;
}

/* What is not loaded needs no look of the verifier. */
static void choose_programs(struct object *o)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, o->skel->obj) if (object_is_of_event(o, p)) bpf_program__set_autoload(p, false);
	o->options.event->prepare(o);
}

/* Those of which user space asks whatever the event is are always made. */
static void choose_maps(struct object *o)
{
	if (!used_maps_only(o->skel))
		return;
	bpf_map__set_autocreate(o->skel->maps.counts, true);
	bpf_map__set_autocreate(o->skel->maps.stats, true);
	bpf_map__set_autocreate(o->skel->maps.code_changes, true);
}

struct bpf_map *object_table_of(const struct sample *skel, const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);
	size_t len = strlen(name), suffix = sizeof("_walk") - 1;
	char table[64];

	if (len <= suffix || strcmp(name + len - suffix, "_walk"))
		return NULL;
	snprintf(table, sizeof(table), "%.*s_now", (int)(len - suffix), name);
	return bpf_object__find_map_by_name(skel->obj, table);
}

int object_put_in_place(const struct sample *skel)
{
	struct bpf_program *p;
	u32 zero = 0;

	bpf_object__for_each_program(p, skel->obj)
	{
		const struct bpf_map *table = object_table_of(skel, p);
		int fd = bpf_program__fd(p);

		if (table && fd >= 0 && bpf_map_update_elem(bpf_map__fd(table), &zero, &fd, BPF_ANY))
			return -errno;
	}
	return 0;
}

static void *load(void *ctx)
{
	struct object *o = ctx;

	o->load_code = sample__load(o->skel);
	return NULL;
}

struct error *object_begin(struct object *o, u32 walkers)
{
	int slabs = -1;
	struct error *err = slabs_begin(&o->slabs, &slabs);

	if (err)
		return err;
	o->skel = skeleton_open(walkers, o->options.cache_dir);
	if (!o->skel)
		return object_explain_load(errno);
	set_knobs(o);
	choose_programs(o);
	choose_maps(o);
	if (bpf_map__reuse_fd(o->skel->maps.slabs, slabs))
		return object_explain_load(errno);
	o->loading = !thread_start(&o->loader, NULL, load, o);
	if (!o->loading)
		load(o);
	return NULL;
}

static void wait_for_loader(struct object *o)
{
	if (o->loading)
		pthread_join(o->loader, NULL);
	o->loading = false;
}

struct error *object_load(struct object *o)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);

	wait_for_loader(o);
	if (!o->load_code)
		o->load_code = object_put_in_place(o->skel);
	if (o->load_code)
		return object_explain_load(-o->load_code);
	o->skel->bss->last_instance = o->last_instance;
	if (o->options.measure)
		o->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (bpf_prog_test_run_opts(bpf_program__fd(o->skel->progs.find_level), &run))
		return error_errno(errno, "cannot run a BPF program");
	o->skel->links.on_fork = bpf_program__attach(o->skel->progs.on_fork);
	o->skel->links.on_exec = bpf_program__attach(o->skel->progs.on_exec);
	o->skel->links.on_free = bpf_program__attach(o->skel->progs.on_free);
	o->skel->links.on_exit = bpf_program__attach(o->skel->progs.on_exit);
	if (!o->skel->links.on_fork || !o->skel->links.on_exec || !o->skel->links.on_exit || !o->skel->links.on_free)
		return error_errno(errno, "cannot attach to the scheduler's tracepoints");
	o->ring = ring_buffer__new(bpf_map__fd(o->skel->maps.ring), on_record, o, NULL);
	return o->ring ? NULL : error_errno(errno, "cannot map the ring buffer");
}

struct error *object_create(const struct object_options *options, struct object **ret)
{
	struct error *err = raise_limits();
	struct object *o = err ? NULL : calloc(1, sizeof(*o));

	if (!o)
		return err ? err : &error_no_memory;
	libbpf_set_print(quiet);
	o->options = *options;
	o->stats_fd = -1;
	o->ncpus = libbpf_num_possible_cpus();
	slabs_create(&o->slabs);
	*ret = o;
	return NULL;
}

void object_destroy(struct object *o)
{
	if (!o)
		return;
	wait_for_loader(o);
	code_watch_destroy(o->code_watch);
	ring_buffer__free(o->ring);
	sample__destroy(o->skel);
	slabs_destroy(&o->slabs);
	if (o->stats_fd >= 0)
		close(o->stats_fd);
	free(o);
}

struct arena_source *object_slabs(struct object *o)
{
	return &o->slabs.source;
}

const char *object_cache_dir(const struct object *o)
{
	return o->options.cache_dir;
}

struct sample *object_skeleton(const struct object *o)
{
	return o->skel;
}

int object_ncpus(const struct object *o)
{
	return o->ncpus;
}

struct error *object_sum(const struct object *o, const struct bpf_map *map, u64 *ret, size_t size)
{
	cleanup(free) u64 *each = calloc((size_t)o->ncpus, size);
	size_t words = size / sizeof(*each);
	u32 zero = 0;

	memset(ret, 0, size);
	if (!each)
		return &error_no_memory;
	if (bpf_map_lookup_elem(bpf_map__fd(map), &zero, each))
		return error_errno(errno, "cannot read the counters");
	for (size_t i = 0; i < (size_t)o->ncpus * words; i++)
		ret[i % words] += each[i];
	return NULL;
}

int object_program(const struct object *o, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(o->skel->obj, name));
}

int object_ring_fd(const struct object *o)
{
	return ring_buffer__epoll_fd(o->ring);
}

void object_consume(struct object *o, u32 most, void (*record)(void *ctx, const void *data, size_t size), void *ctx)
{
	o->record = record;
	o->record_ctx = ctx;
	o->left = most;
	ring_buffer__consume(o->ring);
}

/* The process may run another program by now, whose record is on the way: what was read of it is that one's. */
static void keep_newest(struct object *o, u32 tgid, struct process_entry *set)
{
	struct process_entry current;

	if (bpf_map_lookup_elem(bpf_map__fd(o->skel->maps.processes), &tgid, &current))
		return;
	set->instance = current.instance > set->instance ? current.instance : set->instance;
	set->since_ns = current.since_ns;
	set->stack = current.stack;
}

struct error *object_set_process(struct object *o, pid_t tgid, const struct process_entry *entry, bool is_new)
{
	struct error *err = slabs_publish(&o->slabs);
	struct process_entry set = *entry;
	u32 key = (u32)tgid;

	if (err)
		return err;
	if (is_new)
		set.since_ns = now_ns();
	else
		keep_newest(o, key, &set);
	if (bpf_map_update_elem(bpf_map__fd(o->skel->maps.processes), &key, &set, is_new ? BPF_ANY : BPF_EXIST) == 0) {
		o->outside_ns += is_new ? cpu_of_process(tgid) : 0;
		o->added += is_new;
		return NULL;
	}
	if (!is_new && errno == ENOENT)
		return NULL;
	return error_errno(errno, "cannot register process %d with BPF (%u targets at most)", tgid,
	        bpf_map__max_entries(o->skel->maps.processes));
}

void object_watch_code(struct object *o, pid_t tgid, const struct code_ranges *code)
{
	if (!o->code_watch_tried)
		o->code_watch = code_watch_create(o->skel);
	o->code_watch_tried = true;
	if (o->code_watch)
		code_watch_set(o->code_watch, tgid, code);
}

u32 object_added(const struct object *o)
{
	return o->added;
}

void object_forget_process(struct object *o, pid_t tgid)
{
	u32 key = (u32)tgid;

	if (!bpf_map_delete_elem(bpf_map__fd(o->skel->maps.processes), &key))
		o->outside_ns -= cpu_of_process(tgid);
}

u32 object_new_instance(struct object *o)
{
	return __sync_add_and_fetch(o->ring ? &o->skel->bss->last_instance : &o->last_instance, 1);
}

const void *object_of_event(const struct object *o)
{
	return o->options.of_event;
}

void object_want(struct object *o, const char *program)
{
	struct bpf_program *called;
	char name[64];

	bpf_program__set_autoload(bpf_object__find_program_by_name(o->skel->obj, program), true);
	snprintf(name, sizeof(name), "%s_walk", program);
	called = bpf_object__find_program_by_name(o->skel->obj, name);
	if (called)
		bpf_program__set_autoload(called, true);
}

void object_take_ticks(struct object *o, enum ticks ticks)
{
	if (ticks == TICKS_TAKEN)
		o->skel->bss->taken_ns = now_ns();
	o->skel->bss->ticks = ticks;
}

u64 object_taken_ns(const struct object *o)
{
	return o->skel->bss->taken_ns;
}

void object_halve(struct object *o)
{
	o->skel->bss->weight *= 2;
}

void object_eager(struct object *o, bool eager)
{
	o->skel->bss->eager = eager;
}
