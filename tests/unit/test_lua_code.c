/* SPDX-License-Identifier: Apache-2.0 */
/* Lua's code is searched for once a file, and what is kept is checked. */
#include <fcntl.h>

#include "unit.h"

#include "cfi/cfi.h"
#include "cfi/cfi_search_cache.h"
#include "runtimes/lua/lua_image.h"
#include "shell.h"

#define FILE_PATH "/usr/bin/lua5.4"

static char dir[] = "/tmp/yrt-lua-code-XXXXXX";

static struct lua_image *read_image(struct image *img)
{
	struct lua_image *image;

	assert_null(lua_image_read(img, &image));
	assert_non_null(image);
	return image;
}

static void expect_same(const struct lua_image *a, const struct lua_image *b)
{
	assert_string_equal(a->found_by, b->found_by);
	assert_int_equal(a->nranges, b->nranges);
	for (u32 i = 0; i < a->nranges; i++) {
		assert_int_equal(a->ranges[i].start, b->ranges[i].start);
		assert_int_equal(a->ranges[i].end, b->ranges[i].end);
		assert_int_equal(a->ranges[i].part, b->ranges[i].part);
	}
	assert_memory_equal(&a->gc, &b->gc, sizeof(a->gc));
	assert_memory_equal(&a->vm, &b->vm, sizeof(a->vm));
}

/* What is kept is believed, unless it is no code of this file. */
static void test_searched_once(void **state)
{
	const struct cfi_options options = {0};
	struct lua_image *first, *second, wrong;
	struct image *img;

	assert_null(image_open(open(FILE_PATH, O_RDONLY | O_CLOEXEC), FILE_PATH, &img));
	assert_null(cfi_load(img, &options, &img->cfi));
	assert_non_null(mkdtemp(dir));
	img->cache_dir = dir;
	wrong = (struct lua_image){0};
	assert_false(lua_code_load(img, &wrong));
	first = read_image(img);
	assert_true(lua_code_load(img, &wrong));
	assert_int_equal(wrong.nranges, first->nranges);
	second = read_image(img);
	assert_true(first->nranges > 1 && first->gc.n > 0);
	expect_same(first, second);
	lua_image_destroy(second);
	wrong = *first;
	wrong.nranges = 1;
	lua_code_store(img, &wrong);
	second = read_image(img);
	assert_int_equal(second->nranges, 1);
	lua_image_destroy(second);
	wrong = *first;
	wrong.ranges[0].end = 1ull << 40;
	lua_code_store(img, &wrong);
	second = read_image(img);
	expect_same(first, second);
	lua_image_destroy(second);
	lua_image_destroy(first);
	image_put(img);
	run("rm -r %s", dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_searched_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
