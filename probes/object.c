/* SPDX-License-Identifier: Apache-2.0 */
#include "object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cpu_time.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

#define KERNEL_FRAMES   127
#define RING_PER_CPU    (256u << 10)
#define RING_MIN        (2u << 20)
#define RING_MAX        (16u << 20)
#define COUNTS_CAPACITY 16384u
#define SPARE_SLABS     8 /* known to BPF before they are needed */
#define CPU_BATCH       1024
#define EVERYONE        16384u /* targets, where all that run are */

struct object {
	struct sample *skel;
	const void *of_event;
	struct ring_buffer *ring;
	struct arena_source slabs;
	int slab_fd[ARENA_SLABS_MAX];
	u32 nslabs, nmade, npublished; /* in use, made, and known to BPF */
	int stats_fd;                  /* keeps BPF_ENABLE_STATS on */
	int ncpus;
	void (*record)(void *ctx, const void *data, size_t size);
	void *record_ctx;
	u32 left; /* records to be handed out; 0: all */
	bool everyone, measure;
	u64 outside_ns; /* CPU time of targets while they were none */
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN && getenv("YRT_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

static void raise_limits(void)
{
	struct rlimit files, unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static u32 ring_size(int ncpus)
{
	u32 size = RING_MIN;

	while (size < RING_MAX && size < (u32)ncpus * RING_PER_CPU)
		size *= 2;
	return size;
}

static void set_knobs(struct object *o, const struct object_options *options)
{
	struct sample *skel = o->skel;
	u32 chunks = (options->depth + KERNEL_FRAMES + CHUNK_FRAMES - 1) / CHUNK_FRAMES;
	u32 nslots = (u32)o->ncpus * options->event->slots, ring = ring_size(o->ncpus);

	skel->rodata->slots_per_cpu = options->event->slots;
	skel->rodata->chunks_per_slot = chunks;
	skel->rodata->max_frames = options->depth;
	skel->rodata->ring_wake = ring / 4;
	skel->rodata->with_kernel = !options->no_kernel;
	skel->rodata->with_user = !options->no_user;
	skel->rodata->by_thread = options->by_thread;
	skel->rodata->with_times = options->times;
	skel->rodata->everyone = o->everyone = options->everyone;
	skel->rodata->own_tgid = (u32)getpid();
	if (options->everyone)
		bpf_map__set_max_entries(skel->maps.processes, EVERYONE);
	skel->rodata->with_loop = !getenv("YRT_NO_LOOP") && /* for tests */
	                          libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1;
	bpf_map__set_max_entries(skel->maps.slots, nslots);
	bpf_map__set_max_entries(skel->maps.chunks, nslots * chunks);
	bpf_map__set_max_entries(skel->maps.ring, ring);
	bpf_map__set_max_entries(skel->maps.counts_a, COUNTS_CAPACITY);
	bpf_map__set_max_entries(skel->maps.counts_b, COUNTS_CAPACITY);
}

static struct error *explain_load(int code)
{
	if (code == EPERM) /* the verifier says EACCES */
		return error_hint(error_errno(code, "the kernel refuses bpf(): to load BPF programs"),
		        "run as root, or with capabilities: `yrt doctor` tells which are missing, CAP_BPF and "
		        "CAP_PERFMON at least; in "
		        "Kubernetes \"add: [BPF, PERFMON, SYS_PTRACE]\" and \"seccompProfile: {type: Unconfined}\"");
	if (code == ESRCH || code == ENOENT)
		return error_hint(error_new(ERROR_UNSUPPORTED, "the kernel has no BTF (/sys/kernel/btf/vmlinux)"),
		        "yrt needs a kernel built with CONFIG_DEBUG_INFO_BTF; `yrt doctor` tells more");
	if (!libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL))
		return error_hint(error_new(ERROR_UNSUPPORTED, "the kernel is too old for the BPF programs"),
		        "yrt needs Linux 5.15 or later; `yrt doctor` tells what this machine permits");
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "the kernel does not accept the BPF programs: %s", strerror(code)),
	        "YRT_DEBUG=1 prints the verifier's words; `yrt doctor` tells what this machine permits");
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct object *o = ctx;

