/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java-heap: all objects by class, as jmap -histo counts them, but the program runs on. Spaces are parsed in order of
 * address, around what threads have not yet filled of their buffers (TLABs). What the roots reach: refs/.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "grow.h"
#include "hotspot_instance.h"
#include "now.h"
#include "runtime.h"
#include "runtime_heap.h"
#include "runtimes/hotspot/heap/hotspot_spaces.h"
#include "runtimes/hotspot/heap/hotspot_z_places.h"
#include "runtimes/hotspot/layout/hotspot_flags.h"
#include "runtimes/hotspot/names/hotspot_text.h"
#include "runtimes/hotspot/refs/hotspot_hprof.h"
#include "runtimes/hotspot/refs/hotspot_refs.h"
#include "search.h"
#include "sort_keys.h"
#include "table.h"

#define CHANGED_SAID 0.0005 /* of the pages */
#define THREADS_MAX  65536
#define KINDS_MAX    (1u << 20)
#define TRIES        3 /* until no collection comes between */
#define COPIES       8 /* the same, of the whole heap */
#define CALM_COPIES  6 /* until little of it changes meanwhile: a collector that works beside the program has phases */
#define STOP_COPIES  3 /* the same of one that stops it */
#define CALM         0.04 /* of its pages */
#define CALM_MS      5
#define CALM_TRIES   100
#define Z_COPIES     4    /* the same of ZGC, where what moves then is followed */
#define NEXT_MS      500  /* is waited for a collection */
#define SETTLE_MS    4000 /* is waited for objects that are being moved */
#define COPY_ROOM    3    /* times the heap: of --memory, so that a copy and its objects fit */
#define NAME_BYTES   1024
#define RESERVE_MAX  (1u << 16)
#define MOVED                                                                                                          \
	"a collection ran while the heap was read: objects may be missing or counted twice; --pause shows one moment"
#define SOON_EACH     256 /* calls of soon() after which it looks for a collection */
#define PROBES        16  /* objects behind a buffer that show where it ends */
#define SEARCHED      4096
#define SEARCHES_MAX  (1u << 20)
#define MARK_LOW      7 /* markWord.hpp: of an object that nobody has locked */
#define MARK_UNLOCKED 1
#define MARK_BIASED   4

/* A thread's buffer: objects from start up to top, then nothing up to end, and behind it what is kept for a filler. */
struct buffer {
	u64 start, top, end;
};

struct kind {
	u64 klass, symbol;
	enum hotspot_space_kind space;
	u64 count, bytes;
};

struct histogram {
	struct heap *h;
	struct hotspot_heap_view *view;
	struct memory *m;
	u64 reserves[2]; /* bytes behind a buffer's end: more likely first */
	struct buffer *buffers;
	u32 nbuffers;
	struct kind *kinds;
	u32 nkinds;
	struct table at; /* from key_of() to a kind's number */
	enum hotspot_space_kind space;
	/* called with each object, in place of counting it; NULL: it is counted */
	bool (*each)(struct histogram *g, u64 object, u64 klass, u64 size);
	struct hotspot_hprof *dump;
	u64 torn, torn_bytes, other;
	bool copied, copy_moved;   /* the heap, and a collection came between */
	double changed;            /* part of the copy's pages, meanwhile */
	u32 searches;              /* for objects behind what was none */
	struct hotspot_refs *refs; /* once roots() was called */
	u32 collections;           /* before */
	u32 full;
	u64 emptied;                   /* see emptied() */
	struct hotspot_spaces spaces;  /* all, by address */
	struct hotspot_spaces before;  /* copied before those that were filled, by address */
	struct hotspot_spaces lasting; /* what the next collections will not move, by address */
	u32 seen, asked;               /* collections when something was read last; calls of soon() since */
	u64 good;                      /* ZGC: the colour of references, as collections */
	bool parsed;                   /* spaces can be, from bottom to top */
	bool collecting;               /* one was at work then, for as long as it was waited for */
	struct error *err;
};

