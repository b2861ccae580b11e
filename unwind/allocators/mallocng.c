/* SPDX-License-Identifier: Apache-2.0 */
#include "mallocng.h"

#include <stdlib.h>
#include <string.h>

#include "allocators.h"
#include "cleanup.h"
#include "grow.h"
#include "sort_keys.h"

#define UNIT        16u
#define AREAS_MAX   (1u << 18)
#define META_WORDS  5
#define GROUP_HEAD  16 /* bytes before the first slot */
#define GROUPS_DEEP 16

struct mallocng {
	struct space *space;
	struct usage *usage;
	struct block_reader reader;
	u64 *areas; /* addresses */
	u32 nareas;
	struct mallocng_group *groups; /* by address */
	u32 ngroups;
	u64 torn;
	struct amount used[MALLOCNG_CLASSES], freed[MALLOCNG_CLASSES], one, rest;
};

struct area {
	u64 check, next;
	u32 nslots, unused;
	u64 slots[MALLOCNG_SLOTS][META_WORDS];
};

/* In units, with 4 bytes of the block's header (malloc.c: __malloc_size_classes). */
static const u16 units[MALLOCNG_CLASSES] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20, 25, 31, 36, 42, 50, 63, 72,
        84, 102, 127, 146, 170, 204, 255, 292, 340, 409, 511, 584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730,
        3276, 4095, 4680, 5460, 6552, 8191};

bool mallocng_decode(u64 meta, const u64 words[META_WORDS], struct mallocng_group *ret)
{
	u32 avail = (u32)words[3], freed = words[3] >> 32, last = words[4] & 31, class = words[4] >> 6 & 63;
	u64 pages = words[4] >> 12, all = (2ull << last) - 1;

	*ret = (struct mallocng_group){.start = words[2], .meta = meta, .nslots = last + 1, .class = class};
	ret->nused = ret->nslots - (u32)__builtin_popcount(avail | freed);
	ret->mapped = pages;
	if (!words[2] || words[2] % UNIT || (class >= MALLOCNG_CLASSES && class != MALLOCNG_ONE) || avail & freed ||
	        (avail | freed) & ~all || pages >> 36 || words[2] >> 48 ||
	        (class == MALLOCNG_ONE && (last || !pages || !ret->nused)))
		return false;
	ret->slot = pages && !last ? pages * PAGES_SIZE - GROUP_HEAD : (u64)UNIT * units[class];
	ret->end = pages ? ret->start + pages * PAGES_SIZE : 0;
	return !pages || GROUP_HEAD + ret->slot * ret->nslots <= pages * PAGES_SIZE;
}

/* --- the areas --- */

static bool is_area(struct mallocng *m, u64 at, u64 check)
{
	u64 words[3];

	return check && at && at % PAGES_SIZE == 0 && block_reader_read(&m->reader, words, sizeof(words), at) &&
	       words[0] == check && (u32)words[2] && (u32)words[2] <= MALLOCNG_SLOTS;
}

/* The first area, by the words of a file's data; *check: the random word. 0: there is none. */
static u64 find_first_area(struct mallocng *m, u64 start, u64 end, u64 *check)
{
	cleanup(free) u64 *words = malloc(BLOCK_READER_SIZE);

	for (u64 at = start; words && at + 80 <= end;) {
		u64 from = at, n;

		if (!block_reader_fill(&m->reader, at, end)) {
			at = (at / PAGES_SIZE + 1) * PAGES_SIZE;
			continue;
		}
		n = (m->reader.end - from) / 8;
		memcpy(words, m->reader.block, n * 8);
		for (u64 i = 7; i + 1 < n; i++) {
			if (!words[i] || words[i] % PAGES_SIZE || !words[i + 1] || words[i + 1] % PAGES_SIZE)
				continue;
			for (u64 back = 7; back <= 8 && back <= i; back++)
				if (is_area(m, words[i], *check = words[i - back]))
					return words[i];
		}
		at = from + n * 8 < end ? from + n * 8 - 80 : end; /* they may lie across two blocks */
		if (at <= from)
			at = from + PAGES_SIZE;
	}
	return 0;
}

static struct error *add_groups(struct mallocng *m, u64 at, const struct area *a)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < a->nslots; i++) {
		u64 meta = at + offsetof(struct area, slots) + i * sizeof(a->slots[0]);
		struct mallocng_group g;