	o->record(o->record_ctx, data, size);
	return o->left && !--o->left ? -EAGAIN : 0;
}

static struct error *make_slab(struct arena_source *source, u32 i, void **ret);
static void drop_slab(struct arena_source *source, u32 i, void *slab);

/* Of an event, or of what all events share? */
static bool is_of_event(const struct object *o, const struct bpf_program *p)
{
	return p != o->skel->progs.on_fork && p != o->skel->progs.on_exec && p != o->skel->progs.on_exit &&
	       p != o->skel->progs.on_free && p != o->skel->progs.find_level;
}

/* What is not loaded needs no look of the verifier. */
static void choose_programs(struct object *o, const struct event_ops *event)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, o->skel->obj) if (is_of_event(o, p)) bpf_program__set_autoload(p, false);
	event->prepare(o);
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

struct error *object_load(struct object *o, u32 walkers)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);

	o->skel->rodata->walkers = walkers;
	if (sample__load(o->skel) || object_put_in_place(o->skel))
		return explain_load(errno);
	if (o->measure)
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
	struct object *o = calloc(1, sizeof(*o));
	struct error *err;

	if (!o)
		return &error_no_memory;
	libbpf_set_print(quiet);
	raise_limits();
	o->stats_fd = -1;
	o->slabs = (struct arena_source){.make = make_slab, .done = drop_slab};
	o->ncpus = libbpf_num_possible_cpus();
	o->skel = sample__open();
	if (!o->skel) {
		err = explain_load(errno);
		free(o);
		return err;
	}
	set_knobs(o, options);
	o->of_event = options->of_event;
	choose_programs(o, options->event);
	o->measure = options->measure;
	*ret = o;
	return NULL;
}

void object_destroy(struct object *o)
{
	if (!o)
		return;
	ring_buffer__free(o->ring);
	sample__destroy(o->skel);
	for (u32 i = 0; i < o->nmade; i++)
		close(o->slab_fd[i]);
	if (o->stats_fd >= 0)
		close(o->stats_fd);
	free(o);
}

static struct object *of_slabs(struct arena_source *source)
{
	return (struct object *)((char *)source - offsetof(struct object, slabs));
}

static struct error *make_map(struct object *o)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(
	        BPF_MAP_TYPE_ARRAY, "yrt_slab", sizeof(u32), ARENA_SLAB_SIZE + ARENA_SLAB_PAD, 1, &options);

	if (fd < 0)
		return errno == EPERM ? explain_load(errno) : error_errno(errno, "cannot create a BPF map");
	o->slab_fd[o->nmade++] = fd;
	return NULL;
}

static struct error *make_slab(struct arena_source *source, u32 i, void **ret)
{
	struct object *o = of_slabs(source);
	struct error *err = i < o->nmade ? NULL : make_map(o);
	void *slab;

	if (err)
		return err;
	slab = mmap(NULL, ARENA_SLAB_SIZE + ARENA_SLAB_PAD, PROT_READ | PROT_WRITE, MAP_SHARED, o->slab_fd[i], 0);
	if (slab == MAP_FAILED)
		return error_errno(errno, "cannot map a BPF map");
	o->nslabs = i + 1;
	*ret = slab;
	return NULL;
}

static void drop_slab(struct arena_source *source, u32 i, void *slab)
{
	(void)source;
	(void)i;
	munmap(slab, ARENA_SLAB_SIZE + ARENA_SLAB_PAD);
}

struct arena_source *object_slabs(struct object *o)
{
	return &o->slabs;
}

struct sample *object_skeleton(const struct object *o)
{
	return o->skel;
}

