/* SPDX-License-Identifier: Apache-2.0 */
/* PcDescs, scopes, compressed numbers and line number tables, made as HotSpot makes them. */
#include "unit.h"

#include "hotspot_scopes_fake.h"
#include "runtimes/hotspot/names/hotspot_lines.h"
#include "runtimes/hotspot/names/hotspot_scopes.h"

static void test_unsigned5(void **state)
{
	static const u32 values[] = {0, 1, 63, 64, 190, 191, 192, 193, 255, 256, 12287, 12415, 12416, 65535, 1u << 20,
	        794750, 794751, 1u << 30, UINT32_MAX - 1, UINT32_MAX};
	u8 bytes[5];

	for (u32 no_zero = 0; no_zero < 2; no_zero++)
		for (u32 i = 0; i < sizeof(values) / sizeof(*values); i++) {
			u32 n = put_uint(bytes, no_zero, values[i]);
			struct hotspot_stream s = {bytes, bytes + n, no_zero, false},
			                      cut = {bytes, bytes + n - 1, no_zero, false};

			assert_int_equal(hotspot_read_uint(&s), values[i]);
			assert_ptr_equal(s.at, bytes + n);
			assert_false(s.broken);
			hotspot_read_uint(&cut);
			assert_true(cut.broken);
			if (no_zero)
				assert_null(memchr(bytes, 0, n));
		}
}

/* What unsigned5.hpp says of itself: up to 0xbe in one byte, up to 0x307e in two. */
static void test_unsigned5_bounds(void **state)
{
	u8 bytes[5];

	assert_int_equal(put_uint(bytes, true, 0xbe), 1);
	assert_int_equal(put_uint(bytes, true, 0xbf), 2);
	assert_int_equal(put_uint(bytes, true, 0x307e), 2);
	assert_int_equal(put_uint(bytes, true, 0x307f), 3);
	assert_int_equal(put_uint(bytes, false, 191), 1);
	assert_int_equal(put_uint(bytes, false, 192), 2);
}

static void test_zero_is_excluded(void **state)
{
	static const u8 bytes[] = {0, 200, 0};
	struct hotspot_stream plain = {bytes, bytes + 3, false, false}, first = {bytes, bytes + 3, true, false};
	struct hotspot_stream second = {bytes + 1, bytes + 3, true, false};

	assert_int_equal(hotspot_read_uint(&plain), 0);
	assert_false(plain.broken);
	hotspot_read_uint(&first);
	assert_true(first.broken);
	hotspot_read_uint(&second);
	assert_true(second.broken);
}

struct entry {
	s32 bci, line; /* more than the one before */
};

static u32 put_lines(u8 *at, bool no_zero, const struct entry *entries, u32 n)
{
	u32 size = 0;

	for (u32 i = 0; i < n; i++) {
		const struct entry *e = &entries[i];

		if (e->bci >= 0 && e->bci < 31 && e->line >= 0 && e->line < 8 && e->bci + e->line) {
			at[size++] = (u8)(e->bci << 3 | e->line);
			continue;
		}
		at[size++] = 0xff;
		size += put_int(at + size, no_zero, e->bci);
		size += put_int(at + size, no_zero, e->line);
	}
	at[size++] = 0;
	return size;
}

static void test_lines(void **state)
{
	/* a loop's condition stands behind its body, and jumps back a line or more */
	static const struct entry entries[] = {{0, 100}, {4, 1}, {3, 2}, {40, -3}, {5, 300}, {2, 1}};
	u8 table[64];

	for (u32 no_zero = 0; no_zero < 2; no_zero++) {
		u32 size = put_lines(table, no_zero, entries, 6);

		assert_int_equal(hotspot_lines_size(table, sizeof(table), no_zero), size);
		assert_int_equal(hotspot_lines_size(table, size - 1, no_zero), 0);
		assert_int_equal(hotspot_line(table, size, no_zero, 0), 100);
		assert_int_equal(hotspot_line(table, size, no_zero, 3), 100);
		assert_int_equal(hotspot_line(table, size, no_zero, 4), 101);
		assert_int_equal(hotspot_line(table, size, no_zero, 46), 103);
		assert_int_equal(hotspot_line(table, size, no_zero, 47), 100);
		assert_int_equal(hotspot_line(table, size, no_zero, 53), 400);
		assert_int_equal(hotspot_line(table, size, no_zero, 65535), 401);
	}
	assert_int_equal(hotspot_line(table, 0, false, 3), 0);
	assert_int_equal(hotspot_lines_size(table, 0, false), 0);
}

