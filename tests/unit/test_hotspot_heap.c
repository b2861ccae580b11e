/* SPDX-License-Identifier: Apache-2.0 */
/* Objects, classes and threads of a JVM in fake memory, in all shapes of headers and references; each read failing in
 * turn. */
#include "unit.h"

#include "hotspot_heap_fake.h"
#include "runtimes/hotspot/alloc/hotspot_alloc_survey.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtimes/hotspot/heap/hotspot_moved.h"

#define READS_MAX 2000

static const struct fake_options shapes[] = {
        {FAKE_8, .narrow_klass = true, .narrow_oops = true},
        {FAKE_8, .narrow_klass = false, .narrow_oops = false},
        {FAKE_25, .narrow_klass = true, .narrow_oops = true},
        {FAKE_25, .narrow_klass = true, .narrow_oops = false},
        {FAKE_25, .narrow_klass = false, .narrow_oops = false},
        {FAKE_25, .narrow_klass = true, .compact = true, .narrow_oops = true},
        {FAKE_25, .narrow_klass = true, .compact = true, .coloured = true},
};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

static struct hotspot_heap_view *view_of(struct fake *f)
{
	struct hotspot_heap_view *h;

	assert_null(hotspot_heap_view_create(f->v, &f->layout, &h));
	return h;
}

struct seen {
	u64 object[8], klass[8], size[8];
	u32 n;
};

static bool see(void *ctx, u64 object, u64 klass, u64 size)
{
	struct seen *s = ctx;

	assert_true(s->n < 8);
	s->object[s->n] = object;
	s->klass[s->n] = klass;
	s->size[s->n++] = size;
	return true;
}

static void walks_a_tlab(void **state)
{
	for (u32 i = 0; i < SHAPES; i++) {
		struct fake *f = fake_create(shapes[i]);
		struct hotspot_heap_view *h = view_of(f);
		const u64 classes[] = {f->object, f->bytes_array, f->strings_array, f->mirror, f->chunk, f->string};
		struct seen s = {.n = 0};

		assert_int_equal(hotspot_each_object(h, &f->memory, f->tlab, f->top, see, &s), f->top);
		assert_int_equal(s.n, 6);
		for (u32 k = 0; k < 6; k++) {
			assert_int_equal(s.object[k], f->at[k]);
			assert_int_equal(s.klass[k], classes[k]);
			assert_int_equal(s.size[k], f->sizes[k]);
		}
		hotspot_heap_view_destroy(h);
		fake_destroy(f);
	}
}

static void finds_the_object_that_covers(void **state)
{
	for (u32 i = 0; i < SHAPES; i++) {
		struct fake *f = fake_create(shapes[i]);
		struct hotspot_heap_view *h = view_of(f);

		for (u64 addr = f->tlab; addr < f->top; addr++) {
			u64 object, klass, size, ending;
			u32 k = 0;

			while (addr - f->at[k] >= f->sizes[k])
				k++;
			assert_true(hotspot_object_covering(h, &f->memory, f->tlab, addr, &object, &klass, &size));
			assert_int_equal(object, f->at[k]);
			assert_int_equal(size, f->sizes[k]);
			assert_true(hotspot_object_ending(
			        h, &f->memory, f->tlab, addr, object + size, &ending, &klass, &size));
			assert_int_equal(ending, object);
			assert_false(hotspot_object_ending(
			        h, &f->memory, f->tlab, addr, object + size + 8, &ending, &klass, &size));
		}
		hotspot_heap_view_destroy(h);
		fake_destroy(f);
	}
}

static void finds_large_objects_by_their_end(void **state)
{
	struct fake *f = fake_create(shapes[2]);
	struct hotspot_heap_view *h = view_of(f);
	u64 at = fake_room(f, 100016), object, klass, size;

	fake_array(f, at, f->bytes_array, 100000);
	for (u64 addr = at; addr < at + 100016; addr += 1013) {
		assert_true(hotspot_object_ending(h, &f->memory, at - 64, addr, at + 100016, &object, &klass, &size));
		assert_int_equal(object, at);
		assert_int_equal(klass, f->bytes_array);
		assert_int_equal(size, 100016);
	}
	hotspot_heap_view_destroy(h);
	fake_destroy(f);
}

