/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of allocators found by their code, in Debian's libraries, whose symbols say what they are. */
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probes/object/alloc_nameless.h"
#include "unwind/cfi/cfi.h"
#include "unwind/symbols/symbols.h"

#define LIBS "/usr/lib/x86_64-linux-gnu/"

static struct image *load(const char *path)
{
	struct image *img;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(symbols_load(img, ""));
	assert_null(cfi_load(img, NULL, &img->cfi));
	return img;
}

static void check(struct image *img, const struct alloc_functions *f, const char *name, enum alloc_shape shape)
{
	struct symbol sym;

	assert_true(symbols_lookup(img, name, &sym));
	for (u32 i = 0; i < f->n; i++)
		if (f->of[i].addr == sym.start) {
			if (f->of[i].shape != shape)
				fail_msg("%s has shape %d", name, f->of[i].shape);
			return;
		}
	fail_msg("%s is not found", name);
}

static void test_jemalloc(void **state)
{
	static struct alloc_functions f;
	struct image *img = load(LIBS "libjemalloc.so.2");

	alloc_nameless_find(img, ALLOC_NAMELESS_JEMALLOC, &f);
	check(img, &f, "malloc", ALLOC_SIZE_1);
	check(img, &f, "mallocx", ALLOC_SIZE_1);
	check(img, &f, "calloc", ALLOC_SIZE_PRODUCT);
	check(img, &f, "realloc", ALLOC_RESIZE);
	check(img, &f, "free", ALLOC_FREE);
	check(img, &f, "sdallocx", ALLOC_FREE);
	image_put(img);
}

static void test_mimalloc(void **state)
{
	static struct alloc_functions f;
	struct image *img = load(LIBS "libmimalloc.so.2");

	alloc_nameless_find(img, ALLOC_NAMELESS_MIMALLOC, &f);
	check(img, &f, "mi_malloc", ALLOC_SIZE_1);
	check(img, &f, "mi_heap_malloc", ALLOC_SIZE_2);
	check(img, &f, "mi_calloc", ALLOC_SIZE_PRODUCT);
	check(img, &f, "mi_free", ALLOC_FREE);
	image_put(img);
}

/* Code of other programs has none. */
static void test_others(void **state)
{
	static const char *const paths[] = {LIBS "libc.so.6", LIBS "libtcmalloc.so.4", "/proc/self/exe"};
	static struct alloc_functions f;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct image *img = load(paths[i]);

		for (u32 kind = 0; kind < ALLOC_NAMELESS_KINDS; kind++) {
			alloc_nameless_find(img, (enum alloc_nameless)kind, &f);
			assert_int_equal(f.n, 0);
		}
		image_put(img);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_jemalloc), cmocka_unit_test(test_mimalloc), cmocka_unit_test(test_others)};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
