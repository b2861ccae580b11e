/* SPDX-License-Identifier: Apache-2.0 */
#include "mimalloc.h"

#include <stdlib.h>

#include "allocators.h"
#include "grow.h"
#include "search.h"
#include "sort_keys.h"

#define PAGES_MAX (1u << 24)
#define CLASSES   1024 /* sizes of blocks that are told apart; mimalloc has 73 */

/* Of blocks of one size. */
struct sums {
	struct amount used[CLASSES], freed[CLASSES];
	u64 sizes[CLASSES];
	u32 n;
	struct amount single, rest; /* blocks with a page of their own; room for blocks that were not made so far */
};

/* Blocks that other threads gave back are linked; each lies in the page. With encoded links only the first is seen. */
static u32 given_back(struct mimalloc *m, const struct mimalloc_page *page, u64 at)
{
	u32 n = 0;

	while (n < page->used && at >= page->start && at < page->start + page->size &&
	        block_reader_read(&m->reader, &at, sizeof(at), at))
		n++;
	return n;
}

struct error *mimalloc_add(struct mimalloc *m, const struct mimalloc_page *page, u64 thread_free)
{
	struct error *err = m->npages < PAGES_MAX ? grow(&m->pages, m->npages, sizeof(*m->pages)) : NULL;

	if (err || m->npages == PAGES_MAX)
		return err;
	m->pages[m->npages] = *page;
	m->pages[m->npages++].used -= given_back(m, page, thread_free);
	return NULL;
}

void mimalloc_own(struct mimalloc *m, u64 start, u64 end)
{
	m->metadata.size += end - start;
	pages_add(m->space->pages, start, end, &m->metadata);
	space_claim(m->space, start, end);
}

/* The number of a size; they come in order. What is more than there can be goes to the last. */
static u32 class_of(struct sums *s, u64 block)
{
	if (!s->n || (s->sizes[s->n - 1] != block && s->n < CLASSES))
		s->sizes[s->n++] = block;
	return s->n - 1;
}

static struct amount part_of(const struct amount *all, u64 n, u64 of, u64 size)
{
	return (struct amount){n, n * size, of ? all->resident / of * n : 0, of ? all->swapped / of * n : 0};
}

static void add_blocks(struct mimalloc *m, struct sums *s, const struct mimalloc_page *p)
{
	struct usage_facts *f = &m->usage->facts;
	u64 made = p->capacity * p->block, class = class_of(s, p->block);
	struct amount all = {.size = p->size}, rest, used, freed;

	made = made < p->size ? made : p->size;
	rest = (struct amount){.size = p->size - made};
	pages_add(m->space->pages, p->start + made, p->start + p->size, &rest);
	amount_add(&s->rest, &rest);
	pages_add(m->space->pages, p->start, p->start + made, &all);
	used = part_of(&all, p->used, p->capacity, p->block);
	freed = part_of(&all, p->capacity - p->used, p->capacity, p->block);
	amount_add(&s->used[class], &used);
	amount_add(&s->freed[class], &freed);
	f->in_use += used.resident;
	f->free += freed.resident + rest.resident;
	if (p->used) {
		f->held += freed.resident;
		f->held_blocks += 2 * p->used <= p->capacity ? p->used : 0;
	} else {
		f->returnable += freed.resident;
	}
}

static void add_free(struct mimalloc *m, u64 start, u64 end)
{
	struct amount a = {.size = end - start};

	pages_add(m->space->pages, start, end, &a);
	space_claim(m->space, start, end);
	amount_add(&m->free, &a);
	m->usage->facts.free += a.resident;
	m->usage->facts.returnable += a.resident;
}

static void add_page(struct mimalloc *m, struct sums *s, const struct mimalloc_page *p)
{
	struct usage_facts *f = &m->usage->facts;
	struct amount a = {.blocks = 1, .size = p->size};

	if (!p->block) {
		add_free(m, p->start, p->start + p->size);
		return;
	}
	space_claim(m->space, p->start, p->start + p->size);
	if (p->reserved != 1 || !p->used) {
		add_blocks(m, s, p);
		return;
	}
	pages_add(m->space->pages, p->start, p->start + p->size, &a);
	amount_add(&s->single, &a);
	m->usage->in_use_of[size_class(a.size)] += a.size;
	f->in_use += a.resident;
}