		if (!a->slots[i][2])
			continue;
		if (!mallocng_decode(meta, a->slots[i], &g)) {
			m->torn++;
			continue;
		}
		err = grow(&m->groups, m->ngroups, sizeof(*m->groups));
		if (!err)
			m->groups[m->ngroups++] = g;
	}
	return err;
}

static struct error *read_areas(struct mallocng *m, u64 first, u64 check)
{
	struct error *err = NULL;
	u64 seen = 0; /* a list that loops comes by here again */
	struct area a;

	for (u64 at = first; !err && at && at != seen && m->nareas < AREAS_MAX; at = a.next) {
		if (!(m->nareas & (m->nareas + 1)))
			seen = at;
		if (!is_area(m, at, check) || !block_reader_read(&m->reader, &a, sizeof(a), at)) {
			m->torn++;
			break;
		}
		a.nslots = a.nslots < MALLOCNG_SLOTS ? a.nslots : MALLOCNG_SLOTS;
		err = grow(&m->areas, m->nareas, sizeof(*m->areas));
		if (!err)
			m->areas[m->nareas++] = at;
		if (!err)
			err = add_groups(m, at, &a);
	}
	sort_keys(m->groups, m->ngroups, sizeof(*m->groups));
	return err;
}

/* --- groups --- */

/* A group's first word leads back to its structure: else it went, or came, meanwhile. */
static bool is_whole(struct mallocng *m, const struct mallocng_group *g)
{
	u64 meta;

	if (!block_reader_at(&m->reader, g->start, 8))
		block_reader_fill(
		        &m->reader, g->start, g->start + (g->class == MALLOCNG_ONE ? PAGES_SIZE : BLOCK_READER_SIZE));
	return block_reader_read(&m->reader, &meta, 8, g->start) && meta == g->meta;
}

/* A group with a mapping of its own and one slot. */
static void add_one(struct mallocng *m, const struct mallocng_group *g, struct amount *a)
{
	a->blocks = 1;
	if (!g->nused) {
		amount_add(&m->freed[g->class], a);
		m->usage->facts.free += a->resident;
		m->usage->facts.returnable += a->resident;
		return;
	}
	amount_add(&m->one, a);
	m->usage->in_use_of[size_class(a->size)] += a->size;
	m->usage->facts.in_use += a->resident;
}

static struct amount part_of(const struct amount *a, const struct mallocng_group *g, u32 slots)
{
	return (struct amount){slots, slots * g->slot, a->resident / g->nslots * slots, a->swapped / g->nslots * slots};
}

/* A group's memory, without the slots that have groups in them, goes to its slots in equal parts. */
static void add_group(struct mallocng *m, const struct mallocng_group *g, struct amount *a)
{
	struct usage_facts *facts = &m->usage->facts;
	struct amount used, freed;

	if (g->mapped && g->nslots == 1) {
		add_one(m, g, a);
		return;
	}
	used = part_of(a, g, g->nused);
	freed = part_of(a, g, g->nslots - g->nused);
	amount_add(&m->used[g->class], &used);
	amount_add(&m->freed[g->class], &freed);
	facts->in_use += used.resident;
	facts->free += freed.resident;
	facts->held += g->nused ? freed.resident : 0;
	facts->held_blocks += 2 * g->nused <= g->nslots ? g->nused : 0;
	m->rest.size += a->size - used.size - freed.size;
	m->rest.resident += a->resident - used.resident - freed.resident;
	m->rest.swapped += a->swapped - used.swapped - freed.swapped;
}

/* One that is open: what follows may lie in it. */
struct open_group {
	struct mallocng_group g;
	struct amount amount; /* without the slots that have groups in them */
	u32 inner;            /* so many */
};

static void close_group(struct mallocng *m, struct open_group *o)
{
	o->g.nslots -= o->inner;
	o->g.nused -= o->inner;
	if (o->g.nslots)
		add_group(m, &o->g, &o->amount);
}

/* It takes a slot of another one, all of it. False: that has no such slot. */
static bool take_slot(struct open_group *of, struct mallocng_group *g)
{
	u64 first = of->g.start + GROUP_HEAD, number = g->start < first ? UINT64_MAX : (g->start - first) / of->g.slot;

	if (number >= of->g.nslots || of->inner >= of->g.nused)
		return false;
	g->end = first + (number + 1) * of->g.slot;
	if (GROUP_HEAD + g->slot * g->nslots > g->end - g->start)
		return false;
	g->start = first + number * of->g.slot;
	return true;
}

