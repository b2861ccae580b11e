/* SPDX-License-Identifier: Apache-2.0 */
/* GCtrace.nsnap by the code of a function that stores it as "nexit". */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "runtimes/luajit/luajit_exits.h"

static const char source[] =
        "struct trace { char before[NSNAP]; unsigned short nsnap; char after[NSNAP]; short link; };\n"
        "extern void put(const char *, int);\n"
        "void info(struct trace *t) { put(\"link\", t->link); put(NAME, t->nsnap); }\n";

static bool compile(const char *defines, struct luajit_exits *ret)
{
	char path[] = "/tmp/yrt-luajit-exits-XXXXXX", command[256];
	struct image *img;
	FILE *cc;
	bool found;

	close(mkstemp(path));
	snprintf(command, sizeof(command), "cc -O2 -shared -fPIC -s %s -x c -o %s -", defines, path);
	cc = popen(command, "w");
	assert_non_null(cc);
	fputs(source, cc);
	assert_int_equal(pclose(cc), 0);
	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	found = luajit_exits_read(img, ret);
	image_put(img);
	unlink(path);
	return found;
}

static void test_offsets(void **state)
{
	struct luajit_exits exits;

	assert_true(compile("-DNSNAP=28 '-DNAME=\"nexit\"'", &exits));
	assert_true(luajit_exits_have(&exits, 28));
	assert_false(luajit_exits_have(&exits, 6));
	assert_true(compile("-DNSNAP=6 '-DNAME=\"nexit\"'", &exits));
	assert_true(luajit_exits_have(&exits, 6));
	assert_false(luajit_exits_have(&exits, 28));
	assert_false(luajit_exits_have(&exits, -1) || luajit_exits_have(&exits, 128));
	assert_false(compile("-DNSNAP=6 '-DNAME=\"exit\"'", &exits));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_offsets)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
