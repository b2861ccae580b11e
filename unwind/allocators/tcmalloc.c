/* SPDX-License-Identifier: Apache-2.0 */
#include "tcmalloc.h"

#include <stdlib.h>
#include <string.h>

#include "allocators.h"
#include "grow.h"
#include "sort_keys.h"

#define NODES_MAX   4096
#define WORDS       6
#define SAMPLES     8 /* words of a node, most of which have to fit */
#define SPANS_MAX   (1u << 24)
#define CLASSES_MIN 20
#define SIZE_MAX_OF 262144 /* of the largest class */
#define BEFORE_MAX  65536
#define NO_NODE     UINT32_MAX
#define ADDRESS     ((1ull << 48) - 1)
#define HUGE        (2ull << 20)

const struct tcmalloc_layout tcmalloc_layouts[TCMALLOC_LAYOUTS] = {
        {" (gperftools)", TCMALLOC_GPERFTOOLS, 17, 18, 0},
        {"", TCMALLOC_PACKED, 20, 15, 32768},
        {"", TCMALLOC_2024, 20, 15, 32768},
        {"", TCMALLOC_2022, 20, 15, 32768},
        {"", TCMALLOC_PACKED, 20, 15, 65536},
        {"", TCMALLOC_2024, 20, 15, 65536},
        {"", TCMALLOC_2022, 20, 15, 65536},
};

struct found {
	u64 span, page; /* page: its number */
	u32 class;
};

struct tcmalloc {
	struct space *space;
	struct usage *usage;
	struct block_reader reader;
	const struct tcmalloc_layout *layout;
	u64 start, end;  /* the data of the file */
	u64 root, table; /* table: of the sizes */
	u64 sizes[TCMALLOC_CLASSES];
	u64 nodes[NODES_MAX]; /* lower ones */
	u32 numbers[NODES_MAX];
	u32 nnodes, node; /* node: that is being read */
	u8 classes[BEFORE_MAX];
	struct found *found;
	u32 nfound;
	struct tcmalloc_span *spans; /* by address */
	u32 nspans;
	u64 torn;
	struct error *err;
	struct amount used[TCMALLOC_CLASSES], freed[TCMALLOC_CLASSES], large, rest, places[TCMALLOC_PLACES], metadata;
};

static u64 node_bytes(const struct tcmalloc_layout *l)
{
	return l->before + (8ull << l->node_bits);
}

static u64 root_bytes(const struct tcmalloc_layout *l)
{
	return 8ull << l->root_bits;
}

bool tcmalloc_decode(enum tcmalloc_spans spans, const u64 words[WORDS], struct tcmalloc_span *ret)
{
	bool packed = spans == TCMALLOC_PACKED, old = spans == TCMALLOC_GPERFTOOLS, first = spans == TCMALLOC_2022;
	u64 page = old ? words[0] : first ? words[4] : words[3], n = old ? words[1] : first ? words[5] : words[4];
	u32 bits = (u32)words[5];

	if (packed) {
		n = page >> 60 & 3 ? n : n & 63;
		page &= (1ull << 35) - 1;
	}
	*ret = (struct tcmalloc_span){.start = page * TCMALLOC_PAGE, .size = n * TCMALLOC_PAGE};
	if (old) {
		ret->nused = bits & 0xffff;
		ret->class = bits >> 16 & 0xff;
		ret->place = bits >> 24 & 3;
	} else {
		ret->nused = words[2] >> (first ? 0 : 32) & 0xffff;
	}
	return page && page < 1ull << 35 && n && n < 1ull << 34 && ret->place < TCMALLOC_PLACES;
}

