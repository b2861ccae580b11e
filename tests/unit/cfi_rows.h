/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the CFI compiler share: a synthesised file with .eh_frame, compiled, and what is expected of its
 * rows. */
#ifndef YRT_CFI_ROWS_H
#define YRT_CFI_ROWS_H

#include "unit.h"

#include "eh_frame.h"
#include "unwind/cfi/cfi.h"

#define CODE(...) ((const u8[]){__VA_ARGS__}), sizeof((const u8[]){__VA_ARGS__})

#define FN  0x1100u /* the function of most tests … */
#define END 0x1200u /* … and its end */

static struct elf_file file; /* that a test is making */

static inline struct cfi *load(bool sections)
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
static inline u64 eh_addr(void)
{
	elf_start(&file);
	return elf_place(&file);
}

static inline struct cfi *load_eh(const struct bytes *eh)
{
	elf_section(&file, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh->at, eh->n);
	return load(true);
}

/* One function with these instructions. */
static inline struct cfi *load_code(const struct eh_cie *cie, const u8 *code, size_t size)
{
	struct bytes eh = {.n = 0};
	u64 addr = eh_addr();

	eh_put_fde(&eh, cie, eh_put_cie(&eh, cie), addr, FN, END - FN, code, size);
	return load_eh(&eh);
}

static inline struct cfi_rule plain(s32 cfa_off)
{
	struct cfi_rule rule = {
	        .kind = CFI_REG, .cfa_reg = REG_SP, .cfa_off = cfa_off, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = CFI_SAME;
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}

static inline struct cfi_rule of_kind(u8 kind)
{
	return (struct cfi_rule){.kind = kind, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};
}

static inline void expect(const struct cfi *cfi, u64 addr, struct cfi_rule want)
{
	struct cfi_rule rule = {0};

	assert_true(cfi_find(cfi, addr, &rule));
	assert_memory_equal(&rule, &want, sizeof(rule));
}

static inline void expect_none(const struct cfi *cfi, u64 addr)
{
	struct cfi_rule rule;

	assert_false(cfi_find(cfi, addr, &rule));
}

/* The function has the rule all over, and nothing else has any. */
static inline void expect_only(struct cfi *cfi, struct cfi_rule want)
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

static inline void expect_corrupt(struct cfi *cfi, u64 ncorrupt)
{
	expect_none(cfi, FN);
	assert_int_equal(cfi->ncorrupt, ncorrupt);
	assert_int_equal(cfi->nfdes, 0);
	cfi_destroy(cfi);
}

static inline void put_fn(struct bytes *eh, u64 addr, size_t cie, u64 start, u64 size, u8 cfa)
{
	eh_put_fde(eh, &eh_cie_default, cie, addr, start, size, CODE(DW_CFA_def_cfa_offset, cfa));
}

#endif
