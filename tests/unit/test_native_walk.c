/* SPDX-License-Identifier: Apache-2.0 */
/* The native step over fake memory: each kind of rule, and recovery of registers. */
#include "native_stack_fake.h"

/* One function under a rule, called by the root; reg[REG_SP] and reg[REG_PC] are set if 0. The caller's CFA must be
 * cfa. */
static void check_caller(struct fake *f, const struct cfi_rule *rule, u64 *reg, u64 cfa)
{
	u64 leaf = fake_function(f, rule), root = add_root(f);

	reg[REG_SP] = reg[REG_SP] ? reg[REG_SP] : SP;
	reg[REG_PC] = reg[REG_PC] ? reg[REG_PC] : leaf + 4;
	if (rule->ra_reg == CFI_NO_REG && !(rule->slot[ARCH_SLOT_RA] & 1))
		fake_put(f, cfa + rule->slot[ARCH_SLOT_RA] / 2 * 8, RA(root));
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 2);
	check_frame(f, 0, reg[REG_PC], 0);
	check_frame(f, 1, RA(root), FRAME_RETADDR);
	assert_int_equal(f->walk.reg[REG_SP], cfa);
	assert_int_equal(f->walk.valid & ~ARCH_SAVED_MASK, 1u << REG_SP | 1u << REG_PC);
}

static void test_reg(void **state)
{
	for (s32 off = 8; off <= 8192; off *= 2) {
		struct fake *sp = fake_create(), *fp = fake_create();
		struct cfi_rule by_fp = fake_rule(CFI_REG, REG_FP, off), rule = by_sp(off);

		check_caller(sp, &rule, (u64[ARCH_NREGS]){0}, SP + off);
		check_caller(fp, &by_fp, (u64[ARCH_NREGS]){[REG_FP] = SP + 4096}, SP + 4096 + off);
		fake_destroy(sp);
		fake_destroy(fp);
	}
}

static void test_deref(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = fake_rule(CFI_DEREF, DWREG_R10, -24);

	rule.cfa_add = 8;
	fake_put(f, SP + 0x100 - 24, SP + 0x200);
	check_caller(f, &rule, (u64[ARCH_NREGS]){[DWREG_R10] = SP + 0x100}, SP + 0x208);
	fake_destroy(f);
}

static void test_indexed(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = fake_rule(CFI_INDEXED, REG_SP, 8);
	u64 reg[ARCH_NREGS] = {[DWREG_R9] = 5, [REG_SP] = SP};

	rule.index_reg = DWREG_R9;
	rule.cfa_add = 16;
	fake_put(f, SP + 8 + 5 * 8, SP + 0x300);
	check_caller(f, &rule, reg, SP + 0x310);
	/* below a call the index is lost */
	fake_put(f, SP + 0x308, FAKE_CODE + FAKE_RETURN);
	assert_int_equal(fake_walk(f, reg), STOP_REG_LOST);
	assert_int_equal(f->walk.nframes, 2);
	fake_destroy(f);
}

/* The second push of a lazy stub lies before the byte that cfa_add gives. */
static void test_plt(void **state)
{
	for (u32 at = 0; at < 32; at++) {
		struct fake *f = fake_create();
		struct cfi_rule rule = fake_rule(CFI_PLT, REG_SP, 8);

		rule.cfa_add = 11;
		check_caller(f, &rule, (u64[ARCH_NREGS]){[REG_PC] = FAKE_CODE + 64 + at},
		        SP + 8 + ((at & 15) >= 11 ? 8 : 0));
		fake_destroy(f);
	}
}

/* sigcontext's order, from <asm/sigcontext.h>: r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip. */
static void test_signal(void **state)
{
	static const u8 order[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};
	struct cfi_rule rule = fake_rule(CFI_SIGNAL, REG_SP, 40);
	struct fake *f = fake_create();
	u64 frame = fake_function(f, &rule), root = add_root(f), reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_PC] = frame};

	assert_int_equal(sizeof(order), ARCH_NREGS);
	for (u32 i = 0; i < ARCH_NREGS; i++)
		fake_put(f, SP + 40 + i * 8, order[i] == REG_PC ? root : 0x1000u + order[i]);
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 2);
	check_frame(f, 1, root, 0); /* interrupted, not returned to */
	for (u32 i = 0; i < ARCH_NREGS - 1; i++)
		assert_int_equal(f->walk.reg[i], 0x1000 + i);
	assert_int_equal(f->walk.valid, (1u << ARCH_NREGS) - 1);
	f->absent[0] = true;
	assert_int_equal(fake_walk(f, reg), STOP_STACK_ABSENT);
	assert_int_equal(f->walk.nframes, 1);
	fake_destroy(f);
}

