/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_z_places.h"

#include <stdlib.h>

#include "grow.h"
#include "hotspot_moved.h"
#include "runtimes/hotspot/walk/hotspot_z.h"
#include "sort_keys.h"

#define GRANULES_MAX (1u << 23)
#define EACH         32         /* objects after which it looks whether a collection has gone on */
#define MOVES_MAX    (1u << 20) /* of pages */
#define EPOCHS_MAX   (1u << 16)
#define ENTRIES_MAX  (1u << 25) /* kept of all tables */
#define STEPS_MAX    64         /* moves of one object */
#define TABLES       2
#define COPY_MAX     (1u << 17) /* granules */

/* Of a page that was moved away, or is being. */
struct move {
	u64 granule, forwarding;
	struct hotspot_z_moved moved; /* entries NULL: not copied yet */
	u32 next, epoch;              /* the one before it in the granule + 1; from when on it was known */
	u32 here;                     /* objects found when the page was last seen in its place */
	u32 copied;                   /* when, by asked */
	u8 table;
	bool open, gone; /* the JVM still has the table; the page is another by now */
};

/* A page that a reference led to. */
struct granule {
	u32 newest; /* move + 1 */
	bool noted;
};

struct hotspot_z_places {
	struct hotspot_heap_view *h;
	struct memory *now;
	struct granule *granules;
	u32 *noted; /* granules that are */
	u32 nnoted;
	struct move *moves;
	u32 nmoves;
	u32 *epochs; /* an epoch begins with a change; how many objects had been found */
	u32 nepochs;
	u64 good, entries;
	u32 collections, asked, number;
	bool frozen;
};

static void look(struct hotspot_z_places *p)
{
	memory_read(p->now, &p->good, 8, p->h->z.good_mask_at);
	p->collections = hotspot_collections(p->h, p->now);
}

static bool begin_epoch(struct hotspot_z_places *p)
{
	struct error *err = p->nepochs < EPOCHS_MAX ? grow(&p->epochs, p->nepochs, sizeof(*p->epochs)) : NULL;

	if (!err && p->nepochs < EPOCHS_MAX)
		p->epochs[p->nepochs++] = p->number;
	error_free(err);
	return p->nepochs;
}

struct error *hotspot_z_places_create(struct hotspot_heap_view *h, struct memory *now, struct hotspot_z_places **ret)
{
	struct hotspot_z_places *p;

	*ret = NULL;
	if (!h->heap_base)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return &error_no_memory;
	*p = (struct hotspot_z_places){.h = h, .now = now};
	if (h->z.granules <= GRANULES_MAX)
		p->granules = calloc(h->z.granules, sizeof(*p->granules));
	if (!p->granules || !begin_epoch(p)) {
		hotspot_z_places_destroy(p);
		return &error_no_memory;
	}
	look(p);
	*ret = p;
	return NULL;
}

void hotspot_z_places_destroy(struct hotspot_z_places *p)
{
	if (!p)
		return;
	for (u32 i = 0; i < p->nmoves; i++)
		free(p->moves[i].moved.entries);
	free(p->moves);
	free(p->noted);
	free(p->epochs);
	free(p->granules);
	free(p);
}

/* --- pages --- */

static struct granule *granule_at(struct hotspot_z_places *p, u64 addr)
{
	u64 i = (addr & p->h->z.offset_mask) >> p->h->z.granule_shift;

	return i < p->h->z.granules ? &p->granules[i] : NULL;
}

/* Objects may be in the page that they are moved from as long as somebody needs it. Then it is another's. */
static void check_page(struct hotspot_z_places *p, struct move *v)
{
	v->gone = v->gone || hotspot_z_is_empty(&p->h->z, p->now, v->forwarding);
	if (!v->gone)
		v->here = p->number;
}

static void add_move(struct hotspot_z_places *p, u64 granule, u32 table, u64 forwarding)
{
	struct granule *g = &p->granules[granule];
	struct error *err = p->nmoves < MOVES_MAX ? grow(&p->moves, p->nmoves, sizeof(*p->moves)) : NULL;

	if (err || p->nmoves == MOVES_MAX) {
		error_free(err);
		return;
	}
	p->moves[p->nmoves] = (struct move){.granule = granule,
	        .forwarding = forwarding,
	        .next = g->newest,
	        .epoch = p->nepochs - 1,
	        .here = p->epochs[p->nepochs - 1],
	        .table = table,
	        .open = true};
	g->newest = ++p->nmoves;
	check_page(p, &p->moves[p->nmoves - 1]);
}

static bool is_known(const struct hotspot_z_places *p, const struct granule *g, u32 table, u64 forwarding)
{
	for (u32 i = g->newest; i; i = p->moves[i - 1].next)
		if (p->moves[i - 1].open && p->moves[i - 1].table == table && p->moves[i - 1].forwarding == forwarding)
			return true;
	return false;
}

