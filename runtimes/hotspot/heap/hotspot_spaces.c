/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_spaces.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"
#include "hotspot_moved.h"
#include "runtimes/hotspot/layout/hotspot_flags.h"
#include "sort_keys.h"

#define REGIONS_MAX (1u << 21)
#define PAGES_MAX   (1u << 23)
#define PIECE       512
#define SPACE_MAX   (1ull << 44)

enum collector { NO_COLLECTOR, SERIAL, PARALLEL, G1, Z, SHENANDOAH };

/* A field of the first of some types that has it. By reference: it holds the address of what it names. */
struct member {
	u64 at;
	bool by_reference;
};

static bool member(const struct vmstructs *v, const char *const *types, const char *name, struct member *ret)
{
	const char *text;

	for (; *types; types++)
		if (vmstructs_field(v, *types, name, &ret->at, &text)) {
			ret->by_reference = strchr(text, '*');
			return true;
		}
	return false;
}

static struct error *missing(const char *what)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "this JVM does not tell where %s is", what),
	        "its heap is read from JDK 8 on; jmap -histo PID stops the JVM, and works with any");
}

static struct error *not_read(const char *collector)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "the heap of %s is not read", collector),
	        "those of G1, Serial, Parallel, ZGC (JDK 15 and later) and Shenandoah (17 and later) are; jmap "
	        "-histo PID stops the JVM, and works with any");
}

static struct error *find_collector(struct hotspot_heap_view *h, struct memory *m, enum collector *ret)
{
	struct hotspot_flag f[] = {{"UseSerialGC", 1, 0, false}, {"UseParallelGC", 1, 0, false},
	        {"UseG1GC", 1, 0, false}, {"UseShenandoahGC", 1, 0, false}, {"UseZGC", 1, 0, false},
	        {"UseConcMarkSweepGC", 1, 0, false}, {"UseEpsilonGC", 1, 0, false}, {"UseNUMA", 1, 0, false}};
	static const enum collector known[] = {SERIAL, PARALLEL, G1, SHENANDOAH, Z};
	static const char *const others[] = {"CMS", "Epsilon"};

	*ret = NO_COLLECTOR;
	if (!hotspot_flags_read(h->v, m, f, sizeof(f) / sizeof(*f)))
		return missing("its flags");
	if (f[1].value && f[7].value)
		return error_new(ERROR_UNSUPPORTED, "the heap of the Parallel collector with -XX:+UseNUMA is not read");
	for (u32 i = 0; i < 2; i++)
		if (f[5 + i].value)
			return not_read(others[i]);
	for (u32 i = 0; i < 5; i++)
		if (f[i].value)
			*ret = known[i];
	return *ret ? NULL : error_new(ERROR_UNSUPPORTED, "the heap of this JVM's collector is not read");
}

static struct error *add(
        struct hotspot_spaces *s, const struct hotspot_heap_view *h, u64 bottom, u64 top, enum hotspot_space_kind kind)
{
	struct error *err;

	if (bottom >= top || top - bottom > SPACE_MAX || (bottom | top) & (h->alignment - 1))
		return NULL;
	err = grow(&s->items, s->n, sizeof(*s->items));
	if (!err)
		s->items[s->n++] = (struct hotspot_space){bottom, top, kind};
	return err;
}

/* --- G1 --- */

struct g1 {
	struct member manager, regions, bottom, top, type, tag;
	u64 base, length;
	bool typed;                    /* up to 8 a region does not say what it is for */
	s64 eden, survivor, humongous; /* of a tag; -1: not known */
};

static s64 tag_of(const struct vmstructs *v, const char *name)
{
	char text[64];
	s64 ret;

	snprintf(text, sizeof(text), "HeapRegionType::%s", name);
	if (vmstructs_constant(v, text, &ret))
		return ret;
	snprintf(text, sizeof(text), "G1HeapRegionType::%s", name);
	return vmstructs_constant(v, text, &ret) ? ret : -1;
}

