/* SPDX-License-Identifier: Apache-2.0 */
/* Records come out in order, whole, and each of them once, however many bits of their keys differ. */
#include <types.h>

#include "unit.h"

#include "sort_keys.h"

#define MOST 5000

struct record {
	u64 key;
	u64 twin; /* follows its key wherever that goes */
};

static u64 draw(void)
{
	static u64 state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Keys as mask leaves them: few bits make many equal ones. The sum shows that none is lost. */
static void try(size_t n, u64 mask)
{
	struct record *records = calloc(n + 1, sizeof(*records));
	u64 sum = 0;

	for (size_t i = 0; i < n; i++) {
		records[i].key = draw() & mask;
		records[i].twin = ~records[i].key;
		sum += records[i].key * 0x9e3779b97f4a7c15;
	}
	records[n].key = 1; /* what follows is left alone */
	sort_keys(records, n, sizeof(*records));
	for (size_t i = 0; i < n; i++) {
		assert_true(!i || records[i - 1].key <= records[i].key);
		assert_int_equal(records[i].twin, ~records[i].key);
		sum -= records[i].key * 0x9e3779b97f4a7c15;
	}
	assert_int_equal(sum, 0);
	assert_int_equal(records[n].key, 1);
	free(records);
}

static void test_sorts(void **state)
{
	static const u64 masks[] = {0, 1, 0xff, 0xffff00, 0xff0000000000ff00, UINT64_MAX};

	for (u32 i = 0; i < sizeof(masks) / sizeof(*masks); i++)
		for (size_t n = 0; n < MOST; n = n * 3 / 2 + 1)
			try(n, masks[i]);
}

static void test_small_records(void **state)
{
	u64 keys[MOST];

	for (u32 i = 0; i < MOST; i++)
		keys[i] = MOST - i;
	sort_keys(keys, MOST, sizeof(*keys));
	for (u32 i = 0; i < MOST; i++)
		assert_int_equal(keys[i], i + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_sorts),
	        cmocka_unit_test(test_small_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
