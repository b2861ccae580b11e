/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions in C by their tables of luaL_Reg in a stripped module, against its symbols before it was stripped.
 */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "binary/image.h"
#include "runtimes/lua/lua_image.h"
#include "symbols/c_names.h"
#include "shell.h"

static char dir[] = "/tmp/yrt-lua-names-XXXXXX";

/* What lauxlib.h declares, for the one module here. */
static const char source[] =
        "typedef struct { const char *name; int (*func)(void *); } luaL_Reg;\n"
        "extern void lua_settop(void *, int), luaL_setfuncs(void *, const luaL_Reg *, int);\n"
        "#define F(f) __attribute__((noinline)) static int f(void *l) { lua_settop(l, (int)(long)f); return 1; }\n"
        "F(encode) F(decode) F(gc) F(again) F(alone) F(wrong) F(endless) F(open)\n"
        "static const luaL_Reg functions[] = {{\"encode\", encode}, {\"decode\", decode}, {\"pi\", 0}, {\"again\", "
        "again}, {0, 0}};\n"
        "static const luaL_Reg methods[] = {{\"__gc\", gc}, {0, 0}};\n"
        "const luaL_Reg unused[] = {{\"alone\", alone}, {\"again\", again}, {0, 0}};\n"
        "const luaL_Reg spaces[] = {{\"no name\", wrong}, {0, 0}}, digits[] = {{\"1st\", wrong}, {0, 0}}, data[] = "
        "{{\"text\", (void *)spaces}, {0, 0}};\n"
        "const luaL_Reg places[] = {{\"only\", 0}, {\"places\", 0}, {0, 0}};\n"
        "const luaL_Reg no_end[6000] = {[0 ... 5999] = {\"endless\", endless}};\n"
        "int luaopen_pack_mod(void *l) { luaL_setfuncs(l, functions, 0); luaL_setfuncs(l, methods, 0); return 1; }\n"
        "int luaopen_base(void *l) { luaL_setfuncs(l, unused, 0); return open(l); }\n";

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
	run("cd %s && cc -O1 -w -fno-ipa-icf -shared -fPIC -o mod.so mod.c && strip -o stripped.so mod.so && nm mod.so "
	    "> nm",
	        dir);
	run("cd %s && sed s/lua_settop/other/ mod.c > other.c && cc -O1 -w -shared -fPIC -o other.so other.c", dir);
	return 0;
}

static int teardown(void **state)
{
	run("rm -r %s", dir);
	return 0;
}

static struct c_names names_of(const char *file)
{
	struct c_names names = {0};
	struct image *img;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(lua_c_names(img, &names));
	c_names_sort(&names);
	image_put(img);
	return names;
}

static u64 address_of(const char *symbol)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/nm", dir);
	return address_in(path, symbol);
}

static void test_module(void **state)
{
	struct c_names names = names_of("stripped.so");

	assert_string_equal(c_names_find(&names, address_of("encode")), "pack.mod.encode");
	assert_string_equal(c_names_find(&names, address_of("decode")), "pack.mod.decode");
	assert_string_equal(c_names_find(&names, address_of("gc")), "pack.mod.__gc");
	assert_string_equal(c_names_find(&names, address_of("again")), "pack.mod.again");
	assert_string_equal(c_names_find(&names, address_of("alone")), "alone");
	assert_null(c_names_find(&names, address_of("wrong")));
	assert_null(c_names_find(&names, address_of("open")));
	c_names_free(&names);
}

static void test_file_without_lua(void **state)
{
	struct c_names names = names_of("other.so");

	assert_int_equal(names.n, 0);
	c_names_free(&names);
}

/* Whatever its data says: it ends, and names lie in code. */
static void test_hostile(void **state)
{
	u64 random = 1;

	for (u32 round = 0; round < 200; round++) {
		struct c_names names = {0};
		struct image *img = NULL;
		struct error *err;
		char path[256];
		off_t size;
		u8 *bytes;
		int fd;

		snprintf(path, sizeof(path), "%s/stripped.so", dir);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		size = lseek(fd, 0, SEEK_END);
		bytes = malloc((size_t)size);
		assert_int_equal(pread(fd, bytes, (size_t)size, 0), size);
		close(fd);
		for (u32 i = 0; i < 64; i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			bytes[64 + (random >> 33) % ((u64)size - 64)] = (u8)(random >> 56);
		}
		err = image_from_memory(bytes, (size_t)size, "hostile", &img);
		if (!err)
			assert_null(lua_c_names(img, &names));
		error_free(err);
		c_names_free(&names);
		image_put(img);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_module),
	        cmocka_unit_test(test_file_without_lua),
	        cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
