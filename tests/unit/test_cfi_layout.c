/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to pieces: limits, splitting, sharing of rules; every address is compared with the plain list of entries. */
#include "unit.h"

#include "unwind/cfi/cfi.h"
#include "unwind/shared/region.h"

#define START 0x401000u

static struct cfi_rule rule_of(u32 i)
{
	return (struct cfi_rule){.kind = CFI_REG,
	        .cfa_reg = REG_SP,
	        .cfa_off = (s32)i * 8,
	        .slot_reg = CFI_NO_REG,
	        .ra_reg = CFI_NO_REG};
}

static const struct cfi_table *table(const struct cfi *cfi, u32 i)
{
	return cfi->pieces[i].bytes;
}

/* What a walker may rely on; see shared/cfi.h. */
static void check_piece(const struct cfi_piece *piece)
{
	const struct cfi_table *t = piece->bytes;
	const u16 *index = (const u16 *)((const u8 *)t + t->index);
	const u32 *rows = (const u32 *)((const u8 *)t + t->rows);

	assert_true(piece->size <= ARENA_SLAB_SIZE - 64);
	assert_int_equal(piece->start % CFI_PAGE_SIZE, 0);
	assert_int_equal(t->npages, (piece->end - piece->start + CFI_PAGE_SIZE - 1) / CFI_PAGE_SIZE);
	assert_int_equal(t->rules % 8, 0);
	assert_int_equal(t->rules + t->nrules * sizeof(struct cfi_rule), piece->size);
	assert_int_equal(index[0], 0);
	assert_int_equal(index[t->npages], t->nrows);
	for (u32 page = 0; page < t->npages; page++) {
		assert_true(index[page] < index[page + 1]);
		assert_int_equal(rows[index[page]] & 0xff, 0);
		for (u32 i = index[page]; i < index[page + 1]; i++) {
			assert_true(rows[i] >> CFI_PAGE_BITS < t->nrules);
			if (i > index[page]) {
				assert_true((rows[i] & 0xff) > (rows[i - 1] & 0xff));
				assert_int_not_equal(rows[i] >> CFI_PAGE_BITS, rows[i - 1] >> CFI_PAGE_BITS);
			}
		}
	}
}

static void check(const struct cfi *cfi, const struct cfi_entry *e, size_t n, u64 start, u64 end)
{
	struct cfi_rule rule;
	size_t at = 0;

	for (u32 i = 0; i < cfi->npieces; i++) {
		check_piece(&cfi->pieces[i]);
		if (i)
			assert_int_equal(cfi->pieces[i].start, cfi->pieces[i - 1].end);
	}
	for (u64 pc = start; pc < end; pc++) {
		while (at + 1 < n && e[at + 1].addr <= pc)
			at++;
		if (e[at].addr > pc) {
			assert_false(cfi_find(cfi, pc, &rule));
			continue;
		}
		assert_true(cfi_find(cfi, pc, &rule));
		assert_memory_equal(&rule, &e[at].rule, sizeof(rule));
	}
	assert_false(cfi_find(cfi, end, &rule));
	assert_false(cfi_find(cfi, start - 1, &rule));
}

/* n entries, step bytes apart, of so many rules in turn; returns the number of pieces. */
static u32 lay(size_t n, u32 step, u32 nrules, u64 start)
{
	struct cfi_entry *e = calloc(n, sizeof(*e));
	u64 end = start + n * step;
	struct cfi *cfi;
	u32 npieces;

	assert_non_null(e);
	for (size_t i = 0; i < n; i++)
		e[i] = (struct cfi_entry){start + i * step, rule_of((u32)i % nrules)};
	assert_null(cfi_from_entries(e, n, start, end, &cfi));
	assert_int_equal(cfi->pieces[0].start, start & ~(u64)(CFI_PAGE_SIZE - 1));
	assert_int_equal(cfi->pieces[cfi->npieces - 1].end, end);
	assert_int_equal(cfi->nfdes, 0);
	check(cfi, e, n, start, end);
	npieces = cfi->npieces;
	cfi_destroy(cfi);
	free(e);
	return npieces;
}

static void test_small(void **state)
{
	assert_int_equal(lay(1, 1, 1, START), 1);
	assert_int_equal(lay(1, 1, 1, START + 255), 1);
	assert_int_equal(lay(256, 1, 2, START), 1);
	assert_int_equal(lay(256, 1, 256, START + 128), 1);
	assert_int_equal(lay(1, 1000, 1, START + 7), 1);
}

/* Each of the three parts of a table alone can fill a piece. */
static void test_split(void **state)
{
	assert_int_equal(lay(200000, 3, 7, START), 4);        /* rows */
	assert_int_equal(lay(20000, 5, 20000, START + 3), 3); /* rules */
	assert_true(lay(2, 30000000, 2, START) >= 2);         /* pages */
}

static void test_merge(void **state)
{
	struct cfi_entry e[] = {{START, rule_of(1)}, {START + 1, rule_of(1)}, {START + 2, rule_of(2)},
	        {START + 2, rule_of(1)}, {START + 3, rule_of(1)}, {START + 300, rule_of(2)}};
	struct cfi *cfi;

	assert_null(cfi_from_entries(e, 6, START, START + 1000, &cfi));
	check(cfi, e, 6, START, START + 1000);
	assert_int_equal(table(cfi, 0)->nrules, 2);
	assert_int_equal(table(cfi, 0)->nrows, 1 + 2 + 1 + 1);
	cfi_destroy(cfi);
}

static void test_bounds(void **state)
{
	struct cfi_entry e[] = {{START - 8, rule_of(1)}, {START + 8, rule_of(2)}, {START + 20, rule_of(3)}};
	struct cfi *cfi;

	assert_null(cfi_from_entries(e, 3, START, START + 16, &cfi));
	check(cfi, e, 2, START, START + 16);
	cfi_destroy(cfi);
	assert_null(cfi_from_entries(e + 1, 1, START, START + 16, &cfi)); /* a hole at the start */
	check(cfi, e + 1, 1, START, START + 16);
	cfi_destroy(cfi);
	assert_null(cfi_from_entries(e, 0, START, START + 16, &cfi));
	assert_int_equal(cfi->npieces, 0);
	cfi_destroy(cfi);
}

/* Rows of a caller that keeps no order or no range are refused, not laid out wrongly. */
static void test_disorder(void **state)
{
	struct cfi_entry e[] = {{START + 8, rule_of(1)}, {START, rule_of(2)}};
	struct cfi *cfi = NULL;
	struct error *err = cfi_from_entries(e, 2, START, START + 16, &cfi);

	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_INPUT);
	assert_null(cfi);
	error_free(err);
	err = cfi_from_entries(e, 1, START + 16, START, &cfi);
	assert_non_null(err);
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_small),
	        cmocka_unit_test(test_split),
	        cmocka_unit_test(test_merge),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_disorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
