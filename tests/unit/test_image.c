/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "elf_file.h"
#include "unwind/binary/image.h"

static struct elf_file file;

static void make(void)
{
	elf_start(&file);
	elf_build_id(&file, "0123456789abcdef", 16);
	elf_section(&file, ".data", SHT_PROGBITS, SHF_ALLOC, "some data", 9);
	file.entry = ELF_TEXT + 8;
	elf_finish(&file, true);
}

/* The bytes as a file that is open. */
static int as_fd(const void *bytes, size_t n)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	return fd;
}

/* By both ways; both must say the same. */
static void refuse(enum error_kind kind, const char *words)
{
	struct image *img = NULL;
	struct error *err[2] = {image_from_memory(elf_copy(&file), file.n, "/some/file", &img),
	        image_open(as_fd(file.at, file.n), "/some/file", &img)};

	for (int i = 0; i < 2; i++) {
		assert_non_null(err[i]);
		assert_int_equal(err[i]->kind, kind);
		assert_non_null(strstr(err[i]->message, "/some/file: "));
		assert_non_null(strstr(err[i]->message, words));
		error_free(err[i]);
	}
	assert_null(img);
}

static void check(struct image *img)
{
	Elf_Data *data;
	u64 addr = 0;
	char buf[9];

	assert_int_equal(img->type, ET_DYN);
	assert_int_equal(img->entry, ELF_TEXT + 8);
	assert_int_equal(img->build_id_len, 16);
	assert_memory_equal(img->build_id, "0123456789abcdef", 16);
	assert_int_equal(img->nsegments, 2);
	assert_int_equal(img->segments[0].flags, PF_R | PF_X);
	assert_int_equal(img->segments[1].filesz, file.n - ELF_TEXT_END); /* not more than the file has */
	data = image_section(img, ".data", &addr);
	assert_non_null(data);
	assert_int_equal(data->d_size, 9);
	assert_memory_equal(data->d_buf, "some data", 9);
	assert_true(image_read(img, buf, 9, addr));
	assert_memory_equal(buf, "some data", 9);
	assert_null(image_section(img, ".dat", NULL));
	assert_false(image_read(img, buf, 9, file.n - 8));
	assert_true(image_read(img, buf, 8, file.n - 8));
	assert_false(image_read(img, buf, 1, 0));
	assert_false(image_read(img, buf, 1, UINT64_MAX));
}

static void test_open(void **state)
{
	struct image *img;

	make();
	assert_null(image_open(as_fd(file.at, file.n), "x", &img));
	check(img);
	assert_ptr_equal(image_get(img), img);
	image_put(img);
	check(img);
	image_put(img);
	image_put(NULL);
	assert_null(image_from_memory(elf_copy(&file), file.n, "x", &img));
	check(img);
	image_put(img);
}

static void test_not_elf(void **state)
{
	memset(&file, 0, sizeof(file));
	file.n = 4096;
	refuse(ERROR_INPUT, "not an ELF file");
	file.n = 0;
	refuse(ERROR_INPUT, "not an ELF file");
	memcpy(file.at, "#!/bin/sh\nexit 0\n", 17);
	file.n = 17;
	refuse(ERROR_INPUT, "not an ELF file");
}

static void test_truncated(void **state)
{
	size_t whole;

	make();
	whole = file.n;
	for (file.n = 0; file.n < 16; file.n++)
		refuse(ERROR_INPUT, "not an ELF file");
	for (; file.n < sizeof(Elf64_Ehdr); file.n++)
		refuse(ERROR_INPUT, "cut off");
	for (; file.n < sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr); file.n++)
		refuse(ERROR_INPUT, "program headers");
	for (; file.n < whole; file.n += 7) { /* without its section headers, at their end; not refused */
		struct image *img;
		char byte;

		assert_null(image_open(as_fd(file.at, file.n), "x", &img));
		assert_null(image_section(img, ".eh_frame", NULL));
		assert_false(image_read(img, &byte, 1, file.n));
		image_put(img);
	}
}

static void test_foreign(void **state)
{
	static const struct {
		u16 machine;
		const char *name;
	} machines[] = {{EM_AARCH64, "aarch64"}, {EM_386, "i386"}, {EM_RISCV, "riscv"}, {0x7777, "30583"}};

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		make();
		elf_header(&file)->e_machine = machines[i].machine;
		refuse(ERROR_UNSUPPORTED, machines[i].name);
	}
	make();
	elf_header(&file)->e_ident[EI_CLASS] = ELFCLASS32;
	refuse(ERROR_UNSUPPORTED, "32-bit");
	elf_header(&file)->e_ident[EI_CLASS] = 9;
	refuse(ERROR_INPUT, "class 9");
	make();
	elf_header(&file)->e_ident[EI_DATA] = ELFDATA2MSB;
	refuse(ERROR_UNSUPPORTED, "big-endian");
	make();
	elf_header(&file)->e_type = ET_REL;
	refuse(ERROR_UNSUPPORTED, "relocatable");
	elf_header(&file)->e_type = ET_CORE;
	refuse(ERROR_UNSUPPORTED, "core");
}

