/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_z_places.h"

#include <stdlib.h>

#include "hotspot_moved.h"
#include "runtimes/hotspot/walk/hotspot_z.h"

#define GRANULES_MAX (1u << 23)
#define EACH         16 /* objects after which it looks whether a collection has gone on */

/* What was there when it was first asked for (page 0: nobody has), and when it was last looked. */
struct granule {
	u64 page;
	u32 seqnum, looked;
	bool changed;
};

struct hotspot_z_places {
	struct hotspot_heap_view *h;
	struct memory *now;
	struct hotspot_z_pages at;
	struct granule *granules;
	u64 good;
	u32 collections, asked;
};

static void look(struct hotspot_z_places *p)
{
	memory_read(p->now, &p->good, 8, p->h->z.good_mask_at);
	p->collections = hotspot_collections(p->h, p->now);
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
	if (hotspot_z_pages(h, now, &p->at) && p->at.granules <= GRANULES_MAX)
		p->granules = calloc(p->at.granules, sizeof(*p->granules));
	if (!p->granules) {
		free(p);
		return error_new(ERROR_UNSUPPORTED, "this JVM does not tell where a page of its heap is");
	}
	look(p);
	*ret = p;
	return NULL;
}

void hotspot_z_places_destroy(struct hotspot_z_places *p)
{
	if (p)
		free(p->granules);
	free(p);
}

bool hotspot_z_places_changed(struct hotspot_z_places *p)
{
	u64 good = p->good;
	u32 collections = p->collections;

	if (++p->asked % EACH)
		return false;
	look(p);
	return good != p->good || collections != p->collections;
}

static bool read_page(const struct hotspot_z_places *p, u64 granule, u64 *page, u32 *seqnum)
{
	*seqnum = 0;
	return memory_read(p->now, page, 8, p->at.table + granule * 8) &&
	       (!*page || memory_read(p->now, seqnum, 4, *page + p->at.seqnum));
}

static struct granule *granule_at(struct hotspot_z_places *p, u64 addr)
{
	u64 i = (addr & p->h->z.offset_mask) >> p->h->z.granule_shift;

	return i < p->at.granules ? &p->granules[i] : NULL;
}

/* The page there is known from now on. */
static u64 note(struct hotspot_z_places *p, u64 addr)
{
	struct granule *g = granule_at(p, addr);

	if (g && !g->page) {
		read_page(p, (u64)(g - p->granules), &g->page, &g->seqnum);
		g->looked = p->asked / EACH;
	}
	return addr;
}

/* The address that a reference has in it. */
static u64 plain(const struct hotspot_heap_view *h, u64 stored)
{
	u64 offset = h->views ? stored & h->z.offset_mask : hs_remapped(stored) ? hs_z_address(stored) : 0;

	return offset || (h->views && stored) ? (offset & h->z.offset_mask) | h->heap_base : 0;
}

u64 hotspot_z_reference(struct hotspot_z_places *p, struct memory *m, u64 stored)
{
	u64 addr = plain(p->h, stored), is;

	if (!addr)
		return 0;
	is = hotspot_decode_oop(p->h, m, stored);
	if (!is)
		is = hotspot_decode_oop(p->h, p->now, stored);
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

u64 hotspot_z_place(struct hotspot_z_places *p, u64 addr)
{
	struct granule *g = granule_at(p, addr);
	u64 page, went;
	u32 seqnum;

	if (!g)
		return addr;
	if (g->looked != p->asked / EACH) {
		g->changed =
		        !read_page(p, (u64)(g - p->granules), &page, &seqnum) || page != g->page || seqnum != g->seqnum;
		g->looked = p->asked / EACH;
	}
	if (!g->changed)
		return addr;
	went = hotspot_z_went(&p->h->z, p->now, addr);
	return went ? went : addr;
}