static int by_block(const void *a, const void *b)
{
	const struct mimalloc_page *x = a, *y = b;

	return x->block < y->block ? -1 : x->block > y->block;
}

/* Pages that overlap were changed while they were read. */
static void drop_torn(struct mimalloc *m)
{
	u64 end = 0;
	u32 n = 0;

	sort_keys(m->pages, m->npages, sizeof(*m->pages));
	for (u32 i = 0; i < m->npages; i++) {
		if (m->pages[i].start < end) {
			m->torn++;
			continue;
		}
		end = m->pages[i].start + m->pages[i].size;
		m->pages[n++] = m->pages[i];
	}
	m->npages = n;
}

/* What is in no page of an arena is free. */
static void add_between(struct mimalloc *m, u64 start, u64 end)
{
	u32 first = SEARCH(m->npages, k, m->pages[k].start + m->pages[k].size <= start);

	for (u32 i = first; i < m->npages && start < end; i++) {
		const struct mimalloc_page *p = &m->pages[i];

		if (p->start > start)
			add_free(m, start, p->start < end ? p->start : end);
		start = p->start + p->size;
	}
	if (start < end)
		add_free(m, start, end);
}

static struct error *advise(struct usage *u)
{
	u64 returnable = u->facts.returnable;
	struct error *err = NULL;
	char text[USAGE_BYTES];

	if (usage_matters(u, returnable))
		err = usage_say(u, USAGE_ADVICE,
		        "%s are free pages that mimalloc keeps: mi_collect(true), called by the program, or a lower "
		        "MIMALLOC_PURGE_DELAY gives them back",
		        usage_bytes(text, returnable));
	return err ? err : usage_say_held(u, "pages");
}

static struct error *show(struct mimalloc *m)
{
	struct sums *s = calloc(1, sizeof(*s));
	struct usage *u = m->usage;
	struct error *err = s ? NULL : &error_no_memory;
	u32 node;

	if (!err)
		err = usage_child(u, 0, USAGE_GROUP, &node, "malloc of mimalloc %s", m->version);
	if (err) {
		free(s);
		return err;
	}
	drop_torn(m);
	for (u32 i = 0; i < m->narenas; i++)
		add_between(m, m->arenas[i].start, m->arenas[i].end);
	qsort(m->pages, m->npages, sizeof(*m->pages), by_block);
	for (u32 i = 0; i < m->npages; i++)
		add_page(m, s, &m->pages[i]);
	u->facts.arenas++;
	u->facts.torn += m->torn;
	err = usage_sizes(u, node, USAGE_IN_USE, "in use", s->used, s->sizes, s->n);
	if (!err)
		err = usage_part(u, node, USAGE_IN_USE, "blocks with pages of their own", &s->single);
	if (!err)
		err = usage_sizes(u, node, USAGE_FREE, "free in pages", s->freed, s->sizes, s->n);
	if (!err)
		err = usage_part(u, node, USAGE_TOP, "never used so far", &s->rest);
	if (!err)
		err = usage_part(u, node, USAGE_FREE, "free pages", &m->free);
	if (!err)
		err = usage_part(u, node, USAGE_METADATA, "metadata", &m->metadata);
	free(s);
	return err ? err : advise(u);
}

/* What to read from: all memory (start 0), or the variables of a file. */
static struct error *read_one(struct space *s, struct usage *u, u64 start, u64 end)
{
	struct mimalloc m = {.space = s, .usage = u};
	struct error *err = block_reader_open(s, &m.reader);

	if (!err)
		err = start ? mimalloc_read_map(&m, start, end) : mimalloc_read_segments(&m);
	if (!err && m.version)
		err = show(&m);
	block_reader_close(&m.reader);
	free(m.pages);
	free(m.arenas);
	return err;
}

static struct error *mimalloc_read(struct space *s, struct usage *u)
{
	struct error *err = read_one(s, u, 0, 0);
	u64 start, end;

	for (u32 i = 0; !err && i < s->maps.nlines; i++)
		if (space_variables(s, i, 8, &start, &end))
			err = read_one(s, u, start, end);
	return err;
}

const struct allocator mimalloc_allocator = {.name = "mimalloc", .read = mimalloc_read};