/* Broken section headers cost the sections, not the image. */
static void test_section_headers(void **state)
{
	static const u64 offsets[] = {1, UINT64_MAX, UINT64_MAX - 64, 0x7fffffffffffffff, ELF_SIZE_MAX};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct image *img;
		struct error *err;

		make();
		elf_header(&file)->e_shoff = offsets[i];
		err = image_open(as_fd(file.at, file.n), "x", &img);
		assert_null(err);
		assert_null(image_section(img, ".data", NULL));
		assert_int_equal(img->build_id_len, 16);
		image_put(img);
		assert_null(image_from_memory(elf_copy(&file), file.n, "x", &img));
		assert_null(image_section(img, ".data", NULL));
		image_put(img);
	}
}

static Elf64_Shdr *section(u32 i)
{
	return (Elf64_Shdr *)(file.at + elf_header(&file)->e_shoff) + i;
}

/* A section that lies outside the file, has a name outside the table, no content, or is not what its flag says. */
static void test_sections(void **state)
{
	for (int i = 0; i < 7; i++) {
		struct image *img;

		make();
		section(2)->sh_offset = i == 0 ? UINT64_MAX - 4 : i == 1 ? file.n : section(2)->sh_offset;
		section(2)->sh_size = i == 2 ? UINT64_MAX / 2 : section(2)->sh_size;
		section(2)->sh_name = i == 3 ? 0x7fffffff : section(2)->sh_name;
		section(2)->sh_type = i == 4 ? SHT_NOBITS : section(2)->sh_type;
		section(2)->sh_flags = i == 5 ? SHF_COMPRESSED : section(2)->sh_flags;
		elf_header(&file)->e_shstrndx = i == 6 ? 200 : elf_header(&file)->e_shstrndx;
		assert_null(image_open(as_fd(file.at, file.n), "x", &img));
		assert_null(image_section(img, ".data", NULL));
		image_put(img);
		assert_null(image_from_memory(elf_copy(&file), file.n, "x", &img));
		assert_null(image_section(img, ".data", NULL));
		image_put(img);
	}
}

/* A pledge of gigabytes behind a few bytes */
static void test_bomb(void **state)
{
	Elf64_Chdr ch = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 1ull << 40, .ch_addralign = 1};

	for (int i = 0; i < 3; i++) {
		struct image *img;
		u8 bytes[64] = {0};

		elf_start(&file);
		memcpy(bytes, &ch, sizeof(ch));
		elf_section(&file, ".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, bytes, sizeof(bytes));
		elf_finish(&file, true);
		assert_null(image_open(as_fd(file.at, file.n), "x", &img));
		assert_null(image_section(img, ".debug_frame", NULL));
		image_put(img);
		ch.ch_size = i ? 100 : 1ull << 29;
		ch.ch_type = i ? 77 : ELFCOMPRESS_ZLIB;
	}
}

static void test_notes(void **state)
{
	for (u32 n = 0; n < 32; n++) { /* a note's length fields, one after the other too long */
		struct image *img;
		u64 at;

		elf_start(&file);
		at = elf_place(&file);
		elf_build_id(&file, "abcd", 4);
		elf_finish(&file, true);
		file.at[at + n % 12] |= 0x80;
		assert_null(image_open(as_fd(file.at, file.n), "x", &img));
		assert_int_equal(img->build_id_len, 0);
		image_put(img);
	}
}

/* The target may cut its file short at any time; reads then fail, nothing else. */
static void test_shrinks(void **state)
{
	struct image *img;
	char byte;
	int fd;

	make();
	fd = as_fd(file.at, file.n);
	assert_null(image_open(fd, "x", &img));
	assert_int_equal(ftruncate(fd, ELF_TEXT), 0);
	assert_false(image_read(img, &byte, 1, ELF_TEXT + 1));
	assert_null(image_section(img, ".data", NULL));
	image_put(img);
}

static void test_no_file(void **state)
{
	struct image *img;
	struct error *err = image_open(open("/", O_RDONLY | O_CLOEXEC), "/", &img);

	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_INPUT);
	error_free(err);
	err = image_open(-1, "gone", &img);
	assert_non_null(err);
	error_free(err);
}

/* The fd and the bytes belong to the image, also when it refuses them. */
static void test_ownership(void **state)
{
	struct image *img;
	struct error *err;
	int fd;

	make();
	fd = as_fd(file.at, 100);
	err = image_open(fd, "x", &img);
	assert_non_null(err);
	error_free(err);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	fd = as_fd(file.at, file.n);
	assert_null(image_open(fd, "x", &img));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	image_put(img);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void test_self(void **state)
{
	struct image *img;

	assert_null(image_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe", &img));
	assert_true(img->nsegments >= 2);
	assert_true(img->eh_frame_hdr_size > 0);
	assert_non_null(image_section(img, ".eh_frame", NULL));
	assert_non_null(image_section(img, ".symtab", NULL));
	image_put(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_open),
	        cmocka_unit_test(test_not_elf),
	        cmocka_unit_test(test_truncated),
	        cmocka_unit_test(test_foreign),
	        cmocka_unit_test(test_section_headers),
	        cmocka_unit_test(test_sections),
	        cmocka_unit_test(test_bomb),
	        cmocka_unit_test(test_notes),
	        cmocka_unit_test(test_shrinks),
	        cmocka_unit_test(test_no_file),
	        cmocka_unit_test(test_ownership),
	        cmocka_unit_test(test_self),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
