/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's virtual tables: a file that has them, and hostile ones: cut off, lying, in circles. */
#include "unit.h"

#include "elf_file.h"
#include "probes/request/request.h"
#include "probes/request/request_envoy.h"

#define STREAM_NAME  "N5Envoy4Http21ConnectionManagerImpl12ActiveStreamE"
#define MANAGER_NAME "N5Envoy4Http21ConnectionManagerImplE"
#define DECODER_NAME "N5Envoy4Http14RequestDecoderE"
#define HEADERS_NAME "N5Envoy4Http20RequestHeaderMapImplE"
#define DECODER_AT   0x18u /* in a stream */
#define HEADERS_AT   0x10u /* of what lies in front of them */
#define FUNCTIONS    24u
#define ROUNDS       20000

static struct elf_file file;
static u64 rodata, data; /* where they lie */
static struct bytes words;

static u64 here(void)
{
	return data + words.n;
}

/* A type without bases. */
static u64 put_type(u64 name)
{
	u64 ret = here();

	put64(&words, 0x77);
	put64(&words, name);
	return ret;
}

/* Returns where its functions are; the first one is first. */
static u64 put_table(u64 top, u64 type, u64 first)
{
	put64(&words, top);
	put64(&words, type);
	for (u64 i = 0; i < FUNCTIONS; i++)
		put64(&words, first + 16 * i);
	return here() - 8 * FUNCTIONS;
}

struct made {
	u64 stream, returned; /* tables */
};

static struct made make(void)
{
	static const char names[] = "\0" STREAM_NAME "\0" MANAGER_NAME "\0" DECODER_NAME "\0" HEADERS_NAME;
	u64 stream, manager, decoder, headers, name;
	struct made ret;

	elf_start(&file);
	words.n = 0;
	elf_section(&file, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, "", 0);
	file.sh[1].sh_addr = file.sh[1].sh_offset = ELF_TEXT;
	file.sh[1].sh_size = ELF_TEXT_END - ELF_TEXT;
	rodata = elf_section(&file, ".rodata", SHT_PROGBITS, SHF_ALLOC, names, sizeof(names));
	data = elf_place(&file);
	name = rodata + 1;
	decoder = put_type(name + sizeof(STREAM_NAME) + sizeof(MANAGER_NAME));
	stream = put_type(name);
	put64(&words, 1ull << 32);
	put64(&words, decoder);
	put64(&words, DECODER_AT << 8 | 2);
	manager = put_type(name + sizeof(STREAM_NAME));
	headers = put_type(name + sizeof(STREAM_NAME) + sizeof(MANAGER_NAME) + sizeof(DECODER_NAME));
	ret.stream = put_table(0, stream, ELF_TEXT);
	ret.returned = put_table(-(u64)DECODER_AT, stream, ELF_TEXT + 0x400);
	put_table(0, manager, ELF_TEXT + 0x800);
	put_table(0, headers, ELF_TEXT + 0xc00);
	put_table(-(u64)HEADERS_AT, headers, ELF_TEXT + 0xe00);
	assert_int_equal(
	        elf_section(&file, ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, words.at, words.n), data);
	elf_finish(&file, true);
	return ret;
}

/* What is found lies in code, and is not more than there is room for. Returns how many. */
static u32 find(struct request_envoy *e)
{
	struct image *img;
	struct error *err = image_from_memory(elf_copy(&file), file.n, "envoy", &img);

	if (err) {
		error_free(err);
		return 0;
	}
	err = request_envoy_find(img, e);
	assert_true(e->n <= REQUEST_ENVOY_MAX);
	assert_true(!err || (err->kind == ERROR_UNSUPPORTED && err->hint));
	image_put(img);
	if (!err)
		return e->n;
	error_free(err);
	return 0;
}

