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

static void add_page(const struct touched_all *all, u32 i, struct pages *pages, int frames, struct leak_stacks *stacks,
        struct growth_left *ret)
{
	const struct touched *t = &all->of[i];
	u64 entry = pages_entry(pages, t->key.page * GROWTH_PAGE);
	struct leak_block block = {.hash = t->page.hash, .blocks = t->page.weight, .ns = t->page.ns};

	if (!(entry & (PAGES_PRESENT | PAGES_SWAPPED)) || (entry & PAGES_FILE && t->page.memory == FAULT_FILE))
		return;
	block.bytes = t->page.weight * (is_huge(all, i, frames, entry) ? GROWTH_HUGE : GROWTH_PAGE);
	ret->touched_bytes += block.bytes;
	ret->touched++;
	leak_stacks_left(stacks, &block);
}

static struct error *add_pages(const struct event_host *host, struct leak_stacks *stacks, struct growth_left *ret)
{
	cleanup(free) struct pages *pages = calloc(1, sizeof(*pages));
	struct touched_all all = {0};
	struct error *err = pages ? NULL : &error_no_memory;
	const struct process *p = NULL;
	int frames = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	bool opened = false;

	if (!err)
		err = map_each(object_skeleton(host->object)->maps.growth_pages, false, gather, &all,
		        "which pages were touched");
	if (all.n)
		qsort(all.of, all.n, sizeof(*all.of), by_address);
	for (u32 i = 0; !err && i < all.n; i++) {
		if (!i || all.of[i].key.instance != all.of[i - 1].key.instance) {
			if (opened)
				pages_close(pages);
			p = living(host, all.of[i].key.instance);
			opened = p;
			if (p)
				pages_open(pages, p->pid, NULL);
		}
		if (p)
			add_page(&all, i, pages, frames, stacks, ret);
	}
	if (opened)
		pages_close(pages);
	if (frames >= 0)
		close(frames);
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

static void add_ranges_of(struct growth_ledger *l, u32 from, u32 to, const struct maps *maps,
        struct leak_stacks *stacks, struct growth_left *ret)
{
	u32 line = 0;

	for (u32 i = from; i < to; i++) {
		const struct growth_range *r = &l->ranges[i];
		struct leak_block block = {
		        .hash = r->hash, .bytes = mapped_of(maps, &line, r), .blocks = 1, .ns = r->ns};

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
		if (!p || maps_read(p->pid, &maps))
			continue;
		add_ranges_of(l, from, to, &maps, stacks, ret);
		maps_free(&maps);
	}
	return err;
}

struct error *growth_left(const struct event_host *host, struct growth_ledger *ledger, struct leak_stacks *stacks,
        struct growth_left *ret)
{
	struct error *err;

	for (u32 i = 0; i < host->targets->nprocesses; i++)
		ret->ended += host->targets->processes[i]->dead;
	err = add_ranges(host, ledger, stacks, ret);
	return err ? err : add_pages(host, stacks, ret);
}