static void stops_at_what_is_no_object(void **state)
{
	struct fake *f = fake_create(shapes[2]);
	struct hotspot_heap_view *h = view_of(f);
	struct seen s = {.n = 0};
	u64 object, klass, size;

	fake32(f, f->at[2] + 8, 0); /* the class of the third is not written yet */
	assert_int_equal(hotspot_each_object(h, &f->memory, f->tlab, f->top, see, &s), f->at[2]);
	assert_int_equal(s.n, 2);
	assert_false(hotspot_object_covering(h, &f->memory, f->tlab, f->at[3], &object, &klass, &size));
	fake32(f, f->at[1] + 12, 0x80000000); /* a length that no array has */
	s.n = 0;
	assert_int_equal(hotspot_each_object(h, &f->memory, f->tlab, f->top, see, &s), f->at[1]);
	assert_int_equal(s.n, 1);
	assert_int_equal(hotspot_each_object(h, &f->memory, f->at[0] + 4, f->top, see, &s), f->at[0] + 4);
	assert_int_equal(s.n, 1);
	hotspot_heap_view_destroy(h);
	fake_destroy(f);
}

static void add(void *ctx, u64 klass, u64 bytes, u64 objects)
{
	struct seen *s = ctx;

	s->klass[s->n] = klass;
	s->object[s->n] = objects;
	s->size[s->n++] = bytes;
}

/* The last object stands for what fills a TLAB that was given up. */
static void counts_a_tlab(void **state)
{
	for (u32 i = 0; i < SHAPES; i++) {
		struct fake *f = fake_create(shapes[i]);
		struct hotspot_heap_view *h = view_of(f);
		struct seen s = {.n = 0};
		u64 bytes = 0;

		assert_true(hotspot_alloc_survey(h, &f->memory, f->tlab, f->top, add, &s));
		assert_int_equal(s.n, 5);
		for (u32 k = 0; k < s.n; k++) {
			assert_int_equal(s.object[k], 1);
			bytes += s.size[k];
		}
		assert_int_equal(bytes, f->at[5] - f->tlab);
		s.n = 0;
		assert_false(hotspot_alloc_survey(h, &f->memory, f->tlab, f->top + (1u << 20), add, &s));
		assert_false(hotspot_alloc_survey(h, &f->memory, f->tlab, f->tlab, add, &s));
		fake32(f, f->at[2] + 8, 0);
		assert_true(hotspot_alloc_survey(h, &f->memory, f->tlab, f->at[2], add, &s) && s.n == 1);
		hotspot_heap_view_destroy(h);
		fake_destroy(f);
	}
}

static void counts_objects_alike(void **state)
{
	struct fake *f = fake_create(shapes[2]);
	struct hotspot_heap_view *h = view_of(f);
	struct seen s = {.n = 0};
	u64 at = fake_room(f, 4 * 1024), next = at;

	for (u32 i = 0; i < 8; i++, next += 16 + 112)
		fake_array(f, next, f->bytes_array, 112 - i % 2 * 8 + 0); /* 128 and 120 bytes: two classes of size */
	fake_array(f, next, f->bytes_array, 1000);
	assert_false(hotspot_alloc_survey(h, &f->memory, at, next + 1016, add, &s)); /* the holes are no objects */
	for (u32 i = 0; i < 8; i++)
		fake_array(f, at + i * 128, f->bytes_array, 112);
	assert_true(hotspot_alloc_survey(h, &f->memory, at, next + 1016, add, &s));
	assert_int_equal(s.n, 1);
	assert_int_equal(s.object[0], 8);
	assert_int_equal(s.size[0], 8 * 128);
	hotspot_heap_view_destroy(h);
	fake_destroy(f);
}

static void tells_classes_apart(void **state)
{
	struct fake *f = fake_create(shapes[2]);
	struct hotspot_heap_view *h = view_of(f);
	u32 cookie, other;

	assert_true(hotspot_class_cookie(h, &f->memory, f->object, &cookie));
	assert_true(hotspot_class_cookie(h, &f->memory, f->string, &other));
	assert_int_not_equal(cookie, other);
	assert_false(hotspot_class_cookie(h, &f->memory, f->object + 4, &cookie));
	hotspot_heap_view_destroy(h);
	fake_destroy(f);
}

