/* SPDX-License-Identifier: Apache-2.0 */
/* The CFI compiler on synthesised .eh_frame and .debug_frame: encodings, instructions, expressions, malformed input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "eh_frame.h"
#include "unwind/cfi.h"

#define CODE(...) ((const u8[]){__VA_ARGS__}), sizeof((const u8[]){__VA_ARGS__})

#define FN  0x1100u /* the function of most tests … */
#define END 0x1200u /* … and its end */

static struct elf_file file;

static struct cfi *load(bool sections)
{
	struct image *img;
	struct cfi *cfi;

	elf_finish(&file, sections);
	assert_null(image_from_memory(elf_copy(&file), file.n, "test", &img));
	assert_null(cfi_load(img, NULL, &cfi));
	image_put(img);
	return cfi;
}

/* Where .eh_frame will lie if it is the first section. */
static u64 eh_addr(void)
{
	elf_start(&file);
	return elf_place(&file);
}

static struct cfi *load_eh(const struct bytes *eh)
{
	elf_section(&file, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh->at, eh->n);
	return load(true);
}

/* One function with these instructions. */
static struct cfi *load_code(const struct eh_cie *cie, const u8 *code, size_t size)
{
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();

	eh_put_fde(&eh, cie, eh_put_cie(&eh, cie), addr, FN, END - FN, code, size);
	return load_eh(&eh);
}

