/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes of the BPF object counted: stacks by epoch, losses, memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "object_internal.h"
#include "unwind/cleanup.h"

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

	if (o->slabs.npublished)
		bpf_map_update_elem(o->slabs.outer, &first, &o->slabs.fd[0], BPF_ANY);
}

u32 object_epoch(const struct object *o)
{
	return o->skel->bss->counts_in_use & 1;
}

u32 object_flip(struct object *o)
{
	u32 epoch = object_epoch(o);

	o->skel->bss->counts_in_use++;
	wait_for_programs(o);
	return epoch;
}

struct error *object_drain(struct object *o, u32 epoch,
        void (*add)(void *ctx, u32 epoch, u64 hash, const struct stack_count *count), void *ctx)
{
	size_t size = COUNTS_PLACES * sizeof(struct stack_count); /* whole pages */
	/* It is mapped for a moment: its pages count as memory of this process. */
	struct stack_count *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
	        bpf_map__fd(o->skel->maps.counts), (off_t)((epoch & 1) * size));

	if (all == MAP_FAILED)
		return error_errno(errno, "cannot read the counts");
	for (u32 i = 0; i < COUNTS_PLACES; i++) {
		if (!all[i].hash)
			continue;
		add(ctx, epoch, all[i].hash, &all[i]);
		all[i] = (struct stack_count){0};
	}
	munmap(all, size);
	return NULL;
}

struct probe_stats *object_cpu_stats(const struct object *o)
{
	struct probe_stats *each = calloc(o->ncpus, sizeof(*each));
	u32 zero = 0;

	if (each && bpf_map_lookup_elem(bpf_map__fd(o->skel->maps.stats), &zero, each))
		free(TAKE(each));
	return each;
}

struct error *object_stats(struct object *o, struct probe_stats *ret)
{
	struct probe_stats *each = object_cpu_stats(o);

	if (!each)
		return error_errno(errno, "cannot read the counters");
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
	if (o->stats_fd < 0) /* somebody else may have the kernel measure for a while */
		return 0;
	bpf_object__for_each_program(p, o->skel->obj) * (object_is_of_event(o, p) ? &sum : others) +=
	        run_time(bpf_program__fd(p));
	return sum;
}

/* What the kernel accounts for a map, as /proc shows it. */
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
	for (u32 i = 0; i < o->slabs.nmade; i++)
		sum += memlock(o->slabs.fd[i]);
	return sum;
}
