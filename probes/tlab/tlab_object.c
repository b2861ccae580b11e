/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"

#define RING_BYTES (256u << 10)

void tlab_object_prepare(struct object *o)
{
	object_want(o, "on_tlab");
	object_want(o, "on_watch");
	uprobe_prepare(object_skeleton(o)->progs.on_tlab);
	uprobe_prepare(object_skeleton(o)->progs.on_tlab_walk);
	bpf_map__set_max_entries(object_skeleton(o)->maps.tlab_ring, RING_BYTES);
}

struct ring_buffer *tlab_object_ring(struct object *o, int (*record)(void *ctx, void *data, size_t size), void *ctx)
{
	return ring_buffer__new(bpf_map__fd(object_skeleton(o)->maps.tlab_ring), record, ctx, NULL);
}

int tlab_object_watch_program(const struct object *o)
{
	return bpf_program__fd(object_skeleton(o)->progs.on_watch);
}

int tlab_object_watchpoint_threads_fd(const struct object *o)
{
	return bpf_map__fd(object_skeleton(o)->maps.watchpoint_threads);
}

const struct bpf_program *tlab_object_site_program(const struct object *o)
{
	return object_skeleton(o)->progs.on_tlab;
}

struct error *tlab_object_set_probe(struct object *o, u32 number, const struct alloc_probe *probe)
{
	if (bpf_map_update_elem(bpf_map__fd(object_skeleton(o)->maps.tlab_probes), &number, probe, BPF_ANY) == 0)
		return NULL;
	return error_errno(errno, "cannot register an allocation site with BPF (%u at most)", ALLOC_PROBES_MAX);
}

void tlab_object_set_watch(struct object *o, u32 key, const struct alloc_watch *watch)
{
	bpf_map_update_elem(bpf_map__fd(object_skeleton(o)->maps.watches), &key, watch, BPF_EXIST);
}

bool tlab_object_watch(const struct object *o, u32 key, struct alloc_watch *ret)
{
	return bpf_map_lookup_elem(bpf_map__fd(object_skeleton(o)->maps.watches), &key, ret) == 0;
}

void tlab_object_set_watching(struct object *o, bool watching)
{
	object_skeleton(o)->data->watching = watching;
}

void tlab_object_set_interval(struct object *o, u64 interval, u32 burst)
{
	object_skeleton(o)->bss->tlab_interval = interval;
	object_skeleton(o)->data->window_most = burst;
}

void tlab_object_set_open(struct object *o, bool open)
{
	object_skeleton(o)->data->tlab_open = open;
}

void tlab_object_set_survey(struct object *o, u64 interval)
{
	object_skeleton(o)->bss->survey_interval = interval;
}

void tlab_object_set_duty(struct object *o, u32 duty)
{
	object_skeleton(o)->data->tlab_duty = duty;
}

double tlab_object_handed_out(struct object *o, pid_t pid, u32 size_class)
{
	struct alloc_handed key = {.tgid = (u32)pid, .size_class = size_class};
	cleanup(free) u64 *each = calloc(object_ncpus(o), sizeof(*each));
	double sum = 0;

	if (!each || bpf_map_lookup_elem(bpf_map__fd(object_skeleton(o)->maps.handed_out), &key, each))
		return 0;
	for (int i = 0; i < object_ncpus(o); i++)
		sum += (double)each[i];
	return sum;
}

struct error *tlab_object_stats(struct object *o, struct alloc_stats *ret)
{
	return object_sum(o, object_skeleton(o)->maps.tlab_counters, (u64 *)ret, sizeof(*ret));
}