static struct cfi_rule plain(s32 cfa_off)
{
	struct cfi_rule rule = {
	        .kind = CFI_REG, .cfa_reg = REG_SP, .cfa_off = cfa_off, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = CFI_SAME;
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}

static struct cfi_rule of_kind(u8 kind)
{
	return (struct cfi_rule){.kind = kind, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};
}

static void expect(const struct cfi *cfi, u64 addr, struct cfi_rule want)
{
	struct cfi_rule rule = {0};

	assert_true(cfi_find(cfi, addr, &rule));
	assert_memory_equal(&rule, &want, sizeof(rule));
}

static void expect_none(const struct cfi *cfi, u64 addr)
{
	struct cfi_rule rule;

	assert_false(cfi_find(cfi, addr, &rule));
}

/* The function has the rule all over, and nothing else has any. */
static void expect_only(struct cfi *cfi, struct cfi_rule want)
{
	expect_none(cfi, FN - 1);
	expect(cfi, FN, want);
	expect(cfi, END - 1, want);
	expect_none(cfi, END);
	assert_int_equal(cfi->ncorrupt, 0);
	assert_int_equal(cfi->nfdes, 1);
	assert_int_equal(cfi->fdes[0].start, FN);
	assert_int_equal(cfi->fdes[0].end, END);
	cfi_destroy(cfi);
}

static void expect_corrupt(struct cfi *cfi, u64 ncorrupt)
{
	expect_none(cfi, FN);
	assert_int_equal(cfi->ncorrupt, ncorrupt);
	assert_int_equal(cfi->nfdes, 0);
	cfi_destroy(cfi);
}

static void test_encodings(void **state)
{
	static const u8 encodings[] = {DW_EH_PE_absptr, DW_EH_PE_uleb128, DW_EH_PE_udata2, DW_EH_PE_udata4,
	        DW_EH_PE_udata8, DW_EH_PE_sleb128, DW_EH_PE_sdata2, DW_EH_PE_sdata4, DW_EH_PE_sdata8,
	        DW_EH_PE_pcrel | DW_EH_PE_absptr, DW_EH_PE_pcrel | DW_EH_PE_sleb128, DW_EH_PE_pcrel | DW_EH_PE_sdata2,
	        DW_EH_PE_pcrel | DW_EH_PE_udata8, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_pcrel | DW_EH_PE_sdata8,
	        DW_EH_PE_textrel | DW_EH_PE_udata4, DW_EH_PE_datarel | DW_EH_PE_sdata4, DW_EH_PE_aligned};
	struct eh_cie cie = eh_cie_default;

	for (size_t i = 0; i < sizeof(encodings); i++) {
		cie.encoding = encodings[i];
		expect_only(load_code(&cie, CODE(DW_CFA_nop)), plain(8));
	}
}

/* An aligned pointer behind padding */
static void test_aligned(void **state)
{
	struct eh_cie cie = eh_cie_default;
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();
	size_t at;

	cie.encoding = DW_EH_PE_aligned;
	at = eh_put_cie(&eh, &cie);
	put32(&eh, 0);
	eh_put_fde(&eh, &cie, at, addr, FN, END - FN, CODE(DW_CFA_nop));
	expect_only(load_eh(&eh), plain(8));
}

static void test_bad_encodings(void **state)
{
	static const u8 encodings[] = {DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4,
	        DW_EH_PE_funcrel | DW_EH_PE_udata4, DW_EH_PE_omit, 0x05, 0x0f, 0x60};
	struct eh_cie cie = eh_cie_default;

	for (size_t i = 0; i < sizeof(encodings); i++) {
		cie.encoding = encodings[i];
		expect_corrupt(load_code(&cie, CODE(DW_CFA_nop)), 1);
	}
}

static void test_cie_forms(void **state)
{
	static const u8 versions[] = {1, 3, 4};
	static const char *augmentations[] = {"zR", "zPLR", "zRP", "zLR", "zR?"};
	struct eh_cie cie = eh_cie_default;

	for (size_t v = 0; v < sizeof(versions); v++) {
		for (size_t a = 0; a < sizeof(augmentations) / sizeof(augmentations[0]); a++) {
			cie.version = versions[v];
			cie.augmentation = augmentations[a];
			cie.dw64 = a & 1;
			expect_only(load_code(&cie, CODE(DW_CFA_nop)), plain(8));
		}
	}
	cie = (struct eh_cie){.version = 1, .augmentation = "", .encoding = DW_EH_PE_absptr};
	expect_only(load_code(&cie, CODE(DW_CFA_nop)), plain(8));
}

static void test_signal_augmentation(void **state)
{
	struct eh_cie cie = eh_cie_default;
	struct cfi_rule want = plain(8);

	cie.augmentation = "zPLRS";
	want.flags = CFI_SIGNAL_FRAME;
	expect_only(load_code(&cie, CODE(DW_CFA_nop)), want);
}

static void test_bad_cies(void **state)
{
	static const u8 no_register[] = {DW_CFA_def_cfa_offset, 8}, moves[] = {DW_CFA_advance_loc | 1};
	static const struct eh_cie cies[] = {
	        {.version = 2, .augmentation = "zR", .encoding = DW_EH_PE_absptr},
	        {.version = 5, .augmentation = "zR", .encoding = DW_EH_PE_absptr},
	        {.version = 1, .augmentation = "eh", .encoding = DW_EH_PE_absptr},
	        {.version = 1, .augmentation = "zR", .code = no_register, .code_size = sizeof(no_register)},
	        {.version = 1, .augmentation = "zR", .code = moves, .code_size = sizeof(moves)},
	};

	for (size_t i = 0; i < sizeof(cies) / sizeof(cies[0]); i++)
		expect_corrupt(load_code(&cies[i], CODE(DW_CFA_nop)), 2); /* the CIE and its FDE */
}

/* push rbp; mov rbp, rsp; …; leave, with the state kept over an early return */
static void test_prologue(void **state)
{
	struct cfi *cfi = load_code(&eh_cie_default,
	        CODE(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2, DW_CFA_advance_loc | 3,
	                DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc1, 0x20, DW_CFA_remember_state, DW_CFA_def_cfa, 7,
	                8, DW_CFA_restore | 6, DW_CFA_advance_loc2, 0x01, 0x00, DW_CFA_restore_state,
	                DW_CFA_GNU_args_size, 0x90, 1, DW_CFA_advance_loc4, 0x10, 0, 0, 0, DW_CFA_same_value, 6));
	struct cfi_rule want = plain(16);

	expect(cfi, FN, plain(8));
	want.slot[1] = cfi_slot(-16, 0);
	expect(cfi, FN + 1, want);
	expect(cfi, FN + 3, want);
	want.cfa_reg = DWREG_RBP;
	expect(cfi, FN + 4, want);
	expect(cfi, FN + 0x23, want);
	expect(cfi, FN + 0x24, plain(8));
	expect(cfi, FN + 0x25, want);
	want.slot[1] = CFI_SAME;
	expect(cfi, FN + 0x35, want);
	expect(cfi, END - 1, want);
	expect_none(cfi, END);
	cfi_destroy(cfi);
}

struct one_row {
	const u8 *code;
	size_t size;
	u32 slot; /* that differs from plain(8); ARCH_NSLOTS: none */
	s16 value;
};

static void test_registers(void **state)
{
	const struct one_row rows[] = {
	        {CODE(DW_CFA_offset | 3, 3), 0, (-24 / 8) * 2},
	        {CODE(DW_CFA_offset_extended, 12, 4), 2, (-32 / 8) * 2},
	        {CODE(DW_CFA_offset_extended_sf, 13, 0x7d), 3, (24 / 8) * 2},
	        {CODE(DW_CFA_GNU_negative_offset_extended, 14, 2), 4, (16 / 8) * 2},
	        {CODE(DW_CFA_undefined, 15), 5, CFI_UNDEFINED},
	        {CODE(DW_CFA_register, 3, 8), 0, CFI_UNDEFINED},
	        {CODE(DW_CFA_val_offset, 3, 1), 0, CFI_UNDEFINED},
	        {CODE(DW_CFA_val_offset_sf, 3, 1), 0, CFI_UNDEFINED},
	        {CODE(DW_CFA_val_expression, 3, 2, DW_OP_breg7, 0), 0, CFI_UNDEFINED},
	        {CODE(DW_CFA_expression, 3, 1, DW_OP_call_frame_cfa), 0, CFI_UNDEFINED},
	        {CODE(DW_CFA_expression, 3, 2, DW_OP_breg7, 16), 0, (8 / 8) * 2},      /* CFA is rsp + 8 */
	        {CODE(DW_CFA_expression, 3, 2, DW_OP_breg7, 12), 0, CFI_UNDEFINED},    /* no multiple of 8 */
	        {CODE(DW_CFA_offset_extended, 3, 0x80, 0x80, 0x02), 0, CFI_UNDEFINED}, /* too far for a slot */
	        {CODE(DW_CFA_offset | 3, 3, DW_CFA_restore | 3), ARCH_NSLOTS, 0},
	        {CODE(DW_CFA_offset | 3, 3, DW_CFA_restore_extended, 3), ARCH_NSLOTS, 0},
	        {CODE(DW_CFA_offset | 17, 3, DW_CFA_restore | 17, DW_CFA_undefined, 0x90, 1), ARCH_NSLOTS,
	                0}, /* xmm0 … */
	        {CODE(DW_CFA_val_offset, 7, 0), ARCH_NSLOTS, 0},
	        {CODE(DW_CFA_same_value, 3), ARCH_NSLOTS, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfi_rule want = plain(8);

		if (rows[i].slot < ARCH_NSLOTS)
			want.slot[rows[i].slot] = rows[i].value;
		expect_only(load_code(&eh_cie_default, rows[i].code, rows[i].size), want);
	}
}

static void test_cfa(void **state)
{
	struct cfi_rule want = plain(16);

	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_sf, 7, 0x7e)), want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_offset_sf, 0x7e)), want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa, 7, 16)), want);
	want.cfa_reg = DWREG_R10;
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa, 10, 16)), want);
	/* back from an expression: libgcrypt */
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_offset, 16, DW_CFA_def_cfa_expression, 2,
	                                               DW_OP_breg6, 0, DW_CFA_def_cfa_register, 10)),
	        want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 2, DW_OP_breg6, 0, DW_CFA_def_cfa_offset,
	                                               16, DW_CFA_def_cfa_register, 10)),
	        want);
}

