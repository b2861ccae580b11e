/* SPDX-License-Identifier: Apache-2.0 */
/* The native step over fake memory: each kind of rule, recovery of registers, and each way to end. */
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

/* --- without CFI --- */

/* --- ends --- */

static void test_no_region(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(16);
	u64 leaf = fake_function(f, &rule), reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_PC] = leaf + FAKE_PAGE};

	assert_int_equal(fake_walk(f, reg), STOP_NO_REGION);
	reg[REG_PC] = leaf - 1;
	assert_int_equal(fake_walk(f, reg), STOP_NO_REGION);
	assert_int_equal(f->walk.nframes, 0);
	reg[REG_PC] = leaf;
	fake_put(f, SP + 8, leaf); /* one byte back lies before the code */
	assert_int_equal(fake_walk(f, reg), STOP_BAD_RETADDR);
	fake_put(f, SP + 8, leaf + FAKE_PAGE + 1);
	assert_int_equal(fake_walk(f, reg), STOP_BAD_RETADDR);
	assert_int_equal(f->walk.nframes, 1);
	f->nregions = 0;
	assert_int_equal(fake_walk(f, reg), STOP_NO_PROCESS);
	fake_destroy(f);
}

static void test_no_progress(void **state)
{
	for (s32 off = -16; off <= 0; off += 8) {
		struct fake *f = fake_create();
		struct cfi_rule rule = by_sp(off);
		u64 leaf = fake_function(f, &rule);

		fake_put(f, SP + off - 8, RA(leaf));
		assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = SP, [REG_PC] = leaf}), STOP_NO_PROGRESS);
		assert_int_equal(f->walk.nframes, 1);
		fake_destroy(f);
	}
}

static void test_tables(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(16);
	u64 leaf = fake_function(f, &rule), reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_PC] = leaf};

	f->region[0].end += FAKE_PAGE; /* beyond its table */
	reg[REG_PC] = leaf + FAKE_PAGE;
	assert_int_equal(fake_walk(f, reg), STOP_ARENA);
	f->region[0].table = 100 << ARENA_SLAB_BITS;
	assert_int_equal(fake_walk(f, reg), STOP_ARENA);
	f->placed = 100 << ARENA_SLAB_BITS;
	f->walk.regions = f->placed;
	f->walk.region = (struct region){0};
	f->walk.nframes = 0;
	assert_int_equal(walk_step(&f->walk), STOP_NO_PROCESS);
	fake_destroy(f);
}

/* A rule for each byte of a page, so that each step of the search is taken; the pages around have none. */
static void test_rows(void **state)
{
	struct fake *f = fake_create();
	struct cfi_entry *entries = calloc(CFI_PAGE_SIZE, sizeof(*entries));
	u64 start, root, sp = SP;
	struct cfi *cfi;
	u32 *tables;

	start = fake_function(f, NULL);
	root = add_root(f);
	for (u32 i = 0; i < CFI_PAGE_SIZE; i++)
		entries[i] = (struct cfi_entry){start + CFI_PAGE_SIZE + i, by_sp(16 + (s32)i * 8)};
	assert_null(cfi_from_entries(entries, CFI_PAGE_SIZE, start, start + 3 * CFI_PAGE_SIZE, &cfi));
	assert_null(modules_place(f->arena, cfi, &tables));
	f->region[0].table = tables[0];
	f->region[0].origin = cfi->pieces[0].start;
	for (u32 i = 0; i < CFI_PAGE_SIZE; i++) {
		fake_put(f, sp + 8 + i * 8, RA(root));
		assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = sp, [REG_PC] = start + CFI_PAGE_SIZE + i}),
		        STOP_ROOT);
		assert_int_equal(f->walk.reg[REG_SP], sp + 16 + i * 8);
		fake_put(f, sp + 8 + i * 8, 0);
	}
	free(entries);
	free(tables);
	cfi_destroy(cfi);
	fake_destroy(f);
}

/* --- deep stacks: windows, depth, absent pages --- */

/* A function that calls itself with frames of this size, from sp to its root at or below end; returns how many frames.
 */
static u32 build_recursion(struct fake *f, u32 size, u64 sp, u64 end, u64 *reg)
{
	struct cfi_rule rule = by_sp((s32)size);
	u64 fn = fake_function(f, &rule), root = add_root(f);
	u32 n = 0;

	memset(reg, 0, ARCH_NREGS * sizeof(*reg));
	reg[REG_SP] = sp;
	reg[REG_PC] = fn;
	for (; sp + 2 * size <= end; sp += size, n++)
		fake_put(f, sp + size - 8, RA(fn));
	fake_put(f, sp + size - 8, RA(root));
	return n + 2;
}

