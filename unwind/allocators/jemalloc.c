/* SPDX-License-Identifier: Apache-2.0 */
#include "jemalloc.h"

#include <stdlib.h>
#include <string.h>

#include "allocators.h"
#include "cleanup.h"
#include "grow.h"
#include "sort_keys.h"
#include "table.h"

/* Of one arena. */
struct sums {
	struct amount used[JEMALLOC_CLASSES], freed[JEMALLOC_CLASSES];
	struct amount states[JEMALLOC_STATES]; /* free pages */
};

struct tree {
	struct jemalloc *j;
	struct sums *arenas[JEMALLOC_ARENAS];
	u32 node; /* of all of it */
};

static const struct {
	const char *name;
	enum usage_kind kind;
} states[JEMALLOC_STATES] = {
        [JEMALLOC_DIRTY] = {"free pages, dirty", USAGE_FREE},
        [JEMALLOC_MUZZY] = {"free pages that the kernel may take", USAGE_FREE},
        [JEMALLOC_RETAINED] = {"addresses without memory", USAGE_FREE},
};

/* A slab's memory goes to its blocks in equal parts. */
static void add_slab(struct tree *t, struct sums *s, const struct jemalloc_extent *e, const struct amount *a)
{
	u64 size = jemalloc_class_size(e->class, t->j->lg_quantum), n = e->size / size, used = n - e->nfree;
	struct amount u = {used, used * size, a->resident / n * used, a->swapped / n * used};
	struct amount f = {e->nfree, a->size - u.size, a->resident - u.resident, a->swapped - u.swapped};
	struct usage_facts *facts = &t->j->usage->facts;

	amount_add(&s->used[e->class], &u);
	amount_add(&s->freed[e->class], &f);
	facts->in_use += u.resident;
	facts->free += f.resident;
	facts->held += f.resident;
	facts->held_blocks += 2 * used <= n ? used : 0;
}

static void add(struct tree *t, struct sums *s, const struct jemalloc_extent *e)
{
	struct usage_facts *facts = &t->j->usage->facts;
	struct amount a = {.size = e->size};

	pages_add(t->j->space->pages, e->start, e->start + e->size, &a);
	space_claim(t->j->space, e->start, e->start + e->size);
	if (e->state == JEMALLOC_ACTIVE && e->slab) {
		add_slab(t, s, e, &a);
	} else if (e->state == JEMALLOC_ACTIVE) {
		a.blocks = 1;
		amount_add(&s->used[e->class], &a);
		facts->in_use += a.resident;
	} else {
		amount_add(&s->states[e->state], &a);
		facts->free += a.resident;
		facts->returnable += a.resident;
	}
}

static struct error *add_all(struct tree *t)
{
	for (u32 i = 0; i < t->j->nall; i++) {
		const struct jemalloc_extent *e = &t->j->all[i];
		struct sums **s = &t->arenas[e->arena];

		if (!*s && !(*s = calloc(1, sizeof(**s))))
			return &error_no_memory;
		add(t, *s, e);
	}
	return NULL;
}

static struct error *show_arena(struct tree *t, u32 number)
{
	const struct sums *s = t->arenas[number];
	struct usage *u = t->j->usage;
	u64 sizes[JEMALLOC_CLASSES];
	u32 arena;
	struct error *err = usage_child(u, t->node, USAGE_GROUP, &arena, "arena %u", number);

	for (u32 i = 0; i < JEMALLOC_CLASSES; i++)
		sizes[i] = jemalloc_class_size(i, t->j->lg_quantum);
	u->facts.arenas++;
	if (!err)
		err = usage_sizes(
		        u, arena, USAGE_IN_USE, "in use, or kept for threads", s->used, sizes, JEMALLOC_CLASSES);
	if (!err)
		err = usage_sizes(u, arena, USAGE_FREE, "free in slabs", s->freed, sizes, JEMALLOC_CLASSES);
	for (u32 i = JEMALLOC_DIRTY; !err && i < JEMALLOC_STATES; i++)
		err = usage_part(u, arena, states[i].kind, states[i].name, &s->states[i]);
	return err;
}

