/* SPDX-License-Identifier: Apache-2.0 */
#include "collect.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cleanup.h"
#include "symbols/translated.h"
#include "expand.h"
#include "gone.h"
#include "idle.h"
#include "deferred.h"
#include "pattern.h"
#include "process_names.h"
#include "thread_names.h"
#include "wakers.h"
#include "timeline.h"

#define STARTERS_MAX                                                                                                   \
	4 /* frames from a thread's root that may lead to its beginning: clone3(), start_thread(), ThreadJavaMain() */
#define LEADS_MAX    12 /* kernel frames from a leaf that may lead to a program */
#define PARTIALS     8  /* stacks whose chunks are on their way at once: CPUs interleave */
#define FRAMES_MAX   (33 * CHUNK_FRAMES)
#define EXPANDED_MAX (2 * FRAMES_MAX)

struct partial {
	u64 hash;
	u32 nframes;
	struct frame *frames;
};

/* What a hash stands for, in one word of a table. */
#define NODE_FILTERED COLLECTOR_FILTERED
#define NODE_IDLE     (NODE_FILTERED - 1)
static u64 pack(u32 node, u32 frames, u32 unresolved, bool approx, bool below_approx)
{
	return node | (u64)(frames & 0xffff) << 32 | (u64)(unresolved & 0x3fff) << 48 | (u64)below_approx << 62 |
	       (u64)approx << 63;
}

struct collector {
	struct collect_options options;
	struct process *(*find)(void *ctx, u32 number);
	void *ctx;
	struct profile *profile;
	struct names *names;
	struct table nodes[2];  /* by epoch */
	struct table processes; /* of process_function() */
	struct table threads;   /* of thread_function() */
	struct partial partial[PARTIALS];
	u32 next_partial;
	struct pattern include, exclude;
	struct frame *expanded; /* EXPANDED_MAX */
	struct deferred *deferred;
	struct gone *gone;
	struct wakers wakers;
	struct table held; /* joined stacks that are still held (deferred.h), by the hash of both */
	struct timeline timeline;
	struct collect_stats stats;
};

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
	c->find = find;
	c->ctx = ctx;
	c->expanded = malloc(EXPANDED_MAX * sizeof(*c->expanded));
	c->deferred = deferred_create(&deferred);
	c->gone = gone_create();
	err = c->expanded && c->deferred && c->gone ? pattern_compile(options->include, &c->include) : &error_no_memory;
	if (!err)
		err = pattern_compile(options->exclude, &c->exclude);
	if (!err)
		err = profile_create(&c->profile);
	if (!err)
		err = names_create(c->profile, modules, &options->names, &c->names);
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
	profile_destroy(c->profile);
	table_free(&c->held);
	table_free(&c->nodes[0]);
	table_free(&c->nodes[1]);
	table_free(&c->processes);
	table_free(&c->threads);
	free(c);
}

static const char *const stop_words[] = {
#define X(id, word, text) [id] = word,
        STOP_REASONS(X)
#undef X
};

const char *stop_word(u32 stop)
{
	return stop < STOP_MAX ? stop_words[stop] : "?";
}

/* The outermost node of a truncated stack tells that it is one, and why. */
static struct error *child_marker(struct collector *c, u32 node, u32 stop, u32 *ret)
{
	char text[64];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_UNKNOWN};
	struct error *err;
	u32 function;

	snprintf(text, sizeof(text), "[truncated: %s]", stop_word(stop));
	err = profile_function(c->profile, 0, &fn, false, &function);
	return err ? err : profile_child(c->profile, node, function, ret);
}

static struct error *child_process(
        struct collector *c, const struct process *p, u32 node, const struct stack_record *record, u32 *ret)
{
	u32 function;
	struct error *err = process_function(&c->processes, c->profile, p, record, &function);

	return err ? err : profile_child(c->profile, node, function, ret);
}

static struct error *child_thread(
        struct collector *c, const struct process *p, u32 node, const struct stack_record *record, u32 *ret)
{
	u32 function;
	struct error *err = thread_function(&c->threads, c->profile, p, record, &function);

	return err ? err : profile_child(c->profile, node, function, ret);
}

static bool wanted(const struct collector *c, const struct frame *f)
{
	if (frame_kind(f) == FRAME_KERNEL)
		return !c->options.no_kernel;
	return frame_kind(f) != FRAME_SCRIPT || !c->options.native_only;
}

/* Is frames[i] native code of this name? */
static bool repeats(
        struct collector *c, const struct process *p, const struct frame *frames, u32 i, u32 n, const char *name)
{
	struct named named;
	struct error *err;