int object_ncpus(const struct object *o)
{
	return o->ncpus;
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

/* Each change of a map of maps waits for all programs that run, some milliseconds: one change for all new slabs, and
 * those to come. */
static struct error *publish_slabs(struct object *o)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	int outer = bpf_map__fd(o->skel->maps.slabs);
	u32 n, keys[ARENA_SLABS_MAX];

	if (o->nslabs <= o->npublished)
		return NULL;
	while (o->nmade < o->nslabs + SPARE_SLABS && o->nmade < ARENA_SLABS_MAX) {
		struct error *err = make_map(o);

		if (err)
			return err;
	}
	n = o->nmade - o->npublished;
	for (u32 i = 0; i < n; i++)
		keys[i] = o->npublished + i;
	if (bpf_map_update_batch(outer, keys, &o->slab_fd[o->npublished], &n, &options))
		for (u32 i = o->npublished; i < o->nmade; i++)
			if (bpf_map_update_elem(outer, &i, &o->slab_fd[i], BPF_ANY))
				return error_errno(errno, "cannot hand a table to BPF");
	o->npublished = o->nmade;
	return NULL;
}

struct error *object_set_process(struct object *o, pid_t tgid, const struct process_entry *entry, bool is_new)
{
	struct error *err = publish_slabs(o);
	u32 key = (u32)tgid;

	if (err)
		return err;
	if (bpf_map_update_elem(bpf_map__fd(o->skel->maps.processes), &key, entry, is_new ? BPF_ANY : BPF_EXIST) == 0) {
		o->outside_ns += is_new ? cpu_of_process(tgid) : 0;
		return NULL;
	}
	if (!is_new && errno == ENOENT)
		return NULL;
	return error_errno(errno, "cannot tell BPF of process %d (%u targets at most)", tgid,
	        bpf_map__max_entries(o->skel->maps.processes));
}

void object_forget_process(struct object *o, pid_t tgid)
{
	u32 key = (u32)tgid;

	if (!bpf_map_delete_elem(bpf_map__fd(o->skel->maps.processes), &key))
		o->outside_ns -= cpu_of_process(tgid);
}

u32 object_new_instance(struct object *o)
{
	return __sync_add_and_fetch(&o->skel->bss->last_instance, 1);
}

const void *object_of_event(const struct object *o)
{
	return o->of_event;
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

static u64 living_cpu_ns(const void *key, const void *value)
{
	(void)value;
	return cpu_of_process((pid_t) * (const u32 *)key);
}

/* Nobody can ask the kernel for it once the process was waited for, a while before on_free() counts it. */
static u64 ending_cpu_ns(const void *key, const void *value)
{
	const struct process_ending *ending = value;
	u64 now = cpu_of_process((pid_t)ending->tgid);

	(void)key;
	return now > ending->cpu_ns ? now : ending->cpu_ns;
}

/* The sum over a hash map's entries, each looked at once. */
static u64 sum_cpu_ns(const struct bpf_map *map, u64 (*cpu_ns)(const void *key, const void *value))
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	size_t key = bpf_map__key_size(map), value = bpf_map__value_size(map);
	cleanup(free) char *keys = calloc(CPU_BATCH, key);
	cleanup(free) char *values = calloc(CPU_BATCH, value);
	int code = keys && values ? 0 : -ENOMEM;
	void *from = NULL;
	u32 n, position;
	u64 sum = 0;

	while (!code) {
		n = CPU_BATCH;
		code = bpf_map_lookup_batch(bpf_map__fd(map), from, &position, keys, values, &n, &options);
		if (code && code != -ENOENT) /* ENOENT: these are the last */
			break;
		for (u32 i = 0; i < n; i++)
			sum += cpu_ns(keys + i * key, values + i * value);
		from = &position;
	}
	return sum;
}

u64 object_cpu_ns(const struct object *o)
{
	u64 ended = o->skel->bss->ended_ns; /* first, so that nothing is counted twice */

	if (o->everyone)
		return cpu_of_machine() - cpu_of_process(getpid());
	return ended + sum_cpu_ns(o->skel->maps.endings, ending_cpu_ns) +
	       sum_cpu_ns(o->skel->maps.processes, living_cpu_ns) - o->outside_ns;
}

void object_halve(struct object *o)
{
	o->skel->data->weight *= 2;
}

