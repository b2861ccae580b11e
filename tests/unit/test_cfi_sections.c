/* SPDX-License-Identifier: Apache-2.0 */
/* Whole .eh_frame and .debug_frame, synthesised: many functions, broken entries, without section headers, compressed,
 * of a debug file. */
#include "cfi_rows.h"

#include <zlib.h>

static void test_order(void **state)
{
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();
	size_t cie = eh_put_cie(&eh, &eh_cie_default);
	struct cfi *cfi;

	put_fn(&eh, addr, cie, 0x2000, 0x10, 16);
	put_fn(&eh, addr, cie, 0x1000, 0x20, 24);
	put_fn(&eh, addr, cie, 0x1010, 0x20, 32); /* overlaps the one before */
	put_fn(&eh, addr, cie, 0x1012, 0x04, 40); /* within */
	put_fn(&eh, addr, cie, 0x1100, 0, 48);    /* empty */
	put_fn(&eh, addr, cie, 0x1030, 0x10, 32); /* adjoins, same rule */
	cfi = load_eh(&eh);
	expect(cfi, 0x1000, plain(24));
	expect(cfi, 0x101f, plain(24));
	expect(cfi, 0x1020, plain(32));
	expect(cfi, 0x103f, plain(32));
	expect_none(cfi, 0x1040);
	expect_none(cfi, 0x1100);
	expect_none(cfi, 0x1ffe);
	expect(cfi, 0x1fff, of_kind(CFI_ROOT)); /* nothing returns to 0x2000 but to a stack built by hand */
	expect(cfi, 0x2000, plain(16));
	expect_none(cfi, 0x2010);
	assert_int_equal(cfi->nfdes, 4);
	assert_int_equal(cfi->ncorrupt, 0);
	assert_int_equal(((const struct cfi_table *)cfi->pieces[0].bytes)->nrows, 3 + 15 + 1 + 1);
	cfi_destroy(cfi);
}

/* Hand-written code may begin before its FDE. What moves the stack pointer first does not. */
static void test_endbr_before(void **state)
{
	static const u8 endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();
	size_t cie = eh_put_cie(&eh, &eh_cie_default);
	struct cfi *cfi;

	memcpy(file.at + 0x2008, endbr64, sizeof(endbr64));
	memcpy(file.at + 0x2028, endbr64, sizeof(endbr64));
	put_fn(&eh, addr, cie, ELF_TEXT, 0x1000, 24);
	put_fn(&eh, addr, cie, 0x200c, 0x14, 8);
	put_fn(&eh, addr, cie, 0x202c, 0x14, 32);
	elf_section(&file, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh.at, eh.n);
	file.sh[file.nsh++] = (Elf64_Shdr){.sh_name = elf_name(&file, ".text"),
	        .sh_type = SHT_PROGBITS,
	        .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
	        .sh_addr = ELF_TEXT,
	        .sh_offset = ELF_TEXT,
	        .sh_size = ELF_TEXT_END - ELF_TEXT};
	cfi = load(true);
	expect(cfi, 0x2006, plain(24));
	expect(cfi, 0x2008, plain(8));
	expect(cfi, 0x200c, plain(8));
	expect(cfi, 0x2028, plain(8));
	expect(cfi, 0x202c, plain(32));
	assert_int_equal(cfi->fdes[1].start, 0x2008);
	assert_int_equal(cfi->fdes[2].start, 0x202c);
	cfi_destroy(cfi);
}

static void test_outside_code(void **state)
{
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();
	size_t cie = eh_put_cie(&eh, &eh_cie_default);
	struct cfi *cfi;

	put_fn(&eh, addr, cie, ELF_TEXT - 1, 0x10, 16);
	put_fn(&eh, addr, cie, ELF_TEXT_END - 1, 2, 16);
	put_fn(&eh, addr, cie, ELF_TEXT_END, 2, 16);
	put_fn(&eh, addr, cie, ELF_TEXT, 0x80000000, 16); /* negative */
	put_fn(&eh, addr, cie, ELF_TEXT_END - 2, 2, 16);
	cfi = load_eh(&eh);
	assert_int_equal(cfi->ncorrupt, 4);
	assert_int_equal(cfi->nfdes, 1);
	expect(cfi, ELF_TEXT_END - 2, plain(16));
	expect_none(cfi, ELF_TEXT_END - 3);
	cfi_destroy(cfi);
}

static void test_bad_entries(void **state)
{
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();
	size_t cie = eh_put_cie(&eh, &eh_cie_default);
	struct cfi *cfi;

	put_fn(&eh, addr, cie, 0x1000, 0x10, 16);
	put_fn(&eh, addr, cie + 4, 0x1100, 0x10, 16);       /* its CIE starts within a CIE */
	put_fn(&eh, addr, (size_t)-4096, 0x1200, 0x10, 16); /* outside the section */
	put_fn(&eh, addr, 0x20 - 8, 0x1300, 0x10, 16);      /* an FDE */
	put32(&eh, 2);                                      /* too short for an id */
	put16(&eh, 1);
	put32(&eh, 0); /* a terminator in the middle: crtend.o linked early */
	put16(&eh, 0);
	put16(&eh, 0);
	put_fn(&eh, addr, cie, 0x1400, 0x10, 16);
	put32(&eh, 0x1000); /* longer than what is left */
	put32(&eh, 0);
	cfi = load_eh(&eh);
	expect(cfi, 0x1000, plain(16));
	expect_none(cfi, 0x1100);
	expect_none(cfi, 0x1200);
	expect_none(cfi, 0x1300);
	assert_true(cfi->ncorrupt >= 5);
	cfi_destroy(cfi);
}

