/* SPDX-License-Identifier: Apache-2.0 */
#include "deferred.h"

#include <stdlib.h>
#include <string.h>

#include "now.h"
#include "unwind.h"

#define PATIENCE_NS 2000000000ull /* a JVM takes so long to start on a busy machine */
#define BYTES_MAX   (16u << 20)   /* of all copies */
#define FRAMES_MAX  (33 * CHUNK_FRAMES)

struct deferred_stack {
	struct deferred_stack *next;
	struct deferred_record from; /* its bytes are unused */
	struct stack_record record;  /* and its frames */
	struct frame *frames;
	u32 nframes;
	bool arrived; /* the stack_record has */
	u32 tried;    /* process.generation when it was last walked */
	u64 since_ns;
	u32 size;
	u32 absent; /* pages that are not in the copy: bit n is the nth from from.addr's on */
	u8 *bytes;  /* from from.addr on */
};

struct deferred {
	struct deferred_sink sink;
	struct deferred_stack *first;
	u64 bytes;
	struct frame *frames; /* FRAMES_MAX */
};

/* The target's memory, but for the copy of its stack. */
struct copied {
	struct memory memory;
	struct memory *now;
	const struct deferred_stack *stack;
};

struct deferred *deferred_create(const struct deferred_sink *sink)
{
	struct deferred *l = calloc(1, sizeof(*l));

	if (l)
		l->sink = *sink;
	return l;
}

static void drop(struct deferred *l, struct deferred_stack **at)
{
	struct deferred_stack *s = *at;

	*at = s->next;
	l->bytes -= s->size;
	free(s->frames);
	free(s->bytes);
	free(s);
}

static void drop_one(struct deferred *l, const struct deferred_stack *s)
{
	struct deferred_stack **at = &l->first;

	while (*at != s)
		at = &(*at)->next;
	drop(l, at);
}

void deferred_destroy(struct deferred *l)
{
	if (!l)
		return;
	while (l->first)
		drop(l, &l->first);
	free(l->frames);
	free(l);
}

static struct deferred_stack *find(const struct deferred *l, u64 hash)
{
	for (struct deferred_stack *s = l->first; s; s = s->next)
		if (s->from.hash == hash && !s->arrived)
			return s;
	return NULL;
}

static struct error *begin(struct deferred *l, const struct deferred_record *record, struct deferred_stack **ret)
{
	struct deferred_stack *s = calloc(1, sizeof(*s));

	if (!s)
		return &error_no_memory;
	memcpy(&s->from, record, offsetof(struct deferred_record, byte));
	s->since_ns = now_ns();
	s->next = l->first;
	l->first = s;
	*ret = s;
	return NULL;
}

static u32 page_of(const struct deferred_stack *s, u64 addr)
{
	return (u32)(addr / DEFERRED_PIECE - s->from.addr / DEFERRED_PIECE);
}

static bool follows(const struct deferred *l, const struct deferred_stack *s, const struct deferred_record *record)
{
	u64 at = record->addr - s->from.addr;

	return record->size && at >= s->size && at <= (u64)(DEFERRED_PIECES - 1) * DEFERRED_PIECE &&
	       (at == s->size || !(record->addr % DEFERRED_PIECE)) &&
	       l->bytes + at - s->size + record->size <= BYTES_MAX;
}

struct error *deferred_piece(struct deferred *l, const struct deferred_record *record, size_t size)
{
	struct deferred_stack *s;
	struct error *err;
	u8 *grown;
	u32 at;

	if (size < offsetof(struct deferred_record, byte) || record->size > DEFERRED_PIECE ||
	        size < offsetof(struct deferred_record, byte) + record->size)
		return NULL;
	s = find(l, record->hash);
	err = s ? NULL : begin(l, record, &s);
	if (err || !follows(l, s, record))
		return err;
	at = (u32)(record->addr - s->from.addr);
	grown = realloc(s->bytes, at + record->size);
	if (!grown)
		return &error_no_memory;
	for (u32 page = page_of(s, s->from.addr + s->size); page < page_of(s, record->addr); page++)
		s->absent |= 1u << page;
	memset(grown + s->size, 0, at - s->size);
	memcpy(grown + at, record->byte, record->size);
	s->bytes = grown;
	l->bytes += at + record->size - s->size;
	s->size = at + record->size;
	return NULL;
}

