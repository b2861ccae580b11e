/* SPDX-License-Identifier: Apache-2.0 */
#include "tcmalloc.h"

#include <stdlib.h>
#include <string.h>

#include "allocators.h"
#include "grow.h"
#include "sort_keys.h"

#define NODE_BYTES  (8ull * TCMALLOC_NODE)
#define ROOT_BYTES  (8ull * TCMALLOC_ROOT)
#define NODES_MAX   512
#define WORDS       6
#define SAMPLES     8 /* words of a node that have to fit */
#define SPANS_MAX   (1u << 24)
#define CLASSES_MIN 20
#define SIZE_MAX_OF 262144 /* of the largest class */

struct found {
	u64 span, page;
};

struct tcmalloc {
	struct space *space;
	struct usage *usage;
	struct block_reader reader;
	u64 start, end; /* the data of the file */
	u64 sizes[TCMALLOC_CLASSES];
	u64 nodes[NODES_MAX]; /* lower ones */
	u32 nnodes;
	u64 node; /* that is being read */
	struct found *found;
	u32 nfound;
	struct tcmalloc_span *spans; /* by address */
	u32 nspans;
	u64 torn;
	struct amount used[TCMALLOC_CLASSES], freed[TCMALLOC_CLASSES], large, rest, places[TCMALLOC_PLACES];
};

bool tcmalloc_decode(const u64 words[WORDS], struct tcmalloc_span *ret)
{
	u32 bits = (u32)words[5];

	*ret = (struct tcmalloc_span){.start = words[0] * TCMALLOC_PAGE,
	        .size = words[1] * TCMALLOC_PAGE,
	        .nused = bits & 0xffff,
	        .class = bits >> 16 & 0xff,
	        .place = bits >> 24 & 3};
	return words[0] && words[0] < 1ull << 35 && words[1] && words[1] < 1ull << 34 &&
	       ret->class < TCMALLOC_CLASSES && ret->place < TCMALLOC_PLACES;
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
	return at && !(at % 8) && block_reader_read(&t->reader, words, 8 * WORDS, at) && tcmalloc_decode(words, ret);
}

static bool may_be_node(const struct space *s, u64 addr)
{
	u32 map = addr && !(addr % 8) ? space_find(s, addr) : s->maps.nlines;

	return map < s->maps.nlines && space_is_anonymous(s, map) && s->maps.lines[map].end - addr >= NODE_BYTES;
}

/* Which number a node has among the root's words, by the first pages that it has. TCMALLOC_ROOT: it is none. */
static u32 node_number(struct tcmalloc *t, u64 node)
{
	u32 number = TCMALLOC_ROOT, seen = 0;

	for (u64 at = node; at < node + NODE_BYTES && seen < SAMPLES;) {
		/* what is none mostly says so in its first page */
		if (!block_reader_fill(&t->reader, at, node + (at == node ? PAGES_SIZE : NODE_BYTES))) {
			at = (at / PAGES_SIZE + 1) * PAGES_SIZE;
			continue;
		}
		for (; at < t->reader.end && seen < SAMPLES; at += 8) {
			u64 word = *(const u64 *)block_reader_at(&t->reader, at, 8), words[WORDS];
			struct tcmalloc_span s;
			u64 page = (at - node) / 8;

			if (!word)
				continue;
			if (!read_span(t, word, words, &s) || (words[0] & (TCMALLOC_NODE - 1)) > page ||
			        (number < TCMALLOC_ROOT && words[0] >> 18 != number) ||
			        (words[0] & (TCMALLOC_NODE - 1)) + words[1] <= page)
				return TCMALLOC_ROOT;
			number = (u32)(words[0] >> 18);
			seen++;
		}
	}
	return number;
}

/* The first node that is found says where the root is: then all are read from there. */
static bool look_for_root(void *arg, u64 at, u64 word)
{
	struct tcmalloc *t = arg;
	u32 number = may_be_node(t->space, word) ? node_number(t, word) : TCMALLOC_ROOT;
	u64 root = at - 8ull * number;

	if (number == TCMALLOC_ROOT || root < t->start || root > at || t->end - root < ROOT_BYTES)
		return true;
	t->nodes[0] = root;
	return false;
}

static bool add_node(void *arg, u64 at, u64 word)
{
	struct tcmalloc *t = arg;

	(void)at;
	if (may_be_node(t->space, word))
		t->nodes[t->nnodes++] = word;
	return t->nnodes < NODES_MAX;
}