/* From 24 on the types begin with G1; up to 11 bottom and top are of what a region inherits from. */
static bool find_g1(const struct vmstructs *v, struct g1 *ret)
{
	static const char *const heap[] = {"G1CollectedHeap", NULL}, *const table[] = {"G1HeapRegionTable", NULL};
	static const char *const manager[] = {"HeapRegionManager", "G1HeapRegionManager", NULL};
	static const char *const region[] = {
	        "HeapRegion", "G1HeapRegion", "G1ContiguousSpace", "G1OffsetTableContigSpace", "Space", NULL};
	static const char *const type[] = {"HeapRegionType", "G1HeapRegionType", NULL};
	struct member base, length;

	if (!member(v, heap, "_hrm", &ret->manager) || !member(v, manager, "_regions", &ret->regions) ||
	        !member(v, region, "_bottom", &ret->bottom) || !member(v, region, "_top", &ret->top) ||
	        !member(v, table, "_base", &base) || !member(v, table, "_length", &length))
		return false;
	ret->base = base.at;
	ret->length = length.at;
	ret->typed = member(v, region, "_type", &ret->type) && member(v, type, "_tag", &ret->tag);
	ret->eden = tag_of(v, "EdenTag");
	ret->survivor = tag_of(v, "SurvTag");
	ret->humongous = tag_of(v, "StartsHumongousTag");
	return true;
}

static bool follow(struct memory *m, u64 *at, const struct member *field)
{
	*at += field->at;
	return !field->by_reference || (memory_read(m, at, 8, *at) && *at);
}

/* Regions that never were in use have no HeapRegion; what is free is empty. */
static struct error *add_region(
        struct hotspot_spaces *s, const struct hotspot_heap_view *h, struct memory *m, const struct g1 *g, u64 region)
{
	u64 bottom, top;
	u32 tag;

	if (!region || region & 7 || !memory_read(m, &bottom, 8, region + g->bottom.at) ||
	        !memory_read(m, &top, 8, region + g->top.at))
		return NULL;
	if (!g->typed)
		return add(s, h, bottom, top, SPACE_REGION);
	if (!memory_read(m, &tag, 4, region + g->type.at + g->tag.at))
		return NULL;
	return add(s, h, bottom, top,
	        tag == g->eden        ? SPACE_EDEN
	        : tag == g->survivor  ? SPACE_SURVIVOR
	        : tag == g->humongous ? SPACE_HUMONGOUS
	                              : SPACE_OLD);
}

/* A table of addresses: where its address and its length are. NULL: it cannot be read. */
static u64 *read_regions(struct memory *m, u64 base_at, u64 length_at, u64 *length)
{
	u64 base, *ret = NULL;

	if (memory_read(m, &base, 8, base_at) && memory_read(m, length, 8, length_at) && *length <= REGIONS_MAX)
		ret = malloc(*length * 8 + 1);
	if (ret && !memory_read(m, ret, *length * 8, base)) {
		free(ret);
		ret = NULL;
	}
	return ret;
}

static struct error *read_g1(
        struct hotspot_heap_view *h, struct memory *m, u64 heap, const struct g1 *g, struct hotspot_spaces *ret)
{
	cleanup(free) u64 *regions = NULL;
	u64 at = heap, length = 0;
	struct error *err = NULL;

	if (follow(m, &at, &g->manager) && follow(m, &at, &g->regions))
		regions = read_regions(m, at + g->base, at + g->length, &length);
	if (!regions)
		return missing("its table of regions");
	for (u64 i = 0; !err && i < length; i++)
		err = add_region(ret, h, m, g, regions[i]);
	return err;
}

/* --- Shenandoah --- */

/* A free region has another state. */
static const struct {
	const char *name;
	enum hotspot_space_kind kind;
} shenandoah_states[] = {
        {"ShenandoahHeapRegion::_regular", SPACE_OF_ALL},
        {"ShenandoahHeapRegion::_pinned", SPACE_OF_ALL},
        {"ShenandoahHeapRegion::_humongous_start", SPACE_HUMONGOUS},
        {"ShenandoahHeapRegion::_pinned_humongous_start", SPACE_HUMONGOUS},
        {"ShenandoahHeapRegion::_humongous_cont", SPACE_HUMONGOUS},
        {"ShenandoahHeapRegion::_cset", SPACE_EMPTIED},
        {"ShenandoahHeapRegion::_pinned_cset", SPACE_EMPTIED},
};
#define STATES (sizeof(shenandoah_states) / sizeof(*shenandoah_states))

