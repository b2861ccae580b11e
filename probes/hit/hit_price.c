/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_price.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/object.h"
#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/code/insn.h"
#include "unwind/thread_start.h"

#define PLACES 4

struct hit_price {
	const struct event_host *host;
	struct uprobe *probe[PLACES];
	u32 nprobes;
	pthread_t thread; /* takes them away */
	bool leaving;
};

struct error *hit_price_create(const struct event_host *host, struct hit_price **ret)
{
	struct hit_price *h = calloc(1, sizeof(*h));

	if (!h)
		return &error_no_memory;
	h->host = host;
	*ret = h;
	return NULL;
}

static void *take_away(void *arg)
{
	struct hit_price *h = arg;

	for (u32 i = 0; i < h->nprobes; i++)
		uprobe_take_away(h->probe[i]);
	return NULL;
}

/* That takes a tenth of a second. */
static void leave(struct hit_price *h)
{
	if (h->leaving || !h->nprobes)
		return;
	h->leaving = thread_start(&h->thread, NULL, take_away, h) == 0;
	if (h->leaving)
		return;
	take_away(h);
	h->nprobes = 0;
}

void hit_price_destroy(struct hit_price *h)
{
	if (!h)
		return;
	leave(h);
	if (h->leaving)
		pthread_join(h->thread, NULL);
	free(h);
}

/* The bytes of the instruction if the next one follows it; 0: it may go elsewhere. */
static u32 goes_on(const u8 *code, size_t size)
{
	struct insn insn = insn_decode(code, size);

	switch (insn.kind) {
	case INSN_OTHER:
	case INSN_PUSH:
	case INSN_PUSH_FP:
	case INSN_SET_FP:
		return insn.size;
	default:
		return 0;
	}
}

struct error *hit_price_place(struct hit_price *h, const struct process *p, const struct image *img, const char *path,
        const struct hit_place *entry)
{
	const struct bpf_program *program = object_skeleton(h->host->object)->progs.on_second;
	u8 code[2 * INSN_MAX];
	ssize_t got = h->leaving || h->nprobes == PLACES ? 0 : pread(img->fd, code, sizeof(code), (off_t)entry->offset);
	u32 size = got > 0 ? goes_on(code, (size_t)got) : 0;
	struct error *err;

	if (!size || !uprobe_is_safe(code + size, (size_t)got - size)) /* SYSCALL in wrappers of libc */
		return NULL;
	err = uprobe_place(program, p->pid, path, entry->offset + size, 0, 0, &h->probe[h->nprobes]);
	h->nprobes += !err;
	return err;
}

void hit_price_poll(struct hit_price *h)
{
	struct sample *skel = object_skeleton(h->host->object);

	if (h->leaving || skel->bss->latency_nprices < LATENCY_PRICES)
		return;
	skel->bss->latency_pricing = 0;
	leave(h);
}

static int by_value(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct latency_price latency_price_of(u64 *prices, u32 n)
{
	struct latency_price ret = {0};
	u64 sum = 0;
	u32 zeros = 0;

	qsort(prices, n, sizeof(*prices), by_value);
	while (zeros < n && !prices[zeros])
		zeros++;
	prices += zeros;
	ret.n = n - zeros;
	if (!ret.n)
		return ret;
	ret.low = prices[ret.n / 10];
	ret.middle = prices[ret.n / 2];
	ret.high = prices[ret.n - 1 - ret.n / 10];
	for (u32 i = 0; i < ret.n; i++) /* not those that an interrupt or another thread made long */
		sum += prices[i] < ret.high ? prices[i] : ret.high;
	ret.mean = sum / ret.n;
	return ret;
}

struct latency_price hit_price_get(const struct hit_price *h)
{
	u64 prices[LATENCY_PRICES];

	memcpy(prices, object_skeleton(h->host->object)->bss->latency_prices, sizeof(prices));
	return latency_price_of(prices, LATENCY_PRICES);
}
