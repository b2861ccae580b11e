/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The programs of java-alloc, part of sample.bpf.c: they share its walk. How it samples: alloc.h.
 */
#ifndef YRT_ALLOC_BPF_H
#define YRT_ALLOC_BPF_H

#define ALLOC_OUTSIDE_SITE    1 /* of runtime_alloc.h */
#define ALLOC_COLLECTION_SITE 2
#define WINDOW_NS             10000000ULL /* a burst is what comes within */
#define LN2_Q16               45426       /* ln 2 */

u64 alloc_interval = 0; /* mean distance between samples in bytes; 0: take none */
u32 alloc_open = 1;     /* 0: sites are being placed or taken away */
u32 alloc_duty = ALLOC_ALWAYS;
u32 watching = 1;      /* 0: no debug registers; a refill's stack stands for all of its buffer */
u32 window_most = 100; /* samples of a window */
u32 window_taken = 0;
u64 window_start = 0;
u64 last_alloc_id = 0;
u64 survey_interval = 0; /* mean bytes between buffers that are looked into; 0: none */
u32 survey_chosen = 0;   /* how many are in `buffers` */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ALLOC_PROBES_MAX);
	__type(key, u32);
	__type(value, struct alloc_probe);
} alloc_probes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32); /* tid */
	__type(value, struct alloc_watch);
} watches SEC(".maps");

struct { /* those that are to be looked into once their thread gives them up */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32); /* tid */
	__type(value, struct alloc_buffer);
} buffers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_stats);
} alloc_counters SEC(".maps");

struct { /* bytes handed out, since samples are taken, as if sites were always placed; by struct alloc_handed */
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct alloc_handed);
	__type(value, u64);
} handed_out SEC(".maps");

struct { /* struct alloc_record: to alloc_classes.h */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16384);
} alloc_ring SEC(".maps");

struct { /* to the watchpoint thread of each CPU */
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} watchpoint_threads SEC(".maps");

/*
 * A distance with exponential distribution: -ln(U) times the mean. The logarithm to base 2 comes bit by bit from
 * squaring, with 32 bits of U and 20 behind the point.
 */
WALK_GLOBAL u64 draw_distance(u64 mean)
{
	u64 y = bpf_get_prandom_u32() | 1, log = 0;

	for (u32 step = 16; step; step >>= 1)
		if (!(y >> (32 - step))) {
			y <<= step;
			log += (u64)step << 20;
		}
	for (u32 bit = 1u << 19; bit; bit >>= 1) {
		y = y * y >> 32;
		if (!(y >> 31)) {
			y <<= 1;
			log |= bit;
		}
	}
	return ((mean >> 8) * log >> 12) * LN2_Q16 >> 16;
}

/* A register of the program that was interrupted, by its place in pt_regs. */
static inline u64 saved_register(struct task_struct *task, u16 offset)
{
	u64 value = 0;

	if (offset < sizeof(struct pt_regs___kernel))
		bpf_probe_read_kernel(&value, sizeof(value), (void *)bpf_task_pt_regs(task) + offset);
	return value;
}

static inline u64 user_word(u64 addr)
{
	u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)addr);
	return value;
}

/* A burst must not hold up the target. */
static inline bool within_window(struct alloc_stats *st)
{
	u64 now = bpf_ktime_get_ns();

	if (now - window_start > WINDOW_NS) {
		window_start = now;
		window_taken = 0;
	}
	if (__sync_fetch_and_add(&window_taken, 1) < window_most)
		return true;
	st->skipped++;
	return false;
}

static inline struct alloc_stats *alloc_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&alloc_counters, &zero);
}

/* A sample of the current task begins: a slot whose alloc knows who and when; NULL: counted as lost. */
static __attribute__((noinline)) struct slot *begin_sample(
        struct task_struct *task, const struct process_entry *process, u32 tgid, u32 *number)
{
	struct probe_stats *st = my_stats();
	struct slot *slot = st ? event_begin(st, process->instance, tgid, 1, number) : NULL;

	if (!slot)
		return NULL;
	slot->head.begin_ns = bpf_ktime_get_ns(); /* alloc_budget.h wants to know each */
	slot->alloc = (struct alloc_record){.tgid = tgid,
	        .instance = process->instance,
	        .tid = slot->head.tid,
	        .switches = (u32)BPF_CORE_READ(task, nvcsw),
	        .id = __sync_fetch_and_add(&last_alloc_id, 1) + 1};
	return slot;
}

