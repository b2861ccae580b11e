/* SPDX-License-Identifier: Apache-2.0 */
/* Data files of the layout library: what is printed can be read, what is wrong is refused with its line. */
#include <unistd.h>

#include "unit.h"

#include "layout/layout.h"

struct values {
	struct layout_member a, b, size, maybe;
	struct layout_list ops;
};

static const struct layout_field fields[] = {
        {.name = "S.a", .slot = offsetof(struct values, a)},
        {.name = "S.a.b", .slot = offsetof(struct values, b)},
        {.name = "sizeof S", .slot = offsetof(struct values, size)},
        {.name = "S.maybe", .slot = offsetof(struct values, maybe), .optional = true},
        {.name = "enum op OP_", .slot = offsetof(struct values, ops), .list = true},
};
static const struct layout_schema schema = {"test", fields, 5, sizeof(struct values)};

#define FIELDS "S.a 8 4\nS.a.b 12 65535\nsizeof S 104\nS.maybe -\nenum op OP_ ADD - SUB\n"
#define WHOLE  "# made so\nruntime test\nbuild-id 0a1b # of lib.so\nbuild-id ff\nversion Test 1.2  \n\n" FIELDS

static struct layout_file *parse(const char *text)
{
	struct layout_file *file;
	struct error *err = layout_parse(&schema, "t.layout", text, strlen(text), &file);

	if (err)
		fail_msg("%s", err->message);
	return file;
}

static void test_whole(void **state)
{
	struct layout_file *file = parse(WHOLE);
	const struct values *v = file->layout->values;
	struct image img = {.build_id = {0x0a, 0x1b}, .build_id_len = 2};

	assert_int_equal(v->a.at, 8);
	assert_int_equal(v->a.size, 4);
	assert_int_equal(v->b.size, 65535);
	assert_int_equal(v->size.at, 104);
	assert_int_equal(v->maybe.size, 0);
	assert_int_equal(v->ops.n, 3);
	assert_string_equal(v->ops.names[0], "ADD");
	assert_string_equal(v->ops.names[1], "");
	assert_int_equal(file->nversions, 1);
	assert_string_equal(file->versions[0], "Test 1.2");
	assert_true(layout_file_has_build_id(file, &img));
	img.build_id_len = 1;
	assert_false(layout_file_has_build_id(file, &img));
	img.build_id_len = 0;
	assert_false(layout_file_has_build_id(file, &img));
	for (u32 i = 0; i < schema.n; i++)
		assert_int_equal(file->layout->fills[i].source, LAYOUT_LIBRARY);
	layout_file_destroy(file);
}

static void test_print(void **state)
{
	struct layout_file *file = parse(WHOLE), *again;
	char *text = NULL, *whole;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	layout_print(file->layout, out);
	fclose(out);
	assert_string_equal(text, FIELDS);
	assert_true(asprintf(&whole, "runtime test\n%s", text) > 0);
	again = parse(whole);
	assert_true(layout_equal(file->layout, again->layout));
	((struct values *)again->layout->values)->a.at++;
	assert_false(layout_equal(file->layout, again->layout));
	layout_file_destroy(file);
	layout_file_destroy(again);
	free(text);
	free(whole);
}

static void test_foreign(void **state)
{
	assert_null(parse("runtime other\nwhatever it holds\n"));
	assert_null(parse("# c\n\n runtime testing\n"));
}

