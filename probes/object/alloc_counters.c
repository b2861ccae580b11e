/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc_progress.h"
#include "probes/map_each.h"
#include "unwind/binary/memory.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/table.h"

#define GONE_MOST 20 /* up to one thread in 20 may end during the run, */
#define GONE_FREE 4  /* and 4 more */
#define PIECES    64

struct process_counter {
	u32 tgid;
	u64 offset;
	struct memory *memory;
	struct bpf_link *visit; /* NULL: the kernel has no such iterator */
};

struct thread {
	u32 process; /* its place among them */
	u64 base, last;
	bool is_new, was_read, gone;
};

struct alloc_counters {
	const struct bpf_map *at, *map;
	const struct bpf_program *visit;
	u64 begun;
	struct process_counter *processes;
	u32 nprocesses;
	struct thread *threads;
	u32 nthreads, gone;
	struct table by_key; /* places of threads, + 1 */
	bool strange;
	double bytes, first;
};

struct alloc_counters *alloc_counters_create(
        const struct bpf_map *at, const struct bpf_map *threads, const struct bpf_program *visit)
{
	struct alloc_counters *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->at = at;
	c->map = threads;
	c->visit = visit;
	c->begun = now_ns();
	return c;
}

static void end_process(struct process_counter *p)
{
	memory_destroy(p->memory);
	bpf_link__destroy(p->visit);
}

void alloc_counters_destroy(struct alloc_counters *c)
{
	if (!c)
		return;
	for (u32 i = 0; i < c->nprocesses; i++)
		end_process(&c->processes[i]);
	free(c->processes);
	free(c->threads);
	table_free(&c->by_key);
	free(c);
}

static u32 process_at(const struct alloc_counters *c, u32 tgid)
{
	u32 i = 0;

	while (i < c->nprocesses && c->processes[i].tgid != tgid)
		i++;
	return i;
}

static struct error *take_process(void *ctx, const void *key, const void *value)
{
	const struct alloc_counter_at *at = value;
	struct alloc_counters *c = ctx;
	u32 tgid = *(const u32 *)key;
	struct process_counter p = {.tgid = tgid, .offset = at->offset};
	union bpf_iter_link_info info = {.task.pid = tgid};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info, .link_info_len = sizeof(info));
	struct error *err;

	c->strange |= at->strange > 0;
	if (!at->offset || process_at(c, tgid) < c->nprocesses)
		return NULL;
	err = grow(&c->processes, c->nprocesses, sizeof(*c->processes));
	p.memory = err ? NULL : memory_live((pid_t)tgid);
	if (!p.memory)
		return err ? err : &error_no_memory;
	p.visit = bpf_program__attach_iter(c->visit, &options);
	if (!p.visit) /* Linux 6.1 visits all or none */
		p.visit = bpf_program__attach_iter(c->visit, NULL);
	c->processes[c->nprocesses++] = p;
	return NULL;
}

/* BPF notes threads as they are visited. */
static void visit(const struct process_counter *p)
{
	int fd = p->visit ? bpf_iter_create(bpf_link__fd(p->visit)) : -1;
	char none[64];

	while (fd >= 0 && read(fd, none, sizeof(none)) > 0)
		;
	if (fd >= 0)
		close(fd);
}

/* Threads of a process whose counter is not known yet come again. */
static struct error *take_thread(void *ctx, const void *key, const void *value)
{
	const struct alloc_thread *of = key;
	struct alloc_counters *c = ctx;
	u64 hash = ((of->base ^ (u64)of->tgid << 40) * 0x9e3779b97f4a7c15ull) | 1;
	u32 process = process_at(c, of->tgid);
	struct error *err;

	if (process == c->nprocesses || table_get(&c->by_key, hash))
		return NULL;
	err = grow(&c->threads, c->nthreads, sizeof(*c->threads));
	if (!err)
		err = table_put(&c->by_key, hash, c->nthreads + 1);
	if (!err)
		c->threads[c->nthreads++] =
		        (struct thread){.process = process, .base = of->base, .is_new = *(const u64 *)value > c->begun};
	return err;
}

static void take_count(struct alloc_counters *c, struct thread *t, bool ok, u64 count)
{
	if (!ok || count < t->last) { /* another one may have its place now */
		c->gone += !t->gone;
		t->gone = !ok;
		t->last = 0;
	}
	if (!ok)
		return;
	if (t->is_new || t->was_read)
		c->bytes += (double)(count - t->last);
	if (t->is_new && !t->was_read)
		c->first += (double)(count - t->last);
	t->was_read = true;
	t->last = count;
}

/* Threads of one process follow each other mostly, and come in one call. */
static void read_some(struct alloc_counters *c, u32 from, u32 to)
{
	const struct process_counter *p = &c->processes[c->threads[from].process];
	struct memory_piece piece[PIECES];
	u64 count[PIECES];
	size_t ok;

	for (u32 i = from; i < to; i++)
		piece[i - from] =
		        (struct memory_piece){&count[i - from], c->threads[i].base + p->offset, sizeof(*count)};
	for (u32 i = from; i < to; i++) {
		ok = memory_read_pieces(p->memory, piece + (i - from), to - i);
		for (u32 k = 0; k < ok; k++, i++)
			take_count(c, &c->threads[i], true, count[i - from]);
		if (i < to)
			take_count(c, &c->threads[i], false, 0);
	}
}

void alloc_counters_read(struct alloc_counters *c, struct alloc_counted *ret)
{
	error_free(map_each(c->at, false, take_process, c, "places of counters"));
	for (u32 i = 0; i < c->nprocesses; i++)
		visit(&c->processes[i]);
	if (c->nprocesses)
		error_free(map_each(c->map, false, take_thread, c, "threads that allocate"));
	for (u32 from = 0, to; from < c->nthreads; from = to) {
		for (to = from; to < c->nthreads && to - from < PIECES; to++)
			if (c->threads[to].process != c->threads[from].process)
				break;
		read_some(c, from, to);
	}
	*ret = (struct alloc_counted){.bytes = c->bytes,
	        .first = c->first,
	        .known = c->nthreads > 0,
	        .sure = !c->strange && c->gone <= GONE_FREE + c->nthreads / GONE_MOST};
}
