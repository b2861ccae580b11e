/* SPDX-License-Identifier: Apache-2.0 */
/* Perl's code is searched for once a file, and what is kept is checked. */
#include <fcntl.h>

#include "unit.h"

#include "cfi/cfi.h"
#include "cfi/cfi_search_cache.h"
#include "runtimes/perl/perl_image.h"
#include "shell.h"

#define FILE_PATH "/usr/bin/perl"

static char dir[] = "/tmp/yrt-perl-code-XXXXXX";

static struct perl_image *probe(struct image *img)
{
	void *image;

	assert_null(perl_image_probe(img, &image));
	assert_non_null(image);
	return image;
}

static u32 count(struct image *img)
{
	struct perl_image *image = probe(img);
	u32 n = image->code.n;

	perl_image_destroy(image);
	return n;
}

static void test_searched_once(void **state)
{
	int fd = open(FILE_PATH, O_RDONLY | O_CLOEXEC);
	const struct cfi_options options = {0};
	struct perl_image *first, *second;
	struct perl_code wrong;
	struct image *img;

	if (fd < 0)
		skip();
	assert_null(image_open(fd, FILE_PATH, &img));
	assert_null(cfi_load(img, &options, &img->cfi));
	assert_non_null(mkdtemp(dir));
	img->cache_dir = dir;
	first = probe(img);
	assert_true(perl_code_load(img, first->layout, &wrong));
	second = probe(img);
	assert_true(first->code.n > 1);
	assert_int_equal(second->code.n, first->code.n);
	assert_int_equal(second->code.nxs, first->code.nxs);
	assert_int_equal(second->code.nentries, first->code.nentries);
	assert_int_equal(second->code.catches, first->code.catches);
	assert_int_equal(second->code.pushes, first->code.pushes);
	assert_memory_equal(second->code.entries, first->code.entries, sizeof(first->code.entries));
	for (u32 i = 0; i < first->code.n; i++) {
		assert_int_equal(second->code.sites[i].start, first->code.sites[i].start);
		assert_int_equal(second->code.sites[i].end, first->code.sites[i].end);
		assert_int_equal(second->code.sites[i].part, first->code.sites[i].part);
	}
	wrong.n--; /* what is kept is believed */
	perl_code_store(img, first->layout, &wrong);
	assert_int_equal(count(img), first->code.n - 1);
	wrong.sites[0].end += 1ull << 40; /* but not outside of the code */
	perl_code_store(img, first->layout, &wrong);
	assert_int_equal(count(img), first->code.n);
	perl_image_destroy(second);
	perl_image_destroy(first);
	image_put(img);
	run("rm -r %s", dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_searched_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
