/* SPDX-License-Identifier: Apache-2.0 */
#include "glibc.h"

#include <stdlib.h>
#include <string.h>

#include "allocators.h"
#include "binary/image.h"
#include "binary/memory.h"
#include "grow.h"
#include "search.h"

static const struct {
	const char *name;
	enum usage_kind kind;
} states[GLIBC_STATES] = {
        [GLIBC_IN_USE] = {"in use", USAGE_IN_USE},
        [GLIBC_CACHED] = {"free in thread caches", USAGE_CACHED},
        [GLIBC_FAST] = {"free in fast bins", USAGE_FREE},
        [GLIBC_UNSORTED] = {"free, unsorted", USAGE_FREE},
        [GLIBC_SMALL] = {"free in small bins", USAGE_FREE},
        [GLIBC_LARGE] = {"free in large bins", USAGE_FREE},
        [GLIBC_TOP] = {"top", USAGE_TOP},
        [GLIBC_METADATA] = {"metadata", USAGE_METADATA},
        [GLIBC_UNREAD] = {"not read: corrupt or unreadable", USAGE_UNREAD},
};

static struct error *show_classes(struct glibc *g, u32 parent, enum usage_kind kind, const struct amount *of)
{
	char name[SIZE_CLASS_NAME];
	struct error *err = NULL;
	u32 node;

	for (u32 i = 0; !err && i < GLIBC_CLASSES; i++) {
		if (!of[i].blocks)
			continue;
		err = usage_child(g->usage, parent, kind, &node, "%s", size_class_name(i, name));
		if (!err)
			usage_add(g->usage, node, &of[i]);
		if (kind == USAGE_IN_USE)
			g->usage->in_use_of[i] += of[i].size;
	}
	return err;
}

static void add_facts(struct glibc *g, enum usage_kind kind, const struct amount *a)
{
	struct usage_facts *f = &g->usage->facts;

	f->in_use += kind == USAGE_IN_USE ? a->resident : 0;
	f->cached += kind == USAGE_CACHED ? a->resident : 0;
	f->free += kind == USAGE_FREE || kind == USAGE_TOP ? a->resident : 0;
}

static struct error *show_state(struct glibc *g, u32 parent, u32 state, const struct glibc_classes *c)
{
	struct amount sum = {0};
	struct error *err;
	u32 node;

	for (u32 i = 0; i < GLIBC_CLASSES; i++)
		amount_add(&sum, &c->of[i]);
	if (!sum.blocks)
		return NULL;
	add_facts(g, states[state].kind, &sum);
	err = usage_child(g->usage, parent, states[state].kind, &node, "%s", states[state].name);
	if (err)
		return err;
	if (state == GLIBC_TOP || state == GLIBC_METADATA || state == GLIBC_UNREAD) {
		sum.blocks = 0;
		usage_add(g->usage, node, &sum);
		return NULL;
	}
	return show_classes(g, node, states[state].kind, c->of);
}

static struct error *show_arena(struct glibc *g, u32 number)
{
	const struct glibc_arena *a = &g->arenas[number];
	struct error *err;
	u32 node;
	bool any = false;

	for (u32 i = 0; i < GLIBC_STATES; i++)
		any |= a->states[i] != NULL;
	if (!any)
		return NULL;
	g->usage->facts.arenas++;
	err = number ? usage_child(g->usage, g->node, USAGE_GROUP, &node, "arena %u", number)
	             : usage_child(g->usage, g->node, USAGE_GROUP, &node, "main arena");
	for (u32 i = 0; !err && i < GLIBC_STATES; i++)
		if (a->states[i])
			err = show_state(g, node, i, a->states[i]);
	return err;
}

static struct error *show_mapped(struct glibc *g)
{
	struct amount sum = {0};
	struct error *err;
	u32 node;

	for (u32 i = 0; i < GLIBC_CLASSES; i++)
		amount_add(&sum, &g->mapped[i]);
	if (!sum.blocks)
		return NULL;
	add_facts(g, USAGE_IN_USE, &sum);
	err = usage_child(g->usage, g->node, USAGE_IN_USE, &node, "blocks with a mapping of their own");
	return err ? err : show_classes(g, node, USAGE_IN_USE, g->mapped);
}

static struct error *advise(struct glibc *g)
{
	const struct usage_facts *f = &g->usage->facts;
	char a[USAGE_BYTES], b[USAGE_BYTES];
	u64 all = f->in_use + f->cached + f->free;
	struct error *err = NULL;