static void expect_error(const char *text, size_t size, const char *expected)
{
	struct layout_file *file = (void *)1;
	struct error *err = layout_parse(&schema, "t.layout", text, size, &file);

	if (!err)
		fail_msg("accepted: %s", text);
	if (!strstr(err->message, expected))
		fail_msg("\"%s\" instead of \"%s\"", err->message, expected);
	assert_int_equal(err->kind, strstr(expected, "lacks parts") ? ERROR_UNSUPPORTED : ERROR_INPUT);
	assert_null(file);
	error_free(err);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *text, *expected;
	} wrong[] = {
	        {"", "t.layout:0: no \"runtime NAME\""},
	        {"S.a 8 4\nruntime test\n", "t.layout:1: \"runtime NAME\" must come first, not \"S.a 8 4\""},
	        {"runtime test\nS.a 8 4\n", "t.layout lacks parts of the layout of test: S.a.b, sizeof S, enum op OP_"},
	        {"runtime test x\n", "t.layout:1: more on the line than belongs there: \"x\""},
	        {"runtime test\n\nS.c 8 4\n", "t.layout:3: not a member that this yrt knows: \"S.c 8 4\""},
	        {"runtime test\nS.ab 8 4\n", "t.layout:2: not a member"},
	        {"runtime test\nS.a\n", "t.layout:2: not a number up to 65535: \"\""},
	        {"runtime test\nS.a 65536 4\n", "not a number up to 65535: \"65536\""},
	        {"runtime test\nS.a -1 4\n", "not a number up to 65535: \"-1\""},
	        {"runtime test\nS.a 99999999999999999999 4\n", "not a number"},
	        {"runtime test\nS.a 8\n", "the size is not a number"},
	        {"runtime test\nS.a 8 0\n", "a size of 0 for \"S.a\""},
	        {"runtime test\nS.a 8 4 2\n", "more on the line than belongs there: \"2\""},
	        {"runtime test\nS.a -\n", "every build has \"S.a\""},
	        {"runtime test\nS.a 8 4\nS.a 8 4\n", "t.layout:3: given twice: \"S.a\""},
	        {"runtime test\nsizeof S 0\n", "a size of 0"},
	        {"runtime test\nenum op OP_\n", "names are missing"},
	        {"runtime test\nbuild-id 0A\n", "lower-case hexadecimal digits, not \"0A\""},
	        {"runtime test\nbuild-id 0\n", "an even number"},
	        {"runtime test\nbuild-id \n", "an even number"},
	        {"runtime test\nversion  # none\n", "a version has 1 to 128 bytes"},
	};

	for (u32 i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		expect_error(wrong[i].text, strlen(wrong[i].text), wrong[i].expected);
	expect_error("runtime test\n\0", 14, "not a text");
}

static void test_bounds(void **state)
{
	const size_t size = 2 << 20;
	char *text = malloc(size + 1), *at;

	memset(text, '#', size);
	expect_error(text, size, "larger than 1 MiB");
	at = stpcpy(text, "runtime test\nenum op OP_");
	for (u32 i = 0; i < 5000; i++)
		at = stpcpy(at, " A");
	expect_error(text, at - text, "t.layout:2: more or longer names");
	at = stpcpy(text, "runtime test\nenum op OP_ ");
	memset(at, 'A', 65);
	at[65] = 0;
	expect_error(text, strlen(text), "more or longer names");
	at = stpcpy(text, "runtime test\n");
	for (u32 i = 0; i < 300; i++)
		at = stpcpy(at, "build-id 00\n");
	expect_error(text, at - text, "t.layout:258: too many of this kind");
	free(text);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* A user's directory: its files first, whatever else is in it is left alone, a bad one is named. */
static void test_directory(void **state)
{
	char dir[] = "/tmp/yrt-layouts-XXXXXX", command[256];
	struct layout_library library;
	struct error *err;

	assert_non_null(mkdtemp(dir));
	setenv("YRT_LAYOUTS", dir, 1);
	put(dir, "b.layout", WHOLE);
	put(dir, "a.layout", "runtime other\n");
	put(dir, "notes.txt", "nothing");
	assert_null(layout_library_load(&schema, &library));
	assert_int_equal(library.n, 1);
	assert_non_null(strstr(library.files[0]->name, "/b.layout"));
	layout_library_free(&library);
	put(dir, "c.layout", "runtime test\nnonsense\n");
	err = layout_library_load(&schema, &library);
	assert_non_null(err);
	assert_non_null(strstr(err->message, "/c.layout:2: not a member"));
	error_free(err);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	err = layout_library_load(&schema, &library);
	assert_non_null(err);
	assert_non_null(strstr(err->hint, "YRT_LAYOUTS"));
	error_free(err);
	unsetenv("YRT_LAYOUTS");
	assert_null(layout_library_load(&schema, &library));
	assert_int_equal(library.n, 0);
	layout_library_free(&library);
}

static void test_copy(void **state)
{
	struct layout_file *file = parse(WHOLE);
	struct layout *copy;
	char origin[64];

	assert_null(layout_copy(file->layout, &copy));
	assert_string_equal(layout_origin(copy, 0, origin, sizeof(origin)), "library t.layout");
	layout_set(copy, 1, (struct layout_member){16, 2}, LAYOUT_CODE);
	assert_string_equal(layout_origin(copy, 1, origin, sizeof(origin)), "code");
	assert_true(layout_equal_field(copy, file->layout, 4));
	layout_file_destroy(file);
	assert_string_equal(((struct values *)copy->values)->ops.names[2], "SUB");
	layout_destroy(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_whole),
	        cmocka_unit_test(test_print),
	        cmocka_unit_test(test_foreign),
	        cmocka_unit_test(test_wrong),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_directory),
	        cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