/* Any cut of a good section gives no more than its whole entries, and never fails. */
static void test_truncated(void **state)
{
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();
	size_t cie = eh_put_cie(&eh, &eh_cie_default), whole;

	put_fn(&eh, addr, cie, 0x1000, 0x10, 16);
	put_fn(&eh, addr, cie, 0x1010, 0x10, 24);
	whole = eh.n;
	for (size_t n = 1; n <= whole; n++) {
		struct bytes cut = eh;
		struct cfi *cfi;

		cut.n = n;
		elf_start(&file);
		cfi = load_eh(&cut);
		assert_int_equal(cfi->nfdes, n == whole ? 2 : n >= whole - 0x18 - 8 + 8 ? 1 : 0);
		cfi_destroy(cfi);
	}
}

static void put_hdr(u64 hdr, u64 eh_frame, u8 encoding)
{
	struct bytes b = {.n = 0};

	put8(&b, 1);
	put8(&b, encoding);
	put8(&b, DW_EH_PE_omit);
	put8(&b, DW_EH_PE_omit);
	if ((encoding & 0x70) == DW_EH_PE_datarel)
		eh_put_value(&b, encoding, eh_frame - hdr);
	else
		eh_put_pointer(&b, encoding, hdr, eh_frame);
	while (b.n < 16)
		put8(&b, 0);
	assert_int_equal(elf_section(&file, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, b.at, b.n), hdr);
	elf_segment(&file, PT_GNU_EH_FRAME, PF_R, hdr, b.n);
}

/* As sstrip leaves it: only the program header names .eh_frame, and only its terminator ends it. */
static void test_no_sections(void **state)
{
	static const u8 encodings[] = {
	        DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_datarel | DW_EH_PE_sdata4, DW_EH_PE_absptr};

	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct bytes eh = {.n = 0};
		u64 addr = eh_addr();

		put_fn(&eh, addr, eh_put_cie(&eh, &eh_cie_default), FN, END - FN, 16);
		put32(&eh, 0);
		put64(&eh, 0xffeeddccbbaa9988); /* what lies behind is not read */
		elf_section(&file, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh.at, eh.n);
		put_hdr(elf_place(&file), addr, encodings[i]);
		expect_only(load(false), plain(16));
	}
}

static void test_nothing(void **state)
{
	struct cfi *cfi;

	for (int i = 0; i < 4; i++) {
		u64 addr = eh_addr();

		if (i == 1)
			put_hdr(addr, 0x123456789, DW_EH_PE_absptr); /* nowhere */
		if (i == 2)
			put_hdr(addr, ELF_SIZE_MAX - 8, DW_EH_PE_absptr); /* behind the end of the file */
		if (i == 3)
			put_hdr(addr, 0, DW_EH_PE_omit);
		cfi = load(i == 0);
		assert_int_equal(cfi->npieces, 0);
		assert_int_equal(cfi->nfdes, 0);
		expect_none(cfi, FN);
		cfi_destroy(cfi);
	}
}

static void put_debug(struct bytes *b, bool dw64)
{
	struct eh_cie cie = {
	        .version = dw64 ? 4 : 3, .augmentation = "", .encoding = DW_EH_PE_absptr, .dw64 = dw64, .debug = true};
	size_t at = eh_put_cie(b, &cie);

	eh_put_fde(b, &cie, at, 0, 0, 0x40, CODE(DW_CFA_nop)); /* dropped by the linker */
	eh_put_fde(b, &cie, at, 0, FN, END - FN, CODE(DW_CFA_def_cfa_offset, 32));
}

static void test_debug_frame(void **state)
{
	for (int dw64 = 0; dw64 < 2; dw64++) {
		struct bytes debug = {.n = 0};

		eh_addr();
		put_debug(&debug, dw64);
		elf_section(&file, ".debug_frame", SHT_PROGBITS, 0, debug.at, debug.n);
		expect_only(load(true), plain(32));
	}
}

