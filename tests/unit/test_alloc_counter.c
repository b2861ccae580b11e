/* SPDX-License-Identifier: Apache-2.0 */
/* Where jemalloc's counter of bytes is, in Debian's build, which has no symbol for it; and that others have none. */
#include <fcntl.h>
#include <gelf.h>

#include "unit.h"

#include "probes/object/alloc_counter.h"
#include "unwind/symbols/symbols.h"

#define LIBS "/usr/lib/x86_64-linux-gnu/"

static struct image *load(const char *path, struct alloc_functions *f)
{
	struct image *img;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(symbols_load(img, ""));
	assert_null(alloc_functions_find(img, f));
	assert_true(f->n > 0);
	return img;
}

/* te_event_trigger() of 5.3 begins with a push, which the kernel emulates, and its table with the class of 8 bytes. */
static void test_debian(void **state)
{
	static struct alloc_functions f;
	struct image *img = load(LIBS "libjemalloc.so.2", &f);
	struct alloc_counter c;
	u32 counted = 0;

	assert_true(alloc_counter_find(img, &f, &c));
	assert_string_equal(c.prefix, "");
	assert_true(c.offset > 0);
	assert_false(c.stepped);
	assert_true(c.classes > 0);
	for (u32 i = 0; i < f.n; i++)
		counted += alloc_counter_counts(&c, &f.of[i]);
	assert_in_range(counted, 8, f.n - 1); /* not free() and its like */
	image_put(img);
}

static void test_others(void **state)
{
	static const char *const paths[] = {LIBS "libc.so.6", LIBS "libmimalloc.so.2", LIBS "libtcmalloc.so.4"};
	static struct alloc_functions f;
	struct alloc_counter c;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct image *img = load(paths[i], &f);

		assert_false(alloc_counter_find(img, &f, &c));
		image_put(img);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_debian), cmocka_unit_test(test_others)};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
