/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The survey of buffers: some are read once their thread gives them up (tlab_survey.h). Part of sample.bpf.c. */
#ifndef YRT_TLAB_SURVEY_BPF_H
#define YRT_TLAB_SURVEY_BPF_H

#include "tlab_sample.bpf.h"

u64 survey_interval = 0; /* mean bytes between buffers that are looked into; 0: none */
u32 survey_chosen = 0;   /* how many are in `buffers` */

struct { /* those that are to be looked into once their thread gives them up */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32); /* tid */
	__type(value, struct alloc_buffer);
} buffers SEC(".maps");

static __attribute__((noinline)) int send_survey(const struct alloc_probe *probe, const struct alloc_buffer *buffer)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tgid = tgid_of(task);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct alloc_record record = {.how = ALLOC_BY_SURVEY,
	        .tgid = tgid,
	        .tid = pid_of(task, BPF_CORE_READ(task, pid)),
	        .thread = saved_register(task, probe->thread),
	        .start = buffer->start,
	        .end = buffer->end,
	        .stands = buffer->end - buffer->start,
	        .interval = buffer->interval,
	        .duty = buffer->duty,
	        .gc = buffer->collections};
	struct alloc_stats *st = alloc_stats();

	if (!process || !st)
		return 0;
	record.instance = process->instance;
	st->buffers++;
	return bpf_ringbuf_output(
	        &tlab_ring, &record, sizeof(record), probe->prompt ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/*
 * The thread has given up a buffer that was chosen. As long as no collection has touched it, its contents are
 * unchanged.
 */
static __attribute__((noinline)) int end_survey(const struct alloc_probe *probe, u32 collections)
{
	u32 key = (u32)bpf_get_current_pid_tgid();
	struct alloc_buffer *last = bpf_map_lookup_elem(&buffers, &key);

	if (!last)
		return 0;
	if (last->collections == collections)
		send_survey(probe, last);
	bpf_map_delete_elem(&buffers, &key);
	__sync_fetch_and_add(&survey_chosen, -1);
	return 0;
}

/* Only a buffer itself shows its contents, so some buffers are read; each byte has the same chance. */
static __attribute__((noinline)) int take_survey(const struct alloc_probe *probe)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct alloc_buffer now = {.interval = survey_interval, .duty = tlab_duty};
	u32 key = (u32)bpf_get_current_pid_tgid();

	if (!probe->collections || probe->buffer_size == ALLOC_NO_OFFSET || probe->object == ALLOC_NO_OFFSET)
		return 0;
	now.collections = (u32)user_word(probe->collections) + 1;
	if (survey_chosen)
		end_survey(probe, now.collections);
	now.start = saved_register(task, probe->object);
	now.end = now.start + saved_register(task, probe->buffer_size);
	if (draw_distance(now.interval) >= now.end - now.start)
		return 0;
	__sync_fetch_and_add(&survey_chosen, 1);
	return bpf_map_update_elem(&buffers, &key, &now, BPF_ANY);
}
#endif
