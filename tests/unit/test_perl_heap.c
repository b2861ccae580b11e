/* SPDX-License-Identifier: Apache-2.0 */
/* Perl's values: what there are by the arena, what the roots reach, and that any read may fail. */
#include "unit.h"

#include "perl_heap_fake.h"

static struct values v;

static void expect(const struct heap *h, const char *type, u64 count, u64 bytes)
{
	struct heap_total *totals;
	u64 seen = 0, size = 0;
	u32 n;

	assert_null(heap_totals(h, &totals, &n));
	for (u32 i = 0; i < n; i++)
		if (!strcmp(totals[i].type, type)) {
			seen = totals[i].count;
			size = totals[i].bytes;
		}
	free(totals);
	assert_int_equal(seen, count);
	if (bytes)
		assert_int_equal(size, bytes);
}

static void counts_arenas(void **state)
{
	struct error *err;
	struct heap *h;

	values_make(&v);
	h = values_heap(&v, false, &err);
	assert_null(err);
	expect(h, "STASH", 2, 0);
	expect(h, "GLOB", 1, 24 + 48);
	expect(h, "REF", 1, 24);
	expect(h, "Point", 1, 24 + 32 + 8 + 24 + 9 + 1);
	expect(h, "SCALAR", 1, 24 + 16 + 16);
	expect(h, "CODE", 1, 0);
	expect(h, "PAD", 1, 24 + 40 + 16);
	expect(h, "UNDEF", 1, 24);
	expect(h, "ARRAY", 1, 24 + 40);
	heap_destroy(h);
}

static bool has_way(const struct heap *h, const char *const *labels, u32 node)
{
	for (; *labels; labels++, node = h->nodes.parents[node])
		if (!node || strcmp(heap_label_text(h, heap_kind(h, node)->label), *labels) != 0)
			return false;
	return node == 0;
}

static void walks_from_roots(void **state)
{
	static const char *const point[] = {"$cache", "$cache", "main", NULL}, *const variable[] = {"$it", "", "",
	                                                                               "(main program)", NULL};
	struct error *err;
	struct heap *h;
	u32 ways = 0;

	values_make(&v);
	h = values_heap(&v, true, &err);
	assert_null(err);
	expect(h, "Point", 1, 0);
	expect(h, "STASH", 1, 0);
	expect(h, "ARRAY", 0, 0);
	assert_int_equal(h->counts.torn, 0);
	for (u32 i = 1; i < h->nodes.n; i++) {
		ways += heap_addr(h, i) == values_sv(POINT) && has_way(h, point, i);
		ways += heap_addr(h, i) == values_sv(VARIABLE) && has_way(h, variable, i);
	}
	assert_int_equal(ways, 2);
	heap_destroy(h);
}

static void refuses_what_it_does_not_know(void **state)
{
	struct error *err;

	values_make(&v);
	v.image.build.version = 20;
	heap_destroy(values_heap(&v, true, &err));
	assert_non_null(err);
	error_free(err);
	values_make(&v);
	values64(&v, VALUES_INTERP + 40, 0);
	heap_destroy(values_heap(&v, true, &err));
	assert_non_null(err);
	error_free(err);
}

static void bears_each_read_failing(void **state)
{
	for (u32 i = 0; i < 2; i++)
		for (u32 fail = 1; fail < 64; fail++) {
			struct error *err;

			values_make(&v);
			v.fail_at = fail;
			heap_destroy(values_heap(&v, i, &err));
			error_free(err);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(counts_arenas),
	        cmocka_unit_test(walks_from_roots),
	        cmocka_unit_test(refuses_what_it_does_not_know),
	        cmocka_unit_test(bears_each_read_failing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