static void test_set_loc(void **state)
{
	struct eh_cie cie = eh_cie_default;
	struct cfi *cfi;

	cie.encoding = DW_EH_PE_udata4;
	cfi = load_code(&cie, CODE(DW_CFA_set_loc, 0x20, 0x11, 0, 0, DW_CFA_def_cfa_offset, 24));
	expect(cfi, FN + 0x1f, plain(8));
	expect(cfi, FN + 0x20, plain(24));
	cfi_destroy(cfi);
	cfi = load_code(&cie, CODE(DW_CFA_MIPS_advance_loc8, 0x20, 0, 0, 0, 0, 0, 0, 0, DW_CFA_def_cfa_offset, 24));
	expect(cfi, FN + 0x1f, plain(8));
	expect(cfi, FN + 0x20, plain(24));
	cfi_destroy(cfi);
}

static void test_return_address(void **state)
{
	struct cfi_rule want = plain(8);

	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_undefined, 16)), of_kind(CFI_ROOT));
	want.ra_reg = DWREG_RDI;
	want.slot[ARCH_SLOT_RA] = CFI_UNDEFINED;
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_register, 16, 5)), want); /* vfork */
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_same_value, 16)), of_kind(CFI_UNSUPPORTED));
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_val_offset, 16, 1)), of_kind(CFI_UNSUPPORTED));
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_register, 7, 8)), of_kind(CFI_UNSUPPORTED)); /* longjmp */
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_offset | 7, 2)), of_kind(CFI_UNSUPPORTED));
}

