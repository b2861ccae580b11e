/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_heap.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/targets.h"
#include "unwind/allocators/allocators.h"
#include "unwind/allocators/size_class.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/thread_start.h"

#define STEP_NS      1000000000ull
#define EACH         20 /* times as long as a look takes lies between two */
#define OWN          2  /* times as long as a look takes must processes have run for the next */
#define PROCESSES    16
#define POINTS_LEAST 4
#define ENOUGH       0.6 /* of the run, that lies between the first point and the last */
#define MORE         16  /* bytes that an allocator adds to a block, at most, besides */
#define ROUNDED      4   /* that part of it (1/ROUNDED): jemalloc's classes */
#define TRIES_FIRST  2   /* to read a heap: a program that allocates all the time changes it meanwhile; */
#define TRIES        8   /* of one that was read before */
#define CHUNK_HEADER 8   /* of glibc's malloc, besides a block, both together a multiple of */
#define CHUNK_ALIGN  16
#define CHUNK_LEAST  32

struct point {
	struct leak_heap_point all;
	u64 in_use[SIZE_CLASSES];
	u32 processes, failed; /* of them, whose heaps could not be read */
};

struct leak_heap {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, ending;
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

/* Nodes of blocks in use have the names of their classes. */
static void add_classes(const struct usage *u, struct point *p)
{
	char name[SIZE_CLASS_NAME];

	for (u32 i = 0; i < u->nnodes; i++) {
		const struct usage_node *n = &u->nodes[i];

		for (u32 k = 0; n->kind == USAGE_IN_USE && n->own.blocks && k < SIZE_CLASSES; k++)
			if (!strcmp(n->name, size_class_name(k, name)))
				p->in_use[k] += n->own.size;
	}
}

static bool is_whole(const struct usage *u)
{
	for (u32 i = 0; i < u->nlines; i++)
		if (u->lines[i].kind == USAGE_CORRUPT)
			return false;
	return u->facts.in_use;
}

/* False: nothing was found, or what does not hold together. */
static bool read_process(pid_t pid, struct point *p)
{
	struct usage *u = NULL;
	struct space space;
	struct error *err = space_open(pid, NULL, &space);
	bool whole;

	if (err) {
		error_free(err);
		return false;
	}
	err = usage_create(&u);
	if (!err)
		err = glibc_allocator.read(&space, u);
	space_close(&space);
	whole = !err && is_whole(u);
	if (whole) {
		p->all.in_use += u->facts.in_use;
		p->all.free += u->facts.free + u->facts.cached;
		add_classes(u, p);
	}
	usage_destroy(u);
	error_free(err);
	return whole;
}

static void read_all(const pid_t *pids, u32 n, u32 tries, struct point *p)
{
	for (u32 i = 0; i < n; i++) {
		u32 k = 0;

		while (!read_process(pids[i], p) && ++k < tries)
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
	read_all(pids, n, h->n ? TRIES : TRIES_FIRST, p);
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

static u64 bytes_of(const struct point *p, u64 least, u64 most)
{
	u32 from = size_class(least), to = size_class(most + most / ROUNDED + MORE);
	u64 sum = 0;

	for (u32 i = from; i <= to && i < SIZE_CLASSES; i++)
		sum += p->in_use[i];
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

/* What part of a chunk is the block. */
static double part_of_chunk(double size)
{
	double chunk = ceil((size + CHUNK_HEADER) / CHUNK_ALIGN) * CHUNK_ALIGN;

	return size > 0 ? size / fmax(chunk, CHUNK_LEAST) : 1;
}

static double a_minute(double bytes, const struct point *from, const struct point *to)
{
	return bytes / ((double)(to->all.ns - from->all.ns) / 60e9);
}

bool leak_heap_grew(struct leak_heap *h, double run_s, u64 least, u64 most, double mean, struct leak_heap_growth *ret)
{
	const struct point *first = h->points, *middle, *last;
	double before, half, after, part = part_of_chunk(mean);

	if (h->n < POINTS_LEAST || least > most || most > UINT32_MAX)
		return false;
	middle = middle_of(h);
	last = &h->points[h->n - 1];
	if (last->all.ns <= middle->all.ns || middle->all.ns <= first->all.ns ||
	        (double)(last->all.ns - first->all.ns) <= ENOUGH * run_s * 1e9)
		return false;
	before = (double)bytes_of(first, least, most) * part;
	half = (double)bytes_of(middle, least, most) * part;
	after = (double)bytes_of(last, least, most) * part;
	*ret = (struct leak_heap_growth){.early = half - before,
	        .late = after - half,
	        .in_use = after,
	        .a_minute = a_minute(after - before, first, last),
	        .late_a_minute = a_minute(after - half, middle, last)};
	return true;
}