static u64 key_of(u64 klass, enum hotspot_space_kind space)
{
	u64 key = (klass + space) * 0x9e3779b97f4a7c15ull;

	return (key ^ key >> 29) | 1ull << 63;
}

static struct kind *new_kind(struct histogram *g, u64 klass)
{
	const struct hotspot_class *c = hotspot_class_of(g->view, g->m, klass);
	struct error *err = grow(&g->kinds, g->nkinds, sizeof(*g->kinds));

	if (!err)
		err = table_put(&g->at, key_of(klass, g->space), g->nkinds);
	if (err) {
		g->err = err;
		return NULL;
	}
	g->kinds[g->nkinds] = (struct kind){.klass = klass, .symbol = c ? c->symbol : 0, .space = g->space};
	return &g->kinds[g->nkinds++];
}

static bool is_moved(struct histogram *g, u64 object)
{
	const u8 *header = heap_bytes(g->h, object, 8);

	return header && hotspot_moved_to(header);
}

static bool count(void *ctx, u64 object, u64 klass, u64 size)
{
	struct histogram *g = ctx;
	const u64 *known = table_get(&g->at, key_of(klass, g->space));
	struct kind *k = known ? &g->kinds[*known] : NULL;

	if (g->space == SPACE_EMPTIED && is_moved(g, object))
		return true;
	if (g->each)
		return g->each(g, object, klass, size);
	if (!k && g->nkinds < KINDS_MAX)
		k = new_kind(g, klass);
	if (!k)
		g->other++;
	else {
		k->count++;
		k->bytes += size;
	}
	return !g->err;
}

/* --- buffers of threads --- */

/*
 * ThreadLocalAllocBuffer::end_reserve(): room for the header of an array, or with C2 for what it prefetches
 * (startup_initialization(), 8 to 28).
 */
static void find_reserves(struct histogram *g)
{
	struct hotspot_flag f[] = {{"AllocatePrefetchDistance", 8, 0, false}, {"AllocatePrefetchStepSize", 8, 0, false},
	        {"AllocatePrefetchLines", 8, 0, false}, {"AllocateInstancePrefetchLines", 8, 0, false},
	        {"TieredStopAtLevel", 8, 0, false}, {"UseCompiler", 1, 0, false}};
	u64 header = hotspot_length_at(g->view) + 4, mask = g->view->alignment - 1, lines, prefetch;

	hotspot_flags_read(g->view->v, g->m, f, sizeof(f) / sizeof(*f));
	/* up to 24 these are 8 bytes, later some are 4 */
	for (u32 i = 0; i < 5; i++)
		f[i].value = (u32)f[i].value;
	lines = (f[2].value > f[3].value ? f[2].value : f[3].value) + 2;
	prefetch = (f[0].value + f[1].value * lines) & ~7ull;
	header = (((header + 7) & ~7ull) + mask) & ~mask;
	prefetch = ((prefetch > header ? prefetch : header) + mask) & ~mask;
	if (prefetch > RESERVE_MAX)
		prefetch = header;
	g->reserves[0] = f[5].value && f[4].value >= 4 ? prefetch : header;
	g->reserves[1] = f[5].value && f[4].value >= 4 ? header : prefetch;
}

/* While allocations are sampled, _end comes before _allocation_end, which no JVM exports: it lies behind it. */
static u64 end_of(const struct histogram *g, const struct hotspot_thread *t)
{
	u64 end, desired, own, at = g->view->l->tlab.at + g->view->l->tlab_end.at;

	if (!vmstructs_field(g->view->v, "ThreadLocalAllocBuffer", "_end", &own, NULL) ||
	        !vmstructs_field(g->view->v, "ThreadLocalAllocBuffer", "_desired_size", &desired, NULL) ||
	        desired != own + 16 || !memory_read(g->m, &end, 8, t->at + at + 8) || end < t->tlab_end)
		return t->tlab_end;
	return end;
}

