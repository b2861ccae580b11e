/* SPDX-License-Identifier: Apache-2.0 */
#include "mmap_watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_PAGES 8    /* power of two, behind the head page */
#define MAPPED_MAX   4096 /* kept of what was mapped */
#define TOLD_MAX     64
#define JIT_MS       100 /* a JIT may map its code thousands of times a second: report it at most so often */

struct buffer {
	int fd;
	struct perf_event_mmap_page *head;
};

/* What a process mapped, or, without a path, that it became another program. */
struct mapped {
	u64 at_ns;
	pid_t pid;
	struct map_line line;
};

struct pids { /* 0: any */
	pid_t pid[TOLD_MAX];
	u32 n;
};

struct mmap_watch {
	struct buffer *buffers;
	u32 nbuffers;
	size_t page;
	struct mapped mapped[MAPPED_MAX];
	u32 nmapped;         /* so far: the last ones are kept */
	struct pids changed; /* to be reported */
	bool jit_due;        /* anonymous code is to be reported in this round */
	struct pids jit;     /* those with anonymous code that was not, in a round before */
	u64 jit_ns;          /* when it was last */
};

/*
 * A record must not wake us: where each does, a JIT that maps code all the time pays for as many interrupts. Whoever
 * waits looks from time to time.
 */
static int open_dummy(int cpu, size_t page)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
	        .type = PERF_TYPE_SOFTWARE,
	        .config = PERF_COUNT_SW_DUMMY,
	        .mmap = 1,
	        .mmap2 = 1,
	        .comm = 1,
	        .comm_exec = 1,
	        .watermark = 1,
	        .wakeup_watermark = BUFFER_PAGES * page / 2,
	        .sample_type = PERF_SAMPLE_TIME,
	        .sample_id_all = 1,
	        .use_clockid = 1,
	        .clockid = CLOCK_MONOTONIC};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct error *open_buffer(struct mmap_watch *w, int cpu)
{
	struct buffer *b = &w->buffers[w->nbuffers];

	b->fd = open_dummy(cpu, w->page);
	if (b->fd < 0)
		return errno == ENODEV ? NULL : error_errno(errno, "cannot watch for new code");
	b->head = mmap(NULL, (BUFFER_PAGES + 1) * w->page, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->head == MAP_FAILED) {
		close(b->fd);
		return error_errno(errno, "cannot watch for new code");
	}
	w->nbuffers++;
	return NULL;
}

struct error *mmap_watch_create(struct mmap_watch **ret)
{
	long ncpus = sysconf(_SC_NPROCESSORS_CONF);
	struct mmap_watch *w = calloc(1, sizeof(*w));
	struct error *err = NULL;

	if (!w || !(w->buffers = calloc(ncpus, sizeof(*w->buffers)))) {
		free(w);
		return &error_no_memory;
	}
	w->page = sysconf(_SC_PAGESIZE);
	for (int cpu = 0; !err && cpu < ncpus; cpu++)
		err = open_buffer(w, cpu);
	if (err) {
		mmap_watch_destroy(w);
		return err;
	}
	*ret = w;
	return NULL;
}

void mmap_watch_destroy(struct mmap_watch *w)
{
	if (!w)
		return;
	for (u32 i = 0; i < w->nbuffers; i++) {
		munmap(w->buffers[i].head, (BUFFER_PAGES + 1) * w->page);
		close(w->buffers[i].fd);
	}
	for (u32 i = 0; i < MAPPED_MAX; i++)
		free(w->mapped[i].line.path);
	free(w->buffers);
	free(w);
}

struct error *mmap_watch_poll(struct mmap_watch *w, int epoll, u64 tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};

	for (u32 i = 0; i < w->nbuffers; i++)
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, w->buffers[i].fd, &event))
			return error_errno(errno, "cannot wait for new code");
	return NULL;
}

/* Of a record, words are taken out of the ring one by one. */
static u64 word_at(const char *data, size_t size, u64 at)
{
	u64 word;

	memcpy(&word, data + at % size, sizeof(word));
	return word;
}

/* PERF_RECORD_MMAP2: the header, pid and tid, addr, len, pgoff, device, inode (0: anonymous), its generation, prot and
 * flags, path, time. */
#define RECORD_PID   8
#define RECORD_ADDR  16
#define RECORD_INODE 48
#define RECORD_PROT  64
#define RECORD_PATH  72
#define RECORD_MAX   (RECORD_PATH + 4096 + 16)

static void add_pid(struct pids *pids, pid_t pid)
{
	for (u32 i = 0; i < pids->n; i++)
		if (pids->pid[i] == pid || !pids->pid[i])
			return;
	if (!pid || pids->n == TOLD_MAX)
		*pids = (struct pids){.n = 1};
	else
		pids->pid[pids->n++] = pid;
}

static void keep(struct mmap_watch *w, const struct mapped *mapped)
{
	struct mapped *at = &w->mapped[w->nmapped++ % MAPPED_MAX];

	free(at->line.path);
	*at = *mapped;
}