static void lists_threads(void **state)
{
	for (u32 i = 0; i < SHAPES; i++) {
		struct fake *f = fake_create(shapes[i]);
		struct hotspot_heap_view *h = view_of(f);
		struct hotspot_thread t[4];

		assert_int_equal(hotspot_threads(h, &f->memory, t, 4, true), 2);
		assert_int_equal(t[0].tid, 100);
		assert_int_equal(t[0].at, f->java_thread[0]);
		assert_int_equal(t[0].allocated, 1000 + f->top - f->tlab);
		assert_int_equal(t[0].tlab_top, f->top);
		assert_string_equal(t[0].name, "main");
		assert_int_equal(t[1].tid, 101);
		assert_int_equal(t[1].allocated, 2000);
		assert_string_equal(t[1].name, "allocator \xc3\xa9");
		assert_int_equal(hotspot_threads(h, &f->memory, t, 1, false), 1);
		assert_string_equal(t[0].name, "");
		assert_int_equal(hotspot_collections(h, &f->memory), 7);
		hotspot_heap_view_destroy(h);
		fake_destroy(f);
	}
}

/* Fields of Java and of the VM: each by its own list of names. */
static void finds_fields(void **state)
{
	for (u32 i = 0; i < SHAPES; i++) {
		struct fake *f = fake_create(shapes[i]);
		struct hotspot_heap_view *h = view_of(f);
		bool added = shapes[i].age == FAKE_25;
		u32 at;

		assert_true(hotspot_java_field(h, &f->memory, f->chunk, "size", "I", &at));
		assert_int_equal(at, CHUNK_SIZE_AT);
		assert_int_equal(hotspot_java_field(h, &f->memory, f->chunk, "added", "I", &at), added);
		assert_int_equal(at, added ? ADDED_AT : CHUNK_SIZE_AT);
		assert_false(hotspot_java_field(h, &f->memory, f->chunk, "added", "J", &at));
		h->at.vm_symbols = 0;
		assert_false(hotspot_java_field(h, &f->memory, f->chunk, "added", "I", &at));
		hotspot_heap_view_destroy(h);
		fake_destroy(f);
	}
}

enum {
	PAGE_SHIFT = 12,
	SLOTS = 4,
	FORWARDING_START = 0,
	FORWARDING_SHIFT = 8,
	FORWARDING_LENGTH = 16,
	FORWARDING_COUNT = 24,
	FORWARDING_ENTRIES = 32
};

/* What ZGC records of moved objects: nothing has moved, and references are to have this state now. */
static struct hotspot_z moved_view(struct fake *f, u32 state)
{
	struct hotspot_z z = {.granules = (FAKE_BASE + FAKE_BYTES) >> PAGE_SHIFT,
	        .granule_shift = PAGE_SHIFT,
	        .offset_mask = (1ull << 40) - 1,
	        .start = FORWARDING_START,
	        .alignment = FORWARDING_SHIFT,
	        .length = FORWARDING_LENGTH,
	        .ref_count = FORWARDING_COUNT,
	        .entries = FORWARDING_ENTRIES};

	z.good_mask_at = fake_pointer_to(f, (u64)state << 12);
	z.young = fake_room(f, z.granules * 8);
	z.old = fake_room(f, z.granules * 8);
	return z;
}

/* The page of an object was moved by a generation; the table's first slots all say so of the object, if it did not
 * stay. Returns it. */
static u64 move_page(struct fake *f, u64 table, u64 object, u64 to)
{
	u64 at = fake_room(f, FORWARDING_ENTRIES + SLOTS * 8), page = object >> PAGE_SHIFT;

	fake64(f, table + page * 8, at);
	fake64(f, at + FORWARDING_START, page << PAGE_SHIFT);
	fake64(f, at + FORWARDING_SHIFT, 3);
	fake64(f, at + FORWARDING_LENGTH, SLOTS);
	fake32(f, at + FORWARDING_COUNT, 1);
	for (u32 i = 0; to && i < SLOTS; i++)
		fake64(f, at + FORWARDING_ENTRIES + i * 8, 1 | to << 1 | (object - (page << PAGE_SHIFT)) >> 3 << 46);
	return at;
}

