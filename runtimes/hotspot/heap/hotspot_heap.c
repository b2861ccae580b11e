/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: classes, sizes, and walks from object to object (oop.inline.hpp: size_given_klass()). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtimes/hotspot/layout/hotspot_flags.h"
#include "hotspot_heap_view.h"
#include "hotspot_moved.h"

#define WINDOW        16384
#define OBJECT_MAX    (1ull << 36)
#define WALK_OBJECTS  (1u << 22)
#define Z_TRIES_MAX   16
#define COLLECTION_MS 2000 /* is waited for so long */
#define FORWARDED     3    /* markWord.hpp: the rest is where the object is now */

static struct error *missing(const char *what)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "this JVM does not export where %s is", what),
	        "allocation by class and names of Java threads need it; report the version of the JVM");
}

static void field(const struct vmstructs *v, const char *type, const char *name, u64 *ret)
{
	if (!vmstructs_field(v, type, name, ret, NULL))
		*ret = 0;
}

static struct error *find_offsets(struct hotspot_heap_view *h)
{
	struct hotspot_heap_offsets *at = &h->at;
	const char *type = NULL;
	u64 thread_obj;

	field(h->v, "Klass", "_super", &at->super);
	field(h->v, "InstanceKlass", "_constants", &at->constants);
	field(h->v, "InstanceKlass", "_fields", &at->fields);
	field(h->v, "InstanceKlass", "_java_fields_count", &at->fields_count);
	field(h->v, "InstanceKlass", "_fieldinfo_stream", &at->fieldinfo);
	field(h->v, "ThreadsList", "_length", &at->list_length);
	field(h->v, "ThreadsList", "_threads", &at->list_threads);
	field(h->v, "JavaThread", "_next", &at->thread_next);
	if (!vmstructs_static(h->v, "Symbol", "_vm_symbols[0]", &at->vm_symbols))
		at->vm_symbols = 0;
	field(h->v, "CollectedHeap", "_is_gc_active", &at->collecting);
	if (!at->collecting)
		field(h->v, "CollectedHeap", "_is_stw_gc_active", &at->collecting);
	at->array_data_known = vmstructs_field(h->v, "Array<u1>", "_data", &at->array_data, NULL);
	at->thread_handle =
	        vmstructs_field(h->v, "JavaThread", "_threadObj", &thread_obj, &type) && type && strstr(type, "Handle");
	if (!at->super || !at->constants || (!at->fieldinfo && !(at->fields && at->fields_count)))
		return missing("the fields of a class (InstanceKlass)");
	if (!vmstructs_static(h->v, "ThreadsSMRSupport", "_java_thread_list", &h->thread_list) &&
	        !vmstructs_static(h->v, "Threads", "_thread_list", &h->thread_list))
		return missing("its list of threads");
	if (!(at->list_length && at->list_threads) && !at->thread_next)
		return missing("the next thread of its list");
	if (!vmstructs_static(h->v, "Universe", "_collectedHeap", &h->collected_heap))
		return missing("its heap (Universe::_collectedHeap)");
	return NULL;
}

struct error *hotspot_heap_view_create(
        const struct vmstructs *v, const struct hotspot_layout *l, struct hotspot_heap_view **ret)
{
	struct hotspot_heap_view *h = calloc(1, sizeof(*h));
	struct error *err;

	if (!h)
		return &error_no_memory;
	h->v = v;
	h->l = l;
	err = find_offsets(h);
	if (err) {
		free(h);
		return err;
	}
	*ret = h;
	return NULL;
}

void hotspot_heap_view_destroy(struct hotspot_heap_view *h)
{
	if (!h)
		return;
	free(h->classes);
	hotspot_kept_names_free(&h->kept);
	free(h->places);
	free(h);
}

/* base and shift of compressed references and classes: a struct within Universe (8), or classes of their own since 13.
 */
static bool narrow(const struct hotspot_heap_view *h, struct memory *m, const char *type, const char *member, u64 *base,
        u32 *shift)
{
	char names[2][64];
	const char *types[] = {type, type, "Universe"};
	u64 base_at, shift_at;

	*base = *shift = 0;
	snprintf(names[0], sizeof(names[0]), "%s._base", member);
	snprintf(names[1], sizeof(names[1]), "%s._shift", member);
	for (int i = 0; i < 3; i++) {
		if (vmstructs_static(h->v, types[i], i ? names[0] : "_base", &base_at) &&
		        vmstructs_static(h->v, types[i], i ? names[1] : "_shift", &shift_at))
			return memory_read(m, base, 8, base_at) && memory_read(m, shift, 4, shift_at) && *shift < 32;
	}
	return false;
}

