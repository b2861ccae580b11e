/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <types.h>

#include "collect_internal.h"
#include "deferred.h"
#include "error.h"
#include "expand.h"
#include "frame_code.h"
#include "now.h"
#include "shared/record.h"

/*
 * Stacks with a function that was gone when it should have been named. A stack is sent only once, however often it is
 * counted. But a program that makes the same function again and again (a template that is compiled for each request)
 * often puts the next one at the same place. So such a stack is named again later, until all its functions are found.
 */

struct gone;

/* Names a stack. *over: all of it is there, or nothing more will come. */
typedef struct error *gone_name(
        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, bool *over);

#define STACKS_MAX 512
#define RETRIES    32 /* at once */
#define REST       9  /* times as long as that took */
#define WAIT_SHARE 8  /* of the time since a stack came, until it is tried again */

struct stack {
	struct stack_record *record; /* with its frames; NULL: this place is free */
	struct frame *frames;
	u32 n;
	u64 since_ns, due_ns;
};

struct gone {
	struct stack stack[STACKS_MAX];
	u32 next_kept, next_tried;
	u64 due_ns;
};

static struct gone *gone_create(void)
{
	return calloc(1, sizeof(struct gone));
}

static void drop(struct stack *s)
{
	free(s->record);
	free(s->frames);
	*s = (struct stack){0};
}

static void gone_destroy(struct gone *g)
{
	for (u32 i = 0; g && i < STACKS_MAX; i++)
		drop(&g->stack[i]);
	free(g);
}

/* Keeps a copy; where there is no room, in place of the oldest. */
static struct error *gone_keep(struct gone *g, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct stack *s = &g->stack[g->next_kept++ % STACKS_MAX];

	drop(s);
	s->record = malloc(offsetof(struct stack_record, frame));
	s->frames = calloc(n, sizeof(*s->frames));
	if (!s->record || !s->frames) {
		drop(s);
		return &error_no_memory;
	}
	memcpy(s->record, record, offsetof(struct stack_record, frame));
	memcpy(s->frames, frames, n * sizeof(*frames));
	s->n = n;
	s->since_ns = now_ns();
	return NULL;
}

/*
 * Names some of them again, and forgets those that are over. Most are never found: the code of modules that a program
 * imports once. So each is tried less and less often, and at most a tenth of the time goes into this.
 */
static struct error *gone_retry(struct gone *g, gone_name *name, void *ctx)
{
	u64 begin_ns = now_ns();
	struct error *err = NULL;
	u32 tried = 0;

	for (u32 i = begin_ns < g->due_ns ? STACKS_MAX : 0; !err && i < STACKS_MAX && tried < RETRIES; i++) {
		struct stack *s = &g->stack[g->next_tried++ % STACKS_MAX];
		bool over = false;

		if (!s->record || s->due_ns > begin_ns)
			continue;
		tried++;
		s->due_ns = begin_ns + (begin_ns - s->since_ns) / WAIT_SHARE;
		err = name(ctx, s->record, s->frames, s->n, &over);
		if (over)
			drop(s);
	}
	if (tried)
		g->due_ns = now_ns() + REST * (now_ns() - begin_ns);
	return err;
}

/* Forgets those of an epoch: BPF sends them anew. */
static void gone_forget(struct gone *g, u32 epoch)
{
	for (u32 i = 0; i < STACKS_MAX; i++)
		if (g->stack[i].record && (g->stack[i].record->epoch & 1) == (epoch & 1))
			drop(&g->stack[i]);
}

static struct error *add_deferred(
        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, u32 was);

static struct process *find_process(void *ctx, u32 number)
{
	struct collector *c = ctx;

	return c->find(c->ctx, number);
}

static bool are_ready(void *ctx, const struct frame *frames, u32 n)
{
	return names_ready(((struct collector *)ctx)->names, frames, n);
}

