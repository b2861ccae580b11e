/* SPDX-License-Identifier: Apache-2.0 */
/* Where frames of Python 3.11 are linked by halves is searched for once a file, and what is kept is checked. */
#include <fcntl.h>

#include "unit.h"

#include "cfi/cfi.h"
#include "cfi/cfi_search_cache.h"
#include "runtimes/python/python_image.h"
#include "shell.h"

#define FILE_PATH "/usr/bin/python3.11"

static char dir[] = "/tmp/yrt-python-torn-XXXXXX";

static struct python_image *probe(struct image *img)
{
	void *image;

	assert_null(python_image_probe(img, &image));
	assert_non_null(image);
	return image;
}

static u32 count(struct image *img)
{
	struct python_image *image = probe(img);
	u32 n = image->eval.ntorn;

	python_image_destroy(image);
	return n;
}

static void test_searched_once(void **state)
{
	int fd = open(FILE_PATH, O_RDONLY | O_CLOEXEC);
	struct cfi_options options = {0};
	struct python_image *first, *second;
	struct search_result kept;
	struct image *img;
	char name[64];

	if (fd < 0)
		skip();
	assert_null(image_open(fd, FILE_PATH, &img));
	assert_null(cfi_load(img, &options, &img->cfi));
	assert_non_null(mkdtemp(dir));
	img->cache_dir = dir;
	first = probe(img);
	second = probe(img);
	assert_true(first->eval.ntorn > 0);
	assert_int_equal(second->eval.ntorn, first->eval.ntorn);
	for (u32 i = 0; i < first->eval.ntorn; i++) {
		assert_int_equal(second->eval.torn[i].start, first->eval.torn[i].start);
		assert_int_equal(second->eval.torn[i].end, first->eval.torn[i].end);
		assert_int_equal(second->eval.torn[i].reg, first->eval.torn[i].reg);
	}
	snprintf(name, sizeof(name), PYTHON_TORN_SEARCH, (long)(first->vm.cframe_below - first->vm.cf_frame),
	        (long)first->vm.f_previous);
	assert_true(search_cache_load(img, name, &kept));
	kept.n -= 2; /* what is kept is believed */
	search_cache_store(img, name, &kept);
	assert_int_equal(count(img), first->eval.ntorn - 1);
	kept.values[0] = img->size * 16; /* but not outside of the function */
	search_cache_store(img, name, &kept);
	assert_int_equal(count(img), first->eval.ntorn);
	kept.n = 1;
	search_cache_store(img, name, &kept);
	assert_int_equal(count(img), first->eval.ntorn);
	python_image_destroy(second);
	python_image_destroy(first);
	image_put(img);
	run("rm -r %s", dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_searched_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