static inline int send_sample(struct slot *slot, struct probe_stats *st, bool wake)
{
	struct stack_head *head = &slot->head;

	st->frames += slot->walk.nframes;
	count_stop(st, head->stop, 1);
	if (bpf_ringbuf_output(
	            &alloc_ring, &slot->alloc, sizeof(slot->alloc), wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		return LOST_RING;
	return send_stack(&slot->walk, head) ? -1 : LOST_RING;
}

/* Walks the stack of what slot->alloc describes, and sends both. */
static __attribute__((always_inline)) inline void end_sample(
        struct task_struct *task, struct slot *slot, struct process_entry *process, bool wake)
{
	struct probe_stats *st = my_stats();

	if (!st) {
		slot->busy = 0;
		return;
	}
	event_user(slot, NULL, task, process, false);
	slot->head.hash = slot->alloc.id; /* the stack is counted by what its record says */
	slot->head.weight = 1;
	event_end(slot, st, send_sample(slot, st, wake));
}

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

	watch.interval = alloc_interval;
	watch.duty = alloc_duty;
	watch.addr = addr & ~7ULL;
	if (!alloc_interval || watch.addr >= end)
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
 * Are a site's values as they must be? Its object is the first of the buffer that the thread has, or in none; if it was
 * found by the looks of its code, it may be anything else.
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
	if (probe->kind == ALLOC_OUTSIDE_SITE)
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
	u64 more = (bytes << 16) / (alloc_duty | 1), *sum = bpf_map_lookup_elem(&handed_out, &key);

	if (!alloc_interval)
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
	if (!watching || !buffer.start || !alloc_interval)
		return 0;
	watch.start = buffer.start;
	return watch_at(ctx, &watch, probe, buffer.start + distance, buffer.end);
}

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
	        &alloc_ring, &record, sizeof(record), probe->prompt ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* The thread has given up a buffer that was chosen. What the collector has not touched since is as it was. */
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

/* Only a buffer itself shows what lies in it, so some are looked into, each byte with the same chance. */
static __attribute__((noinline)) int take_survey(const struct alloc_probe *probe)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct alloc_buffer now = {.interval = survey_interval, .duty = alloc_duty};
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

/* The bytes that a site's object is sampled by. */
static __attribute__((noinline)) u64 bytes_at(const struct alloc_probe *probe)
{
	u64 size = saved_register(bpf_get_current_task_btf(), probe->size);
	struct buffer buffer;

	if (watching || probe->kind == ALLOC_OUTSIDE_SITE)
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
	a->interval = alloc_interval;
	a->duty = alloc_duty;
	a->how = ALLOC_BY_SLOW;
	a->addr = saved_register(task, probe->object);
	if (probe->kind == ALLOC_OUTSIDE_SITE)
		return 0;
	a->how = ALLOC_BY_REFILL;
	new_buffer(probe, &buffer);
	a->addr = a->start = buffer.start;
	return 0;
}

/*
 * What was sampled until now is to be read before objects move: by the watchpoint thread of this CPU, which runs before
 * the thread that collects goes on.
 */
static __attribute__((noinline)) int tell_collection(void *ctx, u32 tgid)
{
	struct watch_request request = {};

	if (!alloc_interval || !bpf_map_lookup_elem(&processes, &tgid))
		return 0;
	return bpf_perf_event_output(ctx, &watchpoint_threads, BPF_F_CURRENT_CPU, &request, sizeof(request));
}

/* A site: a thread has a new buffer, an object was made outside of all, or a collection begins. */
WALKING("uprobe", on_alloc)
int on_alloc_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number = (u32)bpf_get_attach_cookie(ctx), tgid;
	struct alloc_probe *probe = bpf_map_lookup_elem(&alloc_probes, &number);
	u64 distance, bytes;
	struct process_entry *process;
	struct alloc_stats *st;
	struct slot *slot;
	bool hit;

	if (!probe)
		return 0;
	if (probe->kind == ALLOC_COLLECTION_SITE) {
		tell_collection(ctx, tgid_of(task));
		return 0; /* always: the kernel acts on the return value of a multi link (Linux 6.12) */
	}
	if (!alloc_open)
		return 0;
	distance = draw_distance(alloc_interval);
	bytes = bytes_at(probe);
	st = alloc_stats();
	if (!st)
		return 0;
	if (probe->checked && !makes_sense(probe)) {
		st->strange++;
		return 0;
	}
	hit = alloc_interval && distance < bytes;
	if (probe->kind != ALLOC_OUTSIDE_SITE)
		watch_buffer(ctx, probe, number, hit ? bytes + draw_distance(alloc_interval) : distance);
	if (probe->kind != ALLOC_OUTSIDE_SITE && survey_interval)
		take_survey(probe);
	if (probe->kind == ALLOC_OUTSIDE_SITE) {
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

/* The thread wrote where it was watched: is that an allocation of the buffer it still has? Then top has passed the
 * address. */
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
 * A write that is no allocation: the watchpoint thread is to switch the watchpoint off. It stays set after its hit
 * until it is moved: most are not written again, and switching off costs more.
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
	struct alloc_probe *probe = watch ? bpf_map_lookup_elem(&alloc_probes, &watch->probe) : NULL;
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
	watch_at(ctx, watch, probe, watch->addr + 8 + draw_distance(alloc_interval),
	        user_word(watch->thread + probe->end));
	return 0;
}

#endif