	if (usage_matters(g->usage, f->returnable))
		err = usage_say(g->usage, USAGE_ADVICE,
		        "malloc_trim(0), called by the program, would give back %s: whole free pages",
		        usage_bytes(a, f->returnable));
	if (!err && usage_matters(g->usage, f->top))
		err = usage_say(g->usage, USAGE_ADVICE,
		        "%s are free at the ends of arenas, which malloc_trim() does not give back; a lower "
		        "M_TRIM_THRESHOLD keeps less of it",
		        usage_bytes(a, f->top));
	if (!err && usage_matters(g->usage, f->held))
		err = usage_say(g->usage, USAGE_ADVICE,
		        "%s are free in pages that %llu live blocks share: no call gives them back. Blocks that live "
		        "long "
		        "lie among short-lived ones",
		        usage_bytes(a, f->held), (unsigned long long)f->held_blocks);
	if (!err && f->arenas > 8 && f->free + f->cached > all / 4 && usage_matters(g->usage, f->free + f->cached))
		err = usage_say(g->usage, USAGE_ADVICE,
		        "%u arenas hold %s of free memory, each for itself: MALLOC_ARENA_MAX=2 in the environment, or "
		        "mallopt(M_ARENA_MAX, 2), lets threads share them",
		        f->arenas, usage_bytes(b, f->free + f->cached));
	return err;
}

/* Puts all of it into the tree, and says what helps. */
static struct error *glibc_show(struct glibc *g)
{
	struct error *err = usage_child(
	        g->usage, 0, USAGE_GROUP, &g->node, "malloc of glibc%s%s", g->version[0] ? " " : "", g->version);

	for (u32 i = 0; !err && i < g->narenas; i++)
		err = show_arena(g, i);
	if (!err)
		err = show_mapped(g);
	g->usage->facts.torn += g->torn;
	return err ? err : advise(g);
}

/*
 * Blocks with a mapping of their own: large ones, from M_MMAP_THRESHOLD on. The kernel joins neighbouring mappings, so
 * one may hold several. Each begins at a page with its header, or (memalign()) has it a little later.
 */

#define BLOCKS_MAX (1u << 24)

/* The size of the block whose mapping begins at `at`; 0: none does. From 2.43 on the header leaves out its end. */
static u64 block_at(struct glibc *g, u64 at, u64 end)
{
	u64 head[2], size, tail;

	if (pages_at(g->space->pages, at) != PAGE_PRESENT || !memory_read(g->space->memory, head, sizeof(head), at))
		return 0;
	size = head[1] & ~(u64)CHUNK_BITS;
	if (head[0] || (head[1] & CHUNK_BITS) != CHUNK_MAPPED || size < CHUNK_LEAST)
		return 0;
	tail = size & (PAGES_SIZE - 1);
	if (tail == PAGES_SIZE - CHUNK_HEADER)
		size += CHUNK_HEADER;
	else if (tail)
		return 0;
	return size <= end - at ? size : 0;
}

/* Blocks that were found so far; those of the first pass ascend. */
struct found {
	u64 *at, bytes;
	u32 n, first_pass;
};

static struct error *count(struct glibc *g, u64 at, u64 size, struct found *f)
{
	struct amount amount = {.blocks = 1, .size = size};
	struct error *err = grow(&f->at, f->n, sizeof(*f->at));

	if (err)
		return err;
	f->at[f->n++] = at;
	f->bytes += size;
	pages_add(g->space->pages, at, at + size, &amount);
	amount_add(&g->mapped[size_class(size)], &amount);
	space_claim(g->space, at, at + size);
	return NULL;
}

static bool is_counted(const struct found *f, u64 at)
{
	u32 i = SEARCH(f->first_pass, k, f->at[k] < at);

	return i < f->first_pass && f->at[i] == at;
}

/* In a mapping that holds others' memory, too, a block may begin at any page; looked for only if some are missing. */
static struct error *read_mapping(struct glibc *g, u64 start, u64 end, bool anywhere, struct found *f)
{
	struct error *err = NULL;

	u32 most = anywhere ? g->parameters.mapped_blocks : BLOCKS_MAX;

	for (u64 at = start; !err && at < end && f->n < most;) {
		u32 heap = glibc_segment_at(g, at);
		u64 size;

		if (heap < g->nsegments) { /* the kernel has joined a heap that is full with what lies behind it */
			at = (g->segments[heap].end + PAGES_SIZE - 1) & ~(PAGES_SIZE - 1);
			continue;
		}
		size = block_at(g, at, end);
		if (!size && !anywhere)
			break;
		if (size && !is_counted(f, at))
			err = count(g, at, size, f);
		at += size ? size : PAGES_SIZE;
	}
	return err;
}

static bool belongs_to_arena(const struct glibc *g, const struct map_line *line)
{
	for (u32 i = 0; i < g->nsegments; i++)
		if (g->segments[i].start < line->end && line->start < g->segments[i].end)
			return true;
	return false;
}

static struct error *pass(struct glibc *g, bool anywhere, struct found *f)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < g->space->maps.nlines; i++) {
		const struct map_line *line = &g->space->maps.lines[i];

		if (space_is_anonymous(g->space, i) &&
		        (anywhere || (!space_is_claimed(g->space, i) && !belongs_to_arena(g, line))))
			err = read_mapping(g, line->start, line->end, anywhere, f);
	}
	return err;
}

