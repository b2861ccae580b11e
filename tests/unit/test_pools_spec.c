/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of pools. */
#include "unit.h"

#include "probes/object/pools_spec.h"

static void test_built_in(void **state)
{
	struct pool_spec spec;

	for (int i = 0; pools_built_in[i]; i++)
		assert_null(pool_spec_parse(pools_built_in[i], &spec));
	assert_null(pool_spec_parse(pools_built_in[0], &spec));
	assert_int_equal(spec.n, 8);
	assert_string_equal(spec.call[0].name, "ngx_palloc");
	assert_int_equal(spec.call[0].pool, 0);
	assert_int_equal(spec.call[0].size, 1);
	assert_int_equal(spec.call[6].kind, POOL_RESET);
}

static void test_arguments(void **state)
{
	struct pool_spec spec;

	assert_null(pool_spec_parse("  alloc=get(a,size,,b,pool)\tcreate=new(&pool) create=make()", &spec));
	assert_int_equal(spec.n, 3);
	assert_int_equal(spec.call[0].pool, 4);
	assert_int_equal(spec.call[0].size, 1);
	assert_true(spec.call[1].out && !spec.call[2].out);
	assert_int_equal(spec.call[1].pool, 0);
}

static void test_wrong(void **state)
{
	static const char *const wrong[] = {"", "alloc", "alloc=", "alloc=(pool,size)", "alloc=f(pool,size", "alloc=f",
	        "alloc=f(pool)", "alloc=f(size)", "alloc=f(&pool,size)", "create=f(pool) alloc=g(pool,size)",
	        "alloc=f(a,b,c,d,e,g,pool,size)", "alloc=f(pool,size,pool)", "free=f(pool)",
	        "alloc=a(pool,size) free=f(pool)", "alloc=a(pool,size) free=f(pool,size)", "destroy=f",
	        "create=f destroy=g(pool)"};
	char longer[512] = "alloc=", many[1024] = "";
	struct pool_spec spec;
	struct error *err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		err = pool_spec_parse(wrong[i], &spec);
		assert_non_null(err);
		error_free(err);
	}
	memset(longer + 6, 'f', 300);
	strcat(longer, "(pool,size)");
	err = pool_spec_parse(longer, &spec);
	assert_non_null(err);
	error_free(err);
	for (int i = 0; i < 2 * POOL_CALLS_MAX; i++)
		strcat(many, "alloc=f(pool,size) ");
	err = pool_spec_parse(many, &spec);
	assert_non_null(err);
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_built_in), cmocka_unit_test(test_arguments), cmocka_unit_test(test_wrong)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