struct error *collector_create(const struct modules *modules, const struct collect_options *options,
        struct process *(*find)(void *ctx, u32 number), void *ctx, struct collector **ret)
{
	struct collector *c = calloc(1, sizeof(*c));
	struct deferred_sink deferred = {.find = find_process, .stack = add_deferred, .ready = are_ready, .ctx = c};
	struct error *err;

	if (!c)
		return &error_no_memory;
	c->options = *options;
	c->find = c->options.names.find = find;
	c->ctx = c->options.names.find_ctx = ctx;
	c->expanded = malloc(EXPANDED_MAX * sizeof(*c->expanded));
	c->deferred = deferred_create(&deferred);
	c->gone = gone_create();
	err = c->expanded && c->deferred && c->gone ? pattern_compile(options->include, &c->include) : &error_no_memory;
	if (!err)
		err = pattern_compile(options->exclude, &c->exclude);
	if (!err)
		err = profile_create(&c->profile);
	if (!err)
		err = names_create(c->profile, modules, &c->options.names, &c->names);
	if (err) {
		collector_destroy(c);
		return err;
	}
	*ret = c;
	return NULL;
}

void collector_destroy(struct collector *c)
{
	if (!c)
		return;
	pattern_free(&c->include);
	pattern_free(&c->exclude);
	for (u32 i = 0; i < PARTIALS; i++)
		free(c->partial[i].frames);
	free(c->expanded);
	deferred_destroy(c->deferred);
	gone_destroy(c->gone);
	wakers_free(&c->wakers);
	timeline_free(&c->timeline);
	names_destroy(c->names);
	proofs_free(&c->proofs);
	profile_destroy(c->profile);
	table_free(&c->held);
	table_free(&c->late);
	table_free(&c->repaired);
	table_free(&c->nodes[0]);
	table_free(&c->nodes[1]);
	table_free(&c->processes);
	table_free(&c->containers);
	table_free(&c->threads);
	free(c);
}

static void count_frames(struct collector *c, u64 packed, u64 count)
{
	c->stats.counted += count;
	c->stats.frames += count * (packed >> 32 & PACKED_FRAMES);
	c->stats.guessed += count * (packed >> 47 & 1);
	c->stats.unresolved += count * (packed >> 48 & PACKED_UNRESOLVED);
	c->stats.below_approx += count * (packed >> 62 & 1);
	c->stats.approx += count * (packed >> 63);
}

struct error *collector_place(struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n,
        const struct frame *inside, u32 *ret)
{
	u64 packed = 0;
	struct error *err = collect_place(c, record, frames, n, inside, &packed);

	c->stats.stacks++;
	*ret = (u32)packed;
	if (err)
		return err;
	if (*ret == COLLECTOR_FILTERED)
		c->stats.filtered++;
	else
		count_frames(c, packed, 1);
	return NULL;
}

struct error *collector_place_task(struct collector *c, const struct stack_record *record, const char *name, u32 number,
        const struct frame *frames, u32 n, u32 *ret)
{
	struct error *err;

	c->task = name;
	c->task_number = number;
	err = collector_place(c, record, frames, n, NULL, ret);
	c->task = NULL;
	return err;
}

static bool holds_lock(const struct frame *frames, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (frame_kind(&frames[i]) == FRAME_NATIVE && frame_flags(&frames[i]) & FRAME_LOCK)
			return true;
	return false;
}

static bool is_wanted(const struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n)
{
	return collect_wants_thread(&c->options, record->tid) && (!c->options.lock_only || holds_lock(frames, n));
}

static bool has_queued(const struct collector *c, const struct frame *frames, u32 n)
{
	return c->options.queued && n && frame_kind(&frames[0]) == FRAME_REASON &&
	       c->options.names.reason_kind((u32)frames[0].detail) == KIND_WAITING;
}

