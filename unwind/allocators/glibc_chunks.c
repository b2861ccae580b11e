/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the chunks of a segment in order of address. A batch of them is read at once, checked, and then counted: if it
 * does not hold together it is read again, for a running program changes it. What never holds together is corrupt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "binary/memory.h"
#include "cleanup.h"
#include "glibc.h"
#include "grow.h"
#include "search.h"

#define BATCH      (BLOCK_READER_SIZE / CHUNK_LEAST + 1)
#define TRIES      8
#define FENCE      32
#define FAST_MOST  176
#define TEXT_LEAST 4 /* characters */

struct batch_chunk {
	u64 at, size;
	enum glibc_state state;
};

struct fault {
	u64 at, good; /* the chunk, and the last good one before it */
	u64 size, previous;
	const char *what; /* NULL: none */
	bool absent;      /* nothing is wrong: it could not be read */
};

struct walk_state {
	struct glibc *g;
	const struct glibc_segment *s;
	struct batch_chunk *batch;
	u32 n;
	u64 next; /* behind the batch */
	struct fault fault;
	struct {
		u64 number, live, free, starts;
	} page; /* being counted */
};

/* --- one chunk --- */

static bool lists(const u64 *list, u32 n, u64 at)
{
	u32 i = n ? SEARCH(n, k, list[k] < at) : 0;

	return i < n && list[i] == at;
}

static enum glibc_state state_of(const struct glibc_arena *a, u64 at, u64 size, bool in_use)
{
	if (in_use)
		return size <= FAST_MOST && lists(a->fast, a->nfast, at) ? GLIBC_FAST : GLIBC_IN_USE;
	return lists(a->unsorted, a->nunsorted, at) ? GLIBC_UNSORTED : size < CHUNK_SMALL ? GLIBC_SMALL : GLIBC_LARGE;
}

static const char *wrong_size(const struct walk_state *w, u64 at, u64 field)
{
	u64 size = field & ~(u64)CHUNK_BITS;

	if (size < CHUNK_LEAST)
		return "its size is less than a chunk can have";
	if (size & 15)
		return "its size is no multiple of 16";
	if (size > w->s->end - at)
		return "it would reach behind its heap";
	if (field & CHUNK_MAPPED)
		return "it says that it has a mapping of its own";
	if (!w->s->arena && field & CHUNK_OTHER_ARENA)
		return "it says that it is of another arena";
	return NULL;
}

/* head: NULL if it could not be read. */
static bool blame(struct walk_state *w, u64 at, const u64 *head, const char *what)
{
	w->fault.what = what;
	w->fault.absent = !head;
	w->fault.at = at;
	w->fault.good = w->n ? w->batch[w->n - 1].at : 0;
	w->fault.previous = head ? head[0] : 0;
	w->fault.size = head ? head[1] : 0;
	return false;
}

static void put(struct walk_state *w, u64 at, u64 size, enum glibc_state state)
{
	w->batch[w->n++] = (struct batch_chunk){at, size, state};
	w->next = at + size;
}

/* What ends a heap that another one follows: chunks of 16 bytes and of none (sysmalloc()). */
static bool is_fence(const struct walk_state *w, u64 at, const u64 *head)
{
	u64 size = head[1] & ~(u64)CHUNK_BITS;

	return !w->s->last && size <= FENCE && w->s->end - at == size + CHUNK_HEADER;
}

/*
 * Takes the chunk at `at` into the batch. False: it is wrong (fault is set), or what follows it is not in the block
 * (fault is not set).
 */
static bool take(struct walk_state *w, u64 at, const u64 *head)
{
	struct glibc *g = w->g;
	const struct glibc_arena *a = &g->arenas[w->s->arena];
	u64 size = head[1] & ~(u64)CHUNK_BITS, next[2];
	const u8 *behind;
	const char *wrong;
	bool in_use;

	if (is_fence(w, at, head)) {
		put(w, at, w->s->end - at, GLIBC_METADATA);
		return true;
	}
	wrong = wrong_size(w, at, head[1]);
	if (wrong && !head[1] && pages_at(g->space->pages, at) != PAGE_PRESENT) /* read as zeros */
		return blame(w, at, NULL, "it is swapped out (--swapped reads it), or not in memory");
	if (wrong)
		return blame(w, at, head, wrong);
	if (at == a->top) {
		put(w, at, size, GLIBC_TOP);
		return true;
	}
	if (size > w->s->end - at - CHUNK_HEADER)
		return blame(w, at, head, "it reaches the end of its heap, which only the top does");
	behind = block_reader_at(&g->reader, at + size, CHUNK_HEADER);
	if (behind)
		memcpy(next, behind, sizeof(next));
	else if (w->n)
		return false;
	else if (!block_reader_read(&g->reader, next, sizeof(next), at + size))
		return blame(w, at, NULL, "what follows it is not in memory");
	in_use = next[1] & CHUNK_PREV_IN_USE;
	if (in_use && w->s->arena && !(head[1] & CHUNK_OTHER_ARENA)) /* a free one does not say */
		return blame(w, at, head, "it says that it is of the main arena");
	if (!in_use && next[0] != size && wrong_size(w, at + size, next[1]) && !is_fence(w, at + size, next))
		in_use = true; /* what follows says so, but is itself wrong: it comes next */
	if (!in_use && next[0] != size)
		return blame(w, at, head, "it is free, but the size at its end is another");
	put(w, at, size, state_of(a, at, size, in_use));
	return true;
}