/* The heap of ZGC may be mapped more than once: the address by which spaces are given. */
static u64 in_view(const struct histogram *g, u64 addr)
{
	return g->view->heap_base ? (addr & g->view->z.offset_mask) | g->view->heap_base : addr;
}

static struct error *find_buffers(struct histogram *g)
{
	cleanup(free) struct hotspot_thread *threads = calloc(THREADS_MAX, sizeof(*threads));
	u32 n = threads ? hotspot_threads(g->view, g->m, threads, THREADS_MAX, false) : 0;

	free(g->buffers);
	g->nbuffers = 0;
	g->buffers = calloc((size_t)n + 1, sizeof(*g->buffers));
	if (!threads || !g->buffers)
		return &error_no_memory;
	for (u32 i = 0; i < n; i++)
		if (threads[i].tlab_start)
			g->buffers[g->nbuffers++] = (struct buffer){in_view(g, threads[i].tlab_start),
			        in_view(g, threads[i].tlab_top), in_view(g, end_of(g, &threads[i]))};
	sort_keys(g->buffers, g->nbuffers, sizeof(*g->buffers));
	return NULL;
}

/* The first buffer that ends behind an address. */
static const struct buffer *buffer_from(const struct histogram *g, u64 addr)
{
	u32 low = 0, high = g->nbuffers;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (g->buffers[middle].end > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low < g->nbuffers ? &g->buffers[low] : NULL;
}

struct probe {
	u32 left;
};

static bool passes(void *ctx, u64 object, u64 klass, u64 size)
{
	struct probe *p = ctx;

	(void)object, (void)klass, (void)size;
	return p->left-- > 1;
}

/* Do objects begin here, or another buffer, or nothing any more? */
static bool goes_on(struct histogram *g, u64 at, u64 top)
{
	const struct buffer *next = buffer_from(g, at);
	struct probe p = {PROBES};
	u64 limit = next && next->top < top ? next->top : top;

	if (at >= top || (next && next->start == at))
		return at <= top;
	return hotspot_each_object(g->view, g->m, at, limit, passes, &p) >= limit || !p.left;
}

static u64 behind(struct histogram *g, const struct buffer *b, u64 top)
{
	for (u32 i = 0; i < 2; i++)
		if (goes_on(g, b->end + g->reserves[i], top))
			return b->end + g->reserves[i];
	return b->end + g->reserves[0];
}

/* --- spaces --- */

/* Objects from at up to end. Returns where they end. */
static u64 parse(struct histogram *g, u64 at, u64 end)
{
	for (u64 next; at < end && !g->err; at = next) {
		next = hotspot_each_object(g->view, g->m, at, end, count, g);
		if (next == at)
			break;
	}
	return at;
}

/*
 * Behind what is no object, as its class was unloaded or as a collector's thread has not filled it yet: where objects
 * follow one another again, or the end.
 */
static u64 next_object(struct histogram *g, u64 at, u64 end)
{
	u64 step = g->view->alignment, piece[SEARCHED / 8];

	for (at += step; at < end; at += SEARCHED) {
		u64 n = end - at < SEARCHED ? end - at : SEARCHED;

		if (!memory_read(g->m, piece, n, at))
			continue;
		for (u64 i = 0; i < n && g->searches < SEARCHES_MAX; i += step)
			if ((piece[i / 8] & MARK_LOW & ~MARK_BIASED) == MARK_UNLOCKED && ++g->searches &&
			        goes_on(g, at + i, end))
				return at + i;
	}
	return end;
}

/* Returns where its last object ends. */
static u64 read_space(struct histogram *g, const struct hotspot_space *s)
{
	u64 at = s->bottom;

	g->space = s->kind;
	while (at < s->top && !g->err) {
		const struct buffer *b = buffer_from(g, at);
		u64 end = b && b->top < s->top && b->top >= s->bottom ? b->top : s->top;

		at = at < end ? parse(g, at, end) : at;
		if (at < end) {
			u64 next = next_object(g, at, end);

			g->torn++;
			g->torn_bytes += next - at;
			at = next;
		}
		if (b && end == b->top && at < b->end)
			at = behind(g, b, s->top);
	}
	return at;
}

/* SPACE_REGION: it may be. */
static bool is_young(enum hotspot_space_kind kind)
{
	return kind == SPACE_EDEN || kind == SPACE_SURVIVOR || kind == SPACE_REGION;
}

/* The spaces as they are now, and buffers in them. */
static struct error *find_spaces(struct histogram *g)
{
	struct error *err;

	hotspot_spaces_free(&g->spaces);
	err = hotspot_spaces_read(g->view, g->m, &g->spaces);
	return err ? err : find_buffers(g);
}

/*
 * What a humongous object covers of the regions behind its own is no space of its own. No address is parsed twice,
 * whatever the process says.
 */
static struct error *read_some(struct histogram *g, bool young)
{
	struct error *err = NULL;
	u64 covered = 0;

	for (u32 i = 0; !err && i < g->spaces.n; i++) {
		const struct hotspot_space *s = &g->spaces.items[i];

		if (is_young(s->kind) == young && s->bottom >= covered)
			covered = read_space(g, s);
		err = TAKE(g->err);
	}
	return err;
}

/* Young ones first: the next collection will move them. */
static struct error *read_spaces(struct histogram *g)
{
	struct error *err = find_spaces(g);

	if (!err)
		err = read_some(g, true);
	return err ? err : read_some(g, false);
}

static void start_again(struct histogram *g)
{
	g->nkinds = 0;
	free(TAKE(g->kinds));
	table_free(&g->at);
	g->at = (struct table){0};
	g->torn = g->torn_bytes = g->other = 0;
	heap_forget(g->h);
}

/* --- result --- */

static u32 type_of(struct histogram *g, const struct kind *k)
{
	char symbol[NAME_BYTES], name[NAME_BYTES];
	u32 type = heap_type(g->h, k->klass, NULL);

	if (type)
		return type;
	if (!hotspot_symbol(g->view, g->m, k->symbol, symbol, sizeof(symbol)))
		return heap_type(g->h, 1, "(class without a name)");
	hotspot_text_class((const u8 *)symbol, strlen(symbol), name, sizeof(name));
	return heap_type(g->h, k->klass, name);
}

static void tell(struct histogram *g, bool moved)
{
	static const char *const spaces[SPACE_KINDS] = {
	        "eden", "survivors", "old", "humongous", "regions", "pages", "regions", "regions that are emptied"};
	char text[160];

	for (u32 i = 0; i < g->nkinds; i++)
		heap_count(g->h, heap_root(g->h, 0, HEAP_LASTING, spaces[g->kinds[i].space]), type_of(g, &g->kinds[i]),
		        g->kinds[i].count, g->kinds[i].bytes);
	for (u64 i = 0; i < g->torn; i++)
		heap_torn(g->h);
	if (g->torn) {
		snprintf(text, sizeof(text), "in %lu places there were no objects: %lu bytes are missing", g->torn,
		        g->torn_bytes);
		heap_note(g->h, text);
	}
	if (g->other)
		heap_note(g->h, "there are more classes than are counted: objects are missing");
	if (moved)
		heap_note(g->h, MOVED);
	else if (g->emptied) {
		snprintf(text, sizeof(text),
		        "collections emptied spaces of %lu bytes while they were read: some of that may be missing",
		        g->emptied);
		heap_note(g->h, text);
	}
	heap_note(g->h, g->view->concurrent
	                        ? "objects that nothing refers to are counted until they are collected, not by "
	                          "jmap -histo with this collector"
	                        : "objects that nothing refers to are counted until they are collected, as by "
	                          "jmap -histo");
}

/* From now on has_moved() says whether a collection came. False: one is at work, and does not end. */
static bool note_collections(struct histogram *g)
{
	struct memory *now = heap_memory_now(g->h);
	bool stuck = !hotspot_await_collection(g->view, now);

	g->collections = hotspot_collections(g->view, now);
	g->good = hotspot_z_good(g->view, now);
	g->collecting = stuck | hotspot_collecting(g->view, now); /* it is before it is counted */
	return !stuck;
}

static bool has_moved(struct histogram *g)
{
	struct memory *now = heap_memory_now(g->h);

	return g->collecting || hotspot_collecting(g->view, now) ||
	       g->collections != hotspot_collections(g->view, now) || g->good != hotspot_z_good(g->view, now);
}

/* What young objects there are between two collections. False: collections come more often than they can be read. */
static bool read_young(struct histogram *g, struct error **err)
{
	bool moved = true, goes_on = true;

	for (u32 i = 0; !*err && moved && goes_on && i < TRIES; i++) {
		goes_on = note_collections(g);
		if (i)
			start_again(g);
		*err = find_spaces(g);
		if (!*err)
			*err = read_some(g, true);
		moved = has_moved(g);
	}
	return !moved;
}

/*
 * Bytes of the other spaces that were emptied since they were found, so that something else may have been read there.
 * What was added to them is behind their top, and was not read.
 */
static u64 emptied(struct histogram *g)
{
	struct hotspot_spaces later;
	struct error *err;
	u64 ret = 0;

	if (!has_moved(g) && !g->view->concurrent)
		return 0;
	err = hotspot_spaces_read(g->view, heap_memory_now(g->h), &later);
	if (err) {
		error_free(err);
		return 0;
	}
	for (u32 i = 0; i < g->spaces.n; i++) {
		const struct hotspot_space *was = &g->spaces.items[i], *is;
		u32 k = SEARCH(later.n, j, later.items[j].bottom < was->bottom);

		is = k < later.n && later.items[k].bottom == was->bottom ? &later.items[k] : NULL;
		if (!is_young(was->kind) && (!is || is->kind != was->kind || is->top < was->top))
			ret += was->top - was->bottom;
	}
	hotspot_spaces_free(&later);
	return ret;
}

/* All as it was when the young ones were read: a collection that moves only those does not matter any more. */
static struct error *blocks(void *reader)
{
	struct histogram *g = reader;
	struct error *err = NULL;
	bool moved = true;

	for (u32 i = 0; !err && moved && i < TRIES; i++) {
		if (i)
			start_again(g);
		moved = !read_young(g, &err);
		g->full = hotspot_full_collections(g->view, heap_memory_now(g->h));
		if (!err)
			err = read_some(g, false);
		g->emptied = err ? 0 : emptied(g);
		moved |= g->full != hotspot_full_collections(g->view, heap_memory_now(g->h));
	}
	if (!err)
		tell(g, moved);
	return err;
}

/* --- from the roots --- */

static void find_lasting(struct histogram *g)
{
	struct hotspot_spaces *s = &g->lasting;
	u32 n = 0;

	hotspot_spaces_free(s);
	error_free(hotspot_spaces_read(g->view, heap_memory_now(g->h), s));
	for (u32 i = 0; i < s->n; i++)
		if (is_young(s->items[i].kind) || s->items[i].kind == SPACE_EMPTIED)
			continue;
		else if (n && s->items[n - 1].top == s->items[i].bottom)
			s->items[n - 1].top = s->items[i].top;
		else
			s->items[n++] = s->items[i];
	s->n = n;
}

/* Is a space filled right now? */
static bool grows(const struct histogram *g, const struct hotspot_space *s)
{
	const struct buffer *b = buffer_from(g, s->bottom);

	return s->kind == SPACE_EDEN || s->kind == SPACE_REGION || (b && b->start < s->top);
}

/* Was all of a space copied, when it was not filled? */
static bool is_copied(const struct histogram *g, const struct hotspot_space *s)
{
	u32 i = SEARCH(g->before.n, k, g->before.items[k].bottom < s->bottom);

	return i < g->before.n && g->before.items[i].bottom == s->bottom && g->before.items[i].top == s->top;
}

/* Those that are not filled at first, and then the others down, as G1 fills them: what is new comes last. */
static bool copy_some(struct histogram *g, bool first)
{
	cleanup(free) struct heap_stretch *some = calloc((size_t)g->spaces.n + 1, sizeof(*some));
	struct hotspot_spaces kept = {.items = calloc((size_t)g->spaces.n + 1, sizeof(*kept.items))};
	bool ret;

	for (u32 i = 0; some && kept.items && i < g->spaces.n; i++) {
		const struct hotspot_space *s = &g->spaces.items[first ? i : g->spaces.n - 1 - i];

		if (first ? grows(g, s) : is_copied(g, s))
			continue;
		some[kept.n] = (struct heap_stretch){s->bottom, s->top, .mapped = !g->parsed};
		kept.items[kept.n++] = *s;
	}
	ret = some && kept.items && heap_copy(g->h, some, kept.n);
	hotspot_spaces_free(&g->before);
	g->before = kept;
	return ret;
}

static u64 bytes_of_spaces(const struct histogram *g)
{
	u64 bytes = 0;

	for (u32 i = 0; i < g->spaces.n; i++)
		bytes += g->spaces.items[i].top - g->spaces.items[i].bottom;
	return bytes;
}

/* ZGC: with what it has moved, when it is not at it. */
static bool copy_decoding(struct histogram *g)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const u64 end = now_ns() + SETTLE_MS * 1000000ull;
	struct hotspot_z_decoding some = {0};
	bool ret = false;

	while (!ret && now_ns() < end && bytes_of_spaces(g) <= heap_copy_room(g->h)) {
		ret = hotspot_z_decoding(g->view, heap_memory_now(g->h), &g->spaces, &some);
		if (!ret)
			nanosleep(&pause, NULL);
		heap_forget(g->h);
		error_free(find_spaces(g));
	}
	g->good = hotspot_z_good(g->view, heap_memory_now(g->h));
	g->collections = hotspot_collections(g->view, heap_memory_now(g->h));
	ret = ret && heap_copy(g->h, some.items, some.n);
	free(some.items);
	return ret;
}