static void add_metadata(struct jemalloc *j, u64 start, u64 end, struct amount *to)
{
	to->size += end - start;
	pages_add(j->space->pages, start, end, to);
	space_claim(j->space, start, end);
}

/* The tree's nodes, and pages of extents' structures: these lie in memory that is nobody else's, and fill it. */
static struct error *show_metadata(struct tree *t)
{
	struct jemalloc *j = t->j;
	struct amount a = {0};
	struct error *err;
	u64 last = 0;
	u32 node;

	for (u32 i = 0; i < j->nextents; i++) {
		u64 page = j->extents[i] & ~(PAGES_SIZE - 1);

		if (page == last)
			continue;
		add_metadata(j, page, page + PAGES_SIZE, &a);
		last = page;
	}
	for (u32 i = 0; i < j->nleaves; i++)
		add_metadata(j, j->leaves[i] & ~(PAGES_SIZE - 1), j->leaves[i] + 8ull * JEMALLOC_NODE, &a);
	err = usage_child(j->usage, t->node, USAGE_METADATA, &node, "metadata");
	if (!err)
		usage_add(j->usage, node, &a);
	return err;
}

static struct error *advise(struct usage *u)
{
	u64 returnable = u->facts.returnable;
	struct error *err = NULL;
	char text[USAGE_BYTES];

	if (usage_matters(u, returnable))
		err = usage_say(u, USAGE_ADVICE,
		        "%s are free pages that jemalloc keeps: a lower dirty_decay_ms, or background_thread:true "
		        "where "
		        "threads sleep, gives them back; so does mallctl(\"arena.4096.purge\")",
		        usage_bytes(text, returnable));
	return err ? err : usage_say_held(u, "slabs");
}

/* Puts the extents into the tree, and says what helps. */
static struct error *jemalloc_show(struct jemalloc *j)
{
	struct tree *t = calloc(1, sizeof(*t));
	struct error *err;

	if (!t)
		return &error_no_memory;
	t->j = j;
	err = usage_child(j->usage, 0, USAGE_GROUP, &t->node, "malloc of jemalloc %s", j->layout->versions);
	if (!err)
		err = add_all(t);
	for (u32 i = 0; !err && i < JEMALLOC_ARENAS; i++)
		if (t->arenas[i])
			err = show_arena(t, i);
	if (!err)
		err = show_metadata(t);
	j->usage->facts.torn += j->torn;
	for (u32 i = 0; i < JEMALLOC_ARENAS; i++)
		free(t->arenas[i]);
	free(t);
	return err ? err : advise(j->usage);
}

#define NODE_BYTES  (8ull * JEMALLOC_NODE)
#define LEAF_SHIFT  30 /* a leaf has the pages of 1 GiB */
#define LEAF_PAGES  ((1ull << LEAF_SHIFT) - 1)
#define ADDRESS     ((1ull << 48) - 1)
#define ALIGNMENT   64 /* of nodes, and (128 from 5.3 on) of extents */
#define WORDS       3  /* of an extent that are read */
#define SAMPLES     8  /* words of a leaf that have to fit */
#define EXTENTS_MAX (1u << 24)
#define ARENA       0xfffu
#define SLAB        (1u << 12)
#define NFREE       0x3ffu

static const struct jemalloc_layout layouts[] = {
        {"5.3", 17, 3, 20, 28},
        {"5.1 or 5.2", 16, 2, 18, 26},
        {"5.0", 15, 2, 17, 25},
};
#define LAYOUTS (sizeof(layouts) / sizeof(*layouts))

/* --- the tree --- */

static u64 extent_of(u64 word)
{
	return word & ADDRESS & ~(u64)(ALIGNMENT - 1);
}

static u64 whole_pages(u64 addr)
{
	return addr & ~(PAGES_SIZE - 1); /* a large block may begin anywhere in its first page */
}