/* Fills the batch from `at` on. False: there is a fault. */
static bool read_batch(struct walk_state *w, u64 at)
{
	struct block_reader *r = &w->g->reader;
	const u8 *head;
	u64 words[2] = {0};

	w->n = 0;
	w->next = at;
	w->fault.what = NULL;
	if (!block_reader_fill(r, at, w->s->end))
		return blame(w, at, NULL,
		        r->state == BLOCK_SWAPPED ? "it is swapped out; --swapped reads it" : "it is not in memory");
	while (w->next < w->s->end && w->n < BATCH) {
		head = block_reader_at(r, w->next, CHUNK_HEADER);
		if (!head)
			break;
		memcpy(words, head, sizeof(words));
		if (!take(w, w->next, words))
			break;
	}
	return !w->fault.what && (w->n || blame(w, at, words, "it is cut"));
}

/* --- pages that blocks share --- */

static void end_page(struct walk_state *w)
{
	struct usage_facts *f = &w->g->usage->facts;

	if (!w->page.live || !w->page.free || pages_at(w->g->space->pages, w->page.number * PAGES_SIZE) != PAGE_PRESENT)
		return;
	f->held += w->page.free;
	if (w->page.free >= PAGES_SIZE / 2)
		f->held_blocks += w->page.starts;
}

static void begin_page(struct walk_state *w, u64 number)
{
	if (number == w->page.number)
		return;
	end_page(w);
	w->page.number = number;
	w->page.live = w->page.free = w->page.starts = 0;
}

/* A part of a page belongs to a block, live or free. */
static void share(struct walk_state *w, u64 from, u64 to, bool live, bool starts)
{
	begin_page(w, from / PAGES_SIZE);
	if (live) {
		w->page.live++;
		w->page.starts += starts;
	} else {
		w->page.free += to - from;
	}
}

static void share_pages(struct walk_state *w, u64 at, u64 size, bool live)
{
	u64 end = at + size, first = (at + PAGES_SIZE - 1) & ~(PAGES_SIZE - 1), last = end & ~(PAGES_SIZE - 1);

	if (first > last) { /* inside one page */
		share(w, at, end, live, true);
		return;
	}
	if (at < first)
		share(w, at, first, live, true);
	if (last < end)
		share(w, last, end, live, at >= last);
}

/* --- counting --- */

static bool is_free(enum glibc_state state)
{
	return state >= GLIBC_FAST && state <= GLIBC_TOP;
}

/* Whole pages of free memory in memory: malloc_trim() gives back all but the tops of other arenas. */
static void count_whole_pages(struct walk_state *w, const struct batch_chunk *c)
{
	u64 head = c->state == GLIBC_TOP ? CHUNK_HEADER : 48; /* sizeof(struct malloc_chunk) */
	u64 start = (c->at + head + PAGES_SIZE - 1) & ~(PAGES_SIZE - 1), end = (c->at + c->size) & ~(PAGES_SIZE - 1);
	struct amount whole = {0};

	if (end <= start)
		return;
	pages_add(w->g->space->pages, start, end, &whole);
	if (c->state == GLIBC_TOP && w->s->arena)
		w->g->usage->facts.top += whole.resident;
	else
		w->g->usage->facts.returnable += whole.resident;
}

struct error *glibc_count(struct glibc *g, u32 arena, enum glibc_state state, u64 at, u64 size)
{
	struct glibc_classes **classes = &g->arenas[arena].states[state];
	struct amount amount = {.blocks = 1, .size = size};

	if (!*classes)
		*classes = calloc(1, sizeof(**classes));
	if (!*classes)
		return &error_no_memory;
	pages_add(g->space->pages, at, at + size, &amount);
	amount_add(&(*classes)->of[size_class(size)], &amount);
	return NULL;
}

static struct error *count_batch(struct walk_state *w)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < w->n; i++) {
		const struct batch_chunk *c = &w->batch[i];
		const u8 *content = c->state == GLIBC_IN_USE ? block_reader_at(&w->g->reader, c->at, c->size) : NULL;

