/* SPDX-License-Identifier: Apache-2.0 */
/* What searches have found: given back as it was stored, for that file and search, unless its file is broken. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "work_dir.h"
#include "cfi/cfi_search_cache.h"

static struct image image_of(size_t size)
{
	return (struct image){.cache_dir = dir, .size = size, .build_id = "\x12\x34\x56\x78", .build_id_len = 4};
}

/* The one file of the cache. */
static int open_file(int flags)
{
	char path[300];
	DIR *d = opendir(dir);
	struct dirent *entry;
	int fd = -1;

	while ((entry = readdir(d)))
		if (*entry->d_name != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
			assert_int_equal(fd, -1);
			fd = open(path, flags);
		}
	closedir(d);
	return fd;
}

static void test_round(void **state)
{
	struct image img = image_of(SEARCH_FILE_MIN), other = image_of(SEARCH_FILE_MIN + 1),
	             small = image_of(SEARCH_FILE_MIN - 1);
	struct search_result found = {.values = {7, ~0ull, 0}, .n = 3}, got;

	assert_false(search_cache_load(&img, "search 1", &got));
	search_cache_store(&small, "search 1", &found);
	assert_int_equal(open_file(O_RDONLY), -1);
	search_cache_store(&img, "search 1", &found);
	assert_true(search_cache_load(&img, "search 1", &got));
	assert_int_equal(got.n, 3);
	assert_memory_equal(got.values, found.values, 3 * sizeof(u64));
	assert_false(search_cache_load(&img, "search 2", &got));
	assert_false(search_cache_load(&other, "search 1", &got));
	found.n = 0;
	search_cache_store(&img, "search 1", &found);
	assert_true(search_cache_load(&img, "search 1", &got));
	assert_int_equal(got.n, 0);
}

static void test_broken(void **state)
{
	struct image img = image_of(SEARCH_FILE_MIN);
	struct search_result found = {.values = {1, 2}, .n = 2}, got;

	search_cache_store(&img, "search 1", &found);
	for (off_t at = 0; at < 32; at++) {
		int fd = open_file(O_RDWR);
		u8 byte;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		assert_false(search_cache_load(&img, "search 1", &got));
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		assert_true(search_cache_load(&img, "search 1", &got));
		close(fd);
	}
	for (off_t size = 0; size < 32; size++) {
		int fd;

		search_cache_store(&img, "search 1", &found);
		fd = open_file(O_RDWR);
		assert_int_equal(ftruncate(fd, size), 0);
		close(fd);
		assert_false(search_cache_load(&img, "search 1", &got));
	}
	search_cache_store(&img, "search 1", &found);
	assert_int_equal(ftruncate(open_file(O_RDWR), 16 + (SEARCH_RESULT_MAX + 1) * 8), 0);
	assert_false(search_cache_load(&img, "search 1", &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_round),
	        cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