/* record: its size bytes in a row, with a 0 behind them. */
static void absorb_mapped(struct mmap_watch *w, const u64 *record, size_t size)
{
	const u64 *word = record + RECORD_ADDR / 8;
	struct mapped m = {.at_ns = record[size / 8 - 1],
	        .pid = (pid_t)record[RECORD_PID / 8],
	        .line = {.start = word[0],
	                .end = word[0] + word[1],
	                .offset = word[2],
	                .ino = record[RECORD_INODE / 8],
	                .dev = makedev((u32)word[3], word[3] >> 32),
	                .prot = (u32)record[RECORD_PROT / 8]}};

	if (!m.line.ino && !w->jit_due) {
		add_pid(&w->jit, m.pid);
		return;
	}
	add_pid(&w->changed, m.pid);
	if (m.line.ino && m.line.end > m.line.start &&
	        (m.line.path = strndup((const char *)record + RECORD_PATH, size - RECORD_PATH - 8)))
		keep(w, &m);
}

/* Of a process outside of our pid namespace the kernel gives 0, or -1 once it is gone (perf_event_pid_type()). */
static void absorb(struct mmap_watch *w, const u64 *record, const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_LOST)
		add_pid(&w->changed, 0);
	else if ((pid_t)record[RECORD_PID / 8] <= 0)
		return;
	else if (header->type == PERF_RECORD_MMAP2 && header->size > RECORD_PATH + sizeof(u64))
		absorb_mapped(w, record, header->size);
	else if (header->type == PERF_RECORD_COMM && header->misc & PERF_RECORD_MISC_COMM_EXEC)
		keep(w, &(struct mapped){.at_ns = record[header->size / 8 - 1], .pid = (pid_t)record[RECORD_PID / 8]});
}

static void absorb_buffer(struct mmap_watch *w, struct buffer *b)
{
	const size_t size = BUFFER_PAGES * w->page;
	const char *data = (const char *)b->head + w->page;
	u64 tail = b->head->data_tail, end = __atomic_load_n(&b->head->data_head, __ATOMIC_ACQUIRE),
	    record[RECORD_MAX / 8];
	struct perf_event_header header;

	while (tail + RECORD_PID + sizeof(u64) <= end) {
		u64 word = word_at(data, size, tail);

		memcpy(&header, &word, sizeof(header));
		if (header.size < sizeof(header) + sizeof(u64))
			break;
		for (u32 at = 0; at < header.size && at < RECORD_MAX; at += 8)
			record[at / 8] = word_at(data, size, tail + at);
		if (header.size <= RECORD_MAX)
			absorb(w, record, &header);
		tail += header.size;
	}
	__atomic_store_n(&b->head->data_tail, end, __ATOMIC_RELEASE);
}

static void absorb_all(struct mmap_watch *w)
{
	for (u32 i = 0; i < w->nbuffers; i++)
		absorb_buffer(w, &w->buffers[i]);
}

void mmap_watch_consume(struct mmap_watch *w, u64 now_ns, void (*changed)(void *ctx, pid_t pid), void *ctx)
{
	w->jit_due = now_ns - w->jit_ns > JIT_MS * 1000000ull;
	for (u32 i = 0; w->jit_due && i < w->jit.n; i++)
		add_pid(&w->changed, w->jit.pid[i]);
	if (w->jit_due) {
		w->jit_ns = now_ns;
		w->jit.n = 0;
	}
	absorb_all(w);
	for (u32 i = 0; i < w->changed.n; i++)
		changed(ctx, w->changed.pid[i]);
	w->changed.n = 0;
}

/* Puts a line where it belongs; what lay there before is no more. */
static struct error *add_line(struct maps *maps, const struct map_line *line)
{
	struct map_line *grown;
	u32 at = 0;

	while (at < maps->nlines && maps->lines[at].start < line->start)
		at++;
	if (at < maps->nlines && maps->lines[at].start < line->end)
		return NULL;
	if (at && maps->lines[at - 1].end > line->start)
		return NULL;
	grown = realloc(maps->lines, (maps->nlines + 1) * sizeof(*grown));
	if (!grown)
		return &error_no_memory;
	maps->lines = grown;
	memmove(grown + at + 1, grown + at, (maps->nlines - at) * sizeof(*grown));
	grown[at] = *line;
	maps->nlines++;
	grown[at].path = strdup(line->path);
	return grown[at].path ? NULL : &error_no_memory;
}

/* From when to when the program of that moment ran: from one execve() to the next. False: not known since when. */
static bool find_program(const struct mmap_watch *w, pid_t pid, u64 at_ns, bool forked, u64 *since, u64 *until)
{
	*since = forked ? at_ns : 0;
	*until = ~0ULL;
	for (u32 i = 0; i < MAPPED_MAX; i++) {
		const struct mapped *m = &w->mapped[i];

		if (m->pid != pid || m->line.path)
			continue;
		if (m->at_ns > at_ns)
			*until = m->at_ns < *until ? m->at_ns : *until;
		else if (!forked)
			*since = m->at_ns > *since ? m->at_ns : *since;
	}
	return *since;
}

/* The latest come first: they replaced what lay there before. Those of one CPU are in order, and a young process mostly
 * has one. */
struct error *mmap_watch_recall(struct mmap_watch *w, pid_t pid, u64 at_ns, bool forked, struct maps *ret)
{
	struct error *err = NULL;
	u64 since, until;

	*ret = (struct maps){0};
	absorb_all(w);
	if (!find_program(w, pid, at_ns, forked, &since, &until))
		return NULL;
	for (u32 i = 1; !err && i <= MAPPED_MAX; i++) {
		const struct mapped *m = &w->mapped[(w->nmapped - i) % MAPPED_MAX];

		if (m->pid == pid && m->line.path && m->at_ns > since && m->at_ns < until)
			err = add_line(ret, &m->line);
	}
	if (err)
		maps_free(ret);
	return err;
}