/* What is filled comes last: nothing that was copied before refers to objects that are not there yet. */
static struct error *copy_spaces(struct histogram *g)
{
	struct error *err = find_spaces(g);

	heap_uncopy(g->h);
	g->copied = !err && (g->parsed || copy_decoding(g)) && copy_some(g, true);
	if (!g->copied || has_moved(g))
		return err;
	heap_forget(g->h); /* what says where they are has changed */
	err = find_spaces(g);
	g->copied = !err && copy_some(g, false);
	return err;
}

/* A copy is of one moment only as far as nothing was written meanwhile. */
static void say_changed(struct histogram *g)
{
	double changed = g->changed;
	char text[160];

	snprintf(text, sizeof(text),
	        "%.1f %% of the heap's pages changed while it was copied: what was moved between objects then may be "
	        "missing",
	        100 * changed);
	if (changed >= CHANGED_SAID)
		heap_note(g->h, text);
}

/* Shenandoah moves objects, or has not yet led all references to where they are now. */
static bool is_emptying(struct histogram *g)
{
	struct hotspot_spaces now = {0};
	bool ret = false;

	if (!g->parsed || !g->view->concurrent)
		return false;
	error_free(hotspot_spaces_read(g->view, heap_memory_now(g->h), &now));
	for (u32 i = 0; i < now.n; i++)
		ret |= now.items[i].kind == SPACE_EMPTIED;
	hotspot_spaces_free(&now);
	return ret;
}