static void test_expressions(void **state)
{
	struct cfi_rule want = plain(8);

	want.kind = CFI_PLT;
	for (u8 lit = 9; lit <= 11; lit++) {
		want.cfa_add = lit;
		expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16,
		                                               0, DW_OP_lit15, DW_OP_and, (u8)(DW_OP_lit0 + lit),
		                                               DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus)),
		        want);
	}
	want = plain(0);
	want.kind = CFI_DEREF;
	want.cfa_reg = DWREG_RBP;
	want.cfa_off = -8;
	expect_only(
	        load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref)), want);
	want.cfa_add = 56;
	expect_only(load_code(&eh_cie_default,
	                    CODE(DW_CFA_def_cfa_expression, 5, DW_OP_breg6, 0x78, DW_OP_deref, DW_OP_plus_uconst, 56)),
	        want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 6, DW_OP_breg6, 0x78, DW_OP_deref,
	                                               DW_OP_const1u, 56, DW_OP_plus)),
	        want);
	want = plain(8);
	want.kind = CFI_INDEXED;
	want.index_reg = DWREG_R9;
	want.cfa_add = 8;
	expect_only(load_code(&eh_cie_default,
	                    CODE(DW_CFA_def_cfa_expression, 10, DW_OP_breg7, 8, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul,
	                            DW_OP_plus, DW_OP_deref, DW_OP_plus_uconst, 8)),
	        want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 8)), plain(8));
	expect_only(
	        load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0, DW_OP_lit8, DW_OP_plus)),
	        plain(8));
}

static void test_unsupported_expressions(void **state)
{
	const struct cfi_rule want = of_kind(CFI_UNSUPPORTED);

	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 0)), want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 1, DW_OP_lit8)), want);
	expect_only(load_code(&eh_cie_default,
	                    CODE(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 8, DW_OP_deref, DW_OP_deref)),
	        want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 2, DW_OP_breg20, 8)), want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 1, DW_OP_breg7)), want);
	/* a threshold that no slot has */
	expect_only(load_code(&eh_cie_default,
	                    CODE(DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
	                            DW_OP_lit16, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus)),
	        want);
}

/* GCC's main() with a realigned stack: the CFA is kept at rbp - 8, registers are saved relative to rbp. */
static void test_realigned(void **state)
{
	struct cfi_rule want = plain(-8);

	want.kind = CFI_DEREF;
	want.cfa_reg = want.slot_reg = DWREG_RBP;
	want.slot[0] = cfi_slot(-16, 1);
	want.slot[1] = cfi_slot(0, 1);
	expect_only(load_code(&eh_cie_default,
	                    CODE(DW_CFA_expression, 6, 2, DW_OP_breg6, 0, DW_CFA_def_cfa_expression, 3, DW_OP_breg6,
	                            0x78, DW_OP_deref, DW_CFA_expression, 3, 2, DW_OP_breg6, 0x70)),
	        want);
	want.slot[0] = CFI_UNDEFINED; /* a second base */
	want.slot_reg = DWREG_RSP;
	want.slot[1] = CFI_UNDEFINED;
	want.slot[0] = cfi_slot(-16, 1);
	expect_only(load_code(&eh_cie_default,
	                    CODE(DW_CFA_expression, 6, 2, DW_OP_breg6, 0, DW_CFA_def_cfa_expression, 3, DW_OP_breg6,
	                            0x78, DW_OP_deref, DW_CFA_expression, 3, 2, DW_OP_breg7, 0x70)),
	        want);
}

/* glibc's __restore_rt, with its struct ucontext at rsp; x86-64's order of struct sigcontext. */
static size_t signal_code(struct bytes *code, u8 wrong)
{
	static const u8 order[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};

	put(code, ((const u8[]){DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 1, DW_OP_deref}), 6);
	for (u32 i = 0; i < sizeof(order); i++) {
		struct bytes expr = {.n = 0};

		put8(&expr, DW_OP_breg7);
		put_sleb(&expr, 40 + 8 * (s64)i + (order[i] == wrong ? 8 : 0));
		put8(code, DW_CFA_expression);
		put8(code, order[i]);
		put_uleb(code, expr.n);
		put(code, expr.at, expr.n);
	}
	return code->n;
}

