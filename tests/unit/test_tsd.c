/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-specific data of this process itself, by what its C library's file says. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>

#include "unit.h"

#include "binary/image.h"
#include "symbols/tsd.h"

#define KEYS 70 /* more than one block of glibc */

static struct image *c_library(void)
{
	struct image *img;
	Dl_info info;

	assert_true(dladdr((void *)pthread_getspecific, &info));
	assert_null(image_open(open(info.dli_fname, O_RDONLY | O_CLOEXEC), info.dli_fname, &img));
	return img;
}

static u64 word(u64 at)
{
	return *(const u64 *)at;
}

static void test_values(void **state)
{
	struct image *img = c_library();
	pthread_key_t keys[KEYS];
	struct tsd_way way;

	for (u32 i = 0; i < KEYS; i++) {
		assert_int_equal(pthread_key_create(&keys[i], NULL), 0);
		assert_int_equal(pthread_setspecific(keys[i], (void *)(0x1000ul + i)), 0);
	}
	for (u32 i = 0; i < KEYS; i++) {
		assert_true(tsd_find(img, keys[i], &way));
		assert_int_equal(word(word((u64)pthread_self() + way.via) + way.slot), 0x1000 + i);
	}
	assert_false(tsd_find(img, TSD_KEYS_MAX, &way));
	image_put(img);
}

static void test_other_file(void **state)
{
	struct image *img;
	struct tsd_way way;

	assert_null(image_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "self", &img));
	assert_false(tsd_find(img, 1, &way));
	image_put(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_other_file)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