static bool read_flags(struct hotspot_heap_view *h, struct memory *m)
{
	struct hotspot_flag f[] = {{"UseCompressedOops", 1, 0, false}, {"UseCompressedClassPointers", 1, 0, false},
	        {"UseCompactObjectHeaders", 1, 0, false}, {"ObjectAlignmentInBytes", 4, 0, false},
	        {"UseZGC", 1, 0, false}, {"UseShenandoahGC", 1, 0, false}, {"FastTLABRefill", 1, 0, false},
	        {"UseG1GC", 1, 0, false}, {"ZGenerational", 1, 0, false}, {"UseTLAB", 1, 0, false}};
	u64 shift_at, at;
	s64 shift = 0;

	if (!hotspot_flags_read(h->v, m, f, sizeof(f) / sizeof(f[0])))
		return false;
	h->alignment = f[3].found ? f[3].value : 8;
	h->concurrent = f[4].value || f[5].value;
	h->no_tlabs = f[9].found && !f[9].value;
	h->silent_refills =
	        f[6].value && !f[7].value && !h->concurrent; /* CollectedHeap::supports_inline_contig_alloc() */
	if (f[2].value && !(vmstructs_constant(h->v, "markWord::klass_shift", &shift) && shift >= 32 && shift < 64))
		return false;
	h->mark_klass_shift = f[2].value ? shift : 0;
	/* Later JDKs have no other kind of class pointers, and no flag. */
	h->narrow_klass = h->mark_klass_shift || f[1].value || !f[1].found;
	h->oops = f[0].value ? OOP_NARROW : OOP_PLAIN;
	if (f[4].value && (!f[8].found || f[8].value) &&
	        vmstructs_field(h->v, "ZGlobalsForVMStructs", "_ZPointerLoadShift", &at, NULL))
		h->oops = OOP_COLOURED;
	if (h->oops == OOP_NARROW && !narrow(h, m, "CompressedOops", "_narrow_oop", &h->oop_base, &h->oop_shift))
		return false;
	if (h->narrow_klass &&
	        !narrow(h, m, "CompressedKlassPointers", "_narrow_klass", &h->klass_base, &h->klass_shift))
		return false;
	if (vmstructs_static(h->v, "java_lang_Class", "_oop_size_offset", &shift_at) &&
	        (!memory_read(m, &h->mirror_size_at, 4, shift_at) || h->mirror_size_at > 1024))
		return false;
	return h->alignment >= 8 && h->alignment <= 256 && !(h->alignment & (h->alignment - 1));
}

/* ZGC makes its tables after its heap. */
static void find_moved(struct hotspot_heap_view *h, struct memory *m)
{
	if (h->oops == OOP_COLOURED && !h->z.granules && h->z_tries++ < Z_TRIES_MAX)
		hotspot_z_find(h->v, m, h->collected_heap, &h->z);
}

bool hotspot_heap_ready(struct hotspot_heap_view *h, struct memory *m)
{
	u64 heap = 0;

	if (!h->ready && memory_read(m, &heap, 8, h->collected_heap) && heap)
		h->ready = read_flags(h, m);
	if (h->ready)
		find_moved(h, m);
	return h->ready;
}

bool hotspot_heap_base(struct hotspot_heap_view *h, struct memory *m)
{
	if (h->heap_base)
		return true;
	if (h->oops == OOP_COLOURED && h->z.granules) {
		h->heap_base = h->z.offset_mask + 1; /* zGlobals.hpp: ZAddressHeapBase */
	} else if (h->oops == OOP_PLAIN && hotspot_z_find_views(h->v, m, h->collected_heap, &h->z)) {
		h->views = true;
		h->heap_base = (h->z.offset_mask + 1) << 2; /* the last of three views: ZAddressMetadataRemapped */
	}
	return h->heap_base;
}

u64 hotspot_header_class(const struct hotspot_heap_view *h, const u8 *header)
{
	u64 word;
	u32 low;

	if (!h->narrow_klass) {
		memcpy(&word, header + 8, 8);
		return word;
	}
	if (h->mark_klass_shift) {
		memcpy(&word, header, 8);
		low = word >> h->mark_klass_shift;
	} else {
		memcpy(&low, header + 8, 4);
	}
	return low ? h->klass_base + ((u64)low << h->klass_shift) : 0;
}

u64 hotspot_moved_to(const u8 *header)
{
	u64 mark;

	memcpy(&mark, header, 8);
	return (mark & 7) == FORWARDED ? mark & ~7ull : 0;
}