static void await_calm(struct histogram *g)
{
	const struct timespec pause = {.tv_nsec = CALM_MS * 1000000};

	for (u32 i = 0; i < CALM_TRIES && is_emptying(g); i++)
		nanosleep(&pause, NULL);
}

/* Right behind a collection there is most time until the next. */
static void await_next(struct histogram *g)
{
	const struct timespec pause = {.tv_nsec = 200000};
	const u64 end = now_ns() + NEXT_MS * 1000000ull;
	u32 now = hotspot_collections(g->view, heap_memory_now(g->h));

	while (hotspot_collections(g->view, heap_memory_now(g->h)) == now && now_ns() < end)
		nanosleep(&pause, NULL);
}

/* Is another copy likely to be better? i: how many there were. */
static bool copies_again(struct histogram *g, u32 i)
{
	g->copy_moved = has_moved(g);
	if (!g->copied || i >= (g->parsed ? COPIES : Z_COPIES))
		return false;
	if (g->copy_moved)
		return true;
	g->changed = heap_copy_changed(g->h);
	return i < (g->view->concurrent ? CALM_COPIES : STOP_COPIES) && (g->changed > CALM || is_emptying(g));
}

/* Roots, and a copy of the heap that they lead into, if it fits: between two collections, if they leave the time. */
static struct error *roots(void *reader)
{
	struct histogram *g = reader;
	struct error *err = NULL;
	bool goes_on = true;

