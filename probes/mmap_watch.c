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

struct buffer {
	int fd;
	struct perf_event_mmap_page *head;
};

struct mmap_watch {
	struct buffer *buffers;
	u32 nbuffers;
	size_t page;
	pid_t last; /* the process named last: a JIT names its own again and again */
};

static int open_dummy(int cpu)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
		.mmap = 1, .mmap2 = 1, .watermark = 1, .wakeup_watermark = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct error *open_buffer(struct mmap_watch *w, int cpu)
{
	struct buffer *b = &w->buffers[w->nbuffers];

	b->fd = open_dummy(cpu);
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

/* All of a record that we read, the header and the pid behind it, taken out of the ring word by word. */
struct head {
	struct perf_event_header header;
	u32 pid, tid;
};

static void consume_buffer(struct mmap_watch *w, struct buffer *b, void (*changed)(void *ctx, pid_t pid), void *ctx)
{
	const size_t size = BUFFER_PAGES * w->page;
	const char *data = (const char *)b->head + w->page;
	u64 tail = b->head->data_tail, end = __atomic_load_n(&b->head->data_head, __ATOMIC_ACQUIRE);

	while (tail + sizeof(struct head) <= end) {
		struct head r;

		memcpy(&r, data + tail % size, 8);
		memcpy((char *)&r + 8, data + (tail + 8) % size, 8);
		if (r.header.size < sizeof(r.header))
			break;
		if (r.header.type == PERF_RECORD_LOST)
			changed(ctx, 0);
		else if (r.header.type == PERF_RECORD_MMAP2 && (pid_t)r.pid != w->last)
			changed(ctx, w->last = (pid_t)r.pid);
		tail += r.header.size;
	}
	__atomic_store_n(&b->head->data_tail, end, __ATOMIC_RELEASE);
}

void mmap_watch_consume(struct mmap_watch *w, void (*changed)(void *ctx, pid_t pid), void *ctx)
{
	w->last = -1;
	for (u32 i = 0; i < w->nbuffers; i++)
		consume_buffer(w, &w->buffers[i], changed, ctx);
}