void object_eager(struct object *o, bool eager)
{
	o->skel->bss->eager = eager;
}

u32 object_counts_capacity(const struct object *o)
{
	return COUNTS_CAPACITY;
}

/*
 * After this no program still uses what it saw before: replacing an entry of a map of maps waits for all that run
 * (maybe_wait_bpf_programs() in kernel/bpf/syscall.c).
 */
static void wait_for_programs(struct object *o)
{
	u32 first = 0;

	if (o->nslabs)
		bpf_map_update_elem(bpf_map__fd(o->skel->maps.slabs), &first, &o->slab_fd[0], BPF_ANY);
}

u32 object_epoch(const struct object *o)
{
	return o->skel->bss->counts_in_use;
}

u32 object_flip(struct object *o)
{
	u32 epoch = o->skel->bss->counts_in_use;

	o->skel->bss->counts_in_use = !epoch;
	wait_for_programs(o);
	return epoch;
}

struct error *object_drain(struct object *o, u32 epoch,
        void (*add)(void *ctx, u32 epoch, u64 hash, const struct stack_count *count), void *ctx)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	u32 n, position;
	int fd = bpf_map__fd(epoch ? o->skel->maps.counts_b : o->skel->maps.counts_a), code = 0;
	static struct stack_count values[COUNTS_CAPACITY];
	static u64 keys[COUNTS_CAPACITY];
	void *from = NULL;

	while (!code) {
		n = COUNTS_CAPACITY;
		code = bpf_map_lookup_and_delete_batch(fd, from, &position, keys, values, &n, &options);
		if (code && errno != ENOENT)
			return error_errno(errno, "cannot read the counts");
		for (u32 i = 0; i < n; i++)
			add(ctx, epoch, keys[i], &values[i]);
		from = &position;
	}
	return NULL;
}

struct error *object_stats(struct object *o, struct probe_stats *ret)
{
	struct probe_stats *each = calloc(o->ncpus, sizeof(*each));
	u32 zero = 0;

	if (!each)
		return &error_no_memory;
	if (bpf_map_lookup_elem(bpf_map__fd(o->skel->maps.stats), &zero, each)) {
		free(each);
		return error_errno(errno, "cannot read the counters");
	}
	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < o->ncpus; i++) {
		const u64 *from = (const u64 *)&each[i];

		if (each[i].first_ns && (!ret->first_ns || each[i].first_ns < ret->first_ns))
			ret->first_ns = each[i].first_ns;
		for (size_t k = 0; k < sizeof(*ret) / sizeof(u64); k++)
			if (k != offsetof(struct probe_stats, first_ns) / sizeof(u64))
				((u64 *)ret)[k] += from[k];
	}
	free(each);
	return NULL;
}

static u64 run_time(int program)
{
	struct bpf_prog_info info = {0};
	u32 size = sizeof(info);

	return program < 0 || bpf_obj_get_info_by_fd(program, &info, &size) ? 0 : info.run_time_ns;
}

u64 object_run_time(const struct object *o, u64 *others)
{
	struct bpf_program *p;
	u64 sum = 0;

	*others = 0;
	bpf_object__for_each_program(p, o->skel->obj) * (is_of_event(o, p) ? &sum : others) +=
	        run_time(bpf_program__fd(p));
	return sum;
}

/* What the kernel accounts for a map, as /proc tells it. */
static u64 memlock(int fd)
{
	cleanup(fclose) FILE *file = NULL;
	char text[128];
	u64 bytes = 0;

	snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", fd);
	file = fopen(text, "re");
	while (file && fgets(text, sizeof(text), file))
		if (sscanf(text, "memlock: %lu", &bytes) == 1)
			break;
	return bytes;
}

u64 object_map_bytes(const struct object *o)
{
	u64 sum = 0;
	struct bpf_map *map;

	bpf_object__for_each_map(map, o->skel->obj) sum += memlock(bpf_map__fd(map));
	for (u32 i = 0; i < o->nmade; i++)
		sum += memlock(o->slab_fd[i]);
	return sum;
}
