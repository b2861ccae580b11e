/* SPDX-License-Identifier: Apache-2.0 */
/* Whole stacks over fake memory: tables, windows of the stack, depth, absent pages, cycles, and each way to end. */
#include "native_stack_fake.h"

static void test_no_region(void **state)
{
	struct fake *f = fake_create();
	struct cfi_rule rule = by_sp(16);
	u64 leaf = fake_function(f, &rule), reg[ARCH_NREGS] = {[REG_SP] = SP, [REG_PC] = leaf + FAKE_PAGE};

	assert_int_equal(fake_walk(f, reg), STOP_NO_REGION);
	reg[REG_PC] = leaf - 1;
	assert_int_equal(fake_walk(f, reg), STOP_NO_REGION);
	assert_int_equal(f->walk.nframes, 0);
	assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){[REG_SP] = SP}), STOP_NO_REGION); /* called a null pointer */
	assert_int_equal(fake_walk(f, (u64[ARCH_NREGS]){}), STOP_ROOT);
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
		assert_int_equal(f->walk.nframes, off ? 1 : 2); /* only a leaf may have popped its return address */
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

/*
 * Functions that save a register, and some that lose or keep it, one behind the other in one table and across windows:
 * the outermost takes its CFA from what the last has saved.
 */
static void test_saved(void **state)
{
	for (s32 size = 32; size <= 480; size += 56) {
		struct fake *f = fake_create();
		struct cfi_rule saves = by_sp(size), framed = fake_rule(CFI_REG, DWREG_RBX, 16);
		u64 fn, last, root, sp = SP + 8, reg[ARCH_NREGS] = {[REG_SP] = SP + 8};

		saves.slot[0] = cfi_slot(-16, 0);
		saves.slot[3] = size & 16 ? CFI_SAME : CFI_UNDEFINED;
		fn = fake_function(f, &saves);
		last = fake_function(f, &framed);
		root = add_root(f);
		reg[REG_PC] = fn;
		for (u32 i = 0; i < 40; i++, sp += (u64)size) {
			fake_put(f, sp + (u64)size - 16, i < 39 ? sp : sp + 800);
			fake_put(f, sp + (u64)size - 8, RA(i < 39 ? fn : last));
		}
		fake_put(f, sp - (u64)size + 808, RA(root));
		assert_int_equal(fake_walk(f, reg), STOP_ROOT);
		assert_int_equal(f->walk.nframes, 42);
		assert_int_equal(f->walk.reg[REG_SP], sp - (u64)size + 816);
		assert_int_equal(walk_has(&f->walk, DWREG_R13), !!(size & 16));
		fake_destroy(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_no_region),
	        cmocka_unit_test(test_no_progress),
	        cmocka_unit_test(test_tables),
	        cmocka_unit_test(test_rows),
	        cmocka_unit_test(test_windows),
	        cmocka_unit_test(test_absent_page),
	        cmocka_unit_test(test_unaligned),
	        cmocka_unit_test(test_depth),
	        cmocka_unit_test(test_saved),
	        cmocka_unit_test(test_faults),
	        cmocka_unit_test(test_cycles),
	        cmocka_unit_test(test_unwind_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