/* Where the time on the run queue belongs that follows a wait with this stack. */
static struct error *place_queued(
        struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n, u64 *packed)
{
	u64 gone = c->stats.gone;
	struct error *err;

	c->queued = true;
	err = collect_place(c, record, frames, n, NULL, packed);
	c->queued = false;
	c->stats.gone = gone;
	return err;
}

/* Where a whole stack belongs from now on. */
static struct error *place(
        struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n, u64 *packed)
{
	bool wanted = is_wanted(c, record, frames, n);
	u64 queued = pack(NODE_FILTERED, 0, 0, 0, 0);
	struct error *err = NULL;

	*packed = queued;
	if (wanted)
		err = collect_place(c, record, frames, n, NULL, packed);
	if (!err)
		err = table_put(&c->nodes[record->epoch & 1], record->hash, *packed);
	if (err || !has_queued(c, frames, n))
		return err;
	if (wanted)
		err = place_queued(c, record, frames, n, &queued);
	return err ? err : table_put(&c->nodes[record->epoch & 1], stack_queued(record->hash), queued);
}

/* Frames outside of all files may get rows of their own. */
static void report_made_code(struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct process *p = NULL;

	for (u32 i = 0; i < n; i++) {
		const struct frame *f = &frames[i];

		if (frame_kind(f) != FRAME_NATIVE || frame_runtime(f) != RUNTIME_NATIVE || f->detail)
			continue;
		p = p ? p : c->find(c->ctx, record->instance);
		if (p)
			regions_saw(p, frame_code(f));
	}
}

static struct error *add_stack(
        struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n)
{
	u64 packed = 0, gone = c->stats.gone;
	bool held;
	struct error *err = deferred_hold(c->deferred, record, frames, n, &held);

	if (err || held)
		return err;
	report_made_code(c, record, frames, n);
	err = c->options.seen ? c->options.seen(c->options.stack_ctx, record, frames, n) : NULL;
	if (err)
		return err;
	if (record->role == STACK_OF_WAKER)
		return wakers_keep(&c->wakers, record, frames, n);
	if (c->options.stack)
		return c->options.stack(c->options.stack_ctx, record, frames, n);
	c->stats.stacks++;
	err = place(c, record, frames, n, &packed);
	if (!err && c->stats.gone != gone)
		err = gone_keep(c->gone, record, frames, n);
	if (!err && record->weight)
		collector_count(c, record->epoch, record->hash, record->weight, record->more);
	return err;
}

/* What is counted of this stack, from its first sample on, goes where it is now: counts come later. */
static struct error *name_again(
        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, bool *over)
{
	struct collector *c = ctx;
	u64 packed = 0, gone = c->stats.gone;
	struct error *err = place(c, record, frames, n, &packed);
	const struct process *p = c->find(c->ctx, record->instance);

	*over = !err && (c->stats.gone == gone || !p || p->dead);
	c->stats.gone = gone;
	return err;
}

static struct partial *find_partial(struct collector *c, u64 hash)
{
	for (u32 i = 0; i < PARTIALS; i++)
		if (c->partial[i].nframes && c->partial[i].hash == hash)
			return &c->partial[i];
	return NULL;
}

static struct error *join_chunk(struct collector *c, const struct stack_record *record)
{
	struct partial *part =
	        record->first ? find_partial(c, record->hash) : &c->partial[c->next_partial++ % PARTIALS];
	struct error *err = NULL;

	if (!part || (record->first && part->nframes != record->first * CHUNK_FRAMES))
		return NULL;
	if (!part->frames)
		part->frames = malloc(FRAMES_MAX * sizeof(*part->frames));
	if (!part->frames)
		return &error_no_memory;
	if (!record->first)
		part->nframes = 0;
	if (part->nframes + record->nframes > FRAMES_MAX)
		return NULL;
	part->hash = record->hash;
	memcpy(part->frames + part->nframes, record->frame, record->nframes * sizeof(*part->frames));
	part->nframes += record->nframes;
	if (record->last) {
		err = add_stack(c, record, part->frames, part->nframes);
		part->nframes = 0;
	}
	return err;
}