static void test_compressed_debug_frame(void **state)
{
	struct bytes debug = {.n = 0}, packed = {.n = 0};
	uLongf size = sizeof(packed.at) - sizeof(Elf64_Chdr);

	eh_addr();
	put_debug(&debug, false);
	put(&packed, &(Elf64_Chdr){.ch_type = ELFCOMPRESS_ZLIB, .ch_size = debug.n, .ch_addralign = 1},
	        sizeof(Elf64_Chdr));
	assert_int_equal(compress(packed.at + packed.n, &size, debug.at, debug.n), Z_OK);
	packed.n += size;
	elf_section(&file, ".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, packed.at, packed.n);
	expect_only(load(true), plain(32));
}

/* .debug_frame adds only where .eh_frame has nothing. */
static void test_debug_and_eh(void **state)
{
	struct eh_cie cie = {.version = 3, .augmentation = "", .encoding = DW_EH_PE_absptr, .debug = true};
	struct bytes eh = {.n = 0}, debug = {.n = 0};
	u64 addr = eh_addr();
	size_t at = eh_put_cie(&debug, &cie);
	struct cfi *cfi;

	put_fn(&eh, addr, eh_put_cie(&eh, &eh_cie_default), FN, 0x10, 16);
	put_fn(&eh, addr, 0, FN + 0x20, 0x10, 24);
	eh_put_fde(&debug, &cie, at, 0, FN, 0x10, CODE(DW_CFA_def_cfa_offset, 32));        /* known */
	eh_put_fde(&debug, &cie, at, 0, FN + 0x10, 0x10, CODE(DW_CFA_def_cfa_offset, 40)); /* new */
	eh_put_fde(&debug, &cie, at, 0, FN + 0x2f, 0x10, CODE(DW_CFA_def_cfa_offset, 48)); /* overlaps */
	eh_put_fde(&debug, &cie, at, 0, FN + 0x40, 0x10, CODE(DW_CFA_def_cfa_offset, 56)); /* new */
	elf_section(&file, ".debug_frame", SHT_PROGBITS, 0, debug.at, debug.n);
	addr = elf_place(&file);
	eh.n = 0;
	put_fn(&eh, addr, eh_put_cie(&eh, &eh_cie_default), FN, 0x10, 16);
	put_fn(&eh, addr, 0, FN + 0x20, 0x10, 24);
	cfi = load_eh(&eh);
	expect(cfi, FN, plain(16));
	expect(cfi, FN + 0x10, plain(40));
	expect(cfi, FN + 0x20, plain(24));
	expect(cfi, FN + 0x30, plain(24)); /* a gap of a few bytes goes with what is before it */
	expect(cfi, FN + 0x40, plain(56));
	assert_int_equal(cfi->nfdes, 4);
	cfi_destroy(cfi);
}

static void test_separate_debug_file(void **state)
{
	struct bytes debug = {.n = 0};
	struct cfi_options options = {0};
	struct image *img;
	struct cfi *cfi;

	eh_addr();
	put_debug(&debug, false);
	elf_section(&file, ".debug_frame", SHT_PROGBITS, 0, debug.at, debug.n);
	elf_finish(&file, true);
	assert_null(image_from_memory(elf_copy(&file), file.n, "debug", &options.debug));
	elf_start(&file);
	elf_finish(&file, true);
	assert_null(image_from_memory(elf_copy(&file), file.n, "stripped", &img));
	assert_null(cfi_load(img, &options, &cfi));
	image_put(img);
	image_put(options.debug);
	expect_only(cfi, plain(32));
}

static void test_entry(void **state)
{
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();
	struct cfi *cfi;

	put_fn(&eh, addr, eh_put_cie(&eh, &eh_cie_default), FN, END - FN, 16);
	file.entry = 0x1800;
	cfi = load_eh(&eh);
	expect(cfi, 0x1800, of_kind(CFI_ROOT));
	expect(cfi, 0x183f, of_kind(CFI_ROOT));
	expect_none(cfi, 0x1840);
	expect_none(cfi, 0x17ff);
	expect(cfi, FN, plain(16));
	assert_int_equal(cfi->nfdes, 1);
	cfi_destroy(cfi);

	elf_start(&file);
	file.entry = FN - 0x10; /* up to the function */
	cfi = load_eh(&eh);
	expect(cfi, FN - 0x10, of_kind(CFI_ROOT));
	expect(cfi, FN - 1, of_kind(CFI_ROOT));
	expect(cfi, FN, plain(16));
	cfi_destroy(cfi);

	elf_start(&file);
	file.entry = FN + 8; /* has an FDE */
	expect_only(load_eh(&eh), plain(16));

	elf_start(&file);
	file.entry = ELF_TEXT_END - 8; /* end of the code; no CFI at all */
	cfi = load(true);
	expect(cfi, ELF_TEXT_END - 8, of_kind(CFI_ROOT));
	expect(cfi, ELF_TEXT_END - 1, of_kind(CFI_ROOT));
	expect_none(cfi, ELF_TEXT_END);
	cfi_destroy(cfi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_order),
	        cmocka_unit_test(test_endbr_before),
	        cmocka_unit_test(test_outside_code),
	        cmocka_unit_test(test_bad_entries),
	        cmocka_unit_test(test_truncated),
	        cmocka_unit_test(test_no_sections),
	        cmocka_unit_test(test_nothing),
	        cmocka_unit_test(test_debug_frame),
	        cmocka_unit_test(test_compressed_debug_frame),
	        cmocka_unit_test(test_debug_and_eh),
	        cmocka_unit_test(test_separate_debug_file),
	        cmocka_unit_test(test_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