/* Blocks with mappings of their own. */
static struct error *glibc_read_mapped(struct glibc *g)
{
	const struct glibc_parameters *p = &g->parameters;
	struct found f = {0};
	struct error *err = pass(g, false, &f);

	f.first_pass = f.n;
	if (!err && p->at && f.n < p->mapped_blocks)
		err = pass(g, true, &f);
	if (!err && p->at && f.n != p->mapped_blocks)
		err = usage_say(g->usage, USAGE_NOTE,
		        "malloc counts %u blocks with mappings of their own (%llu bytes); %u (%llu bytes) were found",
		        p->mapped_blocks, (unsigned long long)p->mapped_bytes, f.n, (unsigned long long)f.bytes);
	free(f.at);
	return err;
}

#define TRIES 4

/* --- where it is --- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_libc(const char *path)
{
	const char *name = file_name(path);

	return !strcmp(name, "libc.so.6") || (!strncmp(name, "libc-2.", 7) && strstr(name, ".so"));
}

/* "2.36" behind the words with which libc introduces itself. */
static void read_version(struct glibc *g, u32 map)
{
	static const char words[] = "release version ";
	const struct map_line *line = &g->space->maps.lines[map];
	struct image *img = NULL;
	struct error *err;
	Elf_Data *data = NULL;
	const char *found = NULL;
	u64 addr;
	int fd = map_open(g->space->pid, line);

	if (fd < 0)
		return;
	err = image_open(fd, line->path, &img);
	if (err) {
		error_free(err);
		return;
	}
	data = image_section(img, ".rodata", &addr);
	if (data)
		found = memmem(data->d_buf, data->d_size, words, strlen(words));
	if (found) {
		size_t left = data->d_size - (size_t)(found + strlen(words) - (const char *)data->d_buf);
		size_t n = 0;

		for (const char *at = found + strlen(words); n < left && n + 1 < sizeof(g->version); n++)
			if (!strchr("0123456789.", at[n]) || !at[n])
				break;
			else
				g->version[n] = at[n];
		while (n && g->version[n - 1] == '.')
			n--;
		g->version[n] = '\0';
	}
	image_put(img);
}

/* --- all of it --- */

static void claim(struct glibc *g)
{
	for (u32 i = 0; i < g->nsegments; i++)
		space_claim(g->space, g->segments[i].start, g->segments[i].end);
}

static struct error *read_all(struct glibc *g, u64 bins, u32 map)
{
	bool found = false;
	struct error *err = block_reader_open(g->space, &g->reader);

	if (!err)
		err = glibc_read_arenas(g, bins, &found);
	if (!err && !found)
		err = usage_say(g->usage, USAGE_NOTE, "the malloc of %s is of an unknown layout: not read",
		        g->space->maps.lines[map].path);
	if (err || !found)
		return err;
	for (u32 i = 0; !err && i < g->nsegments; i++)
		err = glibc_walk(g, i);
	if (!err)
		err = glibc_read_caches(g);
	claim(g);
	if (!err)
		err = glibc_read_mapped(g);
	read_version(g, map);
	return err ? err : glibc_show(g);
}

static void release(struct glibc *g)
{
	for (u32 i = 0; i < g->narenas; i++) {
		free(g->arenas[i].unsorted);
		free(g->arenas[i].fast);
		for (u32 k = 0; k < GLIBC_STATES; k++)
			free(g->arenas[i].states[k]);
	}
	free(g->arenas);
	free(g->segments);
	free(g->caches);
	block_reader_close(&g->reader);
	free(g);
}

/* tries: a program that allocates all the time changes its bins meanwhile. */
static struct error *read_one(struct space *s, struct usage *u, u32 map, u32 tries, bool *found)
{
	u64 start, end, bins;
	struct glibc *g;
	struct error *err;

	*found = false;
	if (space_data(s, map, &start, &end))
		for (u32 i = 0; !*found && i < tries; i++)
			*found = glibc_find_arena(s, start, end, &bins);
	if (!*found)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return &error_no_memory;
	g->space = s;
	g->usage = u;
	g->data = start;
	g->data_size = end - start;
	err = read_all(g, bins, map);
	release(g);
	return err;
}

/* libc's own; a program that is linked statically has it in its data. */
static struct error *glibc_read(struct space *s, struct usage *u)
{
	bool found = false, any = false, libc = false;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < s->maps.nlines; i++) {
		if (!is_libc(s->maps.lines[i].path))
			continue;
		libc = true;
		err = read_one(s, u, i, TRIES, &found);
		any |= found;
	}
	for (u32 i = 0; !err && !libc && !any && i < s->maps.nlines; i++)
		err = read_one(s, u, i, 1, &any);
	if (!err && libc && !any && u->nnodes == 1) /* no other one has been found */
		err = usage_say(u, USAGE_NOTE, "glibc's malloc has not been used, or its layout is unknown: not read");
	return err;
}

const struct allocator glibc_allocator = {.name = "glibc", .read = glibc_read};
