/* SPDX-License-Identifier: Apache-2.0 */
/* Debug files by libdebuginfod, from a directory (file://) that is laid out as a server answers; e2e has real servers.
 */
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "work_dir.h"
#include "unwind/symbols/debuginfod.h"
#include "unwind/symbols/inlines.h"
#include "unwind/symbols/symbols.h"

#define ID "00112233445566778899aabbccddeeff00112233"

static struct image *open_image(const char *name)
{
	struct image *img = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(symbols_load(img, ""));
	return img;
}

static int make_files(void **state)
{
	char url[300];

	assert_int_equal(make_dir(state), 0);
	run("printf 'static __attribute__((noinline)) int f(int x) { return x * 3; }\\nint g(int x) { return f(x) + 1; "
	    "}\\n' >p.c");
	run("gcc -shared -fPIC -O2 -g -Wl,--build-id=0x" ID " -o whole p.c && strip -o bare whole");
	run("gcc -shared -fPIC -O2 -g -Wl,--build-id=0xabcd" ID
	    " -o other p.c && gcc -shared -fPIC -Wl,--build-id=none -o none p.c");
	run("mkdir -p served/buildid/" ID " cache && cp whole served/buildid/" ID "/debuginfo");
	snprintf(url, sizeof(url), "file://%s/served", dir);
	setenv("DEBUGINFOD_URLS", url, 1);
	return 0;
}

/* What the client kept of an earlier test is not its answer to the next one. */
static int forget(void **state)
{
	static u32 n;
	char path[300];

	snprintf(path, sizeof(path), "%s/cache/%u", dir, n++);
	return setenv("DEBUGINFOD_CACHE_PATH", path, 1);
}

static struct debuginfod *create(void)
{
	struct debuginfod *d = NULL;

	assert_null(debuginfod_create(&d));
	return d;
}

static void expect_error(struct error *err, const char *text)
{
	assert_non_null(err);
	if (!strstr(err->message, text))
		fail_msg("%s", err->message);
	error_free(err);
}

static void test_found(void **state)
{
	struct image *img = open_image("bare"), *whole = open_image("whole"), *debug = NULL;
	struct debuginfod *d = create();
	struct inlines *in = NULL;
	struct symbol f, found;

	assert_true(symbols_lookup(whole, "f", &f));
	assert_false(symbols_find(img, f.start, &found) && !strcmp(found.name, "f"));
	assert_null(debuginfod_find(d, img, NULL, &debug));
	assert_non_null(debug);
	symbols_use_debug(img, debug);
	assert_true(symbols_find(img, f.start, &found));
	assert_string_equal(found.name, "f");
	assert_true(symbols_lookup(img, "g", &found));
	assert_true(symbols_find(img, found.start, &found));
	assert_string_equal(found.name, "g");
	assert_null(inlines_open_debug(debug, "", &in));
	assert_non_null(in);
	inlines_close(in);
	image_put(debug);
	image_put(img);
	image_put(whole);
	debuginfod_destroy(d);
}

/* Its own .symtab is the last word. */
static void test_own_symbols_stay(void **state)
{
	struct image *whole = open_image("whole"), *other = open_image("other");
	struct symbol f, found;

	assert_true(symbols_lookup(whole, "f", &f));
	assert_true(symbols_find(whole, f.start, &f));
	symbols_use_debug(whole, other);
	assert_true(symbols_find(whole, f.start, &found));
	assert_ptr_equal(f.name, found.name);
	image_put(whole);
	image_put(other);
}

static void test_missing(void **state)
{
	struct image *img = open_image("other"), *bare = open_image("bare"), *debug = NULL;
	struct debuginfod *d = create();

	assert_null(debuginfod_find(d, img, NULL, &debug));
	assert_null(debug);
	assert_null(debuginfod_find(d, bare, NULL, &debug));
	assert_non_null(debug);
	image_put(debug);
	image_put(img);
	image_put(bare);
	debuginfod_destroy(d);
}

static void test_another_build(void **state)
{
	struct image *img = open_image("bare"), *debug = NULL;
	struct debuginfod *d = create();

	run("cp other served/buildid/" ID "/debuginfo");
	expect_error(debuginfod_find(d, img, NULL, &debug), "another build");
	assert_null(debug);
	debuginfod_destroy(d);
	forget(NULL);
	d = create();
	run("echo no ELF file >served/buildid/" ID "/debuginfo");
	error_free(debuginfod_find(d, img, NULL, &debug));
	assert_null(debug);
	run("cp whole served/buildid/" ID "/debuginfo");
	image_put(img);
	debuginfod_destroy(d);
}

/* The error comes once; nobody is asked then. */
static void test_unreachable(void **state)
{
	struct image *img = open_image("bare"), *debug = NULL;
	char *url = strdup(getenv("DEBUGINFOD_URLS"));
	struct debuginfod *d = create();

	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	expect_error(debuginfod_find(d, img, NULL, &debug), "http://127.0.0.1:1");
	setenv("DEBUGINFOD_URLS", url, 1);
	assert_null(debuginfod_find(d, img, NULL, &debug));
	assert_null(debug);
	image_put(img);
	debuginfod_destroy(d);
	free(url);
}

static void test_serves(void **state)
{
	struct image *img = open_image("bare"), *none = open_image("none");
	char *url = strdup(getenv("DEBUGINFOD_URLS"));

	assert_true(debuginfod_serves(img));
	assert_false(debuginfod_serves(none));
	setenv("DEBUGINFOD_URLS", " ", 1);
	assert_false(debuginfod_serves(img));
	unsetenv("DEBUGINFOD_URLS");
	assert_false(debuginfod_serves(img));
	setenv("DEBUGINFOD_URLS", url, 1);
	image_put(img);
	image_put(none);
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(test_found, forget),
	        cmocka_unit_test_setup(test_own_symbols_stay, forget),
	        cmocka_unit_test_setup(test_missing, forget),
	        cmocka_unit_test_setup(test_another_build, forget),
	        cmocka_unit_test_setup(test_unreachable, forget),
	        cmocka_unit_test_setup(test_serves, forget),
	};

	return cmocka_run_group_tests(tests, make_files, remove_dir);
}