/* An instruction runs there, or what a handler returns to begins behind it. */
static void test_before_signal(void **state)
{
	struct cfi_rule rule = fake_rule(CFI_BEFORE_SIGNAL, REG_SP, 8), below = by_sp(8);
	struct fake *runs = fake_create(), *f = fake_create();
	u64 leaf, frame, root;

	rule.cfa_add = 40;
	check_caller(runs, &rule, (u64[ARCH_NREGS]){0}, SP + 8);
	leaf = fake_function(f, &below);
	frame = fake_function(f, &rule);
	root = add_root(f);
	for (u32 i = 0; i < ARCH_NREGS; i++)
		fake_put(f, SP + 8 + 40 + i * 8, root);
	fake_put(f, SP, RA(frame));
	assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = SP, [REG_PC] = leaf}), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 3);
	check_frame(f, 2, root, 0);
	fake_destroy(runs);
	fake_destroy(f);
}

/* Each register lies where a pointer of the context says, or nowhere; the pc is exact. */
static void test_context(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = fake_rule(CFI_CONTEXT, REG_FP, -0x200);
	u64 context = SP + 0x100, fp = context + 0x200, frame = fake_function(f, &rule), root = add_root(f);
	u64 reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_FP] = fp, [REG_PC] = frame};

	for (u32 i = 0; i < 18; i++)
		fake_put(f, context + i * 8, i == DWREG_R13 ? 0 : SP + 0x400 + i * 16);
	for (u32 i = 0; i < 18; i++)
		fake_put(f, SP + 0x400 + i * 16, 0x1000 + i);
	fake_put(f, context + CFI_CONTEXT_CFA, SP + 0x800);
	fake_put(f, context + CFI_CONTEXT_CFA + 8, root);
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 2);
	check_frame(f, 1, root, 0);
	assert_int_equal(f->walk.reg[REG_SP], SP + 0x800);
	assert_int_equal(f->walk.valid, (ARCH_SAVED_MASK & ~(1u << DWREG_R13)) | 1u << REG_SP | 1u << REG_PC);
	for (u32 i = 0; i < ARCH_NREGS; i++)
		if (f->walk.valid & ARCH_SAVED_MASK & 1u << i)
			assert_int_equal(f->walk.reg[i], 0x1000 + i);
	reg[REG_FP] = 0;
	assert_int_equal(fake_walk(f, reg), STOP_STACK_ABSENT);
	fake_destroy(f);
}

/* A signal frame described by ordinary rules: the pc above it is exact, even as the first byte of its function. */
static void test_signal_flag(void **state)
{
	struct cfi_rule rule = by_sp(16);
	struct fake *f = fake_create();
	u64 leaf, root;

	rule.flags = CFI_SIGNAL_FRAME;
	leaf = fake_function(f, &rule);
	root = add_root(f);
	fake_put(f, SP + 8, root);
	assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = SP, [REG_PC] = leaf}), STOP_ROOT);
	check_frame(f, 1, root, 0);
	fake_destroy(f);
}

/* Behind the system call of clone(): the parent has a caller, the child none, whatever lies on its stack. */
static void test_newborn(void **state)
{
	struct fake *parent = fake_create(), *child = fake_create();
	struct cfi_rule rule = fake_rule(CFI_NEWBORN, REG_SP, 8);
	u64 leaf = fake_function(child, &rule);

	check_caller(parent, &rule, (u64[ARCH_NREGS]){[REG_RESULT] = 1234}, SP + 8);
	fake_put(child, SP, RA(add_root(child)));
	assert_int_equal(fake_walk(child, (u64[ARCH_NREGS]){[REG_SP] = SP, [REG_PC] = leaf + 4}), STOP_ROOT);
	assert_int_equal(child->walk.nframes, 1);
	fake_destroy(parent);
	fake_destroy(child);
}

