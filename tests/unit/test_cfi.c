/* SPDX-License-Identifier: Apache-2.0 */
/* The CFI compiler on one function of a synthesised .eh_frame: encodings, instructions, expressions, malformed ones. */
#include "cfi_rows.h"

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
	expect_only(load_code(&cie, CODE(DW_CFA_nop)), want); /* what a call has pushed is a return address */
	want.flags = CFI_SIGNAL_FRAME;
	want.cfa_off = 24;
	want.slot[ARCH_SLOT_RA] = cfi_slot(-24, 0);
	expect_only(load_code(&cie, CODE(DW_CFA_def_cfa_offset, 24, DW_CFA_offset | 16, 3)), want);
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
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_offset | 7, 2)), of_kind(CFI_UNSUPPORTED));
}

/* longjmp() has the stack pointer to be in r8, and the rest in a buffer at rdi. */
static void test_jump(void **state)
{
	struct cfi_rule want = plain(0);

	want.cfa_reg = DWREG_R8;
	want.slot_reg = DWREG_RDI;
	want.slot[2] = cfi_slot(16, 1); /* r12 */
	want.slot[ARCH_SLOT_RA] = CFI_UNDEFINED;
	want.ra_reg = DWREG_RDX;
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa, 5, 0, DW_CFA_register, 7, 8, DW_CFA_register, 16, 1,
	                                               DW_CFA_offset_extended_sf, 12, 0x7e)),
	        want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_register, 7, 8, DW_CFA_same_value, 16)),
	        of_kind(CFI_UNSUPPORTED));
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
	want.kind = CFI_DEREF_TWICE;
	want.cfa_between = -16;
	expect_only(load_code(&eh_cie_default,
	                    CODE(DW_CFA_def_cfa_expression, 9, DW_OP_breg6, 0x78, DW_OP_deref, DW_OP_const1s, 0xf0,
	                            DW_OP_plus, DW_OP_deref, DW_OP_plus_uconst, 56)),
	        want);
	expect_only(load_code(&eh_cie_default, CODE(DW_CFA_def_cfa_expression, 8, DW_OP_breg6, 0x78, DW_OP_deref,
	                                               DW_OP_plus_uconst, 0x80, 0x80, 2, DW_OP_deref)),
	        of_kind(CFI_UNSUPPORTED));
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
	                    CODE(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 8, DW_OP_deref, DW_OP_deref, DW_OP_deref)),
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
	        cmocka_unit_test(test_jump),
	        cmocka_unit_test(test_expressions),
	        cmocka_unit_test(test_unsupported_expressions),
	        cmocka_unit_test(test_realigned),
	        cmocka_unit_test(test_signal),
	        cmocka_unit_test(test_corrupt_code),
	        cmocka_unit_test(test_cut_code),
	        cmocka_unit_test(test_beyond_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
