/* SPDX-License-Identifier: Apache-2.0 */
/* Where the code of a line begins: in functions that it is inlined into, by the file's own debug information or not. */
#include "symbols_files.h"

#include "unwind/symbols/source_line.h"

static void make_lines(void)
{
	static const char source[] = "#include <stdlib.h>\n"
	                             "static inline __attribute__((always_inline)) int times(int x)\n"
	                             "{	return x * rand(); }\n" /* line 3 */
	                             "int one(int x) { return times(x) + 1; }\n"
	                             "int two(int x) { return times(x) + 2; }\n"
	                             "\n"
	                             "int three(int x)\n"
	                             "{	while (x > 9)\n"
	                             "		x = times(x);\n"
	                             "	return x; }\n";

	run("mkdir -p source && rm -f lines*");
	write_file("source/lines.c", source, sizeof(source) - 1);
	run("gcc -g -O2 -shared -fPIC -o lines source/lines.c");
	run("objcopy --only-keep-debug lines lines.debug && strip -g -o lines.bare lines");
}

/* In these functions, each once; a NULL ends them. */
static void expect(struct image *img, const struct line_places *places, const char *const *functions)
{
	u32 n = 0;

	for (; functions[n]; n++) {
		u32 found = 0;

		for (u32 i = 0; i < places->n; i++)
			found += !strcmp(name_at(img, places->addr[i]), functions[n]);
		if (found != 1)
			fail_msg("%u places in %s", found, functions[n]);
	}
	assert_int_equal(places->n, n);
	assert_false(places->more);
}

static void test_places(void **state)
{
	static const char *const all[] = {"one", "two", "three", NULL}, *const third[] = {"three", NULL};
	struct line_places places;
	struct image *img, *debug;

	make_lines();
	img = open_image("lines.bare", "");
	debug = open_image("lines.debug", "");
	assert_false(source_line_find(img, img, "lines.c", 3, &places));
	assert_true(source_line_find(img, debug, "lines.c", 3, &places));
	assert_int_equal(places.line, 3);
	expect(img, &places, all);
	image_put(img);
	img = open_image("lines", "");
	assert_true(source_line_find(img, img, "source/lines.c", 10, &places));
	expect(img, &places, third);
	assert_true(source_line_find(img, img, "lines.c", 6, &places));
	assert_true(places.line > 6 && places.line < 10);
	expect(img, &places, third);
	image_put(img);
	image_put(debug);
}

static void test_nowhere(void **state)
{
	struct line_places places;
	struct image *img;

	make_lines();
	img = open_image("lines", "");
	assert_false(source_line_find(img, img, "lines.c", 11, &places));
	assert_false(source_line_find(img, img, "lines.c", UINT32_MAX, &places));
	assert_false(source_line_find(img, img, "ines.c", 3, &places));
	assert_false(source_line_find(img, img, "other/lines.c", 3, &places));
	assert_false(source_line_find(img, img, "", 3, &places));
	assert_false(source_line_find(img, img, "source/", 3, &places));
	image_put(img);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_nowhere)};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