static bool is_open(const struct hotspot_z_places *p, const struct granule *g)
{
	return g->newest && p->moves[g->newest - 1].open;
}

/* What is being moved away of a granule, or was by the last collection. */
static void look_at(struct hotspot_z_places *p, u64 granule)
{
	u64 forwarding;

	for (u32 i = 0; i < TABLES; i++)
		if (hotspot_z_forwarding(&p->h->z, p->now, i, granule << p->h->z.granule_shift, &forwarding) &&
		        forwarding && !is_known(p, &p->granules[granule], i, forwarding))
			add_move(p, granule, i, forwarding);
}

/* The page there is known from now on. */
static u64 note(struct hotspot_z_places *p, u64 addr)
{
	struct granule *g = granule_at(p, addr);
	u64 granule = g ? (u64)(g - p->granules) : 0;
	struct error *err;

	if (!g || g->noted || p->frozen)
		return addr;
	err = grow(&p->noted, p->nnoted, sizeof(*p->noted));
	error_free(err);
	if (err)
		return addr;
	p->noted[p->nnoted++] = granule;
	g->noted = true;
	look_at(p, granule);
	return addr;
}

/* --- what was moved --- */

/* As it is by now; it stays as it was if the JVM has it no more. */
static void copy(struct hotspot_z_places *p, struct move *v)
{
	struct hotspot_z_moved moved;
	u64 forwarding, at = v->granule << p->h->z.granule_shift;

	v->copied = p->asked;
	if (!v->open || (v->moved.entries && v->moved.complete) || p->entries > ENTRIES_MAX ||
	        !hotspot_z_moved_read(&p->h->z, p->now, v->forwarding, &moved))
		return;
	if (!hotspot_z_forwarding(&p->h->z, p->now, v->table, at, &forwarding) || forwarding != v->forwarding) {
		free(moved.entries);
		v->open = false;
		return;
	}
	p->entries += moved.length - (v->moved.entries ? v->moved.length : 0);
	free(v->moved.entries);
	v->moved = moved;
}

/* Where its objects went is known from now on, too: they may be moved again. */
static void note_copies(struct hotspot_z_places *p, const struct hotspot_z_moved *t)
{
	for (u64 i = 0; t->entries && i < t->length; i++)
		if (t->entries[i] & 1)
			note(p, t->entries[i] >> 1 & Z_ENTRY_TO_MASK);
}

static void close_if_forgotten(struct hotspot_z_places *p, struct move *v)
{
	u64 forwarding;

	v->open = v->open &&
	          hotspot_z_forwarding(&p->h->z, p->now, v->table, v->granule << p->h->z.granule_shift, &forwarding) &&
	          forwarding == v->forwarding;
}

static void change(struct hotspot_z_places *p)
{
	for (u32 i = 0; i < p->nmoves; i++) {
		if (!p->moves[i].open)
			continue;
		copy(p, &p->moves[i]);
		note_copies(p, &p->moves[i].moved);
		close_if_forgotten(p, &p->moves[i]);
	}
	begin_epoch(p);
	for (u32 i = 0; i < p->nnoted; i++)
		look_at(p, p->noted[i]);
}

bool hotspot_z_places_changed(struct hotspot_z_places *p, u32 number)
{
	u64 good = p->good;
	u32 collections = p->collections;

	p->number = number;
	if (p->frozen || ++p->asked % EACH)
		return false;
	look(p);
	if (good == p->good && collections == p->collections)
		return false;
	change(p);
	return true;
}

/* In which epoch an object was found. */
static u32 epoch_of(const struct hotspot_z_places *p, u32 number)
{
	u32 ret = p->nepochs - 1;

	while (ret && p->epochs[ret] > number)
		ret--;
	return ret;
}

/* The first move of a granule since an epoch; NULL: none. */
static struct move *move_since(struct hotspot_z_places *p, const struct granule *g, u32 epoch)
{
	struct move *ret = NULL;

	for (u32 i = g ? g->newest : 0; i && p->moves[i - 1].epoch >= epoch; i = p->moves[i - 1].next)
		ret = &p->moves[i - 1];
	return ret;
}

/* Was it found in the page that is moved away, and not in the one that came after it? */
static bool is_of(struct hotspot_z_places *p, struct move *v, u32 epoch, u32 number)
{
	if (v->epoch > epoch)
		return true;
	if (v->copied / EACH != p->asked / EACH)
		check_page(p, v);
	return !v->gone || number < v->here;
}

static u64 moved_to(struct hotspot_z_places *p, struct move *v, u64 addr)
{
	u64 ret = v->moved.entries ? hotspot_z_moved_to(&p->h->z, &v->moved, addr) : 0;

	if (ret || (v->moved.entries && (v->copied / EACH == p->asked / EACH || v->moved.complete)))
		return ret;
	copy(p, v);
	return v->moved.entries ? hotspot_z_moved_to(&p->h->z, &v->moved, addr) : 0;
}

