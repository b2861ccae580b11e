/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "tcmalloc_fake.h"
#include "usage_of.h"

#define MALLOC "malloc of tcmalloc (gperftools)"
#define USED   "in use, or kept for threads"

static void test_spans(void **state)
{
	struct tcmalloc_fake *f = tcmalloc_fake_create();
	struct usage *u;

	tcmalloc_fake_span(f, TCMALLOC_USED, 3, 100, 1); /* 170 of 48 B */
	tcmalloc_fake_span(f, TCMALLOC_USED, 0, 0, 5);
	tcmalloc_fake_span(f, TCMALLOC_FREE, 0, 0, 3);
	tcmalloc_fake_span(f, TCMALLOC_RETURNED, 0, 0, 7);
	u = read_usage(&f->space);
	assert_int_equal(amount_of(u, USED, "48 B").blocks, 100);
	assert_int_equal(amount_of(u, "free in spans", "48 B").blocks, 70);
	assert_int_equal(amount_of(u, MALLOC, "ends of spans").size, 8192 - 170 * 48);
	assert_int_equal(amount_of(u, MALLOC, "blocks of whole pages").size, 5 * TCMALLOC_PAGE);
	assert_int_equal(amount_of(u, MALLOC, "free pages").size, 3 * TCMALLOC_PAGE);
	assert_int_equal(amount_of(u, MALLOC, "free pages, given back").size, 7 * TCMALLOC_PAGE);
	assert_int_equal(u->facts.torn, 0);
	assert_int_equal(u->nodes[0].total.size, FAKE_MAPPINGS * FAKE_SIZE);
	usage_destroy(u);
	tcmalloc_fake_destroy(f);
}

/* More objects out than there are, objects larger than the span, and pages that another span has. */
static void test_torn(void **state)
{
	struct tcmalloc_fake *f = tcmalloc_fake_create();
	struct usage *u;

	for (u32 i = 0; i < 20; i++)
		tcmalloc_fake_span(f, TCMALLOC_USED, 3, 100, 1);
	tcmalloc_fake_put(f, FAKE_SPANS + 48 * 15 + 40, 171 | 3 << 16);
	tcmalloc_fake_put(f, FAKE_SPANS + 48 * 12 + 40, 19 << 16);
	tcmalloc_fake_put(f, FAKE_SPANS + 48 * 17 + 8, 2);
	u = read_usage(&f->space);
	assert_int_equal(amount_of(u, USED, "48 B").blocks, 1700);
	assert_int_equal(u->facts.torn, 3);
	usage_destroy(u);
	tcmalloc_fake_destroy(f);
}

static void test_unknown_layout(void **state)
{
	struct tcmalloc_fake *f = tcmalloc_fake_create();
	struct usage *u;

	u = read_usage(&f->space);
	assert_int_equal(u->nlines, 1);
	assert_non_null(strstr(u->lines[0].text, "unknown layout"));
	usage_destroy(u);
	tcmalloc_fake_destroy(f);
}

#define GOOGLE "malloc of tcmalloc"

/* A span of one object does not count it; what is in none of the mapping is free. */
static void test_google(void **state)
{
	struct tcmalloc_fake *f = tcmalloc_fake_google();
	struct usage *u;

	tcmalloc_fake_google_span(f, 3, 100, 1); /* 170 of 48 B */
	tcmalloc_fake_google_span(f, 19, 0, 32);
	tcmalloc_fake_google_span(f, 0, 0, 70);
	f->lines[2].end = FAKE_HEAP + 0x400000;
	u = read_usage(&f->space);
	assert_int_equal(amount_of(u, USED, "48 B").blocks, 100);
	assert_int_equal(amount_of(u, USED, "256 KiB").blocks, 1);
	assert_int_equal(amount_of(u, "free in spans", "48 B").blocks, 70);
	assert_int_equal(amount_of(u, GOOGLE, "blocks of whole pages").size, 70 * TCMALLOC_PAGE);
	assert_int_equal(amount_of(u, GOOGLE, "free pages").size, 0x400000 - 103 * TCMALLOC_PAGE);
	assert_int_equal(u->facts.torn, 0);
	usage_destroy(u);
	tcmalloc_fake_destroy(f);
}

/* What was given up is a link; more objects out than there are, no pages, classes that do not exist. */
static void test_hostile_google(void **state)
{
	static const struct {
		u32 at;
		u64 word;
	} broken[] = {{16, 171ull << 32}, {32, 0}, {24, 1ull << 34 | 5}, {24, 0}};

	for (u32 i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		struct tcmalloc_fake *f = tcmalloc_fake_google();
		struct usage *u;

		tcmalloc_fake_google_span(f, 3, 100, 1);
		tcmalloc_fake_google_span(f, 0, 0, 70);
		tcmalloc_fake_put(f, f->span - 64, f->span);
		for (u32 k = 0; k < 8; k++)
			tcmalloc_fake_google_span(f, k < 2 ? 250 : 2, 1, 1);
		tcmalloc_fake_put(f, FAKE_SPANS + broken[i].at, broken[i].word);
		u = read_usage(&f->space);
		assert_int_equal(amount_of(u, USED, "48 B").blocks, 0);
		assert_int_equal(amount_of(u, USED, "32 B").blocks, 6);
		assert_int_equal(amount_of(u, GOOGLE, "blocks of whole pages").size, 0);
		usage_destroy(u);
		tcmalloc_fake_destroy(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_spans),
	        cmocka_unit_test(test_torn),
	        cmocka_unit_test(test_unknown_layout),
	        cmocka_unit_test(test_google),
	        cmocka_unit_test(test_hostile_google),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
