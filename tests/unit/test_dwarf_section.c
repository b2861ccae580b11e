/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed sections of debug information: whole, damaged, and larger than what is kept of one. */
#include <stdlib.h>
#include <zlib.h>

#include "inlines_fake.h"
#include "unwind/dwarf/section.h"

/* content compressed as SHF_COMPRESSED says; the result is malloc'd. */
static u8 *compressed(const u8 *content, size_t size, size_t *ret)
{
	uLongf room = compressBound(size);
	u8 *out = malloc(sizeof(Elf64_Chdr) + room);

	assert_non_null(out);
	memcpy(out, &(Elf64_Chdr){.ch_type = ELFCOMPRESS_ZLIB, .ch_size = size, .ch_addralign = 1}, sizeof(Elf64_Chdr));
	assert_int_equal(compress2(out + sizeof(Elf64_Chdr), &room, content, size, 1), Z_OK);
	*ret = sizeof(Elf64_Chdr) + room;
	return out;
}

static void test_compressed(void **state)
{
	struct image *img;
	struct inlines *in;
	size_t n;
	u8 *packed;

	make_nested(4);
	packed = compressed(info.at, info.n, &n);
	in = open_with(packed, n, SHF_COMPRESSED, false, &img);
	assert_non_null(in);
	assert_string_equal(chain_at(in, 0x1030), "middle /src/a.c:12:2|outer /src/a.c:12:5");
	inlines_close(in);
	image_put(img);
	for (size_t at = 0; at < n; at++) {
		packed[at] ^= 0x55;
		in = open_with(packed, n, SHF_COMPRESSED, false, &img);
		if (in)
			chain_at(in, 0x1030);
		inlines_close(in);
		image_put(img);
		packed[at] ^= 0x55;
	}
	free(packed);
}

#define LARGE (70ull << 20) /* more chunks than are kept, and several saved states */

static u32 content_at(u64 offset)
{
	return (u32)((offset / 4) * 2654435761u) & 0xffff;
}

static void check_section(struct dwarf_section *s, u64 offset)
{
	const u8 *p = section_need(s, offset, 4);
	u32 v;

	assert_non_null(p);
	memcpy(&v, p, 4);
	assert_int_equal(v, content_at(offset));
}

/* From start to end, from end to start, and here and there; with a thread that unpacks ahead and without. */
static void check_walks(struct image *img, bool sequential)
{
	struct dwarf_section s;

	section_open(&s, img, ".debug_info");
	assert_int_equal(s.size, LARGE);
	if (sequential)
		section_sequential(&s);
	for (u64 at = 0; at < LARGE; at += 1 << 18)
		check_section(&s, at);
	for (u64 at = LARGE - 4; at > 5 << 20; at -= 5 << 20)
		check_section(&s, at);
	srandom(1);
	for (u32 i = 0; i < 30; i++)
		check_section(&s, (u64)random() % (LARGE / 4) * 4);
	assert_true(s.present <= SECTION_WIDE + 1);
	assert_null(section_need(&s, LARGE - 2, 4));
	assert_null(section_need(&s, UINT64_MAX, 1));
	section_rest(&s);
	assert_int_equal(s.present, 0);
	check_section(&s, 0);
	section_close(&s);
}

static void test_large_section(void **state)
{
	u32 *content = malloc(LARGE);
	struct image *img;
	size_t n;
	u8 *packed, *whole;

	assert_non_null(content);
	for (u64 at = 0; at < LARGE; at += 4)
		content[at / 4] = content_at(at);
	packed = compressed((u8 *)content, LARGE, &n);
	elf_start(&file);
	elf_section(&file, ".debug_info", SHT_PROGBITS, SHF_COMPRESSED, "x", 1);
	file.sh[1].sh_size = n;
	file.sh[1].sh_offset = ELF_SIZE_MAX;
	elf_finish(&file, true);
	whole = calloc(1, ELF_SIZE_MAX + n);
	assert_non_null(whole);
	memcpy(whole, file.at, file.n);
	memcpy(whole + ELF_SIZE_MAX, packed, n);
	assert_null(image_from_memory(whole, ELF_SIZE_MAX + n, "large", &img));
	check_walks(img, false);
	check_walks(img, true);
	image_put(img);
	free(packed);
	free(content);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_compressed),
	        cmocka_unit_test(test_large_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