static void test_windows(void **state)
{
	static const u32 sizes[] = {256, 1016, 1024, 1032, 2040, 4088, 4096, 4104, 8192};
	static const u32 starts[] = {0, 8, 1016, 3064, 3072, 4080, 4088, 4096};

	for (u32 i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (u32 k = 0; k < sizeof(starts) / sizeof(*starts); k++) {
			struct fake *f = fake_create();
			u64 reg[ARCH_NREGS];
			u32 n = build_recursion(f, sizes[i], FAKE_STACK + starts[k], FAKE_STACK + FAKE_BYTES, reg);

			assert_int_equal(fake_walk(f, reg), STOP_ROOT);
			assert_int_equal(f->walk.nframes, n);
			fake_destroy(f);
		}
}

/* The walk goes exactly as far as the stack is there, wherever it starts in its page. */
static void test_absent_page(void **state)
{
	for (u32 start = 0; start < FAKE_PAGE; start += 264) {
		struct fake *f = fake_create();
		u64 reg[ARCH_NREGS];

		build_recursion(f, 264, FAKE_STACK + start / 8 * 8, FAKE_STACK + FAKE_BYTES, reg);
		f->absent[1] = true;
		assert_int_equal(fake_walk(f, reg), STOP_STACK_ABSENT);
		assert_int_equal(f->walk.nframes, 1 + (FAKE_PAGE - start) / 264);
		f->absent[0] = true;
		assert_int_equal(fake_walk(f, reg), STOP_STACK_ABSENT);
		assert_int_equal(f->walk.nframes, 1);
		fake_destroy(f);
	}
}

static void test_unaligned(void **state)
{
	for (u32 off = 1; off < 8; off++) {
		struct fake *f = fake_create();
		u64 reg[ARCH_NREGS];

		build_recursion(f, 256, SP, FAKE_STACK + FAKE_BYTES, reg);
		reg[REG_SP] += off;
		assert_int_equal(fake_walk(f, reg), STOP_STACK_ABSENT);
		assert_int_equal(f->walk.nframes, 1);
		fake_destroy(f);
	}
}

static void test_depth(void **state)
{
	struct fake *f = fake_create();
	u64 reg[ARCH_NREGS];
	u32 n = build_recursion(f, 512, FAKE_STACK, FAKE_STACK + FAKE_BYTES, reg);

	for (f->max = 0; f->max < n; f->max++) {
		assert_int_equal(fake_walk(f, reg), STOP_DEPTH);
		assert_int_equal(f->walk.nframes, f->max);
	}
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	assert_int_equal(f->walk.nframes, n);
	fake_destroy(f);
}

/* Whatever read fails, and if all fail from there on, the walk ends and the frames before stay as they were. */
static void test_faults(void **state)
{
	struct fake *f = fake_create();
	struct frame sound[FAKE_FRAMES];
	u64 reg[ARCH_NREGS];
	u32 n, reads;

	build_mixture(f, reg);
	assert_int_equal(fake_walk(f, reg), STOP_ROOT);
	n = f->walk.nframes;
	reads = f->reads;
	assert_int_equal(n, 6);
	assert_true(reads > 6);
	memcpy(sound, f->frames, sizeof(sound));
	for (f->fail = 0; f->fail < reads; f->fail++)
		for (u32 all = 0; all < 2; all++) {
			int stop;

			f->failures = all ? 1u << 30 : 1;
			stop = fake_walk(f, reg);
			assert_true(stop == STOP_ROOT || stop == STOP_STACK_ABSENT);
			assert_in_range(f->walk.nframes, stop == STOP_ROOT ? n : 1, n);
			assert_memory_equal(f->frames, sound, f->walk.nframes * sizeof(*sound));
			assert_true(f->walk.nframes == n || all);
		}
	fake_destroy(f);
}

/* --- stacks that lead back to themselves --- */

static void test_cycles(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule saves = fake_rule(CFI_REG, REG_FP, 16), signal = fake_rule(CFI_SIGNAL, REG_SP, 0);
	u64 a, b, c, reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_FP] = SP + 0x40};

	saves.slot[1] = cfi_slot(-16, 0);
	a = fake_function(f, &saves);
	b = fake_function(f, NULL);
	c = fake_function(f, &signal);
	fake_put(f, SP + 0x40, SP + 0x40);
	fake_put(f, SP + 0x48, RA(a));
	reg[REG_PC] = a;
	assert_int_equal(fake_walk(f, reg), STOP_NO_PROGRESS);
	assert_int_equal(f->walk.nframes, 2);
	fake_put(f, SP + 0x48, RA(b)); /* by frame pointer: the scan looks above, and finds nothing */
	reg[REG_PC] = b;
	assert_int_equal(fake_walk(f, reg), STOP_NO_CFI);
	assert_int_equal(f->walk.nframes, 1); /* so the first guess is not believed either */
	fake_put(f, SP + 15 * 8, SP);         /* a signal frame whose stack pointer is its own */
	fake_put(f, SP + 16 * 8, c);
	reg[REG_PC] = c;
	assert_int_equal(fake_walk(f, reg), STOP_DEPTH);
	assert_int_equal(f->walk.nframes, f->max);
	fake_destroy(f);
}

/* unwind_stack() walks the same way. */
static void test_unwind_stack(void **state)
{
	struct fake *f = fake_create();
	struct modules modules = {.arena = f->arena};
	struct process p = {.modules = &modules, .memory = &f->memory};
	struct unwind_registers regs = {0};
	struct frame frames[FAKE_FRAMES];
	u32 n;

	build_mixture(f, regs.reg);
	assert_int_equal(fake_walk(f, regs.reg), STOP_ROOT);
	p.entry.regions = f->placed;
	p.entry.nregions = f->nregions;
	assert_int_equal(unwind_stack(&p, &regs, frames, FAKE_FRAMES, &n), STOP_ROOT);
	assert_int_equal(n, f->walk.nframes);
	assert_memory_equal(frames, f->frames, n * sizeof(*frames));
	assert_int_equal(unwind_stack(&p, &regs, frames, 2, &n), STOP_DEPTH);
	assert_int_equal(n, 2);
	free(modules.caches);
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
	        cmocka_unit_test(test_no_region),
	        cmocka_unit_test(test_no_progress),
	        cmocka_unit_test(test_tables),
	        cmocka_unit_test(test_rows),
	        cmocka_unit_test(test_windows),
	        cmocka_unit_test(test_absent_page),
	        cmocka_unit_test(test_unaligned),
	        cmocka_unit_test(test_depth),
	        cmocka_unit_test(test_faults),
	        cmocka_unit_test(test_cycles),
	        cmocka_unit_test(test_unwind_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
