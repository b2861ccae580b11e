/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's limit: what was used least recently goes, and nothing that is not the cache's. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "cfi/cfi_cache_dir.h"

static char dir[] = "/tmp/yrt-cache-XXXXXX";

static void put(const char *name, u32 kib, time_t used)
{
	struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)kib << 10), 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static bool is_there(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void test_least_recent(void **state)
{
	struct cache_use use;

	put("aa-10.cfi", 300, 1000);
	put("bb-10.cfi", 300, 3000);
	put("cc-10.search", 300, 2000);
	put("dd-10.cfi.Ab3xYz", 100, 500); /* of a writer that was killed */
	put("mine.txt", 900, 1);
	put("aa-10.cfg", 900, 1);
	assert_null(cache_use(dir, &use));
	assert_int_equal(use.files, 4);
	assert_int_equal(use.bytes, 1000 << 10);
	assert_null(cache_shrink(dir, 650 << 10, &use));
	assert_int_equal(use.files, 2);
	assert_false(is_there("aa-10.cfi") || is_there("dd-10.cfi.Ab3xYz"));
	assert_true(is_there("bb-10.cfi") && is_there("cc-10.search") && is_there("mine.txt") && is_there("aa-10.cfg"));
}

static void test_use_counts(void **state)
{
	struct cache_use use;
	char path[128];

	put("aa-1.cfi", 10, 1000);
	put("bb-1.cfi", 10, 2000);
	snprintf(path, sizeof(path), "%s/aa-1.cfi", dir);
	cache_touch(path);
	assert_null(cache_shrink(dir, 10 << 10, &use));
	assert_true(is_there("aa-1.cfi"));
	assert_false(is_there("bb-1.cfi"));
}

static void test_grown(void **state)
{
	struct cache_use use;

	setenv("YRT_CACHE_MB", "1", 1);
	assert_int_equal(cache_limit(), 1 << 20);
	for (int i = 0; i < 20; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%x-1.cfi", i + 1);
		put(name, 100, 1000 + i);
	}
	cache_grew(dir, 8 << 20);
	assert_null(cache_use(dir, &use));
	assert_true(use.bytes > 0 && use.bytes <= 768 << 10);
	assert_true(is_there("14-1.cfi"));
	assert_false(is_there("1-1.cfi"));
	setenv("YRT_CACHE_MB", "much", 1);
	assert_int_equal(cache_limit(), (u64)CACHE_LIMIT_MB << 20);
}

static void test_not_there(void **state)
{
	struct cache_use use;

	assert_null(cache_use("/nonexistent/yrt", &use));
	assert_int_equal(use.files, 0);
	assert_null(cache_shrink("/nonexistent/yrt", 0, &use));
	assert_int_equal(use.files, 0);
}

static int make(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int empty(void **state)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	return d ? closedir(d) : -1;
}

static int drop(void **state)
{
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_teardown(test_least_recent, empty),
	        cmocka_unit_test_teardown(test_use_counts, empty),
	        cmocka_unit_test_teardown(test_grown, empty),
	        cmocka_unit_test(test_not_there),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
