/* SPDX-License-Identifier: Apache-2.0 */
#include "growth_left.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "probes/fault/fault.h"
#include "probes/map_each.h"
#include "probes/object.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/allocators/pages.h"
#include "unwind/binary/maps.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define FRAME_HUGE (1ull << 22 | 1ull << 17) /* KPF_THP, KPF_HUGE: Documentation/admin-guide/mm/pagemap.rst */

struct touched {
	struct growth_page_key key;
	struct growth_page page;
};

struct touched_all {
	struct touched *of;
	u32 n;
};

static struct error *gather(void *ctx, const void *key, const void *value)
{
	struct touched_all *all = ctx;
	struct error *err = grow(&all->of, all->n, sizeof(*all->of));

	if (err)
		return err;
	all->of[all->n].key = *(const struct growth_page_key *)key;
	all->of[all->n++].page = *(const struct growth_page *)value;
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct touched *x = a, *y = b;

	if (x->key.instance != y->key.instance)
		return x->key.instance < y->key.instance ? -1 : 1;
	return (x->key.page > y->key.page) - (x->key.page < y->key.page);
}

/* The process as it is now; NULL: it has ended, or runs another program. */
static const struct process *living(const struct event_host *host, u32 instance)
{
	const struct process *p = targets_find(host->targets, instance);

	return p && !p->dead && p->pid ? p : NULL;
}

/* Of a program that has ended. The first target of a run that starts a command is yrt, until it becomes the command. */
static bool counts_ended(const struct event_host *host, u32 instance, const struct growth_left *ret)
{
	return ret->at_their_end && !(ret->at_exec && instance == host->targets->processes[0]->number);
}

static u64 huge_of(const struct touched *t)
{
	return t->key.page * GROWTH_PAGE / GROWTH_HUGE;
}

static bool same_huge(const struct touched *a, const struct touched *b)
{
	return a->key.instance == b->key.instance && huge_of(a) == huge_of(b);
}

/* A fault that brought a huge page is the only one in it. Later ones belong to pages that were made one by one. */
static bool is_huge(const struct touched_all *all, u32 i, int frames, u64 entry)
{
	const struct touched *t = &all->of[i];
	u64 flags = 0;

	if ((i && same_huge(t - 1, t)) || (i + 1 < all->n && same_huge(t, t + 1)))
		return false;
	return frames >= 0 && entry & PAGES_PRESENT && entry & PAGES_FRAME &&
	       pread(frames, &flags, sizeof(flags), (off_t)((entry & PAGES_FRAME) * sizeof(flags))) == sizeof(flags) &&
	       flags & FRAME_HUGE;
}

static void add_block(const struct touched *t, u64 size, struct leak_stacks *stacks, struct growth_left *ret)
{
	struct leak_block block = {
	        .hash = t->page.hash, .bytes = t->page.weight * size, .blocks = t->page.weight, .ns = t->page.ns};

	ret->touched_bytes += block.bytes;
	ret->touched++;
	leak_stacks_left(stacks, &block);
}

/* addr: where it is now */
static void add_page(const struct touched_all *all, u32 i, u64 addr, struct pages *pages, int frames,
        struct leak_stacks *stacks, struct growth_left *ret)
{
	const struct touched *t = &all->of[i];
	u64 entry = pages_entry(pages, addr);

	if (!(entry & (PAGES_PRESENT | PAGES_SWAPPED)) || (entry & PAGES_FILE && t->page.memory == FAULT_FILE))
		return;
	add_block(t, is_huge(all, i, frames, entry) ? GROWTH_HUGE : GROWTH_PAGE, stacks, ret);
}