u64 hotspot_class_in(const struct hotspot_heap_view *h, struct memory *m, const u8 *header)
{
	u64 to = h->mark_klass_shift ? hotspot_moved_to(header) : 0;
	u8 copy[16] = {0};

	if (!to)
		return hotspot_header_class(h, header);
	return memory_read(m, copy, 8, to) && !hotspot_moved_to(copy) ? hotspot_header_class(h, copy) : 0;
}

u32 hotspot_length_at(const struct hotspot_heap_view *h)
{
	return h->mark_klass_shift ? 8 : h->narrow_klass ? 12 : 16;
}

/* How many words a StackChunk has behind its fields: the stack, and a bit for each place that may hold a reference. */
static u64 stack_chunk_extra(const struct hotspot_heap_view *h, u64 words)
{
	u64 bits = h->oops == OOP_NARROW ? words * 2 : words;

	return words + (bits + 63) / 64;
}

static bool variable_size(struct hotspot_heap_view *h, struct memory *m, const struct hotspot_class *c, u64 addr,
        const u8 *header, u64 *size)
{
	u32 n;

	switch (c->kind) {
	case SIZE_ARRAY:
		memcpy(&n, header + hotspot_length_at(h), 4);
		*size = c->size + ((u64)n << c->log2_element);
		return n <= INT32_MAX;
	case SIZE_MIRROR:
		if (!h->mirror_size_at || !memory_read(m, &n, 4, addr + h->mirror_size_at))
			return false;
		*size = (u64)n * 8;
		return n <= 1u << 20;
	case SIZE_STACK_CHUNK:
		if (!c->stack_size_at || !memory_read(m, &n, 4, addr + c->stack_size_at))
			return false;
		*size = c->size + stack_chunk_extra(h, n) * 8;
		return n <= 1u << 24;
	default:
		*size = c->size;
		return true;
	}
}

bool hotspot_object_size(
        struct hotspot_heap_view *h, struct memory *m, u64 addr, const u8 *header, u64 *klass, u64 *size)
{
	const struct hotspot_class *c;

	*klass = hotspot_class_in(h, m, header);
	c = hotspot_class_of(h, m, *klass);
	if (!c || !variable_size(h, m, c, addr, header, size))
		return false;
	*size = (*size + h->alignment - 1) & ~(u64)(h->alignment - 1);
	return *size && *size < OBJECT_MAX;
}

/* The smallest object has 8 bytes, and may be the last of what is readable. */
static bool read_header(struct memory *m, u64 addr, u8 header[HOTSPOT_HEADER_MAX])
{
	for (u32 n = HOTSPOT_HEADER_MAX; n; n -= 8) {
		memset(header, HOTSPOT_UNKNOWN, HOTSPOT_HEADER_MAX);
		if (memory_read(m, header, n, addr))
			return true;
	}
	return false;
}

/* What of the heap has been read last. */
struct window {
	u64 start;
	u32 size;
	u8 bytes[WINDOW];
};

/* HOTSPOT_HEADER_MAX bytes at addr; the window is moved there with at most as much as is wanted up to limit. */
static const u8 *window_at(struct window *w, struct memory *m, u64 addr, u64 limit)
{
	if (addr >= w->start && addr - w->start + HOTSPOT_HEADER_MAX <= w->size)
		return w->bytes + (addr - w->start);
	w->start = addr;
	w->size = limit > addr && limit - addr > HOTSPOT_HEADER_MAX ? (limit - addr < WINDOW ? limit - addr : WINDOW)
	                                                            : HOTSPOT_HEADER_MAX;
	if (memory_read(m, w->bytes, w->size, addr))
		return w->bytes;
	w->size = 0;
	return read_header(m, addr, w->bytes) ? w->bytes : NULL;
}

u64 hotspot_each_object(struct hotspot_heap_view *h, struct memory *m, u64 start, u64 end,
        bool (*each)(void *ctx, u64 object, u64 klass, u64 size), void *ctx)
{
	struct window w = {0};
	u64 at = start;

	if (!hotspot_heap_ready(h, m) || start & 7)
		return start;
	for (u32 i = 0; i < WALK_OBJECTS && at < end; i++) {
		const u8 *header = window_at(&w, m, at, end);
		u64 klass, size;

		if (!header || !hotspot_object_size(h, m, at, header, &klass, &size) || !each(ctx, at, klass, size))
			break;
		at += size;
	}
	return at;
}

