/* SPDX-License-Identifier: Apache-2.0 */
#include "threads.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probes/capabilities.h"
#include "probes/kernel_name.h"
#include "thread_iterator.skel.h"
#include "unwind/grow.h"
#include "unwind/now.h"

#define SETTLE_NS  50000        /* a sleep, so that the moment when this thread got its CPU is known */
#define OFF_NS_MAX (1ull << 55) /* a year: what is longer is another scheduling class's stale number */

struct threads {
	struct thread_iterator *skel;
	struct bpf_link *link;
	bool no_single; /* the kernel can not iterate over one thread alone (before 6.1) */
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN && getenv("YRT_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

static struct error *explain_load(int code)
{
	if (code == EPERM || code == EACCES)
		return capabilities_no_bpf(code);
	if (code == EMFILE)
		return error_errno(code, "cannot list threads by BPF");
	return error_hint(error_new(ERROR_UNSUPPORTED, "the kernel does not list threads by BPF: %s", strerror(code)),
	        "yrt needs Linux 5.15 or later, with BTF; `yrt doctor` shows what this machine permits");
}

struct error *threads_create(bool no_kernel, struct threads **ret)
{
	struct threads *t = calloc(1, sizeof(*t));
	struct error *err;

	if (!t)
		return &error_no_memory;
	libbpf_set_print(quiet);
	t->skel = thread_iterator__open();
	if (t->skel)
		t->skel->rodata->with_kernel = !no_kernel;
	if (t->skel && !thread_iterator__load(t->skel))
		t->link = bpf_program__attach_iter(t->skel->progs.on_task, NULL);
	if (t->link) {
		*ret = t;
		return NULL;
	}
	err = explain_load(errno);
	threads_destroy(t);
	return err;
}

void threads_destroy(struct threads *t)
{
	if (!t)
		return;
	bpf_link__destroy(t->link);
	thread_iterator__destroy(t->skel);
	free(t);
}

bool threads_name_kernel(struct threads *t, u64 addr, char *text, size_t size)
{
	return kernel_name(bpf_program__fd(t->skel->progs.name_kernel), &t->skel->bss->named_addr,
	        t->skel->bss->named_text, addr, text, size);
}

struct error *threads_want(struct threads *t, pid_t pid)
{
	u32 key = (u32)pid, value = 1;

	if (bpf_map_update_elem(bpf_map__fd(t->skel->maps.wanted), &key, &value, BPF_ANY))
		return error_errno(errno, "cannot register process %d with BPF", pid);
	return NULL;
}

static struct error *add(struct thread_list *list, const struct thread_record *record)
{
	struct error *err = grow(&list->items, list->n, sizeof(*list->items));

	if (!err)
		list->items[list->n++] = *record;
	return err;
}

/* Records are whole: the kernel hands out none that does not fit. */
static struct error *read_all(int fd, struct thread_list *ret)
{
	static struct thread_record buffer[64];
	struct error *err = NULL;
	ssize_t have = 0, got = 1;

	while (!err && got > 0) {
		got = read(fd, (char *)buffer + have, sizeof(buffer) - (size_t)have);
		if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
			got = 1;
			continue;
		}
		if (got < 0)
			return error_errno(errno, "cannot read the list of threads");
		have += got;
		for (size_t i = 0; !err && i < (size_t)have / sizeof(*buffer); i++)
			err = add(ret, &buffer[i]);
		memmove(buffer, (char *)buffer + have / (ssize_t)sizeof(*buffer) * (ssize_t)sizeof(*buffer),
		        (size_t)have % sizeof(*buffer));
		have %= (ssize_t)sizeof(*buffer);
	}
	return err;
}

static int by_tid(const void *a, const void *b)
{
	const struct thread_record *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* From the moment when they left the CPU, by the scheduler's clock, to how long ago that was; woke_ns: when this thread
 * got its own. */
static void finish_records(struct threads *t, struct thread_list *list, u64 woke_ns)
{
	u64 now = t->skel->bss->reader_arrival ? t->skel->bss->reader_arrival + (now_ns() - woke_ns) : 0;

	for (u32 i = 0; i < list->n; i++) {
		struct thread_record *r = &list->items[i];

		r->off_ns = now && r->off_ns && now > r->off_ns && now - r->off_ns < OFF_NS_MAX &&
		                            !(r->flags & THREAD_ON_CPU)
		                    ? now - r->off_ns
		                    : 0;
		if (r->nkernel > THREAD_KERNEL_FRAMES)
			r->nkernel = THREAD_KERNEL_FRAMES;
		r->comm[sizeof(r->comm) - 1] = '\0';
	}
}

static struct error *take(struct threads *t, const struct bpf_link *link, struct thread_list *ret)
{
	const struct timespec settle = {.tv_nsec = SETTLE_NS};
	struct error *err;
	u64 woke_ns;
	int fd = bpf_iter_create(bpf_link__fd(link));

	*ret = (struct thread_list){0};
	if (fd < 0)
		return error_errno(errno, "cannot list threads by BPF");
	nanosleep(&settle, NULL);
	woke_ns = now_ns();
	err = read_all(fd, ret);
	close(fd);
	if (err) {
		free(ret->items);
		return err;
	}
	finish_records(t, ret, woke_ns);
	if (ret->n)
		qsort(ret->items, ret->n, sizeof(*ret->items), by_tid);
	return NULL;
}

struct error *threads_take(struct threads *t, struct thread_list *ret)
{
	return take(t, t->link, ret);
}

static struct bpf_link *link_one(struct threads *t, pid_t tid)
{
	union bpf_iter_link_info info = {.task.tid = (u32)tid};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info, .link_info_len = sizeof(info));

	return t->no_single ? NULL : bpf_program__attach_iter(t->skel->progs.on_task, &options);
}

struct error *threads_take_one(struct threads *t, pid_t tid, struct thread_record *ret, bool *found)
{
	struct bpf_link *link = link_one(t, tid);
	struct thread_list list;
	struct error *err;

	*found = false;
	if (!link && errno != ESRCH)
		t->no_single = true;
	else if (!link)
		return NULL;
	err = take(t, link ? link : t->link, &list);
	bpf_link__destroy(link);
	if (err)
		return err;
	for (u32 i = 0; i < list.n && !*found; i++) {
		*found = list.items[i].tid == (u32)tid;
		if (*found)
			*ret = list.items[i];
	}
	free(list.items);
	return NULL;
}