		err = glibc_count(w->g, w->s->arena, c->state, c->at, c->size);
		share_pages(w, c->at, c->size, !is_free(c->state));
		if (is_free(c->state))
			count_whole_pages(w, c);
		if (!err && content && glibc_is_cache(w->g, c->size, content + CHUNK_HEADER)) {
			err = grow(&w->g->caches, w->g->ncaches, sizeof(u64));
			if (!err)
				w->g->caches[w->g->ncaches++] = c->at;
		}
	}
	return err;
}

/* --- faults --- */

static void pause_ms(u32 ms)
{
	struct timespec t = {0, ms * 1000000l};

	nanosleep(&t, NULL);
}

/* The end of the last segment of an arena moves with its top. */
static void refresh(struct walk_state *w)
{
	if (w->s->last && w->g->space->pid) {
		pages_forget(w->g->space->pages);
		glibc_refresh(w->g, (u32)(w->s - w->g->segments));
	}
}

/* Reads a batch until it holds together. False: it never did. */
static bool read_whole_batch(struct walk_state *w, u64 at)
{
	for (u32 i = 0; i < TRIES; i++) {
		if (at >= w->s->end || read_batch(w, at)) {
			w->g->torn += i;
			return true;
		}
		if (!w->g->space->pid)
			return false; /* a core does not change */
		pause_ms(1);
		refresh(w);
	}
	return false;
}

/*
 * What was taken for the start of a chunk may be none any more: chunks before it became one, or were divided. Goes on
 * from an earlier one, to the first chunk that begins at `at` or later. 0: that does not hold together either.
 */
static u64 rejoin(struct walk_state *w, u64 from, u64 at)
{
	while (from < at) {
		if (!read_whole_batch(w, from))
			return 0;
		for (u32 i = 0; i < w->n; i++)
			if (w->batch[i].at >= at)
				return w->batch[i].at;
		if (w->next <= from)
			return 0;
		from = w->next;
	}
	return from;
}

/* A word that a string was written over: ` "of it"`; "": it has none. */
static const char *text_in(u64 word, char ret[12])
{
	u32 n = 0;

	while (n < 8 && (u8)(word >> 8 * n) >= ' ' && (u8)(word >> 8 * n) <= '~')
		n++;
	if (n < TEXT_LEAST || (n < 8 && word >> 8 * n))
		return "";
	snprintf(ret, 12, " \"%.*s\"", (int)n, (const char *)&word);
	return ret;
}

static struct error *report(struct walk_state *w, u64 last)
{
	const struct fault *f = &w->fault;
	struct usage *u = w->g->usage;
	u64 good = f->good ? f->good : last;
	char neighbour[96] = "", previous[12], size[12];
	struct error *err = glibc_count(w->g, w->s->arena, GLIBC_UNREAD, f->at, w->s->end - f->at);

	if (err)
		return err;
	if (f->absent)
		return usage_say(u, USAGE_NOTE, "arena %u is not read from %#llx to %#llx: %s", w->s->arena,
		        (unsigned long long)f->at, (unsigned long long)w->s->end, f->what);
	if (good && good < f->at)
		snprintf(neighbour, sizeof(neighbour), ", a block of %llu bytes at %#llx: written past its end?",
		        (unsigned long long)(f->at - good - CHUNK_HEADER / 2),
		        (unsigned long long)(good + CHUNK_HEADER));
	return usage_say(u, USAGE_CORRUPT,
	        "corrupt chunk at %#llx (arena %u, heap %#llx-%#llx): %s. Its header: previous size %#llx%s, size "
	        "%#llx%s; the last good chunk before it: %#llx%s. The rest of this heap is not read",
	        (unsigned long long)f->at, w->s->arena, (unsigned long long)w->s->start, (unsigned long long)w->s->end,
	        f->what, (unsigned long long)f->previous, text_in(f->previous, previous), (unsigned long long)f->size,
	        text_in(f->size, size), (unsigned long long)good, neighbour);
}

struct error *glibc_walk(struct glibc *g, u32 segment)
{
	cleanup(free) struct batch_chunk *batch = calloc(BATCH, sizeof(*batch));
	struct walk_state w = {.g = g, .s = &g->segments[segment], .batch = batch};
	u64 at = w.s->start, last = 0, before = 0; /* starts of batches: this one, the one before */
	struct error *err = NULL;

	if (!batch)
		return &error_no_memory;
	while (!err && at < w.s->end) {
		bool whole = read_whole_batch(&w, at);

		if (!whole && before && g->space->pid) {
			u64 again = rejoin(&w, before, at);

			before = 0; /* once */
			if (again) {
				g->torn++;
				at = again;
				continue;
			}
			whole = read_whole_batch(&w, at);
		}
		err = count_batch(&w); /* what comes before a fault is good */
		if (!err && !whole)
			err = report(&w, last);
		if (!whole || !w.n)
			break;
		last = w.batch[w.n - 1].at;
		before = at;
		at = w.next;
	}
	end_page(&w);
	return err;
}