/* Reads the extent that a leaf's word leads to. */
static bool read_words(struct jemalloc *j, u64 word, u64 words[WORDS])
{
	u64 at = extent_of(word);

	return at && block_reader_read(&j->reader, words, 8 * WORDS, at);
}

/* How far page number i of a leaf lies behind the extent's start, as far as a leaf tells. */
static u64 distance(const u64 words[WORDS], u32 i)
{
	return ((u64)i * PAGES_SIZE - whole_pages(words[1])) & LEAF_PAGES;
}

/* What may be a leaf: which number it has among the root's words. JEMALLOC_NODE: it is none. */
static u32 leaf_number(struct jemalloc *j, u64 leaf)
{
	u32 number = JEMALLOC_NODE, seen = 0;
	u64 words[WORDS];

	for (u64 at = leaf; at < leaf + NODE_BYTES && seen < SAMPLES;) {
		/* what is none mostly says so in its first page */
		if (!block_reader_fill(&j->reader, at, leaf + (at == leaf ? PAGES_SIZE : NODE_BYTES))) {
			at = whole_pages(at) + PAGES_SIZE;
			continue;
		}
		for (; at < j->reader.end && seen < SAMPLES; at += 8) {
			u64 word = *(const u64 *)block_reader_at(&j->reader, at, 8);
			u32 i = (u32)((at - leaf) / 8);

			if (!extent_of(word))
				continue; /* of a page without an extent its size class may stay */
			if (!read_words(j, word, words) || !words[1] || distance(words, i) >= words[2])
				return JEMALLOC_NODE;
			if (words[2] <= LEAF_PAGES)
				number = (u32)((whole_pages(words[1]) + distance(words, i)) >> LEAF_SHIFT);
			seen++;
		}
	}
	return number < JEMALLOC_NODE ? number : JEMALLOC_NODE;
}

/* Room for a leaf in memory without a file? */
static bool may_be_leaf(const struct space *s, u64 addr)
{
	u32 map = addr && !(addr % ALIGNMENT) ? space_find(s, addr) : s->maps.nlines;

	return map < s->maps.nlines && space_is_anonymous(s, map) && s->maps.lines[map].end - addr >= NODE_BYTES;
}

/* The same, of what has not been refused yet: vtables of a JVM lead to one address 25,000 times. */
static u32 new_leaf_number(struct jemalloc *j, u64 leaf, struct table *refused)
{
	u64 key = (leaf * 0x9e3779b97f4a7c15ull) | 1;
	u32 ret = table_get(refused, key) ? JEMALLOC_NODE : leaf_number(j, leaf);

	if (ret == JEMALLOC_NODE)
		error_free(table_put(refused, key, 1));
	return ret;
}

static u64 find_root(struct jemalloc *j, u64 start, u64 end, struct table *refused)
{
	cleanup(free) u64 *words = malloc(BLOCK_READER_SIZE);

	for (u64 at = start; words && at < end;) {
		u64 from = at, n;

		if (!block_reader_fill(&j->reader, at, end)) {
			at = whole_pages(at) + PAGES_SIZE;
			continue;
		}
		at = j->reader.end;
		n = (at - from) / 8;
		memcpy(words, j->reader.block, n * 8);
		for (u64 i = 0; i < n; i++) {
			u32 number =
			        may_be_leaf(j->space, words[i]) ? new_leaf_number(j, words[i], refused) : JEMALLOC_NODE;
			u64 root = from + 8 * i - 8ull * number;

			if (number < JEMALLOC_NODE && root >= start && root < end && end - root >= NODE_BYTES)
				return root;
		}
	}
	return 0;
}

u64 jemalloc_find_root(struct jemalloc *j, u64 start, u64 end)
{
	struct table refused = {0};
	u64 ret = find_root(j, start, end, &refused);

	table_free(&refused);
	return ret;
}

static struct error *add_extent(struct jemalloc *j, u64 at)
{
	struct error *err;

	if (!at || j->nextents == EXTENTS_MAX || (j->nextents && j->extents[j->nextents - 1] == at))
		return NULL;
	err = grow(&j->extents, j->nextents, sizeof(*j->extents));
	if (!err)
		j->extents[j->nextents++] = at;
	return err;
}

