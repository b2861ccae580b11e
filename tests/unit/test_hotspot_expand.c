/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of compiled code in a JVM of fake memory: which methods they stand for, and how certain that is. */
#include "hotspot_names_fake.h"

static void check_frame(struct jvm *j, const struct frame *f, u32 method, u32 bci, u32 flags)
{
	u32 cookie;

	assert_int_equal(hotspot_kind(f), HOTSPOT_METHOD);
	assert_int_equal(frame_addr(f), j->f.method[method]);
	assert_int_equal(hotspot_bci(f), bci);
	assert_int_equal(hotspot_tier(f), 3);
	assert_true(hotspot_names_cookie(j->names, &j->f.memory, j->f.method[method], &cookie));
	assert_int_equal(hotspot_cookie(f), cookie);
	assert_true(f->detail & HOTSPOT_CLASSED);
	assert_int_equal(frame_flags(f), flags);
}

static void test_callers_are_exact(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];

	for (u32 shape = 0; shape < FAKE_SHAPES; shape++) {
		start(&j, shape);
		for (u32 round = 0; round < 2; round++) { /* read, kept */
			assert_int_equal(expand(&j, FRAME_RETADDR, FAKE_INLINED_PC, 0, ret), 2);
			check_frame(&j, &ret[0], 1, 3, FRAME_INLINED);
			check_frame(&j, &ret[1], 0, 7, 0);
		}
		assert_int_equal(expand(&j, FRAME_RETADDR, FAKE_ROOT_PC, 0, ret), 1);
		check_frame(&j, &ret[0], 0, 12, 0);
		assert_int_equal(expand(&j, FRAME_RETADDR, FAKE_INLINED_PC, EXPAND_MERGE, ret), 1);
		check_frame(&j, &ret[0], 0, 7, 0);
		stop(&j);
	}
}

#define TLAB_TOP 0x18
#define TLAB_END 0x28

/*
 * At a place in code that takes memory from the TLAB at 24, or at 0 with a call of main's inlined method behind it,
 * that returns to FAKE_INLINED_PC. The slow path's call returns to FAKE_ROOT_PC.
 */
static bool place(struct jvm *j, bool call, u32 pc, struct frame *f)
{
	u32 at = call ? 0 : 24;
	struct hotspot_nmethod nm;
	u64 code;

	assert_true(hotspot_nmethod_read(j->code, &j->f.memory, j->f.nmethod[0], 100, &nm));
	code = nm.code;
	memset(j->f.bytes + (code - FAKE_BASE), 0x90, FAKE_ROOT_PC);
	fake_poke(&j->f, code + at, 0x28473b49, 4);                /* cmp rax, [r15 + TLAB_END] */
	fake_poke(&j->f, code + at + 4, 0x77 | (53 - at) << 8, 2); /* ja slow */
	fake_poke(&j->f, code + at + 6, 0x18478949, 4);            /* mov [r15 + TLAB_TOP], rax */
	fake_poke(&j->f, code + FAKE_ROOT_PC - 5, 0xe8, 5);
	if (call)
		fake_poke(&j->f, code + FAKE_INLINED_PC - 5, 0xe8, 5);
	*f = frame_of(0, j->f.nmethod[0], hotspot_nmethod(100, pc));
	return hotspot_alloc_leaf(j->l, j->code, &j->f.memory, TLAB_TOP, TLAB_END, f);
}

/* What initialises an object is placed where that was allocated; what lies behind another call is not. */
static void test_allocation(void **state)
{
	static struct jvm j;
	struct frame f;

	start(&j, FAKE_17);
	assert_true(place(&j, false, 40, &f));
	assert_int_equal(hotspot_pc_offset(&f), FAKE_ROOT_PC);
	assert_int_equal(frame_flags(&f), FRAME_RETADDR);
	assert_true(place(&j, true, 12, &f));
	assert_false(place(&j, true, 30, &f));
	assert_int_equal(hotspot_pc_offset(&f), 30);
	assert_int_equal(frame_flags(&f), FRAME_APPROX);
	stop(&j);
}

/* Its method is marked, even if all places around are in it. Its callers are not, and what is exact is not. */
static void test_unknown_allocation_is_approximate(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];
	struct frame f;

	start(&j, FAKE_17);
	assert_false(place(&j, true, 30, &f));
	assert_int_equal(expand(&j, frame_flags(&f), FAKE_ROOT_PC + 3, 0, ret), 1);
	check_frame(&j, &ret[0], 0, 12, FRAME_APPROX);
	assert_int_equal(expand(&j, frame_flags(&f), FAKE_INLINED_PC - 3, 0, ret), 2);
	check_frame(&j, &ret[0], 1, 3, FRAME_INLINED | FRAME_APPROX);
	check_frame(&j, &ret[1], 0, 7, 0);
	f = frame_of(FRAME_RETADDR, j.f.nmethod[0], hotspot_nmethod(100, FAKE_INLINED_PC));
	assert_false(hotspot_alloc_leaf(j.l, j.code, &j.f.memory, TLAB_TOP, TLAB_END, &f));
	assert_int_equal(frame_flags(&f), FRAME_RETADDR);
	stop(&j);
}