/*
 * Of two entries at one bytecode the first counts for it, and the last for what follows (Method::line_number_from_bci()
 * in method.cpp of JDK 17): compilers of Clojure and Scala make such tables.
 */
static void test_lines_twice(void **state)
{
	static const struct entry entries[] = {{0, 1063}, {0, 3}, {9, 10}};
	u8 table[64];
	u32 size = put_lines(table, false, entries, 3);

	assert_int_equal(hotspot_line(table, size, false, 0), 1063);
	assert_int_equal(hotspot_line(table, size, false, 5), 1066);
	assert_int_equal(hotspot_line(table, size, false, 9), 1076);
}

/* Entries need not be in order of bytecodes: a later one that is no better does not win. */
static void test_lines_out_of_order(void **state)
{
	static const struct entry entries[] = {{10, 20}, {-10, -5}, {4, 7}};
	u8 table[64];
	u32 size = put_lines(table, false, entries, 3);

	assert_int_equal(hotspot_line(table, size, false, 0), 15);
	assert_int_equal(hotspot_line(table, size, false, 5), 22);
	assert_int_equal(hotspot_line(table, size, false, 12), 20);
}

struct jvm {
	struct hotspot_fake f;
	struct vmstructs *v;
	struct layout *origins;
	const struct hotspot_layout *l;
	struct hotspot_code *code;
	bool no_zero;
};

static void start(struct jvm *j, enum fake_shape shape)
{
	fake_jvm(&j->f, shape);
	j->origins = fake_layout(&j->f, &j->v);
	j->l = j->origins->values;
	assert_null(hotspot_code_create(j->v, j->l, &j->code));
	j->no_zero = shape == FAKE_25;
	fake_inlining(&j->f, j->l, j->code);
}

static void stop(struct jvm *j)
{
	hotspot_code_destroy(j->code);
	layout_destroy(j->origins);
	vmstructs_destroy(j->v);
}

static struct hotspot_tables *read_tables(struct jvm *j, u32 id)
{
	return hotspot_tables_read(j->l, j->code, &j->f.memory, j->f.nmethod[0], id, j->no_zero);
}

static void test_tables(void **state)
{
	static struct jvm j;

	for (u32 shape = 0; shape < FAKE_SHAPES; shape++) {
		struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
		const struct hotspot_pc *before, *after;
		struct hotspot_tables *t;

		start(&j, shape);
		t = read_tables(&j, 100);
		assert_non_null(t);
		assert_int_equal(t->npcs, 2);
		assert_int_equal(t->level, 3);
		hotspot_pcs_around(t, FAKE_INLINED_PC, &before, &after);
		assert_null(before);
		assert_int_equal(hotspot_scopes_at(t, after, scopes), 2);
		assert_int_equal(scopes[0].method, j.f.method[1]);
		assert_int_equal(scopes[0].bci, 3);
		assert_int_equal(scopes[1].method, j.f.method[0]);
		assert_int_equal(scopes[1].bci, 7);
		hotspot_pcs_around(t, FAKE_INLINED_PC + 1, &before, &after);
		assert_int_equal(before->pc, FAKE_INLINED_PC);
		assert_int_equal(after->pc, FAKE_ROOT_PC);
		assert_int_equal(hotspot_scopes_at(t, after, scopes), 1);
		assert_int_equal(scopes[0].bci, 12);
		hotspot_pcs_around(t, FAKE_ROOT_PC + 1, &before, &after);
		assert_null(after);
		free(t);
		stop(&j);
	}
}