static void without(struct open_group *of, const struct amount *a)
{
	of->inner++;
	of->amount.size -= a->size;
	of->amount.resident -= a->resident;
	of->amount.swapped -= a->swapped;
}

/* Those that were given the rest of a file's last page lie in no other. */
static void add_all(struct mallocng *m)
{
	struct open_group open[GROUPS_DEEP];
	u32 n = 0;

	for (u32 i = 0; i < m->ngroups; i++) {
		struct mallocng_group g = m->groups[i];
		struct amount a = {0};

		while (n && g.start >= open[n - 1].g.end)
			close_group(m, &open[--n]);
		if (n == GROUPS_DEEP || !is_whole(m, &g) || (n && (g.mapped || !take_slot(&open[n - 1], &g)))) {
			m->torn++;
			continue;
		}
		if (!g.end)
			g.end = g.start + GROUP_HEAD + g.slot * g.nslots;
		a.size = g.end - g.start;
		pages_add(m->space->pages, g.start, g.end, &a);
		if (n)
			without(&open[n - 1], &a);
		else
			space_claim(m->space, g.start, g.end);
		open[n++] = (struct open_group){g, a, 0};
	}
	while (n)
		close_group(m, &open[--n]);
}

/* --- what is shown --- */

static struct error *show(struct mallocng *m)
{
	struct usage *u = m->usage;
	u64 sizes[MALLOCNG_CLASSES];
	u32 node, child;
	struct error *err = usage_child(u, 0, USAGE_GROUP, &node, "malloc of musl");

	for (u32 i = 0; i < MALLOCNG_CLASSES; i++)
		sizes[i] = (u64)UNIT * units[i];
	for (u32 i = 0; i < m->nareas; i++) {
		m->rest.size += PAGES_SIZE;
		pages_add(m->space->pages, m->areas[i], m->areas[i] + PAGES_SIZE, &m->rest);
		space_claim(m->space, m->areas[i], m->areas[i] + PAGES_SIZE);
	}
	u->facts.arenas++;
	u->facts.torn += m->torn;
	if (!err)
		err = usage_sizes(u, node, USAGE_IN_USE, "in use", m->used, sizes, MALLOCNG_CLASSES);
	if (!err)
		err = usage_sizes(u, node, USAGE_FREE, "free in groups", m->freed, sizes, MALLOCNG_CLASSES);
	if (!err)
		err = usage_part(u, node, USAGE_IN_USE, "blocks with a mapping of their own", &m->one);
	if (!err)
		err = usage_child(u, node, USAGE_METADATA, &child, "metadata, and ends of groups");
	if (!err)
		usage_add(u, child, &m->rest);
	if (!err && u->facts.held > (u->facts.in_use + u->facts.free) / 10 && u->facts.held > 1 << 20) {
		char text[USAGE_BYTES];

		err = usage_say(u, USAGE_ADVICE,
		        "%s are free in groups that live blocks hold: no call gives them back. Blocks that live long "
		        "lie among short-lived ones of their size",
		        usage_bytes(text, u->facts.held));
	}
	return err;
}

static struct error *read_one(struct mallocng *m, u32 map)
{
	u64 start, end, check, first;
	struct error *err;

	if (!space_data(m->space, map, &start, &end))
		return NULL;
	first = find_first_area(m, start, end, &check);
	if (!first)
		return NULL;
	err = read_areas(m, first, check);
	if (!err && !m->ngroups)
		return NULL;
	add_all(m);
	return err ? err : show(m);
}

static struct error *mallocng_read(struct space *s, struct usage *u)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < s->maps.nlines; i++) {
		struct mallocng m = {.space = s, .usage = u};

		if (!s->maps.lines[i].ino)
			continue;
		err = block_reader_open(s, &m.reader);
		if (!err)
			err = read_one(&m, i);
		block_reader_close(&m.reader);
		free(m.areas);
		free(m.groups);
	}
	return err;
}

const struct allocator mallocng_allocator = {.name = "mallocng", .read = mallocng_read};