static void test_signal(void **state)
{
	struct eh_cie cie = eh_cie_default;
	struct cfi_rule want = of_kind(CFI_SIGNAL);
	struct bytes code = {.n = 0};

	cie.augmentation = "zRS";
	want.cfa_reg = REG_SP;
	want.cfa_off = 40;
	want.flags = CFI_SIGNAL_FRAME;
	signal_code(&code, 0xff);
	expect_only(load_code(&cie, code.at, code.n), want);
	for (u8 reg = 3; reg <= 16; reg++) { /* any of those that matter elsewhere: not this shape */
		if (reg == 4 || reg == 5 || (reg >= 9 && reg <= 11))
			continue;
		code.n = 0;
		signal_code(&code, reg);
		expect_only(load_code(&cie, code.at, code.n), of_kind(CFI_UNSUPPORTED));
	}
}

static void test_corrupt_code(void **state)
{
	struct bytes deep = {.n = 0};

	expect_corrupt(load_code(&eh_cie_default, CODE(DW_CFA_restore_state)), 1);
	expect_corrupt(load_code(&eh_cie_default, CODE(0x3f)), 1);
	expect_corrupt(load_code(&eh_cie_default, CODE(DW_CFA_GNU_window_save)), 1);
	expect_corrupt(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa, 17, 8)), 1);
	expect_corrupt(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)), 1);
	expect_corrupt(load_code(&eh_cie_default, CODE(DW_CFA_nop, DW_CFA_nop, DW_CFA_def_cfa_expression, 0x7f)), 1);
	expect_corrupt(load_code(&eh_cie_default,
	                       CODE(DW_CFA_MIPS_advance_loc8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)),
	        1);
	for (u32 i = 0; i < 1000; i++)
		put8(&deep, DW_CFA_remember_state);
	expect_corrupt(load_code(&eh_cie_default, deep.at, deep.n), 1);
}

/* An instruction that is cut off by the end of the FDE. The padding of the assembler must not complete it. */
static void test_cut_code(void **state)
{
	static const u8 last[] = {DW_CFA_advance_loc1, DW_CFA_def_cfa_offset, DW_CFA_offset | 3, DW_CFA_expression};

	for (size_t i = 0; i < sizeof(last); i++) {
		u8 code[] = {0, 0, 0, 0, 0, 0, last[i]}; /* 4 + 4 + 8 + 1 + 7 bytes: no padding */

		expect_corrupt(load_code(&eh_cie_default, code, sizeof(code)), 1);
	}
}

/* Rows behind the end of the function do not matter. */
static void test_beyond_end(void **state)
{
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_advance_loc2, 0, 1, DW_CFA_def_cfa_offset, 24)), plain(8));
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_advance_loc2, 0, 2, 0x3f)), plain(8));
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_advance_loc, DW_CFA_def_cfa_offset, 24)), plain(24));
}

static void put_fn(struct bytes *eh, u64 addr, size_t cie, u64 start, u64 size, u8 cfa)
{
	eh_put_fde(eh, &eh_cie_default, cie, addr, start, size, CODE(DW_CFA_def_cfa_offset, cfa));
}

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

/* As sstrip leaves it: only the program header tells of .eh_frame, and only its terminator ends it. */
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
	        cmocka_unit_test(test_encodings),
	        cmocka_unit_test(test_aligned),
	        cmocka_unit_test(test_bad_encodings),
	        cmocka_unit_test(test_cie_forms),
	        cmocka_unit_test(test_signal_augmentation),
	        cmocka_unit_test(test_bad_cies),
	        cmocka_unit_test(test_prologue),
	        cmocka_unit_test(test_registers),
	        cmocka_unit_test(test_cfa),
	        cmocka_unit_test(test_set_loc),
	        cmocka_unit_test(test_return_address),
	        cmocka_unit_test(test_expressions),
	        cmocka_unit_test(test_unsupported_expressions),
	        cmocka_unit_test(test_realigned),
	        cmocka_unit_test(test_signal),
	        cmocka_unit_test(test_corrupt_code),
	        cmocka_unit_test(test_cut_code),
	        cmocka_unit_test(test_beyond_end),
	        cmocka_unit_test(test_order),
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
