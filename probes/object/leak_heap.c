/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_heap.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "alloc_functions.h"
#include "probes/targets.h"
#include "unwind/allocators/allocators.h"
#include "unwind/allocators/jemalloc.h"
#include "unwind/allocators/size_class.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/thread_start.h"

#define STEP_NS          1000000000ull
#define EACH             20 /* times as long as a look takes lies between two */
#define OWN              2  /* times as long as a look takes must processes have run for the next */
#define PROCESSES        16
#define TRIES_FIRST      2 /* to read a heap: a program that allocates all the time changes it meanwhile; */
#define TRIES            8 /* of one that was read before */
#define CHUNK_HEADER     8 /* of glibc's malloc, besides a block, both together a multiple of */
#define CHUNK_ALIGN      16
#define CHUNK_LEAST      32
#define JEMALLOC_QUANTUM 16 /* at most, between classes up to JEMALLOC_SMALL; above there are four to a doubling */
#define JEMALLOC_SMALL   128
#define JEMALLOC_LEAST   20 /* blocks that a thread's cache may hold: at least, and at most, */
#define JEMALLOC_MOST    200
#define JEMALLOC_CACHED  32768 /* of a size up to that */

static const struct allocator *const books[LEAK_BOOKS] = {
        [LEAK_BOOKS_GLIBC] = &glibc_allocator, [LEAK_BOOKS_JEMALLOC] = &jemalloc_allocator};

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
	bool was_read[PROCESSES][LEAK_BOOKS];
	u32 threads; /* of the processes, at the last point */
	struct leak_series series;
};

struct error *leak_heap_create(struct leak_heap **ret)
{
	struct leak_heap *h = calloc(1, sizeof(*h));
	pthread_condattr_t attr;

	*ret = h;
	if (!h)
		return &error_no_memory;
	h->step_ns = STEP_NS;
	h->wanted[LEAK_BOOKS_GLIBC] = true;
	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h->changed, &attr);
	pthread_condattr_destroy(&attr);
	return leak_series_create(&h->series);
}

void leak_heap_destroy(struct leak_heap *h)
{
	if (!h)
		return;
	leak_heap_end(h);
	leak_series_free(&h->series);
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
static bool read_books(struct space *space, enum leak_books of, struct leak_books_point *p)
{
	struct usage *u = NULL;
	struct error *err = usage_create(&u);
	bool whole;

	if (!err)
		err = books[of]->read(space, u);
	whole = !err && u->facts.in_use && !is_corrupt(u);
	if (whole) {
		p->in_use += u->facts.in_use;
		p->free += u->facts.free + u->facts.cached;
		for (u32 i = 0; i < SIZE_CLASSES; i++)
			p->in_use_of[i] += u->in_use_of[i];
	}
	usage_destroy(u);
	error_free(err);
	return whole;
}

static u32 threads_of(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &st) || st.st_nlink < 2 ? 0 : (u32)st.st_nlink - 2;
}

static bool try_books(pid_t pid, enum leak_books of, struct leak_books_point *p)
{
	struct space space;
	struct error *err = space_open(pid, NULL, &space);
	bool whole = !err && read_books(&space, of, p);

	if (!err)
		space_close(&space);
	error_free(err);
	return whole;
}

/* The program changes a heap while it is read: so there are several tries. */
static void read_all(struct leak_heap *h, const pid_t *pids, u32 n, struct leak_series_point *p)
{
	for (u32 i = 0; i < n; i++)
		for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++) {
			u32 k = 0, tries = h->was_read[i][of] ? TRIES : TRIES_FIRST;

			if (!h->wanted[of])
				continue;
			while (!try_books(pids[i], of, &p->of[of]) && ++k < tries)
				;
			h->was_read[i][of] |= k < tries;
			p->of[of].failed += k == tries;
		}
	p->processes = n;
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
static void take_point(struct leak_heap *h, const pid_t *pids, u32 n, struct leak_series_point *p)
{
	u64 cpu = cpu_of(pids, n), begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID), since = now_ns();
	const struct leak_series_point *last = leak_series_last(&h->series);

	if (last && (cpu == h->cpu_ns || (!h->ending && cpu - h->cpu_ns < OWN * h->took_ns))) {
		*p = *last;
		p->ns = since - h->began_ns;
		return;
	}
	h->cpu_ns = cpu;
	h->threads = 0;
	for (u32 i = 0; i < n; i++)
		h->threads += threads_of(pids[i]);
	read_all(h, pids, n, p);
	p->ns = (since + now_ns()) / 2 - h->began_ns;
	h->took_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* Under the lock, which it gives up meanwhile. Returns when to look again. */
static u64 look(struct leak_heap *h)
{
	struct leak_series_point *p = calloc(1, sizeof(*p));
	pid_t pids[PROCESSES];
	u32 n = h->npids;
	u64 begin = now_ns(), cpu = cpu_ns(CLOCK_THREAD_CPUTIME_ID), took;

	memcpy(pids, h->pids, sizeof(pids));
	pthread_mutex_unlock(&h->lock);
	if (p)
		take_point(h, pids, n, p);
	took = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	pthread_mutex_lock(&h->lock);
	if (p && leak_series_add(&h->series, p))
		h->step_ns *= 2;
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
	leak_series_curve(&h->series, s);
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

/*
 * Jemalloc counts what threads' caches hold as in use: of a size up to 200 blocks, twice as many as a slab has
 * (tcache.c: tcache_bin_info_compute(), tcache_boot()). Each is filled and flushed at its own time.
 */
static double cached(enum leak_books of, u64 size, u32 threads)
{
	u64 room = leak_heap_room(of, size), slab = jemalloc_slab_size(room);
	u64 most = room > JEMALLOC_CACHED ? 0 : slab ? 2 * slab / room : JEMALLOC_LEAST;

	if (of != LEAK_BOOKS_JEMALLOC)
		return 0;
	most = most < JEMALLOC_LEAST ? JEMALLOC_LEAST : most > JEMALLOC_MOST ? JEMALLOC_MOST : most;
	return room > JEMALLOC_CACHED ? 0 : (double)(most * room) * sqrt(threads);
}

bool leak_heap_grew(struct leak_heap *h, double run_s, const struct leak_heap_blocks *of, struct leak_growing *ret)
{
	double mean = fmin(fmax(of->mean, (double)of->least), (double)of->most);
	double room = (double)leak_heap_room(of->books, (u64)ceil(mean)), part = of->mean > 0 ? mean / room : 1;
	struct leak_series_of series = {.books = of->books,
	        .from = size_class(of->least),
	        .to = size_class(leak_heap_room(of->books, of->most)),
	        .part = part,
	        .unsure = part * cached(of->books, of->most, h->threads)};

	return of->least <= of->most && of->most <= UINT32_MAX && leak_series_grew(&h->series, run_s, &series, ret);
}

u32 leak_heap_growing(struct leak_heap *h, double run_s, struct leak_class ret[LEAK_CLASSES])
{
	return leak_series_growing(&h->series, run_s, ret);
}
