/* SPDX-License-Identifier: Apache-2.0 */
#include "mmap_watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUFFER_PAGES 8 /* power of two, behind the head page */
#define JIT_MS	     100 /* a JIT may map its code thousands of times a second: tell of it at most so often */

struct buffer {
	int fd;
	struct perf_event_mmap_page *head;
};

struct mmap_watch {
	struct buffer *buffers;
	u32 nbuffers;
	size_t page;
	pid_t last;    /* the process named last: repeats are left out */
	bool jit_due;  /* anonymous code is to be told of in this round */
	bool jit_left; /* some was not, in a round before */
	u64 jit_ns;    /* when it was last */
};

/*
 * A record must not wake us: where each does, a JIT that maps code all the time pays for as many interrupts. Whoever waits looks
 * from time to time.
 */
static int open_dummy(int cpu, size_t page)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
		.mmap = 1, .mmap2 = 1, .watermark = 1, .wakeup_watermark = BUFFER_PAGES * page / 2 };

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
	free(w->buffers);
	free(w);
}

struct error *mmap_watch_poll(struct mmap_watch *w, int epoll, u64 tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = tag };

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

/* PERF_RECORD_MMAP2: the header, pid and tid, addr, len, pgoff, device, inode (0: anonymous). */
#define RECORD_PID   8
#define RECORD_INODE 48

static void consume_mapped(struct mmap_watch *w, pid_t pid, bool anonymous, void (*changed)(void *ctx, pid_t pid), void *ctx)
{
	w->jit_left |= anonymous && !w->jit_due;
	if (pid == w->last || (anonymous && !w->jit_due))
		return;
	w->last = pid;
	changed(ctx, pid);
}

static void consume_buffer(struct mmap_watch *w, struct buffer *b, void (*changed)(void *ctx, pid_t pid), void *ctx)
{
	const size_t size = BUFFER_PAGES * w->page;
	const char *data = (const char *)b->head + w->page;
	u64 tail = b->head->data_tail, end = __atomic_load_n(&b->head->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header header;

	while (tail + RECORD_PID + sizeof(u64) <= end) {
		u64 word = word_at(data, size, tail);

		memcpy(&header, &word, sizeof(header));
		if (header.size < sizeof(header) + sizeof(u64))
			break;
		if (header.type == PERF_RECORD_LOST)
			changed(ctx, 0);
		else if (header.type == PERF_RECORD_MMAP2 && header.size > RECORD_INODE)
			consume_mapped(w, (pid_t)word_at(data, size, tail + RECORD_PID),
				!word_at(data, size, tail + RECORD_INODE), changed, ctx);
		tail += header.size;
	}
	__atomic_store_n(&b->head->data_tail, end, __ATOMIC_RELEASE);
}

void mmap_watch_consume(struct mmap_watch *w, u64 now_ns, void (*changed)(void *ctx, pid_t pid), void *ctx)
{
	w->last = -1;
	w->jit_due = now_ns - w->jit_ns > JIT_MS * 1000000ull;
	if (w->jit_due)
		w->jit_ns = now_ns;
	if (w->jit_due && w->jit_left)
		changed(ctx, 0);
	w->jit_left = w->jit_left && !w->jit_due;
	for (u32 i = 0; i < w->nbuffers; i++)
		consume_buffer(w, &w->buffers[i], changed, ctx);
}
