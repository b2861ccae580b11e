/* SPDX-License-Identifier: Apache-2.0 */
/* That a file's .debug_aranges names all its units is found once, kept for the next run, and only said if it is so. */
#include "inlines_fake.h"

#include <dirent.h>

#include "cfi/cfi_search_cache.h"
#include "work_dir.h"

#define NAMED   0x1020 /* in the first unit, which .debug_aranges names */
#define SECOND  0x3005 /* in the second one */
#define NOWHERE 0x9000 /* as _start() */

static struct bytes aranges;

static void put_aranges(u64 unit, u64 low, u64 size)
{
	put32(&aranges, 44);
	put16(&aranges, 2);
	put32(&aranges, (u32)unit);
	put8(&aranges, 8);
	put8(&aranges, 0);
	put32(&aranges, 0);
	put64(&aranges, low);
	put64(&aranges, size);
	put64(&aranges, 0);
	put64(&aranges, 0);
}

/* Two units; what .debug_aranges says of the second one depends on all. */
static void make(bool all)
{
	u32 second;

	aranges.n = 0;
	put_aranges(make_nested(4), 0x1000, 0x200);
	second = start_unit(4, 0x3000, 0x100);
	put_outer("second", 5, 0x3000, 0x100);
	put8(&info, 0);
	end_unit(second);
	if (all)
		put_aranges(second, 0x3000, 0x100);
}

static struct inlines *open_file(struct image **img)
{
	struct inlines *in = NULL;

	elf_start(&file);
	elf_section(&file, ".debug_info", SHT_PROGBITS, 0, info.at, info.n);
	elf_section(&file, ".debug_abbrev", SHT_PROGBITS, 0, abbrevs.at, abbrevs.n);
	elf_section(&file, ".debug_aranges", SHT_PROGBITS, 0, aranges.at, aranges.n);
	elf_finish(&file, true);
	assert_null(image_from_memory(elf_copy(&file), file.n, "made", img));
	memcpy((*img)->build_id, "\1\2\3\4", 4);
	(*img)->build_id_len = 4;
	(*img)->cache_dir = dir;
	(*img)->size = SEARCH_FILE_MIN;
	assert_null(inlines_open(*img, "", &in));
	assert_non_null(in);
	return in;
}

/* Is there anything about it in a run of its own? */
static bool known_at(u64 addr, u64 before)
{
	const struct inline_frame *f;
	struct image *img;
	struct inlines *in = open_file(&img);
	u32 n;

	if (before)
		assert_null(inlines_find(in, before, &f, &n));
	assert_null(inlines_find(in, addr, &f, &n));
	inlines_close(in);
	image_put(img);
	return n;
}

static u32 kept(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	u32 n = 0;

	while ((entry = readdir(d)))
		n += *entry->d_name != '.';
	closedir(d);
	return n;
}

static void test_a_unit_is_not_named(void **state)
{
	make(false);
	for (u32 i = 0; i < 2; i++) {
		assert_true(known_at(NAMED, 0));
		assert_false(known_at(NOWHERE, 0));
		assert_true(known_at(SECOND, NOWHERE));
	}
	assert_int_equal(kept(), 0);
}

static void test_a_unit_is_corrupt(void **state)
{
	make(true);
	info.n -= 5;
	assert_false(known_at(NOWHERE, 0));
	assert_int_equal(kept(), 0);
}

static void test_all_are_named(void **state)
{
	make(true);
	assert_true(known_at(SECOND, 0));
	assert_int_equal(kept(), 0); /* nothing had to be read */
	assert_false(known_at(NOWHERE, 0));
	assert_int_equal(kept(), 1);
	assert_false(known_at(NOWHERE, 0));
	assert_true(known_at(SECOND, NOWHERE));
	memset(aranges.at + 48 + 16, 0, 16); /* the next run believes what was kept: it names no other unit now */
	assert_false(known_at(SECOND, NOWHERE));
	aranges.n = 48; /* but not of a file whose sections differ */
	assert_true(known_at(SECOND, NOWHERE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_a_unit_is_not_named),
	        cmocka_unit_test(test_a_unit_is_corrupt),
	        cmocka_unit_test(test_all_are_named),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