static bool add_found(void *arg, u64 at, u64 word)
{
	struct tcmalloc *t = arg;
	struct found f = {word, (at - t->node) / 8};

	if (t->nfound && t->found[t->nfound - 1].span == word)
		return true;
	if (t->nfound == SPANS_MAX)
		return false;
	error_free(grow(&t->found, t->nfound, sizeof(*t->found)));
	if (t->found)
		t->found[t->nfound++] = f;
	return t->found;
}

static bool find_tree(struct tcmalloc *t)
{
	u64 root;

	if (block_reader_words(&t->reader, t->start, t->end, look_for_root, t))
		return false;
	root = t->nodes[0];
	block_reader_words(&t->reader, root, root + ROOT_BYTES, add_node, t);
	for (u32 i = 0; i < t->nnodes; i++) {
		t->node = t->nodes[i];
		block_reader_words(&t->reader, t->node, t->node + NODE_BYTES, add_found, t);
	}
	return t->nfound;
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
			if (tcmalloc_sizes((const u32 *)t->reader.block + i, (u32)(n - i), t->sizes))
				return true;
		at = t->reader.end == t->end ? t->end : t->reader.end - 4ull * TCMALLOC_CLASSES;
	}
	return false;
}

/* --- spans --- */

static struct error *read_spans(struct tcmalloc *t)
{
	u64 words[WORDS], end = 0;
	u32 n = 0;

	sort_keys(t->found, t->nfound, sizeof(*t->found));
	t->spans = calloc(t->nfound + 1ull, sizeof(*t->spans));
	if (!t->spans)
		return &error_no_memory;
	for (u32 i = 0; i < t->nfound; i++) {
		u64 at = t->found[i].span;
		struct tcmalloc_span *s = &t->spans[t->nspans];

		if (!block_reader_at(&t->reader, at, sizeof(words)))
			block_reader_fill(&t->reader, at & ~7ull, (at & ~7ull) + BLOCK_READER_SIZE);
		if (read_span(t, at, words, s) && (words[0] & (TCMALLOC_NODE - 1)) == t->found[i].page)
			t->nspans++;
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

static struct error *show_one(
        struct usage *u, u32 parent, enum usage_kind kind, const char *name, const struct amount *a)
{
	u32 node;
	struct error *err = a->size ? usage_child(u, parent, kind, &node, "%s", name) : NULL;

	if (!err && a->size)
		usage_add(u, node, a);
	return err;
}

static struct error *show(struct tcmalloc *t)
{
	struct usage *u = t->usage;
	struct usage_facts *f = &u->facts;
	char text[USAGE_BYTES];
	u32 node;
	struct error *err = usage_child(u, 0, USAGE_GROUP, &node, "malloc of tcmalloc (gperftools)");

	for (u32 i = 0; i < t->nspans; i++)
		add_span(t, &t->spans[i]);
	f->arenas++;
	f->torn += t->torn;
	if (!err)
		err = usage_sizes(
		        u, node, USAGE_IN_USE, "in use, or kept for threads", t->used, t->sizes, TCMALLOC_CLASSES);
	if (!err)
		err = show_one(u, node, USAGE_IN_USE, "blocks of whole pages", &t->large);
	if (!err)
		err = usage_sizes(u, node, USAGE_FREE, "free in spans", t->freed, t->sizes, TCMALLOC_CLASSES);
	if (!err)
		err = show_one(u, node, USAGE_FREE, "free pages", &t->places[TCMALLOC_FREE]);
	if (!err)
		err = show_one(u, node, USAGE_FREE, "free pages, given back", &t->places[TCMALLOC_RETURNED]);
	if (!err)
		err = show_one(u, node, USAGE_METADATA, "ends of spans", &t->rest);
	if (!err && usage_matters(u, f->returnable))
		err = usage_say(u, USAGE_ADVICE,
		        "%s are free pages that tcmalloc keeps: MallocExtension_ReleaseFreeMemory(), or a higher "
		        "TCMALLOC_RELEASE_RATE, gives them back",
		        usage_bytes(text, f->returnable));
	return err;
}

static struct error *read_one(struct tcmalloc *t, u32 map)
{
	struct error *err;

	if (!space_variables(t->space, map, ROOT_BYTES, &t->start, &t->end) || !find_tree(t))
		return NULL;
	if (!find_sizes(t))
		return usage_say(t->usage, USAGE_NOTE, "the tcmalloc of %s is of an unknown layout: not read",
		        t->space->maps.lines[map].path);
	err = read_spans(t);
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