struct shenandoah {
	struct member count, regions, bottom, top, state;
	s64 states[STATES];
};

static bool find_shenandoah(const struct vmstructs *v, struct shenandoah *ret)
{
	static const char *const heap[] = {"ShenandoahHeap", NULL}, *const region[] = {"ShenandoahHeapRegion", NULL};

	for (u32 i = 0; i < STATES; i++)
		if (!vmstructs_constant(v, shenandoah_states[i].name, &ret->states[i]))
			return false;
	return member(v, heap, "_num_regions", &ret->count) && member(v, heap, "_regions", &ret->regions) &&
	       member(v, region, "_bottom", &ret->bottom) && member(v, region, "_top", &ret->top) &&
	       member(v, region, "_state", &ret->state);
}

static struct error *add_shenandoahs(struct hotspot_spaces *s, const struct hotspot_heap_view *h, struct memory *m,
        const struct shenandoah *g, u64 region)
{
	u64 bottom, top;
	u32 state;

	if (!region || region & 7 || !memory_read(m, &state, 4, region + g->state.at) ||
	        !memory_read(m, &bottom, 8, region + g->bottom.at) || !memory_read(m, &top, 8, region + g->top.at))
		return NULL;
	for (u32 i = 0; i < STATES; i++)
		if (g->states[i] == state)
			return add(s, h, bottom, top, shenandoah_states[i].kind);
	return NULL;
}

static struct error *read_shenandoah(
        struct hotspot_heap_view *h, struct memory *m, u64 heap, struct hotspot_spaces *ret)
{
	cleanup(free) u64 *regions = NULL;
	struct error *err = NULL;
	struct shenandoah g;
	u64 length;

	if (!find_shenandoah(h->v, &g))
		return missing("a region of its heap");
	regions = read_regions(m, heap + g.regions.at, heap + g.count.at, &length);
	if (!regions)
		return missing("its table of regions");
	for (u64 i = 0; !err && i < length; i++)
		err = add_shenandoahs(ret, h, m, &g, regions[i]);
	return err;
}

/* --- Serial and Parallel --- */

/* A space that a field of a generation points to. */
static struct error *add_space(struct hotspot_spaces *s, const struct hotspot_heap_view *h, struct memory *m,
        u64 generation, const char *const *types, const char *name, enum hotspot_space_kind kind)
{
	static const char *const parallel[] = {"MutableSpace", "ImmutableSpace", NULL};
	static const char *const serial[] = {"ContiguousSpace", "Space", NULL};
	const char *const *space = types[0][0] == 'P' ? parallel : serial;
	struct member field, bottom_at, top_at;
	u64 at, bottom, top;

	if (!member(h->v, types, name, &field) || !member(h->v, space, "_bottom", &bottom_at) ||
	        !member(h->v, space, "_top", &top_at) || !memory_read(m, &at, 8, generation + field.at) || !at ||
	        !memory_read(m, &bottom, 8, at + bottom_at.at) || !memory_read(m, &top, 8, at + top_at.at))
		return missing(name);
	return add(s, h, bottom, top, kind);
}

/* A field of the heap, a static variable of its class, or for Serial in 8 an element of the heap's array. */
static bool generation(const struct hotspot_heap_view *h, struct memory *m, u64 heap, const char *const *types,
        const char *name, u64 *ret)
{
	static const char *const of_8[] = {"GenCollectedHeap", NULL};
	struct member field;
	u64 at;

	if (member(h->v, types, name, &field))
		at = heap + field.at;
	else if (member(h->v, of_8, "_gens", &field) && types[0][0] == 'S')
		at = heap + field.at + 8 * !strcmp(name, "_old_gen");
	else if (!vmstructs_static(h->v, types[0], name, &at))
		return false;
	return memory_read(m, ret, 8, at) && *ret;
}