	if (frame_kind(&frames[i]) != FRAME_NATIVE)
		return false;
	err = names_frame(c->names, p, frames, i, n, &named);
	error_free(err);
	return !err && !strcmp(c->profile->functions[named.function].name, name);
}

/* In the view of a language: is frames[i] the wrapper of the function of this name, which runs inside it? */
static bool wraps(struct collector *c, const struct process *p, const struct frame *frames, u32 i, u32 n,
        const struct named *outer)
{
	const struct profile_function *fns;
	struct named inner;
	struct error *err;
	size_t len;

	if (!c->options.names.view || outer->layer < TRANSLATED_BODY || !i ||
	        frame_kind(&frames[i - 1]) != FRAME_NATIVE)
		return false;
	err = names_frame(c->names, p, frames, i - 1, n, &inner);
	error_free(err);
	if (err || !inner.layer || inner.layer >= outer->layer)
		return false;
	fns = c->profile->functions; /* a clone's name has more behind a space */
	len = strcspn(fns[inner.function].name, " ");
	return len == strcspn(fns[outer->function].name, " ") &&
	       !strncmp(fns[inner.function].name, fns[outer->function].name, len);
}

/* Patterns cannot wait for the end of sampling: only they make inlined functions known before. */
static struct error *match_inlined(struct collector *c, u32 function, bool *included, bool *excluded)
{
	const char *const *inlined;
	struct error *err;
	u32 n = 0;

	if ((!c->include.set || *included) && !c->exclude.set)
		return NULL;
	err = names_inlined(c->names, function, &inlined, &n);
	for (u32 i = 0; i < n && !err; i++) {
		*included = *included || pattern_matches(&c->include, inlined[i]);
		*excluded = *excluded || pattern_matches(&c->exclude, inlined[i]);
	}
	return err;
}

static bool holds_lock(const struct frame *frames, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (frame_kind(&frames[i]) == FRAME_NATIVE && frame_flags(&frames[i]) & FRAME_LOCK)
			return true;
	return false;
}

/* How many frames a view may show of a stack: not those that start its thread, if this language's code began it. */
static struct error *without_start(struct collector *c, const struct process *p, const struct frame *frames, u32 *n)
{
	for (u32 i = *n;
	        c->options.names.view && i > 0 && *n - i < STARTERS_MAX && frame_kind(&frames[i - 1]) == FRAME_NATIVE;
	        i--) {
		struct named named;
		struct error *err = names_frame(c->names, p, frames, i - 1, *n, &named);

		if (err)
			return err;
		if (named.is_thread_entry) {
			*n = i - 1;
			break;
		}
	}
	return NULL;
}

/* How many frames there are inside the leaf that only lead from what happened to the program that saw it
 * (names_options.leads_to_program). */
static struct error *without_lead(
        struct collector *c, const struct process *p, const struct frame *frames, u32 n, u32 *ret)
{
	u32 reasons = n && frame_kind(&frames[0]) == FRAME_REASON, i = reasons;

	*ret = 0;
	for (; c->options.names.leads_to_program && i < n && i < LEADS_MAX && frame_kind(&frames[i]) == FRAME_KERNEL;
	        i++) {
		struct named named;
		struct error *err = names_frame(c->names, p, frames, i, n, &named);

		if (err)
			return err;
		if (named.leads)
			*ret = i + 1 - reasons;
	}
	return NULL;
}

/* Names the frames of a stack, root first, and walks down the tree. inside: how many of them lie inside the leaf, and
 * are no code. */
static struct error *add_path(
        struct collector *c, const struct process *p, const struct frame *frames, u32 n, u32 inside, u32 node, u64 *ret)
{
	u32 unresolved = 0, shown = 0, leaf_flags = 0, all_flags = 0;
	bool included = !c->include.set, excluded = false;

	for (u32 i = n; i-- > 0;) {
		struct named named;
		struct error *err;
		const struct profile_function *fn;

		if (!wanted(c, &frames[i]))
			continue;
		err = names_frame(c->names, p, frames, i, n, &named);
		if (err)
			return err;
		c->stats.gone += named.unresolved && frame_kind(&frames[i]) == FRAME_SCRIPT;
		if (named.hidden)
			continue;
		fn = &c->profile->functions[named.function];
		if ((named.by_code && i && repeats(c, p, frames, i - 1, n, fn->name)) ||
		        wraps(c, p, frames, i, n, &named))
			continue;
		included = included || pattern_matches(&c->include, fn->name) || pattern_matches(&c->include, fn->file);
		excluded = excluded || pattern_matches(&c->exclude, fn->name) || pattern_matches(&c->exclude, fn->file);
		err = match_inlined(c, named.function, &included, &excluded);
		if (err)
			return err;
		unresolved += named.unresolved;
		shown++;
		all_flags |= frame_flags(&frames[i]);
		if (i >= inside)
			leaf_flags = frame_flags(&frames[i]);
		err = profile_child(c->profile, node, named.function, &node);
		if (err)
			return err;
	}
	*ret = pack(included && !excluded ? node : NODE_FILTERED, shown, unresolved, leaf_flags & FRAME_APPROX,
	        all_flags & FRAME_APPROX);
	return NULL;
}