/* The root is certain, what is inlined into it only where the places around agree; lines hardly ever. */
static void test_leaf_is_approximate(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];

	start(&j, FAKE_17);
	assert_int_equal(expand(&j, 0, FAKE_INLINED_PC - 3, 0, ret), 2);
	check_frame(&j, &ret[0], 1, 3, FRAME_INLINED | FRAME_APPROX);
	check_frame(&j, &ret[1], 0, 7, 0);
	assert_int_equal(expand(&j, 0, FAKE_INLINED_PC - 3, EXPAND_LINES, ret), 2);
	check_frame(&j, &ret[1], 0, 7, FRAME_APPROX);
	assert_int_equal(expand(&j, 0, FAKE_INLINED_PC + 3, 0, ret), 1);
	check_frame(&j, &ret[0], 0, 12, 0);
	assert_int_equal(expand(&j, 0, FAKE_ROOT_PC + 3, 0, ret), 1);
	check_frame(&j, &ret[0], 0, 12, 0);
	stop(&j);
}

/* Both places around are in the same inlined method: it is certain, its line is not. */
static void test_leaf_between_equals(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];
	struct hotspot_nmethod nm;
	u64 first, second;

	start(&j, FAKE_17);
	assert_true(hotspot_nmethod_read(j.code, &j.f.memory, j.f.nmethod[0], 100, &nm));
	first = nm.pcs + j.l->pc_desc_size.at + j.l->pc_desc_scope.at;
	second = first + j.l->pc_desc_size.at;
	fake_poke(&j.f, second, fake_peek(&j.f, first, 4), 4);
	assert_int_equal(expand(&j, 0, FAKE_INLINED_PC + 3, EXPAND_LINES, ret), 2);
	check_frame(&j, &ret[0], 1, 3, FRAME_INLINED);
	check_frame(&j, &ret[1], 0, 7, 0);
	stop(&j);
}

/* Another class has come to where one was, with its methods at the same addresses. */
static void test_unloaded(void **state)
{
	static struct jvm j;
	struct frame f, ret;
	struct frame_name named;
	u64 constant, pool, klass;
	u32 eaten;

	start(&j, FAKE_25);
	f = method_frame(&j, 0, 0, 3);
	assert_int_equal(hotspot_expand(j.names, &j.f.memory, &f, 0, 1, 0, &ret, 1, &eaten), 1);
	assert_int_equal(eaten, 1);
	assert_int_equal(hotspot_bci(&ret), 3);
	assert_int_equal(hotspot_tier(&ret), 0);
	constant = fake_peek(&j.f, j.f.method[0] + j.l->method_const.at, 8);
	pool = fake_peek(&j.f, constant + j.l->const_pool.at, 8);
	klass = fake_peek(&j.f, pool + j.l->pool_holder.at, 8);
	fake_set(&j.f, klass, j.l->klass_name, fake_symbol(&j.f, j.l, "com/foo/Other"));
	hotspot_names_destroy(j.names); /* what was read a moment ago is kept for some milliseconds */
	assert_null(hotspot_names_create(j.v, j.l, j.code, &j.names));
	assert_false(name(&j, ret, &named));
	assert_int_equal(hotspot_expand(j.names, &j.f.memory, &ret, 0, 1, 0, &f, 1, &eaten), 0);
	assert_int_equal(eaten, 0);
	f = method_frame(&j, 0, 0, 3);
	f.detail ^= 1ull << 50;
	assert_int_equal(hotspot_expand(j.names, &j.f.memory, &f, 0, 1, 0, &ret, 1, &eaten), 1);
	assert_false(name(&j, ret, &named));
	stop(&j);
}

static void test_expand_gone(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];

	start(&j, FAKE_17);
	fake_set(&j.f, j.f.nmethod[0], j.l->nm_compile_id, 4711);
	assert_int_equal(expand(&j, FRAME_RETADDR, FAKE_INLINED_PC, 0, ret), 0);
	stop(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_callers_are_exact),
	        cmocka_unit_test(test_leaf_is_approximate),
	        cmocka_unit_test(test_allocation),
	        cmocka_unit_test(test_unknown_allocation_is_approximate),
	        cmocka_unit_test(test_leaf_between_equals),
	        cmocka_unit_test(test_unloaded),
	        cmocka_unit_test(test_expand_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
