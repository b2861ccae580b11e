/* SPDX-License-Identifier: Apache-2.0 */
/* Records of all sizes come out as they went in, in order. */
#include "unit.h"

#include "probes/backlog.h"

#define MOST   5000u
#define ROUNDS 20000u

/* What the record of this number is made of. */
static size_t make(u32 number, u8 *ret)
{
	size_t size = 4 + number * 2654435761u % (MOST - 4);

	for (size_t i = 0; i < size; i++)
		ret[i] = (u8)(number + i);
	return size;
}

static void expect(struct backlog *b, u32 number)
{
	u8 wanted[MOST];
	size_t size, length = make(number, wanted);
	const u8 *data = backlog_first(b, &size);

	assert_non_null(data);
	assert_int_equal((uintptr_t)data % 8, 0);
	assert_int_equal(size, length);
	assert_memory_equal(data, wanted, size);
	backlog_drop(b);
}

static void put(struct backlog *b, u32 number)
{
	u8 data[MOST];
	size_t size = make(number, data);

	assert_true(backlog_put(b, data, size));
}

static void test_order(void **state)
{
	struct backlog b = {0};
	size_t size;
	u32 in = 0, out = 0;

	assert_null(backlog_first(&b, &size));
	srandom(1);
	while (out < ROUNDS) {
		for (u32 n = random() % 64; n && in < ROUNDS; n--)
			put(&b, in++);
		for (u32 n = random() % 64; n && out < in; n--)
			expect(&b, out++);
		assert_int_equal(backlog_bytes(&b) == 0, out == in);
	}
	assert_null(backlog_first(&b, &size));
	backlog_free(&b);
}

/* A flood's memory is not kept. */
static void test_flood(void **state)
{
	struct backlog b = {0};

	for (u32 i = 0; i < ROUNDS; i++)
		put(&b, i);
	assert_true(backlog_bytes(&b) > (size_t)ROUNDS * MOST / 4);
	for (u32 i = 0; i < ROUNDS; i++)
		expect(&b, i);
	assert_int_equal(b.room, 0);
	put(&b, 7);
	expect(&b, 7);
	backlog_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_order),
	        cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