struct error *deferred_hold(
        struct deferred *l, const struct stack_record *record, const struct frame *frames, u32 n, bool *held)
{
	struct deferred_stack *s = find(l, record->hash);
	struct process *p;

	*held = s && s->from.before <= n;
	if (s && !*held) /* what led to the unknown code was a guess, and thrown away */
		drop_one(l, s);
	if (!*held)
		return NULL;
	s->frames = calloc(n + 1, sizeof(*frames));
	if (!s->frames)
		return &error_no_memory;
	memcpy(s->frames, frames, n * sizeof(*frames));
	memcpy(&s->record, record, offsetof(struct stack_record, frame));
	s->nframes = n;
	s->arrived = true;
	p = l->sink.find(l->sink.ctx, record->instance);
	if (p && p->deferred_left)
		p->deferred_left--;
	return NULL;
}

bool deferred_waits(const struct deferred *l, u32 number)
{
	const struct deferred_stack *s = l->first;

	while (s && !(s->arrived && s->record.instance == number))
		s = s->next;
	return s;
}

bool deferred_add(struct deferred *l, u64 hash, u64 value, u64 more)
{
	for (struct deferred_stack *s = l->first; s; s = s->next)
		if (s->from.hash == hash) {
			s->record.weight += value;
			s->record.more += more;
			return true;
		}
	return false;
}

static bool is_present(const struct deferred_stack *s, u64 addr, size_t size)
{
	for (u32 page = page_of(s, addr); s->absent && size && page <= page_of(s, addr + size - 1); page++)
		if (s->absent & 1u << page)
			return false;
	return true;
}

static bool read_copied(struct memory *memory, void *dst, size_t size, uint64_t addr)
{
	const struct copied *c = (const struct copied *)memory;
	u64 at = addr - c->stack->from.addr;

	if (at < c->stack->size && size <= c->stack->size - at && is_present(c->stack, addr, size)) {
		memcpy(dst, c->stack->bytes + at, size);
		return true;
	}
	if (addr - (c->stack->from.reg[REG_SP] - DEFERRED_BELOW) < (u64)DEFERRED_PIECES * DEFERRED_PIECE)
		return false; /* of the stack, which may be another one by now */
	return c->now && memory_read(c->now, dst, size, addr);
}

/* The first frame behind a guess that nothing proves; a runtime's own prove it. */
static void mark_guess(struct frame *f)
{
	if (frame_kind(f) == FRAME_NATIVE)
		f->where |= (u64)FRAME_GUESS << FRAME_ADDR_BITS;
}

static bool has_gap(const struct frame *frames, u32 n)
{
	while (n && frame_kind(&frames[n - 1]) != FRAME_GAP)
		n--;
	return n;
}

/*
 * What the first walk found from the frame on that both have come to. A runtime said where that frame is, not where in
 * its code it calls: this walk knows.
 */
static void append_rest(struct deferred *l, const struct deferred_stack *s, const struct unwind_end *end, u32 *n)
{
	u32 first = s->from.before + s->from.resume, i = *n;

	memcpy(l->frames + *n, s->frames + first, (s->nframes - first) * sizeof(*l->frames));
	*n += s->nframes - first;
	while (s->from.resume && i < *n && frame_kind(&l->frames[i]) == FRAME_SCRIPT)
		i++;
	if (s->from.resume && i < *n && frame_kind(&l->frames[i]) == FRAME_NATIVE)
		l->frames[i].where =
		        frame_where(FRAME_NATIVE, frame_runtime(&l->frames[i]), frame_flags(&l->frames[i]), end->pc);
}

/* Why a stack ends of which nothing is missing between the two walks. */
static u32 end_of_rest(const struct deferred_stack *s)
{
	const u32 first = s->from.before + s->from.resume;

	return s->from.resume && s->record.stop == STOP_RESUMED && !has_gap(s->frames + first, s->nframes - first)
	               ? STOP_ROOT
	               : s->record.stop;
}