bool tcmalloc_sizes(const u32 *words, u32 n, u64 ret[TCMALLOC_CLASSES])
{
	u32 i;

	if (n < 3 || words[0] || (words[1] != 8 && words[1] != 16))
		return false;
	memset(ret, 0, TCMALLOC_CLASSES * sizeof(*ret));
	for (i = 1; i < n && i < TCMALLOC_CLASSES && words[i] > words[i - 1] && !(words[i] % 8); i++)
		ret[i] = words[i];
	return i >= CLASSES_MIN && ret[i - 1] == SIZE_MAX_OF;
}

/* --- the tree --- */

static bool read_span(struct tcmalloc *t, u64 at, u64 words[WORDS], struct tcmalloc_span *ret)
{
	return at && !(at % 8) && block_reader_read(&t->reader, words, 8 * WORDS, at) &&
	       tcmalloc_decode(t->layout->spans, words, ret);
}

static bool may_be_node(const struct tcmalloc *t, u64 addr)
{
	const struct space *s = t->space;
	u32 map = addr && !(addr % 8) ? space_find(s, addr) : s->maps.nlines;

	return map < s->maps.nlines && space_is_anonymous(s, map) &&
	       s->maps.lines[map].end - addr >= node_bytes(t->layout);
}

struct sample {
	struct tcmalloc *t;
	u64 words;  /* of the node */
	u32 number; /* that the node has in the root */
	u32 fit, other;
};

/* The first span that has the page says which number the node has. */
static bool look_at_word(void *arg, u64 at, u64 word)
{
	struct sample *p = arg;
	u32 bits = p->t->layout->node_bits, number = NO_NODE;
	u64 words[WORDS], page = (at - p->words) / 8, first;
	struct tcmalloc_span s;

	if (read_span(p->t, word & ADDRESS, words, &s)) {
		first = s.start / TCMALLOC_PAGE & ((1ull << bits) - 1);
		if (page >= first && page - first < s.size / TCMALLOC_PAGE)
			number = (u32)(s.start / TCMALLOC_PAGE >> bits);
	}
	if (p->number == NO_NODE)
		p->number = number;
	if (number != NO_NODE && number == p->number)
		p->fit++;
	else
		p->other++;
	return p->fit + p->other < SAMPLES && p->other < SAMPLES / 2;
}

/* Which number a node has among the root's words. NO_NODE: it is none. */
static u32 node_number(struct tcmalloc *t, u64 node)
{
	struct sample p = {.t = t, .words = node + t->layout->before, .number = NO_NODE};

	/* what is none mostly says so in its first page */
	if (block_reader_words(&t->reader, p.words, p.words + PAGES_SIZE, look_at_word, &p))
		block_reader_words(&t->reader, p.words + PAGES_SIZE, node + node_bytes(t->layout), look_at_word, &p);
	return p.fit > p.other ? p.number : NO_NODE;
}

/* The first node that is found says where the root is: then all are read from there. */
static bool look_for_root(void *arg, u64 at, u64 word)
{
	struct tcmalloc *t = arg;
	u32 number = may_be_node(t, word) ? node_number(t, word) : NO_NODE;
	u64 root = at - 8ull * number;

	if (number == NO_NODE || root < t->start || root > at || t->end - root < root_bytes(t->layout))
		return true;
	t->root = root;
	return false;
}

static bool add_node(void *arg, u64 at, u64 word)
{
	struct tcmalloc *t = arg;

	if (may_be_node(t, word)) {
		t->numbers[t->nnodes] = (u32)((at - t->root) / 8);
		t->nodes[t->nnodes++] = word;
	}
	return t->nnodes < NODES_MAX;
}

static u32 class_of(const struct tcmalloc *t, u64 page)
{
	const u8 *c = t->classes;

	return !t->layout->before ? 0 : t->layout->before < BEFORE_MAX ? c[page] : c[2 * page] | c[2 * page + 1] << 8;
}

