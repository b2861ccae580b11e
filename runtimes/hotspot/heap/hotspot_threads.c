/* SPDX-License-Identifier: Apache-2.0 */
/* The Java threads of a JVM: ThreadsSMRSupport::_java_thread_list (10 and later), Threads::_thread_list (before). */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hotspot_heap_view.h"
#include "now.h"

#define THREADS_MAX 65536
#define SPAN_MAX    8192
#define LOOK_NS     20000000ull
#define LOOK_SHARE  10 /* the next look waits this many times as long as the last one took */
#define TLAB_MAX    (1ull << 40)

/* A JavaThread as it is at one moment: all that is wanted lies within a few kilobytes, and one read takes it whole. */
struct span {
	u64 start, size;
	u8 bytes[SPAN_MAX];
};

static void cover(struct span *s, u64 at)
{
	u64 end = s->start + s->size > at + 8 ? s->start + s->size : at + 8;

	s->start = at < s->start ? at : s->start;
	s->size = end - s->start;
}

static bool read_span(const struct hotspot_heap_view *h, struct memory *m, u64 thread, struct span *s)
{
	const struct hotspot_layout *l = h->l;

	s->start = l->tlab.at;
	s->size = 8;
	cover(s, l->tlab.at + l->tlab_start.at);
	cover(s, l->tlab.at + l->tlab_top.at);
	cover(s, l->tlab.at + l->tlab_end.at);
	cover(s, l->allocated_bytes.at);
	cover(s, l->osthread.at);
	cover(s, l->thread_obj.at);
	if (h->at.thread_next)
		cover(s, h->at.thread_next);
	return s->size <= SPAN_MAX && memory_read(m, s->bytes, s->size, thread + s->start);
}

static u64 word(const struct span *s, u64 at)
{
	u64 ret;

	memcpy(&ret, s->bytes + (at - s->start), 8);
	return ret;
}

static bool fill_thread(
        struct hotspot_heap_view *h, struct memory *m, u64 at, const struct span *s, struct hotspot_thread *t)
{
	const struct hotspot_layout *l = h->l;
	u64 osthread = word(s, l->osthread.at);
	s32 tid;

	memset(t, 0, sizeof(*t));
	t->at = at;
	t->allocated = word(s, l->allocated_bytes.at);
	t->tlab_start = word(s, l->tlab.at + l->tlab_start.at);
	t->tlab_top = word(s, l->tlab.at + l->tlab_top.at);
	t->tlab_end = word(s, l->tlab.at + l->tlab_end.at);
	if (h->no_tlabs || !t->tlab_start || t->tlab_start > t->tlab_top || t->tlab_top > t->tlab_end ||
	        t->tlab_end - t->tlab_start > TLAB_MAX)
		t->tlab_start = t->tlab_top = t->tlab_end = 0;
	t->allocated += t->tlab_top - t->tlab_start;
	if (!osthread || !memory_read(m, &tid, 4, osthread + l->os_thread_id.at) || tid <= 0)
		return false; /* about to start, or just gone */
	t->tid = tid;
	return true;
}

static void name_thread(struct hotspot_heap_view *h, struct memory *m, struct hotspot_thread *t)
{
	u64 object = hotspot_load_handle(h, m, t->at + h->l->thread_obj.at, h->at.thread_handle);

	if (!object || !hotspot_java_thread_name(h, m, object, t->name, sizeof(t->name)))
		t->name[0] = 0;
}

/* Calls each for all threads until it returns false. False: the list changed under our hands. */
static bool each_thread(struct hotspot_heap_view *h, struct memory *m,
        bool (*each)(void *ctx, const struct hotspot_thread *t), void *ctx)
{
	cleanup(free) u64 *list = NULL;
	struct hotspot_thread t;
	struct span s;
	u64 head, array, at;
	u32 length;

	if (!memory_read(m, &head, 8, h->thread_list) || !head)
		return true;
	if (!h->at.list_threads) {
		for (u32 i = 0; head && i < THREADS_MAX; i++, head = word(&s, h->at.thread_next)) {
			if (!read_span(h, m, head, &s))
				return false;
			if (fill_thread(h, m, head, &s, &t) && !each(ctx, &t))
				return true;
		}
		return true;
	}
	if (!memory_read(m, &length, 4, head + h->at.list_length) || length > THREADS_MAX ||
	        !memory_read(m, &array, 8, head + h->at.list_threads) || !(list = malloc(length * 8ull + 1)) ||
	        (length && !memory_read(m, list, length * 8ull, array)) || !memory_read(m, &at, 8, h->thread_list) ||
	        at != head)
		return false;
	for (u32 i = 0; i < length; i++)
		if (list[i] && read_span(h, m, list[i], &s) && fill_thread(h, m, list[i], &s, &t) && !each(ctx, &t))
			break;
	return true;
}

struct gather {
	struct hotspot_thread *ret;
	u32 n, max;
};