/* The node of a stack, packed; inside (NULL: none) is one more frame at its leaf. */
static struct error *place(struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n,
        const struct frame *inside, u64 *packed)
{
	struct process *p = c->find(c->ctx, record->instance);
	u32 node = 0, before = inside ? 1 : 0, lead = 0;
	struct frame reason;
	struct error *err = NULL;
	bool idle = false;

	if (inside)
		c->expanded[0] = *inside;
	n = before + expand_stack(p, frames, n, c->options.names.expand | (c->options.names.lines ? EXPAND_LINES : 0),
	                     c->expanded + before, EXPANDED_MAX - before);
	if (c->options.processes)
		err = child_process(c, p, node, record, &node);
	if (!err && c->options.threads && !(n && frame_flags(&c->expanded[n - 1]) & FRAME_THREAD))
		err = child_thread(c, p, node, record, &node);
	if (!err && !stop_has_root(record->stop))
		err = child_marker(c, node, record->stop, &node);
	if (!err)
		err = without_start(c, p, c->expanded, &n);
	if (!err)
		err = without_lead(c, p, c->expanded, n, &lead);
	if (!err && lead) {
		reason = c->expanded[0];
		c->expanded[lead] = frame_kind(&reason) == FRAME_REASON ? reason : c->expanded[lead];
	}
	if (!err)
		err = add_path(c, p, c->expanded + lead, n - lead, before, node, packed);
	if (!err && c->options.idle)
		err = idle_find(
		        c->names, c->profile, p, c->expanded + lead, n - lead, record->comm, c->options.idle, &idle);
	if (idle && (u32)*packed != NODE_FILTERED)
		*packed = NODE_IDLE;
	return err;
}

static void count_frames(struct collector *c, u64 packed, u64 count)
{
	c->stats.counted += count;
	c->stats.frames += count * (packed >> 32 & 0xffff);
	c->stats.unresolved += count * (packed >> 48 & 0x3fff);
	c->stats.below_approx += count * (packed >> 62 & 1);
	c->stats.approx += count * (packed >> 63);
}