static bool add_found(void *arg, u64 at, u64 word)
{
	struct tcmalloc *t = arg;
	u64 page = (at - t->nodes[t->node] - t->layout->before) / 8;
	struct found f = {word & ADDRESS, page + ((u64)t->numbers[t->node] << t->layout->node_bits), class_of(t, page)};

	if (t->nfound && t->found[t->nfound - 1].span == f.span)
		return true;
	if (t->nfound == SPANS_MAX)
		return false;
	t->err = grow(&t->found, t->nfound, sizeof(*t->found));
	if (!t->err)
		t->found[t->nfound++] = f;
	return !t->err;
}

static bool find_root(struct tcmalloc *t)
{
	for (u32 i = 0; i < TCMALLOC_LAYOUTS; i++) {
		t->layout = &tcmalloc_layouts[i];
		if (t->end - t->start >= root_bytes(t->layout) &&
		        !block_reader_words(&t->reader, t->start, t->end, look_for_root, t))
			return true;
	}
	return false;
}

static bool find_tree(struct tcmalloc *t)
{
	u32 before;

	if (!find_root(t))
		return false;
	before = t->layout->before;
	block_reader_words(&t->reader, t->root, t->root + root_bytes(t->layout), add_node, t);
	for (t->node = 0; t->node < t->nnodes && !t->err; t->node++) {
		u64 node = t->nodes[t->node];

		memset(t->classes, 0, before);
		for (u32 at = 0; at < before; at += PAGES_SIZE) /* some may not be in memory */
			block_reader_read(&t->reader, t->classes + at, PAGES_SIZE, node + at);
		block_reader_words(&t->reader, node + before, node + node_bytes(t->layout), add_found, t);
	}
	return t->nfound;
}

/* Google's has classes of their own for blocks that are seldom used: behind the others, of the same sizes. */
static void read_more_sizes(struct tcmalloc *t)
{
	u32 sizes[TCMALLOC_CLASSES];

	if (t->layout->spans == TCMALLOC_GPERFTOOLS || !block_reader_read(&t->reader, sizes, sizeof(sizes), t->table))
		return;
	for (u32 i = 1; i < TCMALLOC_CLASSES; i++)
		if (!t->sizes[i] && sizes[i] <= SIZE_MAX_OF && !(sizes[i] % 8))
			t->sizes[i] = sizes[i];
}

static bool find_sizes(struct tcmalloc *t)
{
	for (u64 at = t->start; at < t->end;) {
		u64 n;

		if (!block_reader_fill(&t->reader, at, t->end)) {
			at = (at / PAGES_SIZE + 1) * PAGES_SIZE;
			continue;
		}
		n = (t->reader.end - at) / 4;
		for (u64 i = 0; i < n; i++)
			if (tcmalloc_sizes((const u32 *)t->reader.block + i, (u32)(n - i), t->sizes)) {
				t->table = at + 4 * i;
				return true;
			}
		at = t->reader.end == t->end ? t->end : t->reader.end - 4ull * TCMALLOC_CLASSES;
	}
	return false;
}

/* --- spans --- */

/*
 * Of what a page leads to. What Google's gave up is a link to the next such, and in no list; a span of one object is
 * given up with it, and does not count it.
 */
static bool is_span(struct tcmalloc *t, const struct found *f, struct tcmalloc_span *ret)
{
	u64 words[WORDS], size;

	if (!read_span(t, f->span, words, ret) || ret->start / TCMALLOC_PAGE != f->page)
		return false;
	if (t->layout->spans == TCMALLOC_GPERFTOOLS)
		return ret->class < TCMALLOC_CLASSES;
	ret->class = f->class;
	if (!ret->class || ret->class >= TCMALLOC_CLASSES)
		return !ret->class && !words[0] && !words[1];
	size = t->sizes[ret->class];
	if (ret->size >= size && ret->size - size < size)
		ret->nused = 1;
	return true;
}

static struct error *read_spans(struct tcmalloc *t)
{
	u64 end = 0;
	u32 n = 0;

