/* SPDX-License-Identifier: Apache-2.0 */
/* Names of stripped files from where their symbols lie: debug links, build-ids, caches, .gnu_debugdata. */
#include "symbols_files.h"

#include <lzma.h>

#include "unwind/cleanup.h"

/* Every function of the unstripped file has its name in the stripped one, or (expected false) none of the hidden ones.
 */
static void expect_static(const char *stripped, const char *root, bool expected)
{
	struct image *whole = open_image("fixture", ""), *img = open_image(stripped, root);
	u64 addr = address_of(whole, "hidden_function");

	assert_string_equal(name_at(whole, addr), "hidden_function");
	assert_string_equal(name_at(img, addr), expected ? "hidden_function" : "?");
	assert_string_equal(name_at(img, address_of(whole, "shown_function")), "shown_function");
	image_put(whole);
	image_put(img);
}

static void make_fixture(const char *flags)
{
	static const char source[] =
	        "#include <vector>\n#include <algorithm>\n#include <cstdlib>\n"
	        "extern \"C\" {\n"
	        "static __attribute__((noinline)) int hidden_function(int x) { return std::rand() * x; }\n"
	        "int shown_function(int x) { return hidden_function(x) + 1; }\n}\n"
	        "int sum(std::vector<int> &v) { std::sort(v.begin(), v.end()); int s = 0;\n"
	        "	for (int x : v) s += hidden_function(x); return s; }\n";

	run("rm -rf fixture* .debug root elsewhere; mkdir .debug elsewhere");
	write_file("fixture.cc", source, sizeof(source) - 1);
	run("g++ -g -O1 -shared -fPIC %s -o fixture fixture.cc", flags);
	run("objcopy --only-keep-debug fixture fixture.debug && strip -o stripped fixture");
	run("objcopy --add-gnu-debuglink=fixture.debug stripped linked");
}

static void test_debuglink(void **state)
{
	make_fixture("-Wl,--build-id=none");
	expect_static("linked", "", true);
	expect_static("stripped", "", false);
	run("mv fixture.debug .debug");
	expect_static("linked", "", true);
	run("echo >>.debug/fixture.debug"); /* its CRC is another now */
	expect_static("linked", "", false);
	run("rm .debug/fixture.debug");
	expect_static("linked", "", false);
	run("mkfifo fixture.debug"); /* must not be waited for */
	expect_static("linked", "", false);
	run("rm fixture.debug && ln linked fixture.debug"); /* itself */
	expect_static("linked", "", false);
}

/* With build-ids on both sides they decide: distributions edit debug files behind the CRC. */
static void test_debuglink_with_build_id(void **state)
{
	make_fixture("-Wl,--build-id=0x123456789abcdef0");
	run("echo >>fixture.debug");
	expect_static("linked", "", true);
	make_fixture("-Wl,--build-id=0x123456789abcdef0");
	run("objcopy --only-keep-debug fixture fixture.debug && g++ -g -O1 -shared -fPIC -Wl,--build-id=0x11 -o "
	    "fixture "
	    "fixture.cc && objcopy --only-keep-debug fixture fixture.debug");
	expect_static("linked", "", false);
}

static void test_build_id(void **state)
{
	char root[64], nowhere[64];

	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(nowhere, sizeof(nowhere), "%s/nowhere", dir);
	make_fixture("-Wl,--build-id=0x5973796d626f6c73");
	run("mkdir -p root/usr/lib/debug/.build-id/59 && mv fixture.debug elsewhere/");
	expect_static("stripped", root, false);
	run("cp elsewhere/fixture.debug root/usr/lib/debug/.build-id/59/73796d626f6c73.debug");
	expect_static("stripped", root, true);
	expect_static("stripped", "", false);
	expect_static("stripped", nowhere, false);
	/* an absolute link is one within the root, not on the host */
	run("ln -sf $PWD/elsewhere/fixture.debug root/usr/lib/debug/.build-id/59/73796d626f6c73.debug");
	expect_static("stripped", root, false);
	run("ln -sf /elsewhere.debug root/usr/lib/debug/.build-id/59/73796d626f6c73.debug && "
	    "cp elsewhere/fixture.debug root/elsewhere.debug");
	expect_static("stripped", root, true);
	/* of another build */
	run("g++ -shared -fPIC -Wl,--build-id=0x5973796d626f6c74 -o root/elsewhere.debug fixture.cc");
	expect_static("stripped", root, false);
}

#define BUILD_ID "5973796d626f6c73"

static void expect_cached(const char *variable, const char *value, const char *folder)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, value);
	setenv(variable, path, 1);
	expect_static("stripped", "", false);
	run("mkdir -p %s/%s && cp elsewhere/fixture.debug %s/%s/debuginfo", folder, BUILD_ID, folder, BUILD_ID);
	expect_static("stripped", "", true);
	run(": >%s/%s/debuginfo", folder, BUILD_ID); /* as it is noted that no server has it */
	expect_static("stripped", "", false);
	run("cp other %s/%s/debuginfo", folder, BUILD_ID);
	expect_static("stripped", "", false);
	unsetenv(variable);
}

/* What debuginfod's client has got before, wherever it keeps that. */
static void test_debuginfod_cache(void **state)
{
	cleanup(free) char *home = strdup(getenv("HOME") ?: "/");

	make_fixture("-Wl,--build-id=0x" BUILD_ID);
	run("mv fixture.debug elsewhere/ && g++ -shared -fPIC -Wl,--build-id=0x11 -o other fixture.cc && rm -rf cache");
	expect_cached("DEBUGINFOD_CACHE_PATH", "cache/set", "cache/set");
	expect_cached("HOME", "cache/old", "cache/old/.debuginfod_client_cache");
	expect_cached("XDG_CACHE_HOME", "cache/xdg", "cache/xdg/debuginfod_client");
	expect_cached("HOME", "cache/home", "cache/home/.cache/debuginfod_client");
	setenv("HOME", home, 1);
}

static void pack(const void *bytes, size_t size)
{
	size_t room = lzma_stream_buffer_bound(size), used = 0;
	u8 *packed = malloc(room);

	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, bytes, size, packed, &used, room), LZMA_OK);
	write_file("packed", packed, used);
	free(packed);
	run("objcopy --remove-section=.gnu_debugdata stripped mini && objcopy --add-section .gnu_debugdata=packed "
	    "mini");
}

static void test_minidebug(void **state)
{
	size_t size;
	void *bytes;

	make_fixture("-Wl,--build-id=none");
	run("objcopy -S --strip-debug --keep-symbol=hidden_function fixture.debug small");
	bytes = read_whole("small", &size);
	pack(bytes, size);
	expect_static("mini", "", true);
	pack(bytes, size / 2);
	expect_static("mini", "", false);
	free(bytes);
	write_file("packed",
	        "\xfd"
	        "7zXZ\0garbage",
	        13);
	run("objcopy --add-section .gnu_debugdata=packed stripped mini");
	expect_static("mini", "", false);
	bytes = calloc(1, size = 100 << 20); /* a bomb: 100 MB in 15 KB */
	pack(bytes, size);
	free(bytes);
	expect_static("mini", "", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_debuglink),
	        cmocka_unit_test(test_debuglink_with_build_id),
	        cmocka_unit_test(test_build_id),
	        cmocka_unit_test(test_debuginfod_cache),
	        cmocka_unit_test(test_minidebug),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
