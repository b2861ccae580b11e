/* SPDX-License-Identifier: Apache-2.0 */
/* Which release of Lua a file holds, and that a large file is searched once. */
#include <fcntl.h>

#include "unit.h"

#include "cfi/cfi_search_cache.h"
#include "runtimes/lua/lua_release.h"
#include "shell.h"

static char dir[] = "/tmp/yrt-lua-release-XXXXXX";

static struct image *open_image(const char *path)
{
	struct image *img;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(image_open(fd, path, &img));
	return img;
}

/* What a search finds, "" for nothing. */
static void expect(struct image *img, const char *release)
{
	char found[LUA_RELEASE_MAX] = "";
	u64 near = 1;

	assert_int_equal(lua_release_find(img, found, &near), *release != 0);
	assert_string_equal(found, release);
	assert_int_equal(near, 0);
}

static void keep(struct image *img, const char *release, u32 n)
{
	struct search_result result = {.n = n};

	strcpy((char *)(result.values + 1), release);
	search_cache_store(img, LUA_RELEASE_SEARCH, &result);
}

/* What is kept is believed, but not if it is no release. */
static void test_searched_once(void **state)
{
	struct search_result kept;
	struct image *img;
	char path[64];

	assert_non_null(mkdtemp(dir));
	run("cp /usr/bin/lua5.4 %s/large && truncate -s 2M %s/large", dir, dir);
	snprintf(path, sizeof(path), "%s/large", dir);
	img = open_image(path);
	img->cache_dir = dir;
	assert_false(search_cache_load(img, LUA_RELEASE_SEARCH, &kept));
	expect(img, "Lua 5.4.4");
	assert_true(search_cache_load(img, LUA_RELEASE_SEARCH, &kept));
	keep(img, "Lua 5.3.1", LUA_RELEASE_VALUES);
	expect(img, "Lua 5.3.1");
	keep(img, "", 0);
	expect(img, "");
	keep(img, "Lua 5.3.1", 2);
	expect(img, "Lua 5.4.4");
	keep(img, "Lua 5.3.1 and more, up to the end", LUA_RELEASE_VALUES);
	expect(img, "Lua 5.4.4");
	image_put(img);
	run("rm -r %s", dir);
}

/* Most files have no such text, and nothing is kept of them. */
static void test_file_without_lua(void **state)
{
	struct image *img = open_image("/lib/x86_64-linux-gnu/libc.so.6");

	expect(img, "");
	image_put(img);
}

/* Without lua_ident the code of luaopen_base() tells the series, in files at fixed addresses, too. */
static void test_by_code(void **state)
{
	static const char *const how[] = {"-fPIE -pie", "-fno-pie -no-pie"};

	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (u32 i = 0; i < sizeof(how) / sizeof(*how); i++) {
		char found[LUA_RELEASE_MAX] = "", path[64];
		struct image *img;
		u64 near = 0;

		run("echo 'int puts(const char *); int main(void) { return puts(\"Lua 5.3\") + puts(\"_VERSION\"); }' "
		    "| "
		    "gcc -O1 %s -xc -o %s/host -",
		        how[i], dir);
		snprintf(path, sizeof(path), "%s/host", dir);
		img = open_image(path);
		assert_true(lua_release_find(img, found, &near));
		assert_string_equal(found, "Lua 5.3.6");
		assert_int_not_equal(near, 0);
		image_put(img);
	}
	run("rm -r %s", dir);
}

/* A program that exports nothing does not name lua_newstate(): where Lua is shows the code. */
static void test_near(void **state)
{
	char path[64], found[LUA_RELEASE_MAX] = "";
	struct image *img;
	u64 near = 0;

	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	run("sed s/lua_newstate/lua_oldstate/g /usr/bin/lua5.4 > %s/unnamed", dir);
	snprintf(path, sizeof(path), "%s/unnamed", dir);
	img = open_image(path);
	assert_true(lua_release_find(img, found, &near));
	assert_true(!strncmp(found, "Lua 5.4.", 8));
	assert_int_not_equal(near, 0);
	image_put(img);
	run("rm -r %s", dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_searched_once),
	        cmocka_unit_test(test_file_without_lua),
	        cmocka_unit_test(test_by_code),
	        cmocka_unit_test(test_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