	sort_keys(t->found, t->nfound, sizeof(*t->found));
	t->spans = calloc(t->nfound + 1ull, sizeof(*t->spans));
	if (!t->spans)
		return &error_no_memory;
	for (u32 i = 0; i < t->nfound; i++) {
		u64 at = t->found[i].span;

		if (!block_reader_at(&t->reader, at, 8 * WORDS))
			block_reader_fill(&t->reader, at & ~7ull, (at & ~7ull) + BLOCK_READER_SIZE);
		t->nspans += is_span(t, &t->found[i], &t->spans[t->nspans]);
	}
	sort_keys(t->spans, t->nspans, sizeof(*t->spans));
	for (u32 i = 0; i < t->nspans; i++) {
		const struct tcmalloc_span *s = &t->spans[i];
		u64 size = t->sizes[s->class];

		if (s->start < end || (s->class && (!size || size > s->size || s->nused > s->size / size))) {
			t->torn++;
			continue;
		}
		end = s->start + s->size;
		t->spans[n++] = *s;
	}
	t->nspans = n;
	return NULL;
}

/* A span's memory goes to its objects in equal parts. */
static void add_objects(struct tcmalloc *t, const struct tcmalloc_span *s, const struct amount *a)
{
	struct usage_facts *facts = &t->usage->facts;
	u64 size = t->sizes[s->class], n = s->size / size, used = s->nused, out = n - used;
	struct amount u = {used, used * size, a->resident / n * used, a->swapped / n * used};
	struct amount f = {out, out * size, a->resident / n * out, a->swapped / n * out};

	amount_add(&t->used[s->class], &u);
	amount_add(&t->freed[s->class], &f);
	t->rest.size += a->size - u.size - f.size;
	t->rest.resident += a->resident - u.resident - f.resident;
	t->rest.swapped += a->swapped - u.swapped - f.swapped;
	facts->in_use += u.resident;
	facts->free += f.resident;
	facts->held += f.resident;
	facts->held_blocks += 2 * used <= n ? used : 0;
}

static void add_span(struct tcmalloc *t, const struct tcmalloc_span *s)
{
	struct usage_facts *facts = &t->usage->facts;
	struct amount a = {.size = s->size};

	pages_add(t->space->pages, s->start, s->start + s->size, &a);
	space_claim(t->space, s->start, s->start + s->size);
	if (s->place != TCMALLOC_USED) {
		amount_add(&t->places[s->place], &a);
		facts->free += a.resident;
		facts->returnable += a.resident;
	} else if (s->class) {
		add_objects(t, s, &a);
	} else {
		a.blocks = 1;
		amount_add(&t->large, &a);
		t->usage->in_use_of[size_class(a.size)] += a.size;
		facts->in_use += a.resident;
	}
}

static void add_free(struct tcmalloc *t, u64 start, u64 end)
{
	struct tcmalloc_span s = {.start = start, .size = end - start, .place = TCMALLOC_FREE};

	if (start < end)
		add_span(t, &s);
}

/* Google's has mappings of whole huge pages for blocks alone: what is in no span of them is free. */
static void add_between(struct tcmalloc *t)
{
	const struct maps *maps = &t->space->maps;
	u64 at = 0, end = 0;

	for (u32 i = 0; i < t->nspans; i++) {
		const struct tcmalloc_span *s = &t->spans[i];
		u32 map = s->start >= end ? space_find(t->space, s->start) : maps->nlines;

		if (map < maps->nlines) {
			const struct map_line *l = &maps->lines[map];
			bool own = space_is_anonymous(t->space, map) && !((l->start | l->end) % HUGE);

			add_free(t, at, end);
			at = own ? l->start : s->start;
			end = own ? l->end : s->start + s->size;
		}
		add_free(t, at, s->start < end ? s->start : end);
		at = s->start + s->size;
	}
	add_free(t, at, end);
}