static void test_unsupported(void **state)
{
	static const u8 kinds[] = {CFI_UNSUPPORTED, CFI_KINDS, 255};

	for (u32 i = 0; i < sizeof(kinds); i++) {
		struct fake *f = fake_create();
		struct cfi_rule rule = fake_rule(kinds[i], REG_SP, 8);
		u64 leaf = fake_function(f, &rule);

		assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = SP, [REG_PC] = leaf}), STOP_CFI_UNSUPPORTED);
		check_frame(f, 0, leaf, 0);
		assert_int_equal(f->walk.nframes, 1);
		fake_destroy(f);
	}
}

static void test_ra_reg(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(8);
	u64 reg[ARCH_NREGS] = {[DWREG_RAX] = FAKE_CODE + FAKE_PAGE + FAKE_RETURN};

	rule.ra_reg = DWREG_RAX;
	check_caller(f, &rule, reg, SP + 8);
	/* a caller's rax is lost */
	reg[DWREG_RAX] = FAKE_CODE + FAKE_RETURN;
	assert_int_equal(fake_walk(f, reg), STOP_REG_LOST);
	assert_int_equal(f->walk.nframes, 2);
	fake_destroy(f);
}

/* A leaf that popped its return address into a register, and has pushed nothing yet. */
static void test_ra_reg_leaf(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(0);
	u64 reg[ARCH_NREGS] = {[DWREG_RAX] = FAKE_CODE + FAKE_PAGE + FAKE_RETURN};

	rule.ra_reg = DWREG_RAX;
	check_caller(f, &rule, reg, SP);
	fake_destroy(f);
}

/* A frame that realigned its stack: all it saved lies relative to rbp, which it saved too. */
static void test_slot_reg(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(0x80);
	u64 reg[ARCH_NREGS] = {[REG_FP] = SP + 0x100, [REG_SP] = SP, [DWREG_R12] = 1};

	rule.slot_reg = REG_FP;
	rule.slot[1] = cfi_slot(0, 1);
	rule.slot[2] = cfi_slot(-16, 1);
	rule.slot[3] = cfi_slot(16, 0);
	rule.slot[ARCH_SLOT_RA] = cfi_slot(8, 1);
	fake_put(f, SP + 0x100, 0xb9);
	fake_put(f, SP + 0x100 - 16, 0x12);
	fake_put(f, SP + 0x80 + 16, 0x13);
	fake_put(f, SP + 0x108, FAKE_CODE + FAKE_PAGE + FAKE_RETURN);
	check_caller(f, &rule, reg, SP + 0x80);
	assert_int_equal(f->walk.reg[REG_FP], 0xb9);
	assert_int_equal(f->walk.reg[DWREG_R12], 0x12);
	assert_int_equal(f->walk.reg[DWREG_R13], 0x13);
	fake_destroy(f);
}

/* A base that the callee's rule lost is not read from. */
static void test_slot_reg_lost(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule leaf = by_sp(16), middle = by_sp(16);
	u64 a, b;

	middle.slot_reg = REG_FP;
	middle.slot[0] = cfi_slot(0, 1);
	leaf.slot[1] = CFI_UNDEFINED;
	a = fake_function(f, &leaf);
	b = fake_function(f, &middle);
	fake_put(f, SP + 8, RA(b));
	fake_put(f, SP + 24, RA(add_root(f)));
	assert_int_equal(
	        fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = SP, [REG_PC] = a, [REG_FP] = SP}), STOP_STACK_ABSENT);
	assert_int_equal(f->walk.nframes, 2);
	fake_destroy(f);
}

