/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes by class and size, over the stacks that were seen of that class and size. */
#include "unit.h"

#include "probes/tlab/tlab_survey.h"
#include "unwind/runtime_alloc.h"

#define NODES   8
#define COUNTS  100 /* more than it needs */
#define NOWHERE 7   /* the node of what has no stack */

static const struct frame some = {.where = 0x1000}, other = {.where = 0x2000};

struct sums {
	double bytes[NODES], objects[NODES], unseen;
};

static struct error *sum(void *ctx, const struct survey_result *r)
{
	struct sums *s = ctx;

	s->bytes[r->node] += r->bytes;
	s->objects[r->node] += r->objects;
	s->unseen += r->unseen ? r->bytes : 0;
	return NULL;
}

static u32 kind(struct survey *c, const struct frame *class, u64 size, u64 apart)
{
	u32 ret;

	assert_null(survey_kind(c, 1, class, size, apart, &ret));
	return ret;
}

static void count(struct survey *c, u32 kind)
{
	for (u32 i = 0; i < COUNTS; i++)
		assert_null(survey_count(c, kind, 0, NOWHERE, 100, 10));
}

static struct sums result(struct survey *c)
{
	struct sums s = {{0}, {0}, 0};

	assert_null(survey_spread(c, sum, &s));
	survey_destroy(c);
	return s;
}

static struct survey *create(void)
{
	struct survey *c;

	assert_null(survey_create(&c));
	return c;
}

static void test_spread(void **state)
{
	struct survey *c = create();
	struct sums s;

	assert_null(survey_stack(c, kind(c, &some, 24, 0), false, 0, 1, 300, 1));
	assert_null(survey_stack(c, kind(c, &some, 24, 0), false, 0, 2, 100, 1));
	assert_null(survey_stack(c, kind(c, &some, 24, 0), true, 0, 3, 4000, 1)); /* only where there is no other */
	assert_null(survey_stack(c, kind(c, &other, 24, 0), false, 0, 4, 9000, 1));
	count(c, kind(c, &some, 24, 0));
	assert_true(survey_usable(c));
	s = result(c);
	assert_true(s.bytes[1] == 7500 && s.bytes[2] == 2500 && s.objects[1] == 750 && s.objects[2] == 250);
	assert_true(s.bytes[3] == 0 && s.bytes[4] == 0 && s.unseen == 0);
}

static void test_no_stack(void **state)
{
	struct survey *c = create();
	struct sums s;

	assert_null(survey_stack(c, kind(c, &some, 1 << 20, 0), false, 0, 1, 300, 1));
	assert_null(survey_stack(c, kind(c, &other, 24, 0), false, 0, 2, 300, 1));
	count(c, kind(c, &some, 24, 0));
	s = result(c);
	assert_true(s.bytes[NOWHERE] == 10000 && s.unseen == 10000 && s.bytes[1] == 0 && s.bytes[2] == 0);
}

static void test_other_stacks(void **state)
{
	struct survey *c = create();
	struct sums s;

	assert_null(survey_stack(c, kind(c, &some, 64, 0), true, 0, 1, 300, 1));
	assert_null(survey_stack(c, kind(c, &some, 120, 0), false, 0, 2, 100, 1));
	count(c, kind(c, &some, 64, 0)); /* outside */
	count(c, kind(c, &some, 96, 0)); /* about that size, in a buffer */
	s = result(c);
	assert_true(s.bytes[1] == 10000 && s.bytes[2] == 10000 && s.unseen == 0);
}

static void test_apart(void **state)
{
	struct survey *c = create();
	struct sums s;

	assert_null(survey_stack(c, kind(c, &some, 64, 1), false, 0, 1, 300, 1));
	count(c, kind(c, &some, 64, 2));
	s = result(c);
	assert_true(s.bytes[NOWHERE] == 10000 && s.bytes[1] == 0);
}

/* A thread may fill no buffer between two collections. */
static void test_slow_allocator(void **state)
{
	struct survey *c = create();
	struct sums s;

	assert_null(survey_stack(c, kind(c, &some, 24, 0), false, 0, 1, 300, 3));
	assert_null(survey_stack(c, kind(c, &other, 24, 0), false, 1, 2, 700, 3));
	count(c, kind(c, &some, 24, 0));
	s = result(c);
	assert_true(s.bytes[1] == 10000 && s.bytes[2] == 700 && s.unseen == 0);
}

static void test_too_little(void **state)
{
	struct survey *c = create();
	struct sums s;

	assert_null(survey_stack(c, kind(c, &some, 24, 0), false, 0, 1, 300, 3));
	assert_null(survey_stack(c, kind(c, &some, 24, 0), true, 0, 2, 700, 3));
	assert_null(survey_count(c, kind(c, &some, 24, 0), 0, NOWHERE, 100, 10));
	assert_false(survey_usable(c));
	s = result(c);
	assert_true(s.bytes[1] == 300 && s.objects[1] == 3 && s.bytes[2] == 0 && s.bytes[NOWHERE] == 0);
}

static void test_size_classes(void **state)
{
	u32 last = 0;

	for (u64 size = 1; size < 1 << 20; size++) {
		u32 class = alloc_size_class(size);

		assert_true(class >= last);
		last = class;
	}
	assert_int_equal(alloc_size_class(64), alloc_size_class(79));
	assert_int_not_equal(alloc_size_class(64), alloc_size_class(80));
	assert_int_not_equal(alloc_size_class(64) / 4, alloc_size_class(63) / 4);
	assert_int_equal(alloc_size_class(64) / 4, alloc_size_class(127) / 4);
	assert_int_equal(alloc_size_class(UINT64_MAX) / 4, 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_spread),
	        cmocka_unit_test(test_no_stack),
	        cmocka_unit_test(test_other_stacks),
	        cmocka_unit_test(test_apart),
	        cmocka_unit_test(test_slow_allocator),
	        cmocka_unit_test(test_too_little),
	        cmocka_unit_test(test_size_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
