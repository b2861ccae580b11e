/* SPDX-License-Identifier: Apache-2.0 */
/* hit_find.h: where functions of this program are probed. */
#include <fcntl.h>

#include "unit.h"

#include "probes/hit/hit_find.h"

__asm__(".text\n"
        ".type plain_function, @function\n"
        "plain_function:\n"
        "	push %rbp\n"
        "	pop %rbp\n"
        "	ret\n"
        ".size plain_function, . - plain_function\n"
        ".type marked_function, @function\n"
        "marked_function:\n"
        "	endbr64\n"
        "	push %rbp\n"
        "	pop %rbp\n"
        "	ret\n"
        ".size marked_function, . - marked_function\n");

/* How far behind its first instruction. */
static u64 probed_behind(struct image *img, const char *function)
{
	struct hit_found found;
	struct hit_spec s;
	u64 offset;

	assert_null(hit_parse(function, &s));
	assert_null(hit_find(&s, img, "", &found));
	assert_int_equal(found.n, 1);
	assert_true(hit_offset(img, found.addr[0], true, &offset));
	return found.place[0].offset - offset;
}

static void test_entry(void **state)
{
	static const char path[] = "/proc/self/exe";
	struct image *img;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_int_equal(probed_behind(img, "plain_function"), 0);
	assert_int_equal(probed_behind(img, "marked_function"), 4);
	image_put(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_entry)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