	for (u32 i = 0; !err && goes_on && (!i || copies_again(g, i)); i++) {
		hotspot_refs_destroy(TAKE(g->refs));
		await_calm(g);
		if (i && g->copy_moved && g->parsed)
			await_next(g);
		goes_on = note_collections(g);
		g->seen = g->collections;
		find_lasting(g);
		err = copy_spaces(g);
		if (!err)
			err = hotspot_refs_create(g->view, g->m, g->h, &g->refs);
		if (!err && g->copied)
			hotspot_refs_freeze(g->refs);
		if (!err)
			err = hotspot_refs_roots(g->refs);
	}
	if (!err && g->copied)
		say_changed(g);
	return err;
}

/* Young objects, and what has been allocated since. After a collection none of those is where it was. */
static bool soon(void *reader, u64 addr)
{
	struct histogram *g = reader;
	u32 i = SEARCH(g->lasting.n, k, g->lasting.items[k].bottom <= addr);

	if (g->copied || !g->lasting.n || (i && addr < g->lasting.items[i - 1].top))
		return false;
	if (!(g->asked++ % SOON_EACH)) {
		u32 now = hotspot_collections(g->view, heap_memory_now(g->h));

		if (now != g->seen) {
			heap_forget(g->h);
			find_lasting(g);
		}
		g->seen = now;
	}
	return true;
}