static struct error *read_generations(
        struct hotspot_heap_view *h, struct memory *m, u64 heap, bool parallel, struct hotspot_spaces *ret)
{
	static const char *const serial_heap[] = {"SerialHeap", "GenCollectedHeap", NULL};
	static const char *const parallel_heap[] = {"ParallelScavengeHeap", NULL};
	static const char *const def_new[] = {"DefNewGeneration", NULL}, *const tenured[] = {"TenuredGeneration",
	                                                                         "OneContigSpaceCardGeneration", NULL};
	static const char *const ps_young[] = {"PSYoungGen", NULL}, *const ps_old[] = {"PSOldGen", NULL};
	const char *const *types = parallel ? parallel_heap : serial_heap;
	const char *const *young_types = parallel ? ps_young : def_new;
	u64 young, old;
	struct error *err;

	if (!generation(h, m, heap, types, "_young_gen", &young) || !generation(h, m, heap, types, "_old_gen", &old))
		return missing("a generation of its heap");
	err = add_space(ret, h, m, young, young_types, "_eden_space", SPACE_EDEN);
	if (!err)
		err = add_space(ret, h, m, young, young_types, "_from_space", SPACE_SURVIVOR);
	if (!err)
		err = add_space(ret, h, m, young, young_types, "_to_space", SPACE_SURVIVOR);
	if (!err)
		err = add_space(ret, h, m, old, parallel ? ps_old : tenured, parallel ? "_object_space" : "_the_space",
		        SPACE_OLD);
	return err;
}

/* --- ZGC --- */

/* A page is in the table once for each granule that it covers. */
static struct error *add_page(struct hotspot_spaces *s, const struct hotspot_heap_view *h, struct memory *m,
        const struct hotspot_z_pages *at, u64 page)
{
	u64 start, top;

	if (!page || page & 7 || !memory_read(m, &start, 8, page + at->start) ||
	        !memory_read(m, &top, 8, page + at->top) || start > h->z.offset_mask || top > h->z.offset_mask + 1)
		return NULL;
	return add(s, h, start | h->heap_base, top + h->heap_base, SPACE_PAGE);
}

static struct error *read_z(struct hotspot_heap_view *h, struct memory *m, struct hotspot_spaces *ret)
{
	u64 piece[PIECE], last = 0;
	struct hotspot_z_pages at;
	struct error *err = NULL;

	if (!hotspot_heap_base(h, m) || !hotspot_z_pages(h, m, &at) || at.granules > PAGES_MAX)
		return missing("a page of its heap");
	for (u64 i = 0; !err && i < at.granules; i += PIECE) {
		u64 n = at.granules - i < PIECE ? at.granules - i : PIECE;

		if (!memory_read(m, piece, n * 8, at.table + i * 8))
			continue;
		for (u64 k = 0; !err && k < n; last = piece[k++])
			err = piece[k] == last ? NULL : add_page(ret, h, m, &at, piece[k]);
	}
	return err;
}

/* --- all --- */

struct error *hotspot_spaces_check(struct hotspot_heap_view *h, struct memory *m, bool *parsed)
{
	enum collector collector;
	struct error *err = find_collector(h, m, &collector);

	*parsed = collector != Z;
	if (!err && collector == Z && !hotspot_heap_base(h, m))
		err = not_read("ZGC of this JDK");
	return err;
}

struct error *hotspot_spaces_read(struct hotspot_heap_view *h, struct memory *m, struct hotspot_spaces *ret)
{
	enum collector collector;
	struct g1 g;
	struct error *err = find_collector(h, m, &collector);
	u64 heap;

	*ret = (struct hotspot_spaces){0};
	if (err)
		return err;
	if (!memory_read(m, &heap, 8, h->collected_heap) || !heap)
		return missing("its heap");
	if (collector == Z)
		err = read_z(h, m, ret);
	else if (collector == SHENANDOAH)
		err = read_shenandoah(h, m, heap, ret);
	else if (collector != G1)
		err = read_generations(h, m, heap, collector == PARALLEL, ret);
	else
		err = find_g1(h->v, &g) ? read_g1(h, m, heap, &g, ret) : missing("a region of its heap");
	if (err)
		hotspot_spaces_free(ret);
	sort_keys(ret->items, ret->n, sizeof(*ret->items));
	return err;
}

void hotspot_spaces_free(struct hotspot_spaces *s)
{
	free(s->items);
	*s = (struct hotspot_spaces){0};
}