static bool gather_one(void *ctx, const struct hotspot_thread *t)
{
	struct gather *g = ctx;

	if (g->n < g->max)
		g->ret[g->n++] = *t;
	return g->n < g->max;
}

u32 hotspot_threads(struct hotspot_heap_view *h, struct memory *m, struct hotspot_thread *ret, u32 max, bool names)
{
	struct gather g = {ret, 0, max};

	if (!max || !hotspot_heap_ready(h, m))
		return 0;
	for (int attempt = 0; attempt < 3 && !each_thread(h, m, gather_one, &g); attempt++)
		g.n = 0;
	for (u32 i = 0; names && i < g.n; i++)
		name_thread(h, m, &ret[i]);
	return g.n;
}

static int by_tid(const void *a, const void *b)
{
	const struct hotspot_thread_place *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static void look(struct hotspot_heap_view *h, struct memory *m)
{
	cleanup(free) struct hotspot_thread *list = calloc(THREADS_MAX, sizeof(*list));
	struct hotspot_thread_place *places;
	u64 begin = now_ns();
	u32 n;

	if (!memory_read(m, &h->places_list, 8, h->thread_list))
		h->places_list = 0;
	n = list ? hotspot_threads(h, m, list, THREADS_MAX, false) : 0;
	places = calloc(n + 1, sizeof(*places));
	for (u32 i = 0; places && i < n; i++)
		places[i] = (struct hotspot_thread_place){list[i].at, list[i].tid};
	if (places) {
		qsort(places, n, sizeof(*places), by_tid);
		free(h->places);
		h->places = places;
		h->nplaces = n;
	}
	h->places_next_ns = now_ns() + LOOK_NS + (now_ns() - begin) * LOOK_SHARE;
}

bool hotspot_places_renew(struct hotspot_heap_view *h, struct memory *m, bool must)
{
	if (!must && now_ns() < h->places_next_ns)
		return false;
	look(h, m);
	return true;
}

pid_t hotspot_tid_of(const struct hotspot_heap_view *h, struct memory *m, u64 thread)
{
	u64 osthread;
	s32 ret;

	return memory_read(m, &osthread, 8, thread + h->l->osthread.at) && osthread &&
	                       memory_read(m, &ret, 4, osthread + h->l->os_thread_id.at) && ret > 0
	               ? ret
	               : 0;
}

static u64 find_place(const struct hotspot_heap_view *h, struct memory *m, pid_t tid)
{
	const struct hotspot_thread_place want = {.tid = tid}, *found;

	found = h->nplaces ? bsearch(&want, h->places, h->nplaces, sizeof(want), by_tid) : NULL;
	return found && hotspot_tid_of(h, m, found->at) == tid ? found->at : 0;
}

u64 hotspot_thread_at(struct hotspot_heap_view *h, struct memory *m, pid_t tid)
{
	u64 found = hotspot_heap_ready(h, m) ? find_place(h, m, tid) : 0;

	if (found || !h->ready || !hotspot_places_renew(h, m, false))
		return found;
	return find_place(h, m, tid);
}

/* A thread that is new is the first of the chain, or in another array. */
static bool has_changed(const struct hotspot_heap_view *h, struct memory *m)
{
	u64 list;

	return h->ready && memory_read(m, &list, 8, h->thread_list) && list != h->places_list;
}

/* One that was there at the last look, or is new. */
bool hotspot_thread_of(struct hotspot_heap_view *h, struct memory *m, pid_t tid, struct hotspot_thread *ret)
{
	u64 at = hotspot_thread_at(h, m, tid);
	struct span s;

	if (!at && has_changed(h, m)) {
		look(h, m);
		at = find_place(h, m, tid);
	}
	if (!at || !read_span(h, m, at, &s) || !fill_thread(h, m, at, &s, ret) || ret->tid != tid)
		return false;
	name_thread(h, m, ret);
	return true;
}

void hotspot_anchor_find(const struct hotspot_heap_view *h, struct hotspot_anchor *ret)
{
	u64 anchor = h->l->thread_anchor.at, sp, pc, fp, pthread_id;

	*ret = (struct hotspot_anchor){0};
	if (!vmstructs_field(h->v, "JavaFrameAnchor", "_last_Java_sp", &sp, NULL) ||
	        !vmstructs_field(h->v, "JavaFrameAnchor", "_last_Java_pc", &pc, NULL) ||
	        !vmstructs_field(h->v, "JavaFrameAnchor", "_last_Java_fp", &fp, NULL) ||
	        !vmstructs_field(h->v, "OSThread", "_pthread_id", &pthread_id, NULL))
		return;
	*ret = (struct hotspot_anchor){
	        .list = h->thread_list,
	        .length = (u16)h->at.list_length,
	        .threads = (u16)h->at.list_threads,
	        .next = (u16)h->at.thread_next,
	        .osthread = (u16)h->l->osthread.at,
	        .pthread_id = (u16)pthread_id,
	        .sp = (u16)(anchor + sp),
	        .pc = (u16)(anchor + pc),
	        .fp = (u16)(anchor + fp),
	};
}