static bool is_sound(const struct stack_record *record, size_t size)
{
	return size >= offsetof(struct stack_record, frame) && record->nframes <= CHUNK_FRAMES &&
	       size >= offsetof(struct stack_record, frame) + record->nframes * sizeof(struct frame);
}

bool collector_ready(struct collector *c, const struct stack_record *record, size_t size)
{
	return !is_sound(record, size) || are_ready(c, record->frame, record->nframes);
}

void collector_prefetch(struct collector *c, const struct stack_record *record, size_t size)
{
	struct process *p = is_sound(record, size) ? c->find(c->ctx, record->instance) : NULL;
	u32 n, i = 0;

	while (p && i < record->nframes && frame_kind(&record->frame[i]) != FRAME_SCRIPT)
		i++;
	if (!p || i == record->nframes)
		return;
	n = expand_stack(p, record->frame, record->nframes, c->options.names.expand, c->expanded, EXPANDED_MAX);
	names_prefetch(c->names, p, c->expanded, n);
}

struct error *collector_stack(struct collector *c, const struct stack_record *record, size_t size)
{
	if (!is_sound(record, size))
		return NULL;
	if (!record->first && record->last)
		return add_stack(c, record, record->frame, record->nframes);
	return join_chunk(c, record);
}

struct error *collector_join(struct collector *c, u32 epoch, u64 hash, u64 waker, u64 both)
{
	const u64 *known = table_get(&c->nodes[epoch & 1], hash);
	const struct waker *kept = wakers_find(&c->wakers, waker);
	const u64 *was = table_get(&c->repaired, hash);
	struct error *err = was ? table_put(&c->repaired, both, *was) : NULL;
	u64 packed;
	u32 node;

	if (!known)
		known = table_get(&c->nodes[!(epoch & 1)], hash);
	if (!known)
		return err ? err : table_put(&c->held, both, hash);
	packed = *known;
	node = (u32)packed;
	if (!err && kept && node != NODE_FILTERED && node != NODE_IDLE)
		err = collect_waker(c, kept, &node);
	return err ? err : table_put(&c->nodes[epoch & 1], both, (packed & ~0xffffffffull) | node);
}

static void count_repaired(struct collector *c, u64 hash, u64 value)
{
	const u64 *was = table_get(&c->repaired, hash);

	if (was)
		c->stats.deferred[*was] += value;
}

static void count_at(struct collector *c, u64 packed, u64 value, u64 more)
{
	if ((u32)packed == NODE_FILTERED) {
		c->stats.filtered += value;
		return;
	}
	c->stats.lock[packed_lock(packed)].value += value;
	c->stats.lock[packed_lock(packed)].more += more;
	if ((u32)packed == NODE_IDLE) {
		c->stats.idle += value;
		c->stats.idle_by[packed_idle(packed)].value += value;
		c->stats.lock[packed_lock(packed)].hidden += value;
		c->stats.lock[packed_lock(packed)].hidden_more += more;
		return;
	}
	count_frames(c, packed, value);
	profile_add(c->profile, (u32)packed, value);
	if (more)
		profile_add_more(c->profile, (u32)packed, more);
}

/* Is it of a stack that is to be walked again? Then it counts as soon as that has been done. */
static bool count_later(struct collector *c, u64 hash, u64 value, u64 more)
{
	const u64 *before = table_get(&c->late, hash);
	struct error *err;

	if (deferred_add(c->deferred, hash, value, more))
		return true;
	if (!deferred_add(c->deferred, stack_queued(hash), 0, 0))
		return false;
	err = table_put(&c->late, hash, value + (before ? *before : 0));
	error_free(err);
	return !err;
}