/* Calls each() with the words of a node that are not 0. */
static struct error *each_word(struct jemalloc *j, u64 node, struct error *(*each)(struct jemalloc *j, u64 word))
{
	struct error *err = NULL;

	for (u64 at = node; !err && at < node + NODE_BYTES;) {
		if (!block_reader_fill(&j->reader, at, node + NODE_BYTES)) {
			at = whole_pages(at) + PAGES_SIZE;
			continue;
		}
		for (const u64 *w = (const u64 *)j->reader.block; !err && at < j->reader.end; at += 8, w++)
			if (*w)
				err = each(j, *w);
	}
	return err;
}

static struct error *on_page(struct jemalloc *j, u64 word)
{
	if (j->nwords < JEMALLOC_WORDS && (!j->nwords || extent_of(j->words[j->nwords - 1]) != extent_of(word)))
		j->words[j->nwords++] = word;
	return add_extent(j, extent_of(word));
}

static struct error *on_leaf(struct jemalloc *j, u64 word)
{
	struct error *err;

	if (!may_be_leaf(j->space, word) || j->nleaves == JEMALLOC_NODE)
		return NULL;
	err = grow(&j->leaves, j->nleaves, sizeof(*j->leaves));
	if (!err)
		j->leaves[j->nleaves++] = word;
	return err;
}

static struct error *read_leaves(struct jemalloc *j, u64 root)
{
	struct error *err = each_word(j, root, on_leaf);

	for (u32 i = 0; !err && i < j->nleaves; i++)
		err = each_word(j, j->leaves[i], on_page);
	return err;
}

/* --- extents --- */

u64 jemalloc_class_size(u32 class, u32 lg_quantum)
{
	u32 tiny = lg_quantum - 3, i = class - tiny, base = lg_quantum + 1 + i / 4;

	if (class >= JEMALLOC_CLASSES)
		return 0;
	if (class < tiny)
		return 8ull << class;
	if (i < 4)
		return (i + 1ull) << lg_quantum;
	return base < 63 ? (1ull << base) + ((i % 4 + 1ull) << (base - 2)) : 0;
}

u64 jemalloc_slab_size(u64 size)
{
	u64 bytes = PAGES_SIZE;

	while (size && size < 4 * PAGES_SIZE && bytes % size)
		bytes += PAGES_SIZE;
	return size && size < 4 * PAGES_SIZE ? bytes : 0;
}

bool jemalloc_decode(const struct jemalloc_layout *layout, const u64 words[3], struct jemalloc_extent *ret)
{
	*ret = (struct jemalloc_extent){
	        .start = whole_pages(words[1]),
	        .size = whole_pages(words[2]),
	        .arena = words[0] & ARENA,
	        .slab = words[0] & SLAB,
	        .class = words[0] >> layout->class_at & 0xff,
	        .nfree = words[0] >> layout->free_at & NFREE,
	        .state = words[0] >> layout->state_at & ((1u << layout->state_bits) - 1),
	};
	return ret->start && ret->size && ret->start < ADDRESS && ret->size < ADDRESS - ret->start &&
	       ret->state < JEMALLOC_STATES && (ret->state != JEMALLOC_ACTIVE || ret->class < JEMALLOC_CLASSES);
}

/*
 * Which layout says of extents that are in use the same as the leaves do? Of one that was given back, and is kept, the
 * leaf has what it was. NULL: none.
 */
static const struct jemalloc_layout *find_layout(struct jemalloc *j)
{
	const struct jemalloc_layout *ret = NULL;
	u32 most = 0;

	for (u32 k = 0; k < LAYOUTS; k++) {
		u32 fits = 0, active = 0;

		for (u32 i = 0; i < j->nwords; i++) {
			struct jemalloc_extent e;
			u64 words[WORDS];

			if (!read_words(j, j->words[i], words) || !jemalloc_decode(&layouts[k], words, &e))
				continue;
			if (e.state == JEMALLOC_ACTIVE &&
			        ((j->words[i] >> 48 & 0xff) != e.class || (j->words[i] & 1) != e.slab))
				continue;
			fits++;
			active += e.state == JEMALLOC_ACTIVE;
		}
		if (active > most && fits >= j->nwords - j->nwords / 8) {
			ret = &layouts[k];
			most = active;
		}
	}
	return ret;
}