/* Of Google's a mapping for nodes, spans and what CPUs keep. */
static void add_metadata(struct tcmalloc *t)
{
	const struct maps *maps = &t->space->maps;

	for (u32 i = 0; i < t->nnodes; i++) {
		u32 map = space_find(t->space, t->nodes[i]);
		const struct map_line *l = &maps->lines[map];

		if (map == maps->nlines || (l->start | l->end) % HUGE || space_is_claimed(t->space, map))
			continue;
		t->metadata.size += l->end - l->start;
		pages_add(t->space->pages, l->start, l->end, &t->metadata);
		space_claim(t->space, l->start, l->end);
	}
}

static struct error *show(struct tcmalloc *t)
{
	struct usage *u = t->usage;
	struct usage_facts *f = &u->facts;
	char text[USAGE_BYTES];
	u32 node;
	bool old = t->layout->spans == TCMALLOC_GPERFTOOLS;
	struct error *err = usage_child(u, 0, USAGE_GROUP, &node, "malloc of tcmalloc%s", t->layout->name);

	for (u32 i = 0; i < t->nspans; i++)
		add_span(t, &t->spans[i]);
	if (!old) {
		add_between(t);
		add_metadata(t);
	}
	f->arenas++;
	f->torn += t->torn;
	if (!err)
		err = usage_sizes(
		        u, node, USAGE_IN_USE, "in use, or kept for threads", t->used, t->sizes, TCMALLOC_CLASSES);
	if (!err)
		err = usage_part(u, node, USAGE_IN_USE, "blocks of whole pages", &t->large);
	if (!err)
		err = usage_sizes(u, node, USAGE_FREE, "free in spans", t->freed, t->sizes, TCMALLOC_CLASSES);
	if (!err)
		err = usage_part(u, node, USAGE_FREE, "free pages", &t->places[TCMALLOC_FREE]);
	if (!err)
		err = usage_part(u, node, USAGE_FREE, "free pages, given back", &t->places[TCMALLOC_RETURNED]);
	if (!err)
		err = usage_part(u, node, USAGE_METADATA, "ends of spans", &t->rest);
	if (!err)
		err = usage_part(u, node, USAGE_METADATA, "metadata", &t->metadata);
	if (!err && usage_matters(u, f->returnable))
		err = usage_say(u, USAGE_ADVICE,
		        old ? "%s are free pages that tcmalloc keeps: MallocExtension_ReleaseFreeMemory(), or a higher "
		              "TCMALLOC_RELEASE_RATE, gives them back"
		            : "%s are free pages that tcmalloc keeps: MallocExtension::ReleaseMemoryToSystem(), or its "
		              "ProcessBackgroundActions() in a thread, gives them back",
		        usage_bytes(text, f->returnable));
	return err;
}

static struct error *read_one(struct tcmalloc *t, u32 map)
{
	struct error *err;

	/* the sizes first: the tree is looked for by trying each pointer to much memory, of which a JVM has many */
	if (!space_variables(t->space, map, root_bytes(&tcmalloc_layouts[0]), &t->start, &t->end) || !find_sizes(t))
		return NULL;
	if (!find_tree(t))
		return usage_say(t->usage, USAGE_NOTE, "the tcmalloc of %s is of an unknown layout: not read",
		        t->space->maps.lines[map].path);
	read_more_sizes(t);
	err = t->err ? t->err : read_spans(t);
	return err ? err : show(t);
}

static struct error *tcmalloc_read(struct space *s, struct usage *u)
{
	struct tcmalloc *t = malloc(sizeof(*t));
	struct error *err = t ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < s->maps.nlines; i++) {
		if (!s->maps.lines[i].ino)
			continue;
		*t = (struct tcmalloc){.space = s, .usage = u};
		err = block_reader_open(s, &t->reader);
		if (!err)
			err = read_one(t, i);
		block_reader_close(&t->reader);
		free(t->found);
		free(t->spans);
	}
	free(t);
	return err;
}

const struct allocator tcmalloc_allocator = {.name = "tcmalloc", .read = tcmalloc_read};
