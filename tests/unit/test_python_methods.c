/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions in C by their tables in a stripped extension module, against its symbols before it was stripped.
 */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "symbols/c_names.h"
#include "binary/image.h"
#include "runtimes/python/python_methods.h"
#include "shell.h"

static char dir[] = "/tmp/yrt-methods-XXXXXX";

/* What the headers of Python declare, for the one module here. */
static const char source[] =
        "struct method { const char *name; void *(*function)(void); int flags; const char *doc; };\n"
        "struct module { long base[5]; const char *name, *doc; long size; struct method *methods; void *rest[4]; };\n"
        "struct type { long head[3]; const char *name; void *before[25]; struct method *methods; void *rest[20]; };\n"
        "struct getset { const char *name; void *(*get)(void), *set, *doc, *closure; };\n"
        "struct slot { int number; void *value; };\n"
        "struct spec { const char *name; int basicsize, itemsize; unsigned flags; struct slot *slots; };\n"
        "extern void *PyModuleDef_Init(void *);\n"
        "#define F(f) static void *f(void) { return (void *)f; }\n"
        "F(add) F(sub) F(alone) F(append) F(of_long_name) F(wrong) F(hash) F(length) F(shared) F(multiply) F(get) "
        "F(iter) F(push) F(exec)\n"
        "static struct method functions[] = {{\"add\", add, 1, \"doc\"}, {\"sub\", sub, 0x80, 0}, {0}};\n"
        "static struct method methods[] = {{\"append\", append, 8, 0}, {\"_x1\", of_long_name, 0x83, 0}, {0}};\n"
        "static struct method slots[] = {{\"alone\", alone, 4, 0}, {0}};\n"
        "struct method *keep = slots;\n"
        "struct method no[] = {{\"no name\", wrong, 1, 0}, {\"flags\", wrong, 0x10, 0}, {\"more\", wrong, 0x1001, 0}, "
        "{0, wrong, 1, 0}};\n"
        "static struct module def = {.name = \"pack.mod\", .methods = functions};\n"
        "static void *number[36] = {[2] = multiply, [3] = shared}, *sequence[10] = {length};\n"
        "static struct getset getset[] = {{\"shape\", get}, {0}};\n"
        "struct type type = {.name = \"mod.List\", .methods = methods, .before[0] = (void *)24, .before[8] = number, "
        ".before[9] = sequence,\n"
        "	.before[11] = hash, .rest[1] = getset};\n"
        "static struct method heap[] = {{\"push\", push, 8, 0}, {0}};\n"
        "static struct slot heap_slots[] = {{62, iter}, {64, heap}, {34, shared}, {56, \"doc\"}, {0}};\n"
        "struct spec spec = {\"mod.Heap\", 32, 0, 1024, heap_slots}, bare = {\"bare\", 32, 0, 0, (struct slot[]){{62, "
        "wrong}, {0}}};\n"
        "static struct slot module_slots[] = {{2, exec}, {0}};\n"
        "struct module other = {.name = \"two\", .doc = \"word\", .rest = {module_slots}};\n"
        "void *PyInit_mod(void) { return PyModuleDef_Init(&def); }\n";

static int setup(void **state)
{
	char path[256];
	FILE *file;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/mod.c", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(source, file);
	fclose(file);
	run("cd %s && cc -O1 -fno-ipa-icf -shared -fPIC -o mod.so mod.c && strip -o stripped.so mod.so && nm mod.so > "
	    "nm",
	        dir);
	run("cd %s && sed s/PyModuleDef_Init/other_function/ mod.c > other.c && cc -O1 -shared -fPIC -o other.so "
	    "other.c",
	        dir);
	return 0;
}

static int teardown(void **state)
{
	run("rm -r %s", dir);
	return 0;
}

static struct c_names names_of(const char *path)
{
	struct c_names names = {0};
	struct image *img;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(python_methods(img, &names));
	c_names_sort(&names);
	image_put(img);
	return names;
}

static struct c_names names_in_dir(const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return names_of(path);
}

static u64 address_of(const char *symbol)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/nm", dir);
	return address_in(path, symbol);
}

static void test_module(void **state)
{
	struct c_names names = names_in_dir("stripped.so");

	assert_string_equal(c_names_find(&names, address_of("add")), "pack.mod.add");
	assert_string_equal(c_names_find(&names, address_of("sub")), "pack.mod.sub");
	assert_string_equal(c_names_find(&names, address_of("append")), "mod.List.append");
	assert_string_equal(c_names_find(&names, address_of("of_long_name")), "mod.List._x1");
	assert_string_equal(c_names_find(&names, address_of("alone")), "alone");
	assert_string_equal(c_names_find(&names, address_of("hash")), "mod.List.__hash__");
	assert_string_equal(c_names_find(&names, address_of("length")), "mod.List.__len__");
	assert_string_equal(c_names_find(&names, address_of("multiply")), "mod.List.__mul__");
	assert_string_equal(c_names_find(&names, address_of("get")), "mod.List.shape");
	assert_string_equal(c_names_find(&names, address_of("iter")), "mod.Heap.__iter__");
	assert_string_equal(c_names_find(&names, address_of("push")), "mod.Heap.push");
	assert_string_equal(c_names_find(&names, address_of("shared")), "__mod__"); /* of two types */
	assert_null(c_names_find(&names, address_of("exec")));
	assert_null(c_names_find(&names, address_of("wrong")));
	assert_null(c_names_find(&names, address_of("add") + 1));
	assert_null(c_names_find(&names, 0));
	c_names_free(&names);
}

/* The same tables in a file that has nothing to do with Python. */
static void test_other(void **state)
{
	struct c_names names = names_in_dir("other.so");

	assert_int_equal(names.n, 0);
	c_names_free(&names);
	names = names_of("/bin/sh");
	assert_int_equal(names.n, 0);
	c_names_free(&names);
}

static bool has(const struct c_names *names, const char *name)
{
	for (u32 i = 0; i < names->n; i++)
		if (!strcmp(names->list[i].name, name))
			return true;
	return false;
}

/* Debian's interpreter, which is stripped. */
static void test_interpreter(void **state)
{
	static const char *const some[] = {"builtins.sum", "time.sleep", "list.append", "dict.get", "posix.read",
	        "int.__add__", "list.__iter__", "dict.tp_dealloc", "str.__hash__", "itertools.chain.__next__"};
	struct c_names names = names_of("/usr/bin/python3");

	assert_true(names.n > 1000);
	for (u32 i = 0; i < sizeof(some) / sizeof(*some); i++)
		if (!has(&names, some[i]))
			fail_msg("no %s among %u names", some[i], names.n);
	c_names_free(&names);
}

static void test_list(void **state)
{
	struct c_names names = {0};

	c_names_sort(&names);
	assert_null(c_names_find(&names, 1));
	assert_null(c_names_add(&names, 5, "b"));
	assert_null(c_names_add(&names, 5, "long"));
	assert_null(c_names_add(&names, 5, "also"));
	assert_null(c_names_add(&names, 3, "a"));
	c_names_sort(&names);
	assert_string_equal(c_names_find(&names, 5), "also");
	assert_string_equal(c_names_find(&names, 3), "a");
	assert_null(c_names_find(&names, 4));
	c_names_free(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_module), cmocka_unit_test(test_other),
	        cmocka_unit_test(test_interpreter), cmocka_unit_test(test_list)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
