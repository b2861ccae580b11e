/* SPDX-License-Identifier: Apache-2.0 */
/* The file that dwz moved names to: found in the root that its debug file lies in, and nowhere else. */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/dwarf/alternate.h"

static char dir[] = "/tmp/yrt-alternate-XXXXXX";

static void run(const char *command)
{
	char line[2048];

	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	if (system(line))
		fail_msg("%s", line);
}

/* file: below dir; path: as its process names it. */
static bool finds(const char *file, const char *path, const char *root)
{
	struct dwarf_file *f = NULL;
	struct image *img;
	char at[128];
	bool found;
	int fd;

	snprintf(at, sizeof(at), "%s/%s", dir, file);
	fd = open(at, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_null(image_open_sections(fd, path, &img));
	assert_null(dwarf_open(img, &f));
	assert_non_null(f);
	assert_null(dwarf_open_alternate(f, root));
	found = f->alternate;
	dwarf_close(f);
	image_put(img);
	return found;
}

static void test_links(void **state)
{
	char root[64];

	snprintf(root, sizeof(root), "%s/root", dir);
	assert_true(finds("root/a", "/a", root));
	run("mv root/names outside && ln -s $PWD/outside root/names");
	assert_false(finds("root/a", "/a", root));
	run("ln -sf ../outside root/names");
	assert_false(finds("root/a", "/a", root));
	run("ln -sf /within root/names && cp outside root/within");
	assert_true(finds("root/a", "/a", root));
	run("ln -sf a root/names"); /* of another build-id */
	assert_false(finds("root/a", "/a", root));
}

/* A name that a container's file gives is not looked for on the host; one that a host's file gives is. */
static void test_host(void **state)
{
	char root[64], b[64];

	run("rm -f root/names && cp outside names");
	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(b, sizeof(b), "%s/b", dir);
	assert_false(finds("root/a", "/a", root));
	assert_true(finds("b", b, root));
	assert_true(finds("b", b, ""));
}

static int make_files(void **state)
{
	static const char source[] = "struct one { int first; struct one *next; long many[9]; };\n"
	                             "struct two { struct one head; double value; char text[7]; };\n"
	                             "static int count(struct two *t) { int n = 0; struct one *o = &t->head; while (o) "
	                             "n++, o = o->next; return n; }\n"
	                             "int main(int argc, char **argv) { struct two t = {{argc, 0, {0}}, 1, "
	                             "{argv[0][0]}}; return count(&t) + EXTRA; }\n";
	char path[64];
	FILE *file;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/p.c", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(source, file);
	fclose(file);
	run("mkdir root && for p in a b; do gcc -g -O0 -DEXTRA=$(printf %d \\'$p) -Wl,--build-id -o $p p.c; done");
	run("dwz -m names -M names a b && mv a names root/");
	return 0;
}

static int remove_files(void **state)
{
	run("rm -rf $PWD");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_links),
	        cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