/* References have state 2: at 1 the young generation has moved since, at 8 the old one. */
static void names_threads_that_were_moved(void **state)
{
	for (u32 now = 1; now <= 8; now += 7) {
		struct fake *f = fake_create(shapes[SHAPES - 1]);
		struct hotspot_heap_view *h = view_of(f);
		u64 object = f->thread_object[1], copy = fake_room(f, 8192) + 4096;
		struct hotspot_thread t[4];

		assert_int_equal(hotspot_threads(h, &f->memory, t, 4, true), 2);
		h->z = moved_view(f, now);
		move_page(f, now == 1 ? h->z.young : h->z.old, object, copy);
		fake_put(f, copy, f->bytes + (object - FAKE_BASE), 56);
		memset(f->bytes + (object - FAKE_BASE), 0x55, 56);
		assert_int_equal(hotspot_threads(h, &f->memory, t, 4, true), 2);
		assert_string_equal(t[1].name, "allocator \xc3\xa9");
		fake64(f, h->z.good_mask_at, 2 << 12); /* it is where it was, then: another object by now */
		assert_int_equal(hotspot_threads(h, &f->memory, t, 4, true), 2);
		assert_string_equal(t[0].name, "main");
		assert_string_equal(t[1].name, "");
		hotspot_heap_view_destroy(h);
		fake_destroy(f);
	}
}

static void knows_what_may_have_moved(void **state)
{
	struct fake *f = fake_create(shapes[SHAPES - 1]);
	struct hotspot_z z = moved_view(f, 1);
	u64 object = f->thread_object[0], stored = object << 14 | 2 << 12, at;

	assert_int_equal(hotspot_z_now(&z, &f->memory, stored), object);
	assert_int_equal(hotspot_z_now(&z, &f->memory, stored | 4 << 12), 0); /* of two states */
	assert_int_equal(hotspot_z_now(&z, &f->memory, object << 14), 0);     /* of none */
	at = move_page(f, z.young, object, 0);
	assert_int_equal(
	        hotspot_z_now(&z, &f->memory, stored), object); /* the table does not hold it: it is still there */
	fake32(f, at + FORWARDING_COUNT, 0);
	assert_int_equal(hotspot_z_now(&z, &f->memory, stored), 0); /* but its page is not */
	z.ref_count = 0;
	assert_int_equal(hotspot_z_now(&z, &f->memory, stored), 0);
	for (u32 i = 0; i < SLOTS; i++) /* a table without end */
		fake64(f, at + FORWARDING_ENTRIES + i * 8, 1 | 0x3ull << 46);
	assert_int_equal(hotspot_z_now(&z, &f->memory, stored), 0);
	z.granules = 1;
	assert_int_equal(hotspot_z_now(&z, &f->memory, stored), 0);
	fake_destroy(f);
}

/* ZGC of one generation: of three colours one is good, one is that of what has been moved, one asks the table. */
static void knows_what_views_have_moved(void **state)
{
	enum { FIRST = 0, GOOD = 1, REMAPPED = 2, BITS = 42 };
	struct fake *f = fake_create(shapes[SHAPES - 1]);
	struct hotspot_z z = moved_view(f, 1);
	u64 object = f->thread_object[0], copy = fake_room(f, 8192), colour = 1ull << BITS, base = colour << GOOD, at;
	struct hotspot_z_moved moved;

	z.old = z.young;
	z.offset_mask = colour - 1;
	fake64(f, z.good_mask_at, base);
	for (u32 i = FIRST; i <= REMAPPED; i++) /* nothing has moved */
		assert_int_equal(hotspot_z_in_view(&z, &f->memory, object | colour << i, base), object | base);
	at = move_page(f, z.old, object, copy);
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, object | colour << FIRST, base), copy | base);
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, object | colour << GOOD, base), object | base);
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, object | colour << REMAPPED, base), object | base);
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, object | colour * 3, base), 0);
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, object, base), 0);
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, 0, base), 0);
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, colour << FIRST, base), base); /* the first of the heap */
	/* only a finalizer leads to it */
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, object | colour << FIRST | colour << 3, base), copy | base);
	assert_true(hotspot_z_moved_read(&z, &f->memory, at, &moved) && !moved.complete);
	assert_int_equal(hotspot_z_moved_to(&z, &moved, object | base), copy | base);
	assert_int_equal(hotspot_z_moved_to(&z, &moved, (object + 8) | base), 0);
	free(moved.entries);
	fake32(f, at + FORWARDING_COUNT, 0);
	for (u32 i = 0; i < SLOTS; i++)
		fake64(f, at + FORWARDING_ENTRIES + i * 8, 0);
	assert_int_equal(hotspot_z_in_view(&z, &f->memory, object | colour << FIRST, base), 0); /* its page is gone */
	fake_destroy(f);
}