struct covering {
	u64 addr, object, klass, size;
};

static bool covers(void *ctx, u64 object, u64 klass, u64 size)
{
	struct covering *c = ctx;

	if (c->addr - object >= size)
		return true;
	c->object = object;
	c->klass = klass;
	c->size = size;
	return false;
}

bool hotspot_object_covering(
        struct hotspot_heap_view *h, struct memory *m, u64 start, u64 addr, u64 *object, u64 *klass, u64 *size)
{
	struct covering c = {addr, 0, 0, 0};

	if (addr < start)
		return false;
	hotspot_each_object(h, m, start, addr + 1, covers, &c);
	*object = c.object;
	*klass = c.klass;
	*size = c.size;
	return c.object != 0;
}

/* The mark of an object that nobody has locked or hashed; with biased locking (up to 17) it may be biasable. */
static bool fresh_mark(const struct hotspot_heap_view *h, const u8 *header)
{
	u64 mark;

	memcpy(&mark, header, 8);
	if (h->mark_klass_shift)
		mark &= (1ull << h->mark_klass_shift) - 1;
	return mark == 1 || mark == 5;
}

/* The last object that begins in the window, at or before addr, and ends at end. Its bytes are there up to addr +
 * HOTSPOT_HEADER_MAX. */
static bool ends_in(
        struct hotspot_heap_view *h, struct memory *m, const struct window *w, u64 addr, u64 end, struct covering *ret)
{
	for (u64 at = addr & ~7ull; at >= w->start && at <= addr; at -= 8) {
		const u8 *header = w->bytes + (at - w->start);

		if (!fresh_mark(h, header) || !hotspot_object_size(h, m, at, header, &ret->klass, &ret->size) ||
		        at + ret->size != end)
			continue;
		ret->object = at;
		return true;
	}
	return false;
}

bool hotspot_object_ending(
        struct hotspot_heap_view *h, struct memory *m, u64 start, u64 addr, u64 end, u64 *object, u64 *klass, u64 *size)
{
	struct window w;
	struct covering c = {0};

	if (!hotspot_heap_ready(h, m) || start & 7 || addr < start || addr >= end || end - start > OBJECT_MAX)
		return false;
	for (u64 last = addr;; last = w.start - 8) {
		u64 room = last + HOTSPOT_HEADER_MAX - start;

		w.size = room < WINDOW ? room & ~7ull : WINDOW;
		w.start = (last & ~7ull) + HOTSPOT_HEADER_MAX - w.size;
		memset(w.bytes, HOTSPOT_UNKNOWN, sizeof(w.bytes));
		if (!memory_read(m, w.bytes, end - w.start < w.size ? end - w.start : w.size, w.start))
			return false;
		if (ends_in(h, m, &w, last, end, &c))
			break;
		if (w.start <= start)
			return false;
	}
	*object = c.object;
	*klass = c.klass;
	*size = c.size;
	return true;
}

u64 hotspot_collections_at(struct hotspot_heap_view *h, struct memory *m)
{
	u64 heap;

	return memory_read(m, &heap, 8, h->collected_heap) && heap ? heap + h->l->collector_count.at : 0;
}

u32 hotspot_collections(struct hotspot_heap_view *h, struct memory *m)
{
	u64 at = hotspot_collections_at(h, m);
	u32 count;

	return at && memory_read(m, &count, 4, at) ? count : 0;
}

/* No JVM exports where it counts them: behind all collections (collectedHeap.hpp, 8 to 28). */
u32 hotspot_full_collections(struct hotspot_heap_view *h, struct memory *m)
{
	u64 at = hotspot_collections_at(h, m);
	u32 counts[2];

	return at && memory_read(m, counts, sizeof(counts), at) && counts[1] <= counts[0] ? counts[1] : 0;
}

bool hotspot_stops_to_collect(struct hotspot_heap_view *h, struct memory *m)
{
	return hotspot_heap_ready(h, m) && !h->concurrent && h->at.collecting;
}

bool hotspot_collecting(struct hotspot_heap_view *h, struct memory *m)
{
	u64 heap;
	u8 active;

	return h->at.collecting && memory_read(m, &heap, 8, h->collected_heap) && heap &&
	       memory_read(m, &active, 1, heap + h->at.collecting) && active == 1;
}

bool hotspot_await_collection(struct hotspot_heap_view *h, struct memory *m)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	for (u32 i = 0; i < COLLECTION_MS && hotspot_collecting(h, m); i++)
		nanosleep(&pause, NULL);
	return !hotspot_collecting(h, m);
}
