/* SPDX-License-Identifier: Apache-2.0 */
/* What another thread reads is what symbols_load() reads, comes once, and may be given up at any time. */
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/symbols/name_reader.h"

static struct image *open_file(const char *path)
{
	struct image *img;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	return img;
}

static const char *libc_path(void)
{
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)&qsort, &info));
	return info.dli_fname;
}

/* Each symbol that a file's own table has is found in both. */
static void expect_same(const char *path)
{
	struct image *img = open_file(path), *other = open_file(path);
	struct file_names names;
	struct name_reader *r;
	struct symbol a, b;
	u32 found = 0;

	assert_null(name_reader_create(&r));
	assert_false(name_reader_has(r, img, "", &names));
	assert_false(symbols_are_read(img));
	name_reader_wait(r);
	assert_true(name_reader_has(r, img, "", &names));
	assert_true(symbols_are_read(img));
	assert_int_equal(names.read, !symbols_own(img));
	assert_int_equal(names.read, img->rtti != NULL);
	c_names_free(&names.by_language);
	name_reader_destroy(r);
	assert_null(symbols_load(other, ""));
	for (u32 i = 0; i < img->nsegments; i++)
		for (u64 at = 0; at < img->segments[i].filesz; at += 0x100) {
			bool here = symbols_find(img, img->segments[i].vaddr + at, &a);

			assert_int_equal(here, symbols_find(other, img->segments[i].vaddr + at, &b));
			if (!here)
				continue;
			assert_int_equal(a.start, b.start);
			assert_string_equal(a.name, b.name);
			found++;
		}
	assert_true(found > 20);
	image_put(img);
	image_put(other);
}

static void test_file(void **state)
{
	expect_same("/proc/self/exe");
	expect_same(libc_path());
}

/* Whoever reads it meanwhile himself keeps what he has read. */
static void test_overtaken(void **state)
{
	struct image *img = open_file("/proc/self/exe");
	struct file_names names;
	struct name_reader *r;
	struct symbols *own;

	assert_null(name_reader_create(&r));
	assert_false(name_reader_has(r, img, "", &names));
	assert_null(symbols_read(img, ""));
	own = img->symbols;
	name_reader_wait(r);
	assert_true(name_reader_has(r, img, "", &names));
	c_names_free(&names.by_language);
	assert_ptr_equal(img->symbols, own);
	name_reader_destroy(r);
	image_put(img);
}

static void test_given_up(void **state)
{
	for (u32 i = 0; i < 20; i++) {
		struct image *exe = open_file("/proc/self/exe"), *libc = open_file(libc_path());
		struct file_names names;
		struct name_reader *r;

		assert_null(name_reader_create(&r));
		assert_false(name_reader_has(r, exe, "", &names));
		assert_false(name_reader_has(r, libc, "", &names));
		usleep(i * 100);
		name_reader_destroy(r);
		image_put(exe);
		image_put(libc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_file),
	        cmocka_unit_test(test_overtaken),
	        cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
