/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_departures.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "probes/uprobe.h"
#include "unwind/thread_start.h"

struct alloc_departing {
	pthread_t thread;
	struct uprobe *uprobe;
	struct alloc_breakpoint last;
	bool done;
};

static bool read_byte(const struct alloc_breakpoint *b, u8 *ret)
{
	struct iovec to = {ret, 1}, from = {(void *)b->addr, 1};

	return b->pid && b->addr && process_vm_readv(b->pid, &to, 1, &from, 1, 0) == 1;
}

void alloc_breakpoint_before(struct alloc_breakpoint *b, pid_t pid, u64 addr)
{
	*b = (struct alloc_breakpoint){.pid = pid, .addr = addr};
	if (!read_byte(b, &b->before))
		b->pid = 0;
}

/* Links of perf events are several, and another's breakpoint at the place stays. */
void alloc_breakpoint_after(struct alloc_breakpoint *b, const struct uprobe *u)
{
	u8 now;

	if (!u || !uprobe_is_multi(u) || !read_byte(b, &now) || now == b->before)
		b->pid = 0;
}

static void *take_away(void *arg)
{
	struct alloc_departing *one = arg;

	uprobe_take_away(one->uprobe);
	__atomic_store_n(&one->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_done(const struct alloc_departing *one)
{
	return __atomic_load_n(&one->done, __ATOMIC_ACQUIRE);
}

static void join(struct alloc_departures *d, bool all)
{
	for (u32 i = d->n; i-- > 0;) {
		struct alloc_departing *one = d->of[i];

		if (!all && !is_done(one))
			continue;
		pthread_join(one->thread, NULL);
		free(one);
		d->of[i] = d->of[--d->n];
	}
}

void alloc_depart(struct alloc_departures *d, struct uprobe **u, const struct alloc_breakpoint *last)
{
	struct alloc_departing *one;

	if (!*u)
		return;
	join(d, false);
	one = d->n < ALLOC_DEPARTURES ? calloc(1, sizeof(*one)) : NULL;
	if (one)
		*one = (struct alloc_departing){.uprobe = *u, .last = *last};
	if (!one || thread_start(&one->thread, NULL, take_away, one)) {
		uprobe_take_away(*u);
		free(one);
	} else {
		d->of[d->n++] = one;
	}
	*u = NULL;
}

bool alloc_departures_hit(struct alloc_departures *d)
{
	join(d, false);
	for (u32 i = 0; i < d->n; i++) {
		struct alloc_breakpoint *b = &d->of[i]->last;
		u8 now;

		if (!b->pid || (read_byte(b, &now) && now != b->before))
			return true;
	}
	return false;
}

void alloc_departures_join(struct alloc_departures *d)
{
	join(d, true);
}
