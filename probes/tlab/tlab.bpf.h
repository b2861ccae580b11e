/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The programs of java-alloc, part of sample.bpf.c: they share its walk. How it samples: tlab.h.
 */
#ifndef YRT_TLAB_BPF_H
#define YRT_TLAB_BPF_H

#include "tlab_sample.bpf.h"
#include "tlab_survey.bpf.h"

#define TLAB_OUTSIDE_SITE    1 /* of runtime_alloc.h */
#define TLAB_COLLECTION_SITE 2

/* Asks the watchpoint thread of this CPU for a watchpoint on the current thread. */
static __attribute__((noinline)) int ask_watch(
        void *ctx, const struct alloc_watch *watch, const struct alloc_probe *probe, u64 end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct watch_request request = {.watch = *watch,
	        .end = end,
	        .key = (u32)bpf_get_current_pid_tgid(),
	        .tgid = tgid_of(task),
	        .tid = pid_of(task, BPF_CORE_READ(task, pid))};

	if (user_word(watch->thread + probe->start) == watch->start) {
		request.top_at = watch->thread + probe->top;
		request.start_at = watch->thread + probe->start;
	}
	return bpf_perf_event_output(ctx, &watchpoint_threads, BPF_F_CURRENT_CPU, &request, sizeof(request));
}

/* The next address to be watched for, if it is still in the buffer; else stops watching. */
static __attribute__((noinline)) int watch_at(
        void *ctx, const struct alloc_watch *last, const struct alloc_probe *probe, u64 addr, u64 end)
{
	u32 key = (u32)bpf_get_current_pid_tgid();
	struct alloc_watch watch = *last;

	watch.interval = tlab_interval;
	watch.duty = tlab_duty;
	watch.addr = addr & ~7ULL;
	if (!tlab_interval || watch.addr >= end)
		watch.addr = 0;
	if (!watch.addr && !last->addr)
		return 0;
	bpf_map_update_elem(&watches, &key, &watch, BPF_ANY);
	return watch.addr ? ask_watch(ctx, &watch, probe, end) : 0; /* one that was hit is off */
}

struct buffer {
	u64 start, end;
};

/* The buffer that a refill has made. */
static __attribute__((noinline)) int new_buffer(const struct alloc_probe *probe, struct buffer *ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 thread = saved_register(task, probe->thread);

	if (probe->early) {
		ret->start = saved_register(task, probe->object);
		ret->end = ret->start + saved_register(task, probe->buffer_size);
	} else {
		ret->start = user_word(thread + probe->start);
		ret->end = user_word(thread + probe->end);
	}
	return 0;
}

/*
 * Are a site's values consistent? Its object must be the first of the thread's buffer, or in none. A site that was
 * found by the look of its code may be anything else.
 */
static __attribute__((noinline)) int makes_sense(const struct alloc_probe *probe)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 thread = saved_register(task, probe->thread), object = saved_register(task, probe->object);
	u64 size = saved_register(task, probe->size), room = saved_register(task, probe->buffer_size);
	u64 start, top, end;

	if (!object || !size || (object | size | thread) & 7 || !saved_register(task, probe->klass))
		return false;
	start = user_word(thread + probe->start);
	top = user_word(thread + probe->top);
	end = user_word(thread + probe->end);
	if (probe->kind == TLAB_OUTSIDE_SITE)
		return start <= top && top <= end && !(object >= start && object < end);
	return start == object && top == object + size && top <= end && end <= object + room && !(room & 7);
}

/* alloc_size_class() of runtime_alloc.h */
WALK_GLOBAL u32 size_class(u64 size)
{
	u32 log2 = 0;

	for (u32 step = 32; step; step >>= 1)
		if (size >> (log2 + step))
			log2 += step;
	return log2 < 2 ? (u32)size : log2 * 4 + (size >> (log2 - 2) & 3);
}

static __attribute__((noinline)) int count_handed(u64 bytes, u32 class)
{
	struct alloc_handed key = {.tgid = tgid_of(bpf_get_current_task_btf()), .size_class = class};
	u64 more = (bytes << 16) / (tlab_duty | 1), *sum = bpf_map_lookup_elem(&handed_out, &key);

	if (!tlab_interval)
		return 0;
	if (sum)
		*sum += more;
	else
		bpf_map_update_elem(&handed_out, &key, &more, BPF_NOEXIST);
	return 0;
}

/* A thread has a new buffer: the next sample is so far from its start. */
static __attribute__((noinline)) int watch_buffer(void *ctx, const struct alloc_probe *probe, u32 number, u64 distance)
{
	struct alloc_watch watch = {
	        .probe = number, .thread = saved_register(bpf_get_current_task_btf(), probe->thread)};
	struct alloc_stats *st = alloc_stats();
	struct buffer buffer;

	new_buffer(probe, &buffer);
	if (st) {
		st->refills++;
		st->bytes += buffer.end - buffer.start;
	}
	count_handed(buffer.end - buffer.start, ALLOC_BUFFERS);
	if (!watching || !buffer.start || !tlab_interval)
		return 0;
	watch.start = buffer.start;
	return watch_at(ctx, &watch, probe, buffer.start + distance, buffer.end);
}

/* The bytes that a site's object is sampled by. */
static __attribute__((noinline)) u64 bytes_at(const struct alloc_probe *probe)
{
	u64 size = saved_register(bpf_get_current_task_btf(), probe->size);
	struct buffer buffer;

	if (watching || probe->kind == TLAB_OUTSIDE_SITE)
		return size;
	new_buffer(probe, &buffer);
	return buffer.end - buffer.start;
}

