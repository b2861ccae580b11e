/* SPDX-License-Identifier: Apache-2.0 */
/* perf-PID.map files: of this very process, so that its root and its pid are real. */
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/symbols/perf_map.h"

static char path[64];

static void append(const char *text)
{
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static struct perf_map *make(const char *text)
{
	struct perf_map *m;

	unlink(path);
	if (text)
		append(text);
	assert_null(perf_map_create(getpid(), &m));
	return m;
}

static void check(struct perf_map *m, u64 addr, const char *name)
{
	const char *found = perf_map_find(m, addr);

	if (name) {
		assert_non_null(found);
		assert_string_equal(found, name);
	} else {
		assert_null(found);
	}
}

static void test_names(void **state)
{
	struct perf_map *m = make("1000 10 first\n0x2000 0x20 JS:*fn /a b/c.js:1:2\n3000 1 last\n");

	check(m, 0x1000, "first");
	check(m, 0x100f, "first");
	check(m, 0x1010, NULL);
	check(m, 0x201f, "JS:*fn /a b/c.js:1:2");
	check(m, 0x3000, "last");
	check(m, 0xfff, NULL);
	check(m, 0, NULL);
	check(m, UINT64_MAX, NULL);
	perf_map_destroy(m);
}

static void test_appended(void **state)
{
	struct perf_map *m = make("1000 10 first\n2000 10 hal");

	check(m, 0x1000, "first");
	append("f\n3000 10 third\n");
	usleep(150000);
	check(m, 0x2000, "half");
	check(m, 0x3000, "third");
	perf_map_destroy(m);
}

/* Code is moved and its place used again: what was written last holds. */
static void test_told_again(void **state)
{
	struct perf_map *m = make("1000 100 old\n1040 10 inner\n1000 20 new\n");

	check(m, 0x1000, "new");
	check(m, 0x1030, "old");
	check(m, 0x1045, "inner");
	check(m, 0x1060, "old");
	perf_map_destroy(m);
}

static void test_file_made_later(void **state)
{
	struct perf_map *m = make(NULL);

	check(m, 0x1000, NULL);
	append("1000 10 late\n");
	usleep(150000);
	check(m, 0x1000, "late");
	perf_map_destroy(m);
}

static void test_file_made_anew(void **state)
{
	struct perf_map *m = make("1000 10 one\n2000 10 two\n");

	check(m, 0x1000, "one");
	unlink(path);
	append("5000 10 five\n");
	usleep(150000);
	check(m, 0x5000, "five");
	check(m, 0x1000, NULL);
	perf_map_destroy(m);
}

static void test_lines_that_make_no_sense(void **state)
{
	struct perf_map *m = make("\n \nzzz\n1000\n1000 10\n1000 10 \n1000 0 empty\nffffffffffffffff 10 wraps\n"
	                          "-1 5 negative\n4000 10 right\n");
	char *longest = malloc(200000);

	assert_non_null(longest);
	check(m, 0x1000, NULL);
	check(m, 0x4000, "right");
	memset(longest, 'x', 199999);
	longest[199999] = 0;
	append("6000 10 ");
	append(longest);
	append("\n7000 10 behind\n");
	usleep(150000);
	check(m, 0x7000, "behind");
	free(longest);
	perf_map_destroy(m);
}

/* /tmp is everybody's. */
static void test_files_of_others(void **state)
{
	struct perf_map *m = make("1000 10 mine\n");
	char other[96];

	if (!geteuid()) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		check(m, 0x1000, NULL);
		assert_int_equal(chown(path, 0, 0), 0);
		usleep(150000);
		check(m, 0x1000, "mine");
	} else {
		print_message("not root: a file of another owner is not tried\n");
	}
	perf_map_destroy(m);
	snprintf(other, sizeof(other), "%s.other", path);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_null(perf_map_create(getpid(), &m));
	check(m, 0x1000, NULL);
	perf_map_destroy(m);
	unlink(path);
	unlink(other);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(perf_map_create(getpid(), &m));
	check(m, 0x1000, NULL);
	perf_map_destroy(m);
}

static void test_process_that_is_gone(void **state)
{
	struct perf_map *m;

	assert_null(perf_map_create(1 << 30, &m));
	check(m, 0x1000, NULL);
	perf_map_destroy(m);
}

static int remove_file(void **state)
{
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_teardown(test_names, remove_file),
	        cmocka_unit_test_teardown(test_appended, remove_file),
	        cmocka_unit_test_teardown(test_told_again, remove_file),
	        cmocka_unit_test_teardown(test_file_made_later, remove_file),
	        cmocka_unit_test_teardown(test_file_made_anew, remove_file),
	        cmocka_unit_test_teardown(test_lines_that_make_no_sense, remove_file),
	        cmocka_unit_test_teardown(test_files_of_others, remove_file),
	        cmocka_unit_test_teardown(test_process_that_is_gone, remove_file),
	};

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