void collector_count(struct collector *c, u32 epoch, u64 hash, u64 value, u64 more)
{
	const u64 *packed = table_get(&c->nodes[epoch & 1], hash), *held;

	if (!packed)
		packed = table_get(&c->nodes[!(epoch & 1)], hash);
	if (!packed && (held = table_get(&c->held, hash))) {
		collector_count(c, epoch, *held, value, more);
	} else if (packed) {
		count_at(c, *packed, value, more);
		count_repaired(c, hash, value);
	} else if (!count_later(c, hash, value, more)) {
		c->stats.unmatched += value;
	}
}

bool collector_find(const struct collector *c, u64 hash, u32 *ret)
{
	for (u32 epoch = 0; epoch < 2; epoch++) {
		const u64 *packed = table_get(&c->nodes[epoch], hash);

		if (!packed || (u32)*packed == NODE_FILTERED || (u32)*packed == NODE_IDLE)
			continue;
		*ret = (u32)*packed;
		return true;
	}
	return false;
}

static struct error *carry(struct collector *c, u32 epoch, u64 hash)
{
	const u64 *packed = table_get(&c->nodes[!(epoch & 1)], hash);

	return packed ? table_put(&c->nodes[epoch & 1], hash, *packed) : NULL;
}

struct error *collector_carry(struct collector *c, u32 epoch, u64 hash)
{
	struct error *err = carry(c, epoch, hash);

	return err ? err : carry(c, epoch, stack_queued(hash));
}

/* A stack that was walked again, or in vain. */
static struct error *add_deferred(
        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, u32 was)
{
	struct collector *c = ctx;
	u64 packed = 0, hash = stack_queued(record->hash);
	const u64 *late = table_get(&c->late, hash);
	struct error *err;

	c->stats.stacks++;
	err = place(c, record, frames, n, &packed);
	if (!err && stop_is_complete(record->stop) && was < STOP_MAX) {
		err = table_put(&c->repaired, record->hash, was);
		if (!err)
			err = table_put(&c->repaired, hash, was);
	}
	if (err)
		return err;
	count_repaired(c, record->hash, record->weight);
	count_at(c, packed, record->weight, record->more);
	if (late)
		collector_count(c, record->epoch, hash, *late, 0);
	return NULL;
}

struct error *collector_deferred(struct collector *c, const struct deferred_record *record, size_t size)
{
	return deferred_piece(c->deferred, record, size);
}

bool collector_waits(const struct collector *c, u32 number)
{
	return deferred_waits(c->deferred, number);
}

struct error *collector_settle(struct collector *c, u64 now_ns, bool all)
{
	struct error *err = gone_retry(c->gone, name_again, c);

	return err ? err : deferred_settle(c->deferred, now_ns, all);
}

void collector_begin(struct collector *c, u64 ns)
{
	c->timeline.start_ns = ns;
}

struct error *collector_time(struct collector *c, const struct time_record *record, size_t size)
{
	return size < sizeof(*record) ? NULL : timeline_add(&c->timeline, record);
}

static u32 place_of_hash(void *ctx, u64 hash)
{
	struct collector *c = ctx;

	for (u32 epoch = 0; epoch < 2; epoch++) {
		const u64 *packed = table_get(&c->nodes[epoch], hash);

		if (packed)
			return (u32)*packed == NODE_FILTERED ? TIMELINE_NOWHERE : (u32)*packed;
	}
	return TIMELINE_UNKNOWN;
}

void collector_place_times(struct collector *c)
{
	timeline_place(&c->timeline, place_of_hash, c);
}

void collector_forget(struct collector *c, u32 epoch)
{
	table_clear(&c->nodes[epoch & 1]);
	gone_forget(c->gone, epoch);
}

const struct collect_stats *collector_stats(const struct collector *c)
{
	return &c->stats;
}

struct error *collector_finish(struct collector *c, volatile sig_atomic_t *stop)
{
	struct error *err;

	collector_place_times(c);
	err = timeline_finish(&c->timeline, c->profile);
	return err ? err : names_expand(c->names, &c->profile, stop);
}

struct profile *collector_profile(struct collector *c)
{
	return c->profile;
}