static void found(void **state)
{
	struct made made = make();
	struct request_envoy e;

	assert_int_equal(find(&e), 10);
	assert_int_equal(e.place[0].addr, ELF_TEXT + 16 * 8);
	assert_int_equal(e.place[0].table, made.stream);
	assert_int_equal(e.place[0].cookie, REQUEST_ENVOY | REQUEST_RUNS | 1u << REQUEST_ARG);
	assert_int_equal(e.place[8].addr, ELF_TEXT + 16);
	assert_int_equal(e.place[8].cookie >> REQUEST_OFFSET, HEADERS_AT);
	assert_int_equal(e.place[9].addr, ELF_TEXT + 0x800 + 16 * 7);
	assert_int_equal(e.place[9].table, made.returned);
	assert_int_equal(e.place[9].cookie >> REQUEST_OFFSET, DECODER_AT);
}

/* Without any one of them: an error, or, without the name of a stream, no Envoy. */
static void damaged(void **state)
{
	static const char *const names[] = {STREAM_NAME, MANAGER_NAME, DECODER_NAME, HEADERS_NAME};
	struct request_envoy e;

	for (u32 i = 0; i < 4; i++) {
		make();
		*(u8 *)memmem(file.at, file.n, names[i], strlen(names[i]) + 1) = 'X';
		assert_int_equal(find(&e), 0);
	}
}

static void cut_off(void **state)
{
	struct request_envoy e;
	size_t n;

	make();
	n = file.n;
	for (file.n = 0; file.n < n; file.n += file.n < rodata ? 256 : 1)
		assert_int_equal(find(&e), 0);
}

static const u64 lies[] = {0, 1, 7, 8, 0xffffffff, 1ull << 60, 1ull << 63, -1ull, -8ull, -16ull, -4096ull};

/* Each word of the tables: also each address of them, so that they lead to each other. */
static void lying_words(void **state)
{
	struct request_envoy e;

	make();
	for (u64 at = data; at < data + words.n; at += 8) {
		u64 was;

		memcpy(&was, file.at + at, 8);
		for (u32 i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
			memcpy(file.at + at, &lies[i], 8);
			find(&e);
		}
		for (u64 to = data; to < data + 128; to += 8) {
			memcpy(file.at + at, &to, 8);
			find(&e);
		}
		memcpy(file.at + at, &was, 8);
	}
	assert_int_equal(find(&e), 10);
}

/* Each field of the sections' headers; sections at the end of all addresses. */
static void lying_sections(void **state)
{
	struct request_envoy e;
	Elf64_Shdr *sh;

	make();
	for (u32 i = 0; i < file.nsh; i++)
		for (u32 k = 0; k < sizeof(Elf64_Shdr) / 8; k++)
			for (u32 n = 0; n < sizeof(lies) / sizeof(*lies); n++) {
				make();
				sh = (Elf64_Shdr *)(file.at + elf_header(&file)->e_shoff) + i;
				memcpy((u8 *)sh + 8 * k, &lies[n], 8);
				find(&e);
			}
}

/* The tables' addresses go past the last one, and on at 0: there a type is found again and again. */
static void around(void **state)
{
	struct request_envoy e;
	Elf64_Shdr *sh;

	for (u32 before = 16; before < 256; before += 8) {
		u64 type = -(u64)before, name = rodata + 1, none = 0;

		make();
		sh = (Elf64_Shdr *)(file.at + elf_header(&file)->e_shoff) + 3;
		sh->sh_addr = type;
		for (u64 n = 0; n + 8 <= words.n; n += 8)
			memcpy(file.at + data + n, n == 8 ? &name : n == before ? &none : &type, 8);
		assert_int_equal(find(&e), 0);
	}
}

static void random_bytes(void **state)
{
	struct request_envoy e;

	srand(45);
	for (u32 i = 0; i < ROUNDS; i++) {
		make();
		for (u32 k = 0; k < 1 + i % 8; k++)
			file.at[rodata + (u32)rand() % (file.n - rodata)] = (u8)rand();
		find(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(found),
	        cmocka_unit_test(damaged),
	        cmocka_unit_test(cut_off),
	        cmocka_unit_test(lying_words),
	        cmocka_unit_test(lying_sections),
	        cmocka_unit_test(around),
	        cmocka_unit_test(random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