static bool is_slab(const struct jemalloc_extent *e, u32 lg_quantum)
{
	u64 size = jemalloc_class_size(e->class, lg_quantum);

	return jemalloc_slab_size(size) == e->size && e->nfree <= e->size / size;
}

/* Slabs are as large as their blocks make them. */
static u32 find_quantum(const struct jemalloc *j)
{
	u32 fits[2] = {0};

	for (u32 i = 0; i < j->nall; i++)
		for (u32 k = 0; k < 2; k++)
			fits[k] += j->all[i].slab && j->all[i].state == JEMALLOC_ACTIVE && is_slab(&j->all[i], 3 + k);
	return fits[0] > fits[1] ? 3 : 4;
}

static struct error *read_extents(struct jemalloc *j)
{
	u64 words[WORDS];

	sort_keys(j->extents, j->nextents, sizeof(*j->extents));
	j->all = calloc(j->nextents + 1ull, sizeof(*j->all));
	if (!j->all)
		return &error_no_memory;
	for (u32 i = 0; i < j->nextents; i++) {
		u64 at = j->extents[i];

		if (i && at == j->extents[i - 1])
			continue;
		if (!block_reader_at(&j->reader, at, sizeof(words)))
			block_reader_fill(&j->reader, at, at + BLOCK_READER_SIZE);
		if (block_reader_read(&j->reader, words, sizeof(words), at) &&
		        jemalloc_decode(j->layout, words, &j->all[j->nall]))
			j->nall++;
		else
			j->torn++;
	}
	sort_keys(j->all, j->nall, sizeof(*j->all));
	return NULL;
}

/* What was changed while it was read does not fit to its neighbours, or to its class. */
static void drop_torn(struct jemalloc *j)
{
	u64 end = 0;
	u32 n = 0;

	for (u32 i = 0; i < j->nall; i++) {
		const struct jemalloc_extent *e = &j->all[i];

		if (e->start < end || (e->slab && e->state == JEMALLOC_ACTIVE && !is_slab(e, j->lg_quantum))) {
			j->torn++;
			continue;
		}
		end = e->start + e->size;
		j->all[n++] = *e;
	}
	j->nall = n;
}

/* --- all of it --- */

static struct error *read_tree(struct jemalloc *j, u64 root, const char *path)
{
	struct error *err = read_leaves(j, root);

	if (err)
		return err;
	j->layout = find_layout(j);
	if (!j->layout)
		return usage_say(j->usage, USAGE_NOTE, "the jemalloc of %s is of an unknown layout: not read", path);
	err = read_extents(j);
	if (err)
		return err;
	j->lg_quantum = find_quantum(j);
	drop_torn(j);
	return jemalloc_show(j);
}

static struct error *read_one(struct space *s, struct usage *u, u32 map)
{
	struct jemalloc *j = calloc(1, sizeof(*j));
	u64 start, end, root;
	struct error *err;

	if (!j)
		return &error_no_memory;
	j->space = s;
	j->usage = u;
	err = block_reader_open(s, &j->reader);
	root = !err && space_variables(s, map, NODE_BYTES, &start, &end) ? jemalloc_find_root(j, start, end) : 0;
	if (root)
		err = read_tree(j, root, s->maps.lines[map].path);
	block_reader_close(&j->reader);
	free(j->leaves);
	free(j->extents);
	free(j->all);
	free(j);
	return err;
}

static struct error *jemalloc_read(struct space *s, struct usage *u)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < s->maps.nlines; i++)
		err = read_one(s, u, i);
	return err;
}

const struct allocator jemalloc_allocator = {.name = "jemalloc", .read = jemalloc_read};