/* Pages of one process, [from, to). */
static void add_pages_of(const struct event_host *host, const struct touched_all *all, u32 from, u32 to,
        const struct growth_ledgers *of, struct leak_stacks *stacks, struct growth_left *ret)
{
	static struct pages pages; /* large */
	u32 instance = all->of[from].key.instance;
	const struct process *p = living(host, instance);
	int frames = p ? open("/proc/kpageflags", O_RDONLY | O_CLOEXEC) : -1;

	if (!p && !counts_ended(host, instance, ret))
		return;
	if (p)
		pages_open(&pages, p->pid, NULL);
	for (u32 i = from; i < to; i++) {
		const struct touched *t = &all->of[i];
		u64 addr = growth_ledger_page(of, instance, t->key.page * GROWTH_PAGE, t->page.ns);

		if (addr && p)
			add_page(all, i, addr, &pages, frames, stacks, ret);
		else if (addr)
			add_block(t, GROWTH_PAGE, stacks, ret);
	}
	if (p)
		pages_close(&pages);
	if (frames >= 0)
		close(frames);
}

static struct error *add_pages(const struct event_host *host, const struct growth_ledgers *of,
        struct leak_stacks *stacks, struct growth_left *ret)
{
	struct touched_all all = {0};
	struct error *err = map_each(
	        object_skeleton(host->object)->maps.growth_pages, false, gather, &all, "which pages were touched");

	if (all.n)
		qsort(all.of, all.n, sizeof(*all.of), by_address);
	for (u32 from = 0, to; !err && from < all.n; from = to) {
		for (to = from; to < all.n && all.of[to].key.instance == all.of[from].key.instance;)
			to++;
		add_pages_of(host, &all, from, to, of, stacks, ret);
	}
	free(all.of);
	return err;
}

/* How much of a range is mapped now; *line: where to look, as ranges come in order. */
static u64 mapped_of(const struct maps *maps, u32 *line, const struct growth_range *r)
{
	u64 sum = 0;

	while (*line < maps->nlines && maps->lines[*line].end <= r->start)
		++*line;
	for (u32 i = *line; i < maps->nlines && maps->lines[i].start < r->end; i++) {
		u64 start = maps->lines[i].start > r->start ? maps->lines[i].start : r->start;
		u64 end = maps->lines[i].end < r->end ? maps->lines[i].end : r->end;

		sum += end - start;
	}
	return sum;
}

/* maps: NULL: of a process that has ended */
static void add_ranges_of(struct growth_ledger *l, u32 from, u32 to, const struct maps *maps,
        struct leak_stacks *stacks, struct growth_left *ret)
{
	u32 line = 0;

	for (u32 i = from; i < to; i++) {
		const struct growth_range *r = &l->ranges[i];
		u64 bytes = maps ? mapped_of(maps, &line, r) : r->end - r->start;
		struct leak_block block = {.hash = r->hash, .bytes = bytes, .blocks = 1, .ns = r->ns};

		ret->unseen_bytes += r->end - r->start - block.bytes;
		if (!block.bytes)
			continue;
		ret->mapped_bytes += block.bytes;
		ret->mapped++;
		leak_stacks_left(stacks, &block);
	}
}

static struct error *add_ranges(
        const struct event_host *host, struct growth_ledger *l, struct leak_stacks *stacks, struct growth_left *ret)
{
	struct error *err = NULL;

	for (u32 from = 0, to; !err && from < l->n; from = to) {
		const struct process *p = living(host, l->ranges[from].instance);
		struct maps maps = {0};

		for (to = from; to < l->n && l->ranges[to].instance == l->ranges[from].instance;)
			to++;
		if (counts_ended(host, l->ranges[from].instance, ret))
			add_ranges_of(l, from, to, NULL, stacks, ret);
		if (!p || maps_read(p->pid, &maps))
			continue;
		add_ranges_of(l, from, to, &maps, stacks, ret);
		maps_free(&maps);
	}
	return err;
}

struct error *growth_left(
        const struct event_host *host, struct growth_ledgers *of, struct leak_stacks *stacks, struct growth_left *ret)
{
	struct error *err;

	for (u32 i = 0; i < host->targets->nprocesses; i++)
		ret->ended += host->targets->processes[i]->dead;
	ret->at_their_end = targets_are_over(host->targets);
	err = add_ranges(host, &of->mapped, stacks, ret);
	return err ? err : add_pages(host, of, stacks, ret);
}