static void test_gone(void **state)
{
	static struct jvm j;
	struct hotspot_tables *t;
	u32 reads;

	start(&j, FAKE_17);
	assert_null(read_tables(&j, 99)); /* another one stands there by now */
	j.f.reads = 0;
	t = read_tables(&j, 100);
	assert_non_null(t);
	free(t);
	reads = j.f.reads;
	for (u32 i = 1; i < reads; i++) { /* the last may be the text of the blob's name */
		j.f.reads = 0;
		j.f.fail = i;
		t = read_tables(&j, 100);
		if (t)
			assert_true(t->npcs == 2);
		free(t);
	}
	j.f.fail = 0;
	stop(&j);
}

/* PcDescs that are not in order are torn. */
static void test_disorder(void **state)
{
	static struct jvm j;
	struct hotspot_nmethod nm;

	start(&j, FAKE_17);
	assert_true(hotspot_nmethod_read(j.code, &j.f.memory, j.f.nmethod[0], 100, &nm));
	fake_poke(&j.f, nm.pcs + 2 * j.l->pc_desc_size.at + j.l->pc_desc_pc.at, FAKE_INLINED_PC, 4);
	assert_null(read_tables(&j, 100));
	stop(&j);
}

/* What leads astray: a caller that does not stand before, methods out of the table, a chain that ends elsewhere. */
static void test_broken_scopes(void **state)
{
	static const u8 cases[][8] = {
	        {9, 1, 1, 1, 5}, {9, 1, 3, 1}, {9, 1, 0, 1}, {9, 0, 9, 1}, {9, 0, 2, 1}, {9, 200, 200}};
	u64 metadata[] = {0x1000, 0x2000};
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	struct hotspot_pc pc = {.pc = 1, .scope = 1};

	for (u32 i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hotspot_tables t = {
		        .method = 0x1000, .scopes = cases[i], .nscopes = 8, .metadata = metadata, .nmetadata = 2};

		assert_int_equal(hotspot_scopes_at(&t, &pc, scopes), 0);
	}
}

static void test_scope_of_its_own(void **state)
{
	struct hotspot_tables t = {.method = 0x1000};
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	struct hotspot_pc none = {.pc = 1}, beyond = {.pc = 1, .scope = 3}, negative = {.pc = 1, .scope = -3};

	assert_int_equal(hotspot_scopes_at(&t, &none, scopes), 1);
	assert_int_equal(scopes[0].method, 0x1000);
	assert_int_equal(scopes[0].bci, HOTSPOT_NO_BCI);
	assert_int_equal(hotspot_scopes_at(&t, &beyond, scopes), 0);
	assert_int_equal(hotspot_scopes_at(&t, &negative, scopes), 0);
}

/* As many inlined methods as there is room for, and one more. */
static void test_depth(void **state)
{
	static u8 bytes[4096];
	static struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	u64 metadata[] = {0x1000};
	struct hotspot_tables t = {
	        .method = 0x1000, .scopes = bytes, .nscopes = sizeof(bytes), .metadata = metadata, .nmetadata = 1};
	struct hotspot_pc pc = {.pc = 1};
	u32 at = 1, sender = 0;

	for (u32 i = 0; i <= HOTSPOT_SCOPES_MAX; i++) {
		pc.scope = (s32)at;
		at += put_scope(bytes + at, false, sender, 1, (s32)i);
		sender = (u32)pc.scope;
		assert_int_equal(hotspot_scopes_at(&t, &pc, scopes), i < HOTSPOT_SCOPES_MAX ? i + 1 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_unsigned5),
	        cmocka_unit_test(test_unsigned5_bounds),
	        cmocka_unit_test(test_zero_is_excluded),
	        cmocka_unit_test(test_lines),
	        cmocka_unit_test(test_lines_twice),
	        cmocka_unit_test(test_lines_out_of_order),
	        cmocka_unit_test(test_tables),
	        cmocka_unit_test(test_gone),
	        cmocka_unit_test(test_disorder),
	        cmocka_unit_test(test_broken_scopes),
	        cmocka_unit_test(test_scope_of_its_own),
	        cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