/* A lost register far from the stack ends the walk; near it, it is believed, and its caller is marked. */
static void test_undefined(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule leaf = by_sp(16), middle = fake_rule(CFI_REG, REG_FP, 16);
	u64 a, b, root, reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_FP] = SP + 0x20};

	leaf.slot[1] = CFI_UNDEFINED;
	a = fake_function(f, &leaf);
	b = fake_function(f, &middle);
	root = add_root(f);
	reg[REG_PC] = a;
	fake_put(f, SP + 8, RA(b));
	fake_put(f, SP + 0x28, RA(root));
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	check_frame(f, 1, RA(b), FRAME_RETADDR);
	check_frame(f, 2, RA(root), FRAME_RETADDR | FRAME_GUESS);
	assert_false(walk_has(&f->walk, REG_FP));
	reg[REG_FP] = SP + (1 << 20);
	assert_int_equal(fake_walk(f, reg), STOP_REG_LOST);
	assert_int_equal(f->walk.nframes, 2);
	reg[REG_FP] = SP - 64;
	assert_int_equal(fake_walk(f, reg), STOP_REG_LOST);
	fake_destroy(f);
}

/* Three frames of which each saves some of the six registers; two save rbx. */
static void test_saved(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule[3] = {by_sp(32), by_sp(48), by_sp(32)};
	u64 fn[3], root, sp = SP, reg[ARCH_NREGS] = {[REG_SP] = SP, [DWREG_R15] = 0xf15};

	rule[0].slot[0] = cfi_slot(-16, 0);
	rule[0].slot[1] = cfi_slot(-24, 0);
	rule[1].slot[0] = cfi_slot(-40, 0);
	rule[1].slot[2] = cfi_slot(-32, 0);
	rule[1].slot[3] = cfi_slot(-24, 0);
	rule[2].slot[4] = cfi_slot(-16, 0);
	for (u32 i = 0; i < 3; i++)
		fn[i] = fake_function(f, &rule[i]);
	root = add_root(f);
	for (u32 i = 0; i < 3; i++) {
		sp += rule[i].cfa_off;
		for (u32 slot = 0; slot < ARCH_NSAVED; slot++)
			if (rule[i].slot[slot] != CFI_SAME)
				fake_put(f, sp + rule[i].slot[slot] / 2 * 8, i * 16 + slot);
		fake_put(f, sp - 8, RA(i < 2 ? fn[i + 1] : root));
	}
	reg[REG_PC] = fn[0];
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 4);
	assert_int_equal(f->walk.reg[REG_SP], sp);
	assert_int_equal(f->walk.reg[DWREG_RBX], 0x10);
	assert_int_equal(f->walk.reg[DWREG_RBP], 0x01);
	assert_int_equal(f->walk.reg[DWREG_R12], 0x12);
	assert_int_equal(f->walk.reg[DWREG_R13], 0x13);
	assert_int_equal(f->walk.reg[DWREG_R14], 0x24);
	assert_int_equal(f->walk.reg[DWREG_R15], 0xf15);
	assert_int_equal(f->walk.valid, ARCH_SAVED_MASK | 1u << REG_SP | 1u << REG_PC);
	fake_destroy(f);
}

/* A slot below the pieces of the stack that were read, and one that is absent. */
static void test_slots_absent(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(0x3008);
	u64 reg[ARCH_NREGS] = {[REG_SP] = SP};

	rule.slot[5] = cfi_slot(-0x3000, 0);
	fake_put(f, SP + 8, 0x77);
	check_caller(f, &rule, reg, SP + 0x3008);
	assert_int_equal(f->walk.reg[DWREG_R15], 0x77);
	f->absent[0] = true;
	assert_int_equal(fake_walk(f, reg), STOP_STACK_ABSENT);
	assert_int_equal(f->walk.nframes, 1);
	fake_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_reg),
	        cmocka_unit_test(test_deref),
	        cmocka_unit_test(test_indexed),
	        cmocka_unit_test(test_plt),
	        cmocka_unit_test(test_signal),
	        cmocka_unit_test(test_before_signal),
	        cmocka_unit_test(test_context),
	        cmocka_unit_test(test_signal_flag),
	        cmocka_unit_test(test_newborn),
	        cmocka_unit_test(test_unsupported),
	        cmocka_unit_test(test_ra_reg),
	        cmocka_unit_test(test_ra_reg_leaf),
	        cmocka_unit_test(test_slot_reg),
	        cmocka_unit_test(test_slot_reg_lost),
	        cmocka_unit_test(test_undefined),
	        cmocka_unit_test(test_saved),
	        cmocka_unit_test(test_slots_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