static enum heap_seen object(void *reader, u64 addr, u32 label, struct heap_object *ret)
{
	return hotspot_refs_object(((struct histogram *)reader)->refs, addr, label, ret);
}

static bool is_candidate(struct histogram *g, u64 object, u64 klass, u64 size)
{
	(void)klass, (void)size;
	heap_candidate(g->h, object, 0);
	return true;
}

/* Calls each() with all objects. */
static struct error *read_objects(
        struct histogram *g, bool (*each)(struct histogram *g, u64 object, u64 klass, u64 size))
{
	struct error *err;

	if (!g->parsed)
		return error_hint(
		        error_new(ERROR_UNSUPPORTED, "what nothing refers to is not known in the heap of ZGC"),
		        "its objects are found from the roots; jcmd PID GC.heap_dump stops the JVM, and works with "
		        "any");
	g->each = each;
	err = read_spaces(g);
	g->each = NULL;
	if (g->torn)
		heap_note(g->h, "in some places there were no objects: what lies there is missing");
	return err;
}

static struct error *all(void *reader)
{
	return read_objects(reader, is_candidate);
}

static bool write_object(struct histogram *g, u64 object, u64 klass, u64 size)
{
	return hotspot_hprof_object(g->dump, object, klass, size);
}

static struct error *dump(void *reader, FILE *out, bool contents, bool *moved)
{
	struct histogram *g = reader;
	struct error *err = g->parsed ? roots(g) : NULL, *end;

