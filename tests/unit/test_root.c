/* SPDX-License-Identifier: Apache-2.0 */
/* Files within a target's root: what is no regular file is not opened, and no link leads out. */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "binary/root.h"

static char folder[] = "/tmp/yrt-root-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *out = fopen(in_folder(name), "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static int make(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	put("file", "within");
	put("outside", "without");
	if (mkdir(in_folder("root"), 0755))
		return -1;
	put("root/file", "root's");
	return mkfifo(in_folder("root/fifo"), 0600) || symlink("/file", in_folder("root/absolute")) ||
	       symlink("../outside", in_folder("root/up")) || symlink("fifo", in_folder("root/to_fifo"));
}

static int unmake(void **state)
{
	static const char *const names[] = {
	        "file", "outside", "root/file", "root/fifo", "root/absolute", "root/up", "root/to_fifo"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(in_folder(names[i]));
	rmdir(in_folder("root"));
	return rmdir(folder);
}

static bool opens(int root, const char *path, const char *text)
{
	char got[32] = "";
	int fd = root_open_regular(root, path);

	if (fd < 0)
		return false;
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, text);
	return true;
}

static void test_links(void **state)
{
	int root = root_open(in_folder("root"));

	assert_true(root >= 0);
	assert_true(opens(root, "/file", "root's"));
	assert_true(opens(root, "/absolute", "root's"));
	assert_false(opens(root, "/up", ""));
	assert_false(opens(root, "/../outside", ""));
	assert_false(opens(root, "/", ""));
	assert_false(opens(root, "/none", ""));
	assert_true(opens(-1, in_folder("root/up"), "without"));
	assert_false(opens(-1, "/dev/null", ""));
	assert_null(root_open_folder(root, "/file"));
	close(root);
}

/* Is anything opened in the meantime? */
static bool was_opened(int watch)
{
	char events[4096];

	return read(watch, events, sizeof(events)) > 0;
}

static void test_not_opened(void **state)
{
	int watch = inotify_init1(IN_NONBLOCK), root = root_open(in_folder("root"));

	assert_true(inotify_add_watch(watch, in_folder("root/fifo"), IN_OPEN) >= 0);
	assert_true(inotify_add_watch(watch, in_folder("root/file"), IN_OPEN) >= 0);
	assert_false(opens(root, "/fifo", ""));
	assert_false(opens(root, "/to_fifo", ""));
	assert_false(was_opened(watch));
	assert_true(opens(root, "/file", "root's"));
	assert_true(was_opened(watch));
	close(root);
	close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_links),
	        cmocka_unit_test(test_not_opened),
	};

	return cmocka_run_group_tests(tests, make, unmake);
}
