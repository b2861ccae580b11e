/* SPDX-License-Identifier: Apache-2.0 */
/* Who refers to which objects of a JVM, by the maps and names of its classes, for kinds of headers and references. */
#include "unit.h"

#include "hotspot_refs_fake.h"

static const struct fake_options shapes[] = {
        {FAKE_25, .narrow_klass = true, .narrow_oops = true},
        {FAKE_25, .narrow_klass = true},
        {FAKE_25, .narrow_klass = false},
        {FAKE_8, .narrow_klass = true, .narrow_oops = true},
};
#define SHAPES (sizeof(shapes) / sizeof(*shapes))

static struct hotspot_heap_view *view_of(struct refs_fake *r)
{
	struct hotspot_heap_view *view;

	assert_null(hotspot_heap_view_create(r->f.v, &r->f.layout, &view));
	assert_true(hotspot_heap_ready(view, &r->f.memory));
	return view;
}

static u32 node_at(const struct heap *h, u64 addr)
{
	for (u32 i = 1; i < h->nodes.n; i++)
		if (heap_addr(h, i) == addr && heap_is_object(h, i))
			return i;
	return 0;
}

static void expect(const struct heap *h, u64 addr, u64 parent, const char *label, const char *type, u64 size)
{
	u32 node = node_at(h, addr);

	assert_int_not_equal(node, 0);
	assert_string_equal(heap_label_text(h, heap_kind(h, node)->label), label);
	assert_string_equal(h->types[heap_kind(h, node)->type].name, type);
	assert_int_equal(heap_kind(h, node)->size, size);
	assert_int_equal(heap_addr(h, h->nodes.parents[node]), parent);
}

static void follows_fields(void **state)
{
	for (u32 i = 0; i < SHAPES; i++) {
		struct refs_fake *r = refs_create(shapes[i]);
		struct hotspot_heap_view *view = view_of(r);
		u32 header = fake_header(&r->f, true), step = shapes[i].narrow_oops ? 4 : 8;
		struct error *err;
		struct heap *h = refs_heap(r, view, &err);

		assert_null(err);
		expect(h, r->mirror, 0, "", "java.lang.Class", 48);
		expect(h, r->object, r->array, "[]", "com.foo.Cache", 24);
		expect(h, r->string, r->object, ".text", "java.lang.String", 40);
		expect(h, r->array, r->mirror, ".kept", "com.foo.Cache[]", (header + 3 * step + 7) & ~7u);
		heap_destroy(h);
		hotspot_heap_view_destroy(view);
		vmstructs_destroy(r->f.v);
		free(r);
	}
}

static void bears_each_read_failing(void **state)
{
	for (u32 fail = 1; fail < 96; fail++) {
		struct refs_fake *r = refs_create(shapes[fail % SHAPES]);
		struct hotspot_heap_view *view = view_of(r);
		struct error *err;

		r->f.fail_at = r->f.reads + fail;
		heap_destroy(refs_heap(r, view, &err));
		error_free(err);
		hotspot_heap_view_destroy(view);
		vmstructs_destroy(r->f.v);
		free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(follows_fields),
	        cmocka_unit_test(bears_each_read_failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
