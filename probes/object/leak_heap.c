/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_heap.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc_functions.h"
#include "probes/targets.h"
#include "unwind/allocators/allocators.h"
#include "unwind/allocators/size_class.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/thread_start.h"

#define STEP_NS          1000000000ull
#define EACH             20 /* times as long as a look takes lies between two */
#define OWN              2  /* times as long as a look takes must processes have run for the next */
#define PROCESSES        16
#define POINTS_LEAST     4
#define ENOUGH           0.6 /* of the run, that lies between the first point and the last */
#define TRIES_FIRST      2   /* to read a heap: a program that allocates all the time changes it meanwhile; */
#define TRIES            8   /* of one that was read before */
#define CHUNK_HEADER     8   /* of glibc's malloc, besides a block, both together a multiple of */
#define CHUNK_ALIGN      16
#define CHUNK_LEAST      32
#define JEMALLOC_QUANTUM 16 /* at most, between classes up to JEMALLOC_SMALL; above there are four to a doubling */
#define JEMALLOC_SMALL   128
#define GROWN_LEAST      16384.0 /* bytes; less is no growth, */
#define GROWN_PART       50      /* nor is less than such a part (1/GROWN_PART) of what is in use, */
#define SLOWER           4       /* nor what has become so much slower in the second half */

static const struct allocator *const books[LEAK_BOOKS] = {
        [LEAK_BOOKS_GLIBC] = &glibc_allocator, [LEAK_BOOKS_JEMALLOC] = &jemalloc_allocator};

struct point {
	struct leak_heap_point all;
	u64 in_use[LEAK_BOOKS][SIZE_CLASSES];
	u32 processes, failed; /* of them, whose heaps could not be read */
};

struct leak_heap {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, ending;
	bool wanted[LEAK_BOOKS];
	pid_t pids[PROCESSES];
	u32 npids;
	u64 began_ns, step_ns;
	u64 cpu_ns;  /* of the processes at the last point that was read, */
	u64 took_ns; /* and what that took */
	struct point *points;
	u32 n;
};

struct error *leak_heap_create(struct leak_heap **ret)
{
	struct leak_heap *h = calloc(1, sizeof(*h));
	pthread_condattr_t attr;

	*ret = h;
	if (!h)
		return &error_no_memory;
	h->points = calloc(LEAK_HEAP_POINTS, sizeof(*h->points));
	h->step_ns = STEP_NS;
	h->wanted[LEAK_BOOKS_GLIBC] = true;
	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->changed, &attr);
	pthread_condattr_destroy(&attr);
	return h->points ? NULL : &error_no_memory;
}

