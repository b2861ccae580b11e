/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where ZGC and Shenandoah have objects, and where ZGC has moved them, in a JVM whose memory the input overwrites: its
 * first bytes choose the collector and a read that fails; of the rest one half is there at first, the other comes while
 * objects are looked for.
 */
#include "overwrite.h"
#include "runtimes/hotspot/heap/hotspot_spaces.h"
#include "runtimes/hotspot/heap/hotspot_z_places.h"
#include "tests/unit/hotspot_heap_fake.h"

enum {
	GRANULE_SHIFT = 12,
	GRANULES = (FAKE_BASE + FAKE_BYTES) >> GRANULE_SHIFT,
	REGIONS = 8,
	SLOTS = 16,
	MOVED_BY = 0x4000
};
enum { FORWARDING = 32 + SLOTS * 8, PAGE_START = 8, PAGE_TOP = 16 };

enum shape { OF_GENERATIONS, OF_ONE, SHENANDOAH, SHAPES };

struct places_fake {
	struct fake f;
	struct hotspot_z z;
	u64 words; /* references */
};

static const char *const states[] = {"_regular", "_pinned", "_humongous_start", "_pinned_humongous_start",
        "_humongous_cont", "_cset", "_pinned_cset"};
#define STATES (sizeof(states) / sizeof(*states))

static void describe_shenandoah(struct fake *f, u64 heap)
{
	u64 table = fake_room(f, REGIONS * 8), ints = fake_room(f, 16 * (STATES + 2));

	fake_put(f, ints, f->bytes + (f->ints - FAKE_BASE), 16);
	f->ints = ints;
	for (u32 i = 0; i < STATES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "ShenandoahHeapRegion::%s", states[i]);
		fake64(f, ints + 16 * (i + 1), fake_text(f, name));
		fake64(f, ints + 16 * (i + 1) + 8, i);
	}
	for (u32 i = 0; i < REGIONS; i++) {
		u64 region = fake_room(f, 24);

		fake64(f, table + i * 8, region);
		fake64(f, region, FAKE_BASE + i * 4096);
		fake64(f, region + 8, FAKE_BASE + i * 4096 + 2048);
		fake32(f, region + 16, i % STATES);
	}
	fake64(f, heap + 8, REGIONS);
	fake64(f, heap + 16, table);
	fake_field(f, "ShenandoahHeap", "_num_regions", "size_t", false, 8);
	fake_field(f, "ShenandoahHeap", "_regions", "ShenandoahHeapRegion**", false, 16);
	fake_field(f, "ShenandoahHeapRegion", "_bottom", "HeapWord*", false, 0);
	fake_field(f, "ShenandoahHeapRegion", "_top", "HeapWord*", false, 8);
	fake_field(f, "ShenandoahHeapRegion", "_state", "int", false, 16);
}

static void describe_pages(struct fake *f, u64 heap)
{
	u64 table = fake_room(f, GRANULES * 8);

	for (u32 i = 0; i < REGIONS; i++) {
		u64 page = fake_room(f, 24), start = FAKE_BASE + ((u64)i << GRANULE_SHIFT);

		fake64(f, table + (start >> GRANULE_SHIFT) * 8, page);
		fake64(f, page + PAGE_START, start);
		fake64(f, page + PAGE_TOP, start + 512);
	}
	fake64(f, heap + 16, GRANULES);
	fake64(f, heap + 24, table);
	fake_field(f, "ZCollectedHeap", "_heap", "ZHeap", false, 8);
	fake_field(f, "ZHeap", "_page_table", "ZPageTable", false, 0);
	fake_field(f, "ZPageTable", "_map", "ZGranuleMapForPageTable", false, 8);
	fake_field(f, "ZGranuleMapForPageTable", "_map", "ZPage**", false, 8);
	fake_field(f, "ZPage", "_virtual", "ZVirtualMemory", false, 0);
	fake_field(f, "ZVirtualMemory", "_start", "zoffset", false, PAGE_START);
	fake_field(f, "ZPage", "_top", "zoffset", false, PAGE_TOP);
}

/* A table of moved objects for each page of the first half. */
static void move_some(struct places_fake *p, u64 table)
{
	struct fake *f = &p->f;

	for (u32 i = 0; i < REGIONS / 2; i++) {
		u64 at = fake_room(f, FORWARDING), start = FAKE_BASE + ((u64)i << GRANULE_SHIFT);

		fake64(f, table + (start >> GRANULE_SHIFT) * 8, at);
		fake64(f, at, start);
		fake64(f, at + 8, 3);
		fake64(f, at + 16, SLOTS);
		fake32(f, at + 24, i & 1);
		for (u64 k = 0; k < SLOTS; k++)
			fake64(f, at + 32 + 8 * k, 1 | (start + MOVED_BY + 8 * k) << 1 | k << 46);
	}
}

static void describe_moved(struct places_fake *p, enum shape shape)
{
	struct fake *f = &p->f;

	p->z = (struct hotspot_z){.granules = GRANULES,
	        .granule_shift = GRANULE_SHIFT,
	        .offset_mask = (1ull << 40) - 1,
	        .start = 0,
	        .alignment = 8,
	        .length = 16,
	        .ref_count = 24,
	        .entries = 32};
	p->z.good_mask_at = fake_pointer_to(f, shape == OF_ONE ? 1ull << 40 : 1 << 12);
	p->z.young = shape == OF_ONE ? 0 : fake_room(f, GRANULES * 8);
	p->z.old = fake_room(f, GRANULES * 8);
	move_some(p, p->z.old);
	if (p->z.young)
		move_some(p, p->z.young);
	p->words = fake_room(f, REGIONS * 2 * 8);
	for (u64 i = 0; i < REGIONS * 2; i++) {
		u64 addr = FAKE_BASE + (i << (GRANULE_SHIFT - 1));

		fake64(f, p->words + i * 8,
		        shape == OF_ONE ? addr | 1ull << (40 + i % 3) : (addr | 1ull << 40) << 14 | 2 << 12);
	}
}