u64 hotspot_z_place(struct hotspot_z_places *p, u64 addr, u32 number)
{
	u32 epoch = epoch_of(p, number);

	if (p->frozen)
		return addr;
	for (u32 i = 0; i < STEPS_MAX; i++) {
		struct move *v = move_since(p, granule_at(p, addr), epoch);
		u64 to;

		if (!v || !is_of(p, v, epoch, number))
			return addr;
		to = moved_to(p, v, addr);
		if (!to || to == addr)
			return v->moved.entries ? addr : 0;
		addr = to;
		epoch = v->epoch + 1;
	}
	return 0;
}

/* --- references --- */

/* The address that a reference has in it. */
static u64 plain(const struct hotspot_heap_view *h, u64 stored)
{
	u64 offset = h->views ? stored & h->z.offset_mask : hs_remapped(stored) ? hs_z_address(stored) : 0;

	return offset || (h->views && stored) ? (offset & h->z.offset_mask) | h->heap_base : 0;
}

/* What is being moved is read as it is now. */
u64 hotspot_z_reference(struct hotspot_z_places *p, struct memory *m, u64 stored)
{
	u64 addr = plain(p->h, stored), is;
	const struct granule *g = granule_at(p, addr);

	if (!addr)
		return 0;
	p->number++; /* it may be a new one */
	is = hotspot_decode_oop(p->h, m, stored);
	if (p->frozen)
		return is ? is : addr;
	if (!is || (is == addr && g && is_open(p, g) && !p->moves[g->newest - 1].gone)) {
		if (is)
			check_page(p, &p->moves[g->newest - 1]);
		is = hotspot_decode_oop(p->h, p->now, stored);
	}
	return note(p, is ? is : addr);
}

u64 hotspot_z_word(struct hotspot_z_places *p, struct memory *m, u64 word)
{
	const struct hotspot_heap_view *h = p->h;

	if (!h->views && (word & ~h->z.offset_mask) == h->heap_base)
		return note(p, word);
	word = hotspot_decode_oop(h, m, word);
	return (word & ~h->z.offset_mask) == h->heap_base ? note(p, word) : 0;
}

/* --- a copy --- */

u64 hotspot_z_good(const struct hotspot_heap_view *h, struct memory *now)
{
	u64 good = 0;

	return h->heap_base && memory_read(now, &good, 8, h->z.good_mask_at) ? good : 0;
}

static struct error *add(struct hotspot_z_decoding *d, u64 start, u64 bytes)
{
	struct error *err = grow(&d->items, d->n, sizeof(*d->items));

	if (!err)
		d->items[d->n++] = (struct heap_stretch){.start = start, .end = start + bytes};
	return err;
}

/* The tables of moved objects of one granule, and where they are. */
static bool add_granule(const struct hotspot_z *z, struct memory *now, u64 granule, struct hotspot_z_decoding *d)
{
	const u64 tables[] = {z->young, z->old};
	struct error *err = NULL;
	u64 forwarding, length;

	for (u32 i = 0; !err && i < TABLES; i++) {
		if (!tables[i])
			continue;
		if (!memory_read(now, &forwarding, 8, tables[i] + granule * 8))
			return false;
		err = add(d, tables[i] + granule * 8, 8);
		if (err || !forwarding)
			continue;
		if (!hotspot_z_is_empty(z, now, forwarding) || !memory_read(now, &length, 8, forwarding + z->length) ||
		        length > ENTRIES_MAX)
			return false;
		err = add(d, forwarding, z->entries + length * 8);
	}
	error_free(err);
	return !err;
}

static void decoding_free(struct hotspot_z_decoding *d)
{
	free(d->items);
	*d = (struct hotspot_z_decoding){0};
}

/* References lead to pages that are no more, too: all granules up to the last page's. */
bool hotspot_z_decoding(const struct hotspot_heap_view *h, struct memory *now, const struct hotspot_spaces *spaces,
        struct hotspot_z_decoding *ret)
{
	u64 last = spaces->n ? (spaces->items[spaces->n - 1].top & h->z.offset_mask) >> h->z.granule_shift : 0;
	struct error *err;

	*ret = (struct hotspot_z_decoding){0};
	if (last > COPY_MAX)
		return false;
	err = add(ret, h->z.good_mask_at, 8);
	for (u64 i = 0; !err && i <= last; i++)
		if (!add_granule(&h->z, now, i, ret)) {
			decoding_free(ret);
			return false;
		}
	error_free(err);
	sort_keys(ret->items, ret->n, sizeof(*ret->items));
	return ret->n;
}

void hotspot_z_places_freeze(struct hotspot_z_places *p)
{
	p->frozen = true;
}