/* What a site reports about its object. */
static __attribute__((noinline)) int note_site(const struct alloc_probe *probe, struct alloc_record *a)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct buffer buffer;

	a->thread = saved_register(task, probe->thread);
	a->klass = saved_register(task, probe->klass);
	a->size = saved_register(task, probe->size);
	a->stands = bytes_at(probe);
	a->interval = tlab_interval;
	a->duty = tlab_duty;
	a->how = ALLOC_BY_SLOW;
	a->addr = saved_register(task, probe->object);
	if (probe->kind == TLAB_OUTSIDE_SITE)
		return 0;
	a->how = ALLOC_BY_REFILL;
	new_buffer(probe, &buffer);
	a->addr = a->start = buffer.start;
	return 0;
}

/*
 * Earlier samples must be read before objects move: by the watchpoint thread of this CPU, which runs before the thread
 * that collects goes on.
 */
static __attribute__((noinline)) int announce_collection(void *ctx, u32 tgid)
{
	struct watch_request request = {};

	if (!tlab_interval || !bpf_map_lookup_elem(&processes, &tgid))
		return 0;
	return bpf_perf_event_output(ctx, &watchpoint_threads, BPF_F_CURRENT_CPU, &request, sizeof(request));
}

/* A site: a thread has a new buffer, an object was made outside of all, or a collection begins. */
WALKING("uprobe", on_tlab)
int on_tlab_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number = (u32)bpf_get_attach_cookie(ctx), tgid;
	struct alloc_probe *probe = bpf_map_lookup_elem(&tlab_probes, &number);
	u64 distance, bytes;
	struct process_entry *process;
	struct alloc_stats *st;
	struct slot *slot;
	bool hit;

	if (!probe)
		return 0;
	if (probe->kind == TLAB_COLLECTION_SITE) {
		announce_collection(ctx, tgid_of(task));
		return 0; /* always: the kernel acts on the return value of a multi link (Linux 6.12) */
	}
	if (!tlab_open)
		return 0;
	distance = draw_distance(tlab_interval);
	bytes = bytes_at(probe);
	st = alloc_stats();
	if (!st)
		return 0;
	if (probe->checked && !makes_sense(probe)) {
		st->strange++;
		return 0;
	}
	hit = tlab_interval && distance < bytes;
	if (probe->kind != TLAB_OUTSIDE_SITE)
		watch_buffer(ctx, probe, number, hit ? bytes + draw_distance(tlab_interval) : distance);
	if (probe->kind != TLAB_OUTSIDE_SITE && survey_interval)
		take_survey(probe);
	if (probe->kind == TLAB_OUTSIDE_SITE) {
		st->slow++;
		st->bytes += bytes;
		count_handed(bytes, size_class(bytes));
	}
	if (!hit || !within_window(st))
		return 0;
	tgid = tgid_of(task);
	process = bpf_map_lookup_elem(&processes, &tgid);
	slot = process ? begin_sample(task, process, tgid, &number) : NULL;
	if (!slot)
		return 0;
	note_site(probe, &slot->alloc);
	end_sample(task, slot, process, probe->prompt && !slot->alloc.klass);
	return 0;
}

/*
 * The thread wrote to the watched address: is that an allocation in the buffer that it still has? Then top has passed
 * the address.
 */
static inline bool is_allocation(const struct alloc_watch *watch, const struct alloc_probe *probe, u64 *top)
{
	*top = user_word(watch->thread + probe->top);
	return watch->addr && watch->addr < *top && user_word(watch->thread + probe->start) == watch->start;
}

static inline void note_watch(
        const struct alloc_watch *watch, const struct alloc_probe *probe, u64 top, struct alloc_record *a)
{
	a->how = ALLOC_BY_WATCH;
	a->thread = watch->thread;
	a->start = watch->start;
	a->addr = watch->addr;
	a->end = top;
	a->interval = watch->interval;
	a->duty = watch->duty;
	a->gc = probe->collections ? (u32)user_word(probe->collections) + 1 : 0;
}

/*
 * A write that is no allocation: asks the watchpoint thread to switch the watchpoint off. Otherwise it stays set after
 * its hit until it is moved: most addresses are not written again, and switching off costs more.
 */
static __attribute__((noinline)) int ask_rest(void *ctx, struct alloc_watch *watch, const struct alloc_probe *probe)
{
	watch->addr = 0;
	return ask_watch(ctx, watch, probe, 0);
}

WALKING("perf_event", on_watch)
int on_watch_walk(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number = (u32)bpf_get_current_pid_tgid(), tgid = tgid_of(task);
	struct process_entry *process = bpf_map_lookup_elem(&processes, &tgid);
	struct alloc_watch *watch = bpf_map_lookup_elem(&watches, &number);
	struct alloc_probe *probe = watch ? bpf_map_lookup_elem(&tlab_probes, &watch->probe) : NULL;
	struct alloc_stats *st = alloc_stats();
	struct slot *slot = NULL;
	u64 top;

	if (!process || !st || !probe)
		return 0;
	st->traps++;
	if (watch->addr &&
	        ctx->addr != watch->addr) { /* it is being moved; "rep stosb" writes an address more than once */
		st->stale++;
		return 0;
	}
	if (!is_allocation(watch, probe, &top)) {
		st->stale++;
		ask_rest(ctx, watch, probe);
		return 0;
	}
	if (within_window(st))
		slot = begin_sample(task, process, tgid, &number);
	if (slot) {
		note_watch(watch, probe, top, &slot->alloc);
		end_sample(task, slot, process, probe->prompt);
	}
	watch_at(ctx, watch, probe, watch->addr + 8 + draw_distance(tlab_interval),
	        user_word(watch->thread + probe->end));
	return 0;
}

#endif