	if (!err && g->parsed)
		err = hotspot_hprof_begin(g->refs, out, contents, &g->dump);
	if (!err)
		err = read_objects(g, write_object);
	end = g->dump ? hotspot_hprof_end(TAKE(g->dump)) : NULL;
	*moved = has_moved(g);
	return err ? err : end;
}

/* A heap that was too large for a copy moved. */
static void advise(struct histogram *g)
{
	char text[160];
	u64 bytes = bytes_of_spaces(g);

	snprintf(text, sizeof(text), "with --memory %lu the heap would be copied first, so that less moves meanwhile",
	        (bytes >> 20) * COPY_ROOM + COPY_ROOM);
	if (bytes > heap_copy_room(g->h))
		heap_note(g->h, text);
}

static void close_histogram(void *reader)
{
	struct histogram *g = reader;

	if (g->refs && (g->copied ? g->copy_moved : has_moved(g))) {
		heap_note(g->h, MOVED);
		if (!g->copied)
			advise(g);
	}
	hotspot_refs_destroy(g->refs);
	hotspot_spaces_free(&g->spaces);
	hotspot_spaces_free(&g->before);
	hotspot_spaces_free(&g->lasting);
	free(g->buffers);
	free(g->kinds);
	table_free(&g->at);
	free(g);
}

static struct error *open_histogram(void *data, const struct runtime_process *p, struct heap *h, void **ret)
{
	const struct hotspot_instance *instance = data;
	struct histogram *g;
	struct error *err;
	bool parsed;

	*ret = NULL;
	if (!instance->heap || !hotspot_heap_ready(instance->heap, p->memory))
		return NULL;
	err = hotspot_spaces_check(instance->heap, p->memory, &parsed);
	if (err)
		return err;
	if (!parsed)
		heap_live_only(h);
	g = calloc(1, sizeof(*g));
	if (!g)
		return &error_no_memory;
	*g = (struct histogram){.h = h, .view = instance->heap, .m = p->memory, .parsed = parsed};
	hotspot_classes_forget(g->view);
	find_reserves(g);
	*ret = g;
	return NULL;
}

#define COLLECTORS                                                                                                     \
	"Java: HotSpot of JDK 8 and later with G1, Serial or Parallel, of 15 and later with ZGC, of 17 and later "     \
	"with Shenandoah"

const struct runtime_heap_ops hotspot_heap_ops = {
        .objects = "objects",
        .text = COLLECTORS
        ". Spaces are parsed from their beginning to their end: all objects that have not been collected yet, "
        "as jmap -histo counts them; with --live those that static fields, threads, their stacks and JNI "
        "references keep, as always with ZGC. The part of a thread's buffer that is not filled yet does not count. "
        "Young "
        "objects are read first, between two collections (in up to three attempts); the result is the heap at that "
        "moment.",
        .walk = COLLECTORS
        ". Roots are the static fields of classes that stay loaded, threads with their thread-locals, their stacks, "
        "and "
        "JNI references. Stacks are searched for words that may be references: such are marked \"?\". Weak and phantom "
        "references are not followed, soft ones are. Maps and lists of java.util are drawn with their keys, values "
        "and items.",
        .open = open_histogram,
        .close = close_histogram,
        .roots = roots,
        .object = object,
        .soon = soon,
        .blocks = blocks,
        .all = all,
        .dump = dump,
        .blocks_are_all = true,
};