void leak_heap_destroy(struct leak_heap *h)
{
	if (!h)
		return;
	leak_heap_end(h);
	free(h->points);
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

enum leak_books leak_heap_books(struct image *img)
{
	const char *kind = alloc_functions_kind(img);

	for (u32 i = LEAK_BOOKS_NONE + 1; kind && i < LEAK_BOOKS; i++)
		if (!strcmp(kind, books[i]->name))
			return i;
	return LEAK_BOOKS_NONE;
}

void leak_heap_want(struct leak_heap *h, enum leak_books of)
{
	pthread_mutex_lock(&h->lock);
	h->wanted[of] = true;
	pthread_mutex_unlock(&h->lock);
}

static bool is_corrupt(const struct usage *u)
{
	for (u32 i = 0; i < u->nlines; i++)
		if (u->lines[i].kind == USAGE_CORRUPT)
			return true;
	return false;
}

/* False: nothing was found, or what does not hold together. */
static bool read_books(struct space *space, enum leak_books of, struct point *p)
{
	struct usage *u = NULL;
	struct error *err = usage_create(&u);
	bool whole;

	if (!err)
		err = books[of]->read(space, u);
	whole = !err && u->facts.in_use && !is_corrupt(u);
	if (whole) {
		p->all.in_use += u->facts.in_use;
		p->all.free += u->facts.free + u->facts.cached;
		for (u32 i = 0; i < SIZE_CLASSES; i++)
			p->in_use[of][i] += u->in_use_of[i];
	}
	usage_destroy(u);
	error_free(err);
	return whole;
}

/* The same, of all allocators. */
static bool read_process(const struct leak_heap *h, pid_t pid, struct point *p)
{
	struct space space;
	struct error *err = space_open(pid, NULL, &space);
	bool whole = false;

	if (err) {
		error_free(err);
		return false;
	}
	for (u32 i = LEAK_BOOKS_NONE + 1; i < LEAK_BOOKS; i++)
		if (h->wanted[i])
			whole |= read_books(&space, i, p);
	space_close(&space);
	return whole;
}

static void read_all(const struct leak_heap *h, const pid_t *pids, u32 n, u32 tries, struct point *p)
{
	for (u32 i = 0; i < n; i++) {
		u32 k = 0;

		while (!read_process(h, pids[i], p) && ++k < tries)
			;
		p->failed += k == tries;
	}
	p->processes = n;
}

/*
 * A heap that could be read before, or can be now for the first time, is no growth: such a point is left out, or the
 * first one. Past all points each second one goes.
 */
static void keep(struct leak_heap *h, const struct point *p)
{
	const struct point *before = h->n ? &h->points[h->n - 1] : p;

	if (p->processes == before->processes && p->failed > before->failed)
		return;
	if (p->processes == before->processes && p->failed < before->failed)
		h->n = 0;
	if (h->n == LEAK_HEAP_POINTS) {
		for (u32 i = 0; i < LEAK_HEAP_POINTS / 2; i++)
			h->points[i] = h->points[2 * i];
		h->n /= 2;
		h->step_ns *= 2;
	}
	h->points[h->n++] = *p;
}

static u64 cpu_ns(clockid_t clock)
{
	struct timespec ts;

	return clock_gettime(clock, &ts) ? 0 : (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

static u64 cpu_of(const pid_t *pids, u32 n)
{
	u64 sum = 0;
	clockid_t clock;

	for (u32 i = 0; i < n; i++)
		sum += clock_getcpuclockid(pids[i], &clock) ? 0 : cpu_ns(clock);
	return sum;
}

/* Heaps of processes that have hardly run since are as they were; the last point tells the rest. */
static void take_point(struct leak_heap *h, const pid_t *pids, u32 n, struct point *p)
{
	u64 cpu = cpu_of(pids, n), begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID), since = now_ns();

	if (h->n && (cpu == h->cpu_ns || (!h->ending && cpu - h->cpu_ns < OWN * h->took_ns))) {
		*p = h->points[h->n - 1];
		p->all.ns = since - h->began_ns;
		return;
	}
	h->cpu_ns = cpu;
	read_all(h, pids, n, h->n ? TRIES : TRIES_FIRST, p);
	p->all.ns = (since + now_ns()) / 2 - h->began_ns;
	h->took_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* Under the lock, which it gives up meanwhile. Returns when to look again. */
static u64 look(struct leak_heap *h)
{
	struct point *p = calloc(1, sizeof(*p));
	pid_t pids[PROCESSES];
	u32 n = h->npids;
	u64 begin = now_ns(), cpu = cpu_ns(CLOCK_THREAD_CPUTIME_ID), took;

	memcpy(pids, h->pids, sizeof(pids));
	pthread_mutex_unlock(&h->lock);
	if (p)
		take_point(h, pids, n, p);
	took = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	pthread_mutex_lock(&h->lock);
	if (p && p->all.in_use)
		keep(h, p);
	free(p);
	return begin + (took * EACH > h->step_ns ? took * EACH : h->step_ns);
}

static void *work(void *arg)
{
	struct leak_heap *h = arg;

	pthread_mutex_lock(&h->lock);
	while (!h->ending) {
		struct timespec ts = now_timespec(look(h));

		if (!h->ending)
			pthread_cond_timedwait(&h->changed, &h->lock, &ts);
	}
	look(h);
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

void leak_heap_look(struct leak_heap *h, const struct targets *t, u64 since_ns)
{
	pthread_mutex_lock(&h->lock);
	h->npids = 0;
	for (u32 i = 0; i < t->nprocesses && h->npids < PROCESSES; i++)
		if (!t->processes[i]->dead)
			h->pids[h->npids++] = t->processes[i]->pid;
	if (!h->running && !h->ending && h->npids) {
		h->began_ns = now_ns() - since_ns;
		h->running = thread_start(&h->thread, NULL, work, h) == 0;
	}
	pthread_mutex_unlock(&h->lock);
}

void leak_heap_end(struct leak_heap *h)
{
	pthread_mutex_lock(&h->lock);
	h->ending = true;
	pthread_cond_signal(&h->changed);
	pthread_mutex_unlock(&h->lock);
	if (h->running)
		pthread_join(h->thread, NULL);
	h->running = false;
}

void leak_heap_points(struct leak_heap *h, struct leak_summary *s)
{
	for (u32 i = 0; i < h->n; i++)
		s->heap[i] = h->points[i].all;
	s->nheap = h->n;
}

static u64 glibc_room(u64 size)
{
	u64 chunk = (size + CHUNK_HEADER + CHUNK_ALIGN - 1) / CHUNK_ALIGN * CHUNK_ALIGN;

	return chunk > CHUNK_LEAST ? chunk : CHUNK_LEAST;
}

static u64 jemalloc_room(u64 size)
{
	u64 step = size > JEMALLOC_SMALL ? 1ull << (61 - __builtin_clzll(size - 1)) : JEMALLOC_QUANTUM;

	return (size + step - 1) / step * step;
}

u64 leak_heap_room(enum leak_books of, u64 size)
{
	if (of == LEAK_BOOKS_NONE || size > UINT32_MAX)
		return size;
	return of == LEAK_BOOKS_GLIBC ? glibc_room(size) : jemalloc_room(size);
}

static u64 bytes_of(const struct point *p, const struct leak_heap_blocks *of)
{
	u32 from = size_class(of->least), to = size_class(leak_heap_room(of->books, of->most));
	u64 sum = 0;

	for (u32 i = from; i <= to && i < SIZE_CLASSES; i++)
		sum += p->in_use[of->books][i];
	return sum;
}

/* The point that is nearest to the middle of the time. */
static const struct point *middle_of(const struct leak_heap *h)
{
	u64 middle = (h->points[0].all.ns + h->points[h->n - 1].all.ns) / 2;
	u32 i = 1;

	while (i + 2 < h->n && h->points[i].all.ns < middle)
		i++;
	return &h->points[i];
}

static double a_minute(double bytes, const struct point *from, const struct point *to)
{
	return bytes / ((double)(to->all.ns - from->all.ns) / 60e9);
}

/* The first, the middle and the last one. False: they say nothing of the run. */
static bool find_points(const struct leak_heap *h, double run_s, const struct point *ret[3])
{
	if (h->n < POINTS_LEAST)
		return false;
	ret[0] = h->points;
	ret[1] = middle_of(h);
	ret[2] = &h->points[h->n - 1];
	return ret[2]->all.ns > ret[1]->all.ns && ret[1]->all.ns > ret[0]->all.ns &&
	       (double)(ret[2]->all.ns - ret[0]->all.ns) > ENOUGH * run_s * 1e9;
}

static struct leak_heap_growth growth_of(const struct point *const at[3], const double bytes[3])
{
	return (struct leak_heap_growth){.early = bytes[1] - bytes[0],
	        .late = bytes[2] - bytes[1],
	        .in_use = bytes[2],
	        .a_minute = a_minute(bytes[2] - bytes[0], at[0], at[2]),
	        .late_a_minute = a_minute(bytes[2] - bytes[1], at[1], at[2])};
}

bool leak_heap_grew(struct leak_heap *h, double run_s, const struct leak_heap_blocks *of, struct leak_heap_growth *ret)
{
	const struct leak_heap_blocks any = {of->books, 0, UINT32_MAX, 0};
	double bytes[3], part = of->mean > 0 ? of->mean / (double)leak_heap_room(of->books, (u64)ceil(of->mean)) : 1;
	const struct point *at[3];

	if (of->least > of->most || of->most > UINT32_MAX || !find_points(h, run_s, at) || !bytes_of(at[0], &any))
		return false;
	for (u32 i = 0; i < 3; i++)
		bytes[i] = (double)bytes_of(at[i], of) * part;
	*ret = growth_of(at, bytes);
	return true;
}

/* Is it no chance, and does it go on? */
static bool goes_on(const struct leak_heap_growth *g, double all)
{
	return g->early > GROWN_LEAST && g->late > GROWN_LEAST && g->late * SLOWER > g->early &&
	       g->early + g->late > fmax(g->in_use, all) / GROWN_PART;
}

static int by_growth(const void *a, const void *b)
{
	const struct leak_heap_class *x = a, *y = b;

	return (x->growth.a_minute < y->growth.a_minute) - (x->growth.a_minute > y->growth.a_minute);
}

u32 leak_heap_growing(struct leak_heap *h, double run_s, struct leak_heap_class ret[LEAK_HEAP_CLASSES])
{
	const struct point *at[3];
	double bytes[3];
	u32 n = 0;

	if (!find_points(h, run_s, at))
		return 0;
	for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++)
		for (u32 i = 0; i < SIZE_CLASSES; i++) {
			for (u32 k = 0; k < 3; k++)
				bytes[k] = (double)at[k]->in_use[of][i];
			ret[n] = (struct leak_heap_class){of, i, growth_of(at, bytes)};
			n += goes_on(&ret[n].growth, (double)at[2]->all.in_use);
		}
	qsort(ret, n, sizeof(*ret), by_growth);
	return n;
}
