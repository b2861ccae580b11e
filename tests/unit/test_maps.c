/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/PID/maps and the files behind them: of odd names, deleted, replaced. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/process/process.h"

#define PAGE 4096u

static char directory[64];

/* A mapped file of this name with this text, then deleted or replaced by another of the name. */
static void check_mapped(const char *name, bool delete, bool replace)
{
	char path[256], text[8] = "";
	struct maps maps;
	u32 found = 0;
	u8 *at;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0700);
	assert_int_equal(write(fd, "before", 6), 6);
	at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	if (delete)
		unlink(path);
	if (replace) {
		int other = open(path, O_RDWR | O_CREAT | O_EXCL, 0700);

		assert_int_equal(write(other, "after!", 6), 6);
		close(other);
	}
	close(fd);
	assert_null(maps_read(getpid(), &maps));
	for (u32 i = 0; i < maps.nlines; i++) {
		if (maps.lines[i].start != (uintptr_t)at)
			continue;
		found++;
		assert_int_equal(maps.lines[i].end - maps.lines[i].start, PAGE);
		assert_int_equal(maps.lines[i].prot, PROT_READ | PROT_EXEC);
		if (!strpbrk(name, "\n(")) /* others are escaped, or cut as if deleted */
			assert_string_equal(maps.lines[i].path, path);
		fd = map_open(getpid(), &maps.lines[i]);
		if (fd < 0) { /* without privilege there is only the name */
			assert_int_not_equal(geteuid(), 0);
			assert_true(errno == ESTALE || errno == ENOENT);
			continue;
		}
		assert_int_equal(read(fd, text, sizeof(text)), 6);
		assert_string_equal(text, "before");
		close(fd);
	}
	assert_int_equal(found, 1);
	maps_free(&maps);
	munmap(at, PAGE);
	unlink(path);
}

static void test_mapped_files(void **state)
{
	static const char *const names[] = {"plain", "a file", "new\nline",
	        "x\n400000-500000 r-xp 00000000 08:01 7 fake", "file (deleted)", " ", "\\012", "caf\xc3\xa9\xff"};

	strcpy(directory, "/tmp/yrt-regions-XXXXXX");
	assert_non_null(mkdtemp(directory));
	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++) {
		check_mapped(names[i], false, false);
		check_mapped(names[i], true, false);
		check_mapped(names[i], true, true);
	}
	assert_int_equal(rmdir(directory), 0);
}

/* The kernel gives it the name of a file. */
static void test_shared_memory(void **state)
{
	u8 *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct maps maps;
	u32 found = 0;

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_null(maps_read(getpid(), &maps));
	for (u32 i = 0; i < maps.nlines; i++) {
		if (maps.lines[i].start != (uintptr_t)at)
			continue;
		found++;
		assert_string_equal(maps.lines[i].path, "");
		assert_int_equal(maps.lines[i].ino, 0);
	}
	assert_int_equal(found, 1);
	maps_free(&maps);
	munmap(at, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_mapped_files),
	        cmocka_unit_test(test_shared_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