/* Walks one again. Frames behind those from before are in l->frames; the result says why the walk ended. */
static enum stop_reason walk_again(
        struct deferred *l, const struct deferred_stack *s, const struct process *p, u32 *n, enum guess_found *found)
{
	struct copied copied = {.memory.read = read_copied, .now = p->dead ? NULL : p->memory, .stack = s};
	u32 first = s->from.before + s->from.resume, reached;
	struct unwind_end end;
	enum stop_reason stop = unwind_again(p, &s->from, s->size, &copied.memory, l->frames, FRAMES_MAX, &end);

	*n = reached = end.nframes;
	*found = first > s->nframes ? GUESS_MISSED : end.found;
	if (*found == GUESS_MISSED)
		return stop;
	if (s->nframes - first > FRAMES_MAX - *n)
		return STOP_DEPTH;
	append_rest(l, s, &end, n);
	if (*n > reached && *found == GUESS_REPEATED)
		mark_guess(l->frames + reached);
	return stop && stop_is_complete(end_of_rest(s)) ? stop : end_of_rest(s);
}

static struct error *hand_out(struct deferred *l, struct deferred_stack *s, u32 stop, u32 n, enum guess_found found)
{
	u32 before = s->from.before;
	struct frame *all;
	struct error *err;

	if (found == GUESS_MISSED && !stop_is_complete(stop) && (s->record.stop == STOP_RESUMED || s->from.resume)) {
		/* a runtime gave more than the copy of the stack does */
		if (s->from.pc && !s->from.resume && before < s->nframes)
			mark_guess(s->frames + before);
		return l->sink.stack(l->sink.ctx, &s->record, s->frames, s->nframes, s->from.stop);
	}
	all = malloc((before + n + 1) * sizeof(*all));
	if (!all)
		return &error_no_memory;
	memcpy(all, s->frames, before * sizeof(*all));
	memcpy(all + before, l->frames, n * sizeof(*all));
	if (s->from.resume && found != GUESS_MISSED)
		s->record.stop = (u16)stop;
	else if (found == GUESS_MISSED || s->record.stop != STOP_RESUMED)
		s->record.stop = stop_is_complete(stop) ? stop : s->from.stop;
	err = l->sink.stack(l->sink.ctx, &s->record, all, before + n, s->from.stop);
	free(all);
	return err;
}

static bool is_ready(const struct deferred *l, const struct deferred_stack *s, u32 n)
{
	return !l->sink.ready ||
	       (l->sink.ready(l->sink.ctx, s->frames, s->nframes) && l->sink.ready(l->sink.ctx, l->frames, n));
}

/* *done: it was handed out, or will never be. Tables that are being made are worth waiting for. */
static struct error *settle(struct deferred *l, struct deferred_stack *s, u64 now_ns, bool all, bool *done)
{
	struct process *p = s->arrived ? l->sink.find(l->sink.ctx, s->record.instance) : NULL;
	bool unfinished = p && p->unfinished, last;
	enum guess_found found = GUESS_MISSED;
	u32 stop = s->from.stop, n = 0;

	all |= now_ns > s->since_ns + PATIENCE_NS && !unfinished;
	*done = all;
	if (!s->arrived)
		return NULL;
	last = all || !p || (p->dead && !unfinished);
	*done = false;
	if (!last && (p->generation == s->tried || process_starting(p)))
		return NULL;
	if (p) {
		s->tried = p->generation;
		stop = walk_again(l, s, p, &n, &found);
	}
	*done = last || !stop_is_unknown_code(stop);
	if (*done && !all && !is_ready(l, s, n)) {
		*done = false;
		s->tried = 0;
	}
	return *done ? hand_out(l, s, stop, n, found) : NULL;
}

struct error *deferred_settle(struct deferred *l, u64 now_ns, bool all)
{
	struct deferred_stack **at = &l->first;
	struct error *err = NULL;
	bool done;

	if (l->first && !l->frames)
		l->frames = calloc(FRAMES_MAX, sizeof(*l->frames));
	if (l->first && !l->frames)
		return &error_no_memory;
	while (!err && *at) {
		struct deferred_stack *s = *at;

		err = settle(l, s, now_ns, all, &done);
		if (!err && done)
			drop(l, at);
		else
			at = &s->next;
	}
	return err;
}
