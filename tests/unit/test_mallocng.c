/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "mallocng_fake.h"
#include "usage_of.h"

/* A group in a slot of another one counts once, and the slot is not a block in use. */
static void test_nested(void **state)
{
	struct mallocng_fake *f = mallocng_fake_create();
	struct amount a;
	struct usage *u;

	mallocng_fake_group(f, FAKE_HEAP + 0x1000, 19, 4, 0x8, 0, 1); /* four of 1008 B; one is free */
	mallocng_fake_group(f, FAKE_HEAP + 0x1000 + 32, 1, 30, 0x3, 0x30, 0);
	mallocng_fake_group(f, FAKE_HEAP + 0x3000, MALLOCNG_ONE, 1, 0, 0, 5);
	u = read_usage(&f->space);
	a = amount_of(u, "in use", "1008 B");
	assert_int_equal(a.blocks, 2);
	assert_int_equal(a.size, 2 * 1008);
	assert_int_equal(amount_of(u, "in use", "32 B").blocks, 26);
	assert_int_equal(amount_of(u, "free in groups", "32 B").blocks, 4);
	assert_int_equal(amount_of(u, "free in groups", "1008 B").blocks, 1);
	assert_int_equal(amount_of(u, "malloc of musl", "blocks with a mapping of their own").size, 5 * PAGES_SIZE);
	assert_int_equal(u->facts.torn, 0);
	assert_int_equal(amount_of(u, "", "malloc of musl").blocks, 0);
	assert_int_equal(u->nodes[0].total.size, FAKE_MAPPINGS * FAKE_SIZE);
	usage_destroy(u);
	mallocng_fake_destroy(f);
}

/* What does not lead back to its structure, or does not fit its mapping, or its slot, counts as torn. */
static void test_torn(void **state)
{
	struct mallocng_fake *f = mallocng_fake_create();
	struct usage *u;

	mallocng_fake_group(f, FAKE_HEAP + 0x1000, 19, 4, 0, 0, 1);
	mallocng_fake_group(f, FAKE_HEAP + 0x1000 + 16, 1, 32, 0, 0, 0);
	mallocng_fake_group(f, FAKE_HEAP + 0x2000, 19, 5, 0, 0, 1);
	mallocng_fake_group(f, FAKE_HEAP + 0x3000, 19, 4, 0, 0, 1);
	mallocng_fake_group(f, FAKE_HEAP + 0x4000, MALLOCNG_ONE, 1, 1, 0, 1); /* unmapped, not kept, if it is free */
	mallocng_fake_put(f, FAKE_HEAP + 0x3000, 0);
	u = read_usage(&f->space);
	assert_int_equal(amount_of(u, "in use", "1008 B").blocks, 4);
	assert_int_equal(u->facts.torn, 4);
	usage_destroy(u);
	mallocng_fake_destroy(f);
}

/* An area that another word begins is not musl's; a list that leads back to itself ends. */
static void test_areas(void **state)
{
	struct mallocng_fake *f = mallocng_fake_create();
	struct usage *u;

	mallocng_fake_group(f, FAKE_HEAP + 0x1000, 19, 4, 0, 0, 1);
	mallocng_fake_put(f, FAKE_HEAP + 8, FAKE_HEAP);
	u = read_usage(&f->space);
	assert_int_equal(amount_of(u, "in use", "1008 B").blocks, 4);
	usage_destroy(u);
	mallocng_fake_put(f, FAKE_HEAP, FAKE_SECRET + 1);
	u = read_usage(&f->space);
	assert_int_equal(amount_of(u, "in use", "1008 B").blocks, 0);
	usage_destroy(u);
	mallocng_fake_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_nested),
	        cmocka_unit_test(test_torn),
	        cmocka_unit_test(test_areas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
