/* SPDX-License-Identifier: Apache-2.0 */
/* The native walker where no row says how to go on: frame pointers, words that follow a call, where a guess ends. */
#include "native_stack_fake.h"

#define CHAINED (FRAME_RETADDR | FRAME_GUESS | FRAME_CHAINED)

/*
 * rbp chains from a function without a table over one whose rows say nothing, to rbp 0: that is no proof of a root, as
 * any data may be 0. If rows mark a root there it is one.
 */
static void test_frame_pointer(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule none = fake_rule(CFI_NONE, CFI_NO_REG, 0);
	u64 a = fake_function(f, NULL), b = fake_function(f, &none), c = add_root(f), d = fake_function(f, NULL);
	u64 reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_FP] = SP + 0x20, [REG_PC] = a};

	fake_put(f, SP + 0x20, SP + 0x1020);
	fake_put(f, SP + 0x28, RA(b));
	fake_put(f, SP + 0x1028, RA(c));
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 3);
	check_frame(f, 0, a, 0);
	check_frame(f, 1, RA(b), CHAINED);
	check_frame(f, 2, RA(c), CHAINED);
	assert_int_equal(f->walk.reg[REG_SP], SP + 0x1030);
	f->no_code = true; /* the same where code can not be looked at */
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 3);
	f->no_code = false;
	fake_put(f, SP + 0x1028, RA(d));
	assert_int_equal(fake_walk(f, reg), STOP_NO_CFI);
	assert_int_equal(f->walk.nframes, 1); /* guesses that led nowhere were wrong */
	assert_int_equal(f->walk.reg[REG_SP], SP);
	fake_destroy(f);
}

/* rbp is of no use: the first word behind a call in known code is the return address. */
static void test_scan(void **state)
{
	struct fake *f = fake_create();
	u64 leaf = fake_function(f, NULL), root = add_root(f);
	u64 reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_FP] = 0x77, [REG_PC] = leaf};

	fake_put(f, SP + 16, root + FAKE_RETURN + 64); /* not behind a call */
	fake_put(f, SP + 24, FAKE_STACK);
	fake_put(f, SP + 40, RA(root));
	fake_put(f, SP + 48, RA(leaf));
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 2);
	check_frame(f, 1, RA(root), FRAME_RETADDR | FRAME_GUESS);
	assert_int_equal(f->walk.reg[REG_SP], SP + 48);
	assert_int_equal(f->walk.valid, 1u << REG_SP | 1u << REG_PC);
	memset(f->stack + (SP - FAKE_STACK), 0, FAKE_PAGE);
	assert_int_equal(fake_walk(f, reg), STOP_NO_CFI);
	assert_int_equal(f->walk.nframes, 1);
	fake_destroy(f);
}

/*
 * Return addresses that earlier calls left in a frame that has no rule: behind a direct call of code with a rule, or
 * without a caller of their own. If there is nothing else the call may have gone on by a jump.
 */
static void test_stale(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(16);
	u64 leaf = fake_function(f, NULL), stale = fake_function(f, &rule), caller = fake_function(f, &rule),
	    root = add_root(f), reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_FP] = 0x77, [REG_PC] = leaf};

	fake_call(f, stale, caller);
	fake_put(f, SP + 8, RA(stale));
	fake_put(f, SP + 24, RA(stale));
	fake_put(f, SP + 40, RA(root)); /* the caller of both */
	fake_put(f, SP + 64, RA(caller));
	fake_put(f, SP + 80, 1);
	fake_put(f, SP + 96, RA(caller)); /* the first that has a caller, and may have called */
	fake_put(f, SP + 112, RA(root));
	fake_call(f, root, stale);
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 3);
	check_frame(f, 1, RA(caller), FRAME_RETADDR | FRAME_GUESS);
	check_frame(f, 2, RA(root), FRAME_RETADDR);
	assert_int_equal(f->walk.reg[REG_SP], SP + 120);
	fake_put(f, SP + 96, 0);
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	check_frame(f, 1, RA(stale), FRAME_RETADDR | FRAME_GUESS);
	fake_destroy(f);
}

/* A frame pointer of a function further out: what it has called had a rule, so who called the leaf lies before it. */
static void test_foreign_pointer(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = fake_rule(CFI_REG, REG_FP, 16);
	u64 leaf = fake_function(f, NULL), caller = fake_function(f, &rule), root = add_root(f),
	    reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_FP] = SP + 0x80, [REG_PC] = leaf};

	fake_call(f, root, caller);
	fake_put(f, SP + 0x80, 0);
	fake_put(f, SP + 0x88, RA(root));
	assert_int_equal(fake_walk(f, reg), STOP_ROOT); /* there is nothing else */
	assert_int_equal(f->walk.nframes, 2);
	fake_put(f, SP + 0x40, RA(caller));
	(void)fake_walk(f, reg);
	check_frame(f, 1, RA(caller), FRAME_RETADDR | FRAME_GUESS);
	fake_destroy(f);
}

/* Each form of an indirect call is a call; a jump is none. */
static void test_behind_call(void **state)
{
	static const struct {
		u8 before, code[2];
		bool call;
	} forms[] = {{2, {0xff, 0xd0}, true}, {3, {0xff, 0x50}, true}, {4, {0xff, 0x54}, true}, {6, {0xff, 0x15}, true},
	        {7, {0xff, 0x94}, true}, {2, {0xff, 0xe0}, false}, {6, {0xff, 0x25}, false}, {8, {0xff, 0xd0}, false}};

	for (u32 i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct fake *f = fake_create();
		u64 leaf = fake_function(f, NULL), root = add_root(f), at = root + 0x100;

		memcpy(f->code + (at - FAKE_CODE) - forms[i].before, forms[i].code, 2);
		fake_put(f, SP, at);
		assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = SP, [REG_FP] = 1, [REG_PC] = leaf}),
		        forms[i].call ? STOP_ROOT : STOP_NO_CFI);
		fake_destroy(f);
	}
}

/* Only the frame behind a guessed step is a guess, not what rules and the kernel say of it. */
static void test_guess_ends(void **state)
{
	static const u32 flags[] = {0, FRAME_RETADDR, CHAINED, CHAINED, 0, FRAME_RETADDR};
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(16);
	u64 reg[ARCH_NREGS], a, b, root;

	build_mixture(f, reg);
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 6);
	for (u32 i = 0; i < 6; i++)
		assert_int_equal(frame_flags(&f->frames[i]), flags[i]);
	fake_destroy(f);
	f = fake_create();
	a = fake_function(f, NULL);
	b = fake_function(f, &rule);
	root = add_root(f);
	fake_put(f, SP, RA(b));
	fake_put(f, SP + 16, RA(root));
	assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = SP, [REG_FP] = 1, [REG_PC] = a}), STOP_ROOT);
	check_frame(f, 1, RA(b), FRAME_RETADDR | FRAME_GUESS);
	check_frame(f, 2, RA(root), FRAME_RETADDR);
	fake_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_frame_pointer),
	        cmocka_unit_test(test_scan),
	        cmocka_unit_test(test_stale),
	        cmocka_unit_test(test_foreign_pointer),
	        cmocka_unit_test(test_behind_call),
	        cmocka_unit_test(test_guess_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