/* All that can be asked. What is answered with one read that fails is either right or "no". */
static void ask(struct fake *f, struct hotspot_heap_view *h)
{
	struct hotspot_thread t[4];
	struct seen s = {.n = 0};
	u64 object, klass, size, end;
	u32 n = hotspot_threads(h, &f->memory, t, 4, true);

	for (u32 i = 0; i < n; i++) {
		u32 k = t[i].tid - 100;

		assert_true(k < 2 && t[i].at == f->java_thread[k]);
		assert_true(!t[i].name[0] || !strcmp(t[i].name, k ? "allocator \xc3\xa9" : "main"));
	}
	end = hotspot_each_object(h, &f->memory, f->tlab, f->top, see, &s);
	assert_true(end >= f->tlab && end <= f->top);
	for (u32 i = 0; i < s.n; i++)
		assert_true(s.object[i] == f->at[i] && s.size[i] == f->sizes[i]);
	if (hotspot_object_covering(h, &f->memory, f->tlab, f->at[4] + 50, &object, &klass, &size))
		assert_int_equal(object, f->at[4]);
	if (hotspot_object_ending(h, &f->memory, f->tlab, f->at[2] + 20, f->at[3], &object, &klass, &size))
		assert_int_equal(object, f->at[2]);
}

static void bears_each_read_failing(void **state)
{
	for (u32 i = 0; i < SHAPES; i++) {
		struct fake *f = fake_create(shapes[i]);
		u32 reads = 1;

		for (u32 fail = 1; fail <= reads && fail < READS_MAX; fail++) {
			struct hotspot_heap_view *h = view_of(f);

			f->reads = 0;
			f->fail_at = fail;
			ask(f, h);
			reads = f->reads;
			hotspot_heap_view_destroy(h);
		}
		assert_in_range(reads, 50, READS_MAX - 1);
		fake_destroy(f);
	}
}

static void waits_for_the_heap(void **state)
{
	struct fake *f = fake_create(shapes[2]);
	struct hotspot_heap_view *h = view_of(f);
	struct hotspot_thread t[4];
	u64 at, heap;

	assert_true(vmstructs_static(f->v, "Universe", "_collectedHeap", &at));
	assert_true(memory_read(&f->memory, &heap, 8, at));
	fake64(f, at, 0);
	assert_int_equal(hotspot_threads(h, &f->memory, t, 4, true), 0);
	fake64(f, at, heap);
	assert_int_equal(hotspot_threads(h, &f->memory, t, 4, true), 2);
	hotspot_heap_view_destroy(h);
	fake_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(walks_a_tlab),
	        cmocka_unit_test(finds_the_object_that_covers),
	        cmocka_unit_test(finds_large_objects_by_their_end),
	        cmocka_unit_test(stops_at_what_is_no_object),
	        cmocka_unit_test(counts_a_tlab),
	        cmocka_unit_test(counts_objects_alike),
	        cmocka_unit_test(tells_classes_apart),
	        cmocka_unit_test(lists_threads),
	        cmocka_unit_test(finds_fields),
	        cmocka_unit_test(names_threads_that_were_moved),
	        cmocka_unit_test(knows_what_may_have_moved),
	        cmocka_unit_test(knows_what_views_have_moved),
	        cmocka_unit_test(bears_each_read_failing),
	        cmocka_unit_test(waits_for_the_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