static struct places_fake *create(enum shape shape)
{
	const struct fake_options options = {FAKE_25, .narrow_klass = true, .compact = true,
	        .coloured = shape == OF_GENERATIONS, .views = shape == OF_ONE, .shenandoah = shape == SHENANDOAH};
	struct places_fake *p = calloc(1, sizeof(*p));
	struct fake *plain = fake_create(options);
	u64 at, heap;

	if (!p || !vmstructs_static(plain->v, "Universe", "_collectedHeap", &at) ||
	        !memory_read(&plain->memory, &heap, 8, at))
		abort();
	p->f = *plain;
	fake_destroy(plain);
	if (shape == SHENANDOAH) {
		describe_shenandoah(&p->f, heap);
	} else {
		describe_pages(&p->f, heap);
		describe_moved(p, shape);
	}
	fake_vmstructs(&p->f);
	return p;
}

static void check_spaces(const struct hotspot_spaces *s)
{
	for (u32 i = 0; i < s->n; i++)
		if (s->items[i].bottom >= s->items[i].top || (i && s->items[i - 1].bottom > s->items[i].bottom))
			abort();
}

static u64 word_at(const struct places_fake *p, u32 i)
{
	u64 ret;

	memcpy(&ret, p->f.bytes + (p->words - FAKE_BASE) + i * 8, 8);
	return ret;
}

/* Round after round, until it has looked again whether objects have moved. */
static void look_for_objects(struct places_fake *p, struct hotspot_z_places *z, u32 round)
{
	for (u32 i = 0; i < REGIONS * 2; i++) {
		u32 number = round * REGIONS * 2 + i;
		u64 at = hotspot_z_reference(z, &p->f.memory, word_at(p, i));

		hotspot_z_places_changed(z, number);
		hotspot_z_place(z, at, number / 2);
		hotspot_z_place(z, hotspot_z_word(z, &p->f.memory, word_at(p, i)), number);
	}
}

static void decode_by(const struct places_fake *p, struct hotspot_heap_view *h)
{
	h->z = p->z;
	h->views = !p->z.young;
	h->heap_base = h->views ? 1ull << 42 : 1ull << 40;
}

static void ask_places(struct places_fake *p, struct hotspot_heap_view *h, const uint8_t *data, size_t size)
{
	struct hotspot_z_places *z;

	decode_by(p, h);
	fake_check(hotspot_z_places_create(h, &p->f.memory, &z));
	for (u32 round = 0; round < 8; round++) {
		look_for_objects(p, z, round);
		if (round == 3)
			overwrite(p->f.bytes, p->f.used, data, size);
	}
	hotspot_z_places_freeze(z);
	look_for_objects(p, z, 8);
	hotspot_z_places_destroy(z);
}

static void ask_spaces(struct places_fake *p, struct hotspot_heap_view *h)
{
	struct hotspot_spaces s;
	struct hotspot_z_decoding d = {0};

	error_free(hotspot_spaces_read(h, &p->f.memory, &s));
	check_spaces(&s);
	if (h->heap_base && hotspot_z_decoding(h, &p->f.memory, &s, &d))
		for (u32 i = 0; i < d.n; i++)
			if (d.items[i].start >= d.items[i].end || (i && d.items[i - 1].start > d.items[i].start))
				abort();
	free(d.items);
	hotspot_spaces_free(&s);
}

/* What the input has not touched makes sense: all is found, and what has moved, too. */
static void check_clean(struct places_fake *p, enum shape shape)
{
	struct hotspot_heap_view *h;
	struct hotspot_z_places *z;
	struct hotspot_spaces s;

	fake_check(hotspot_heap_view_create(p->f.v, &p->f.layout, &h));
	if (!hotspot_heap_ready(h, &p->f.memory))
		abort();
	if (shape != SHENANDOAH) {
		decode_by(p, h);
		fake_check(hotspot_z_places_create(h, &p->f.memory, &z));
		if (hotspot_z_reference(z, &p->f.memory, word_at(p, 4)) !=
		        (h->heap_base | (FAKE_BASE + (2 << GRANULE_SHIFT) + MOVED_BY)))
			abort();
		hotspot_z_places_destroy(z);
	}
	fake_check(hotspot_spaces_read(h, &p->f.memory, &s));
	if (s.n != REGIONS)
		abort();
	hotspot_spaces_free(&s);
	hotspot_heap_view_destroy(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct places_fake *clean[SHAPES];
	static struct places_fake p;
	struct hotspot_heap_view *h;
	enum shape shape;
	size_t half;

	if (size < 4)
		return 0;
	shape = data[0] % SHAPES;
	if (!clean[shape]) {
		clean[shape] = create(shape);
		check_clean(clean[shape], shape);
	}
	p = *clean[shape];
	fake_check(hotspot_heap_view_create(p.f.v, &p.f.layout, &h));
	if (!hotspot_heap_ready(h, &p.f.memory))
		abort();
	half = 3 + (size - 3) / 2;
	p.f.reads = 0;
	p.f.fail_at = data[1] | (data[2] & 7) << 8;
	overwrite(p.f.bytes, p.f.used, data + 3, half - 3);
	if (shape != SHENANDOAH)
		ask_places(&p, h, data + half, size - half);
	ask_spaces(&p, h);
	hotspot_heap_view_destroy(h);
	return 0;
}