struct error *collector_place(struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n,
        const struct frame *inside, u32 *ret)
{
	u64 packed = 0;
	struct error *err = place(c, record, frames, n, inside, &packed);

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

static struct error *skip_stack(struct collector *c, const struct stack_record *record)
{
	struct error *err =
	        table_put(&c->nodes[record->epoch & 1], record->hash, pack(NODE_FILTERED, 0, 0, false, false));

	if (!err && record->weight)
		collector_count(c, record->epoch, record->hash, record->weight, record->more);
	return err;
}

static struct error *add_stack(
        struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n)
{
	u64 packed = 0, gone = c->stats.gone;
	bool held;
	struct error *err = deferred_hold(c->deferred, record, frames, n, &held);

	if (err || held)
		return err;
	if (record->role == STACK_OF_WAKER)
		return wakers_keep(&c->wakers, record, frames, n);
	if (c->options.stack)
		return c->options.stack(c->options.stack_ctx, record, frames, n);
	c->stats.stacks++;
	if (c->options.lock_only && !holds_lock(frames, n))
		return skip_stack(c, record);
	err = place(c, record, frames, n, NULL, &packed);
	if (!err)
		err = table_put(&c->nodes[record->epoch & 1], record->hash, packed);
	if (!err && c->stats.gone != gone)
		err = gone_keep(c->gone, record, frames, n);
	if (!err && record->weight)
		collector_count(c, record->epoch, record->hash, record->weight, record->more);
	return err;
}

/* What is counted of this stack, from its first sample on, goes where it is now: counts come later. */
static struct error *name_again(
        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, bool *whole)
{
	struct collector *c = ctx;
	u64 packed = 0, gone = c->stats.gone;
	struct error *err = place(c, record, frames, n, NULL, &packed);

	*whole = !err && c->stats.gone == gone;
	c->stats.gone = gone;
	return *whole ? table_put(&c->nodes[record->epoch & 1], record->hash, packed) : err;
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

void collector_glance(struct collector *c, const struct stack_record *record, size_t size)
{
	struct process *p = is_sound(record, size) ? c->find(c->ctx, record->instance) : NULL;
	u32 n, i = 0;

	while (p && i < record->nframes && frame_kind(&record->frame[i]) != FRAME_SCRIPT)
		i++;
	if (!p || i == record->nframes)
		return;
	n = expand_stack(p, record->frame, record->nframes, c->options.names.expand, c->expanded, EXPANDED_MAX);
	names_glance(c->names, p, c->expanded, n);
}

struct error *collector_stack(struct collector *c, const struct stack_record *record, size_t size)
{
	if (!is_sound(record, size))
		return NULL;
	if (!record->first && record->last)
		return add_stack(c, record, record->frame, record->nframes);
	return join_chunk(c, record);
}

/* From a leaf to the root, as far as it led to the wake-up: not what an interrupt hit. */
static struct error *add_waker(struct collector *c, const struct waker *waker, u32 *node)
{
	struct process *p = c->find(c->ctx, waker->instance);
	u32 n = expand_stack(p, waker->frames, waker->n, c->options.names.expand, c->expanded, EXPANDED_MAX), lead;
	bool interrupt = false;
	struct error *err = without_lead(c, p, c->expanded, n, &lead);
	u32 function;

	for (u32 i = lead; !err && !interrupt && i < n && frame_kind(&c->expanded[i]) == FRAME_KERNEL; i++) {
		struct named named;

		err = names_frame(c->names, p, c->expanded, i, n, &named);
		interrupt = !err && waker_is_interrupt(c->profile->functions[named.function].name);
		n = interrupt ? i + 1 : n;
	}
	if (!err)
		err = waker_function(c->profile, interrupt ? NULL : waker->comm, &function);
	if (!err)
		err = profile_child(c->profile, *node, function, node);
	for (u32 i = lead; !err && i < n; i++) {
		struct named named = {.hidden = true};

		if (wanted(c, &c->expanded[i]))
			err = names_frame(c->names, p, c->expanded, i, n, &named);
		if (!err && !named.hidden)
			err = profile_child(c->profile, *node, named.function, node);
	}
	return err;
}

struct error *collector_join(struct collector *c, u32 epoch, u64 hash, u64 waker, u64 both)
{
	const u64 *known = table_get(&c->nodes[epoch & 1], hash);
	const struct waker *kept = wakers_find(&c->wakers, waker);
	struct error *err = NULL;
	u64 packed;
	u32 node;

	if (!known)
		known = table_get(&c->nodes[!(epoch & 1)], hash);
	if (!known)
		return table_put(&c->held, both, hash);
	packed = *known;
	node = (u32)packed;
	if (kept && node != NODE_FILTERED && node != NODE_IDLE)
		err = add_waker(c, kept, &node);
	return err ? err : table_put(&c->nodes[epoch & 1], both, (packed & ~0xffffffffull) | node);
}

static void count_at(struct collector *c, u64 packed, u64 value, u64 more)
{
	if ((u32)packed == NODE_FILTERED) {
		c->stats.filtered += value;
		return;
	}
	if ((u32)packed == NODE_IDLE) {
		c->stats.idle += value;
		return;
	}
	count_frames(c, packed, value);
	profile_add(c->profile, (u32)packed, value);
	if (more)
		profile_add_more(c->profile, (u32)packed, more);
}

void collector_count(struct collector *c, u32 epoch, u64 hash, u64 value, u64 more)
{
	const u64 *packed = table_get(&c->nodes[epoch & 1], hash), *held;

	if (!packed)
		packed = table_get(&c->nodes[!(epoch & 1)], hash);
	if (!packed && (held = table_get(&c->held, hash)))
		collector_count(c, epoch, *held, value, more);
	else if (packed)
		count_at(c, *packed, value, more);
	else if (!deferred_add(c->deferred, hash, value, more))
		c->stats.unmatched += value;
}

struct error *collector_carry(struct collector *c, u32 epoch, u64 hash)
{
	const u64 *packed = table_get(&c->nodes[!(epoch & 1)], hash);

	return packed ? table_put(&c->nodes[epoch & 1], hash, *packed) : NULL;
}

/* A stack that was walked again, or in vain. */
static struct error *add_deferred(
        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, u32 was)
{
	struct collector *c = ctx;
	u64 packed = pack(NODE_FILTERED, 0, 0, false, false);
	struct error *err = NULL;

	c->stats.stacks++;
	if (!c->options.lock_only || holds_lock(frames, n))
		err = place(c, record, frames, n, NULL, &packed);
	if (err)
		return err;
	if (stop_is_complete(record->stop) && was < STOP_MAX)
		c->stats.deferred[was] += record->weight;
	count_at(c, packed, record->weight, record->more);
	return table_put(&c->nodes[record->epoch & 1], record->hash, packed);
}

struct error *collector_deferred(struct collector *c, const struct deferred_record *record, size_t size)
{
	return deferred_piece(c->deferred, record, size);
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
