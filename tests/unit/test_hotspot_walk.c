/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's walker over fake memory: compiled and interpreted frames, leaves at each place, reads that fail. */
#include "hotspot_stack_fake.h"

/* Interpreted, compiled twice, interpreted. */
static struct fake *mixed(void)
{
	struct fake *f = fake_create();

	fake_interpreted(f, 0, 5);
	fake_compiled(f, 1, 64);
	fake_compiled(f, 2, 72);
	fake_interpreted(f, 1, 9);
	return f;
}

static void test_mixed(void **state)
{
	struct fake *f = mixed();

	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "b21aN");
	assert_int_equal(hotspot_bci(&f->frames[0]), 9);
	assert_int_equal(hotspot_pc_offset(&f->frames[1]), 72);
	assert_int_equal(hotspot_pc_offset(&f->frames[2]), 64);
	assert_int_equal(hotspot_bci(&f->frames[3]), 5);
	assert_true(frame_flags(&f->frames[1]) & FRAME_RETADDR);
	f->r13 = fake_bytecode(1) + 11; /* the leaf's position is in a register */
	assert_int_equal(fake_walk(f), STOP_ROOT);
	assert_int_equal(hotspot_bci(&f->frames[0]), 11);
	f->r13 = fake_bytecode(1) + 100; /* behind its bytecode: it is something else */
	fake_walk(f);
	assert_int_equal(hotspot_bci(&f->frames[0]), 9);
	fake_destroy(f);
}

/* The first nmethod, interpreted code's callee, has called something at offset 64, or is there itself; this code
 * follows. */
static struct fake *made_room(const u8 *code, u32 size, u32 room, bool called)
{
	struct fake *f = fake_create();

	fake_interpreted(f, 0, 5);
	fake_compiled(f, 1, 64);
	memcpy(fake_at(f, fake_code(1) + 64, size), code, size);
	f->sp -= room;
	f->called = called;
	return f;
}

/* A return address of earlier times where the frame size says: the call before it leads to the other nmethod. */
static void put_stale(struct fake *f)
{
	put64(f, f->sp + FAKE_FRAME - 8, fake_code(2) + 72);
	put64(f, f->sp + FAKE_FRAME - 16, f->sp + 2 * FAKE_FRAME);
	fake_call(f, fake_code(2) + 72, fake_code(2));
}

/* What the code gives back behind the call shows how much room it has made. */
static void test_room(void **state)
{
	static const struct {
		u32 room;
		u8 code[48];
	} cases[] = {
	        {64, {0x48, 0x8b, 0x74, 0x24, 0x08,                                /* mov rsi, [rsp + 8] */
	                     0x4c, 0x8b, 0x94, 0x24, 0x10, 0, 0, 0,                /* mov r10, [rsp + 16] */
	                     0xc5, 0xfe, 0x6f, 0x44, 0x24, 0x20,                   /* vmovdqu ymm0, [rsp + 32] */
	                     0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x44, 0x24, 0x01,       /* vmovdqu64 zmm0, [rsp + 64] */
	                     0xf3, 0x0f, 0x7e, 0x4c, 0x24, 0x18,                   /* movq xmm1, [rsp + 24] */
	                     0xc5, 0xf8, 0x77, 0x48, 0x83, 0xc4, 64, 0xeb, 0x10}}, /* vzeroupper; add rsp, 64; jmp */
	        {16, {0x5f, 0x5e, 0x90}}, /* pop rdi; pop rsi: C1's slow_subtype_check */
	        {24, {0x48, 0x89, 0xc6, 0x48, 0x83, 0xc4, 16, 0x58, 0xeb,
	                     0x10}}, /* mov rsi, rax; add rsp, 16; pop rax; jmp */
	        {8, {0x41, 0x5a, 0x90}},
	        {0x120, {0x48, 0x81, 0xc4, 0x20, 0x01, 0, 0, 0xeb, 0x10}},
	        {0, {0x48, 0x83, 0xc4, FAKE_FRAME - 16, 0x5d, 0xc3}}, /* the end of the frame itself */
	        {0, {0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0, 0x90, 0x58}},
	};

	for (u32 i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (u32 called = 0; called < 2; called++) {
			struct fake *f = made_room(cases[i].code, sizeof(cases[i].code), cases[i].room, called);

			if (cases[i].room > 16)
				put_stale(f);
			assert_int_equal(fake_walk(f), STOP_ROOT);
			expect(f, "1aN");
			assert_false(frame_flags(&f->frames[1]) & FRAME_GUESS);
			fake_destroy(f);
		}
}

/* A leaf that is about to call with words that it pushes: what it gives back later shows how many it has by now. */
static void test_takes(void **state)
{
	static const struct {
		u32 room;
		u8 code[16];
	} cases[] = {
	        {0, {0x56, 0x50, 0xe8, 0, 0, 0, 0, 0x5e, 0x5e, 0x90}}, /* push rsi; push rax; call; pop rsi; pop rsi */
	        {8, {0x50, 0xe8, 0, 0, 0, 0, 0x5e, 0x5e, 0x90}},
	        {8, {0x41, 0x52, 0xe8, 0, 0, 0, 0, 0x41, 0x5a, 0x5e, 0x90}}, {16, {0xe8, 0, 0, 0, 0, 0x5e, 0x5e, 0x90}},
	        {8, {0x5e, 0x50, 0xe8, 0, 0, 0, 0, 0x58, 0x90}}, /* pop rsi; then push for another call */
	};

	for (u32 i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake *f = made_room(cases[i].code, sizeof(cases[i].code), cases[i].room, false);

		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "1aN");
		assert_false(frame_flags(&f->frames[1]) & FRAME_GUESS);
		fake_destroy(f);
	}
}

/* Of an interpreted method all is as when it called, but it is another that calls: it has a call of just this. */
static void test_stale_interpreter(void **state)
{
	static const u8 code[] = {0x90, 0x90};
	struct fake *f = fake_create();
	u64 fp;

	fake_interpreted(f, 0, 5);
	fp = f->fp;
	fake_compiled(f, 2, 72);
	fake_compiled(f, 1, 64);
	memcpy(fake_at(f, fake_code(1) + 64, sizeof(code)), code, sizeof(code));
	f->sp -= 24;
	f->called = true;
	put64(f, f->sp + FAKE_FRAME, FAKE_INTERP + 0x100);
	put64(f, f->sp + FAKE_FRAME - 8, fp);
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "12aN");
	fake_destroy(f);
}

/* Where the code does not show it, a call that leads to this nmethod is looked for above what it has called. */
static void test_stale(void **state)
{
	static const u8 code[] = {0x90, 0x90};
	struct fake *f = made_room(code, sizeof(code), 24, true);

	put_stale(f);
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "1aN");
	assert_true(frame_flags(&f->frames[1]) & FRAME_GUESS);
	fake_destroy(f);
}

/* No call there leads to it: a stale return address, which is not believed, at a leaf as little as elsewhere. */
static void test_unproven(void **state)
{
	static const u8 code[] = {0x90, 0x90};

	for (u32 called = 0; called < 2; called++) {
		struct fake *f = made_room(code, sizeof(code), 0, called);

		put_stale(f);
		for (u32 i = 1; i < 20; i++)
			put64(f, f->sp + FAKE_FRAME - 8 + i * 8, 0x1234);
		assert_int_equal(fake_walk(f), STOP_BAD_RETADDR);
		expect(f, "1");
		fake_destroy(f);
	}
}

/* A native method's wrapper has pushed arguments: its frame is at rbp. no_handler: null, or the blob's beginning. */
static void check_wrapper(u64 no_handler)
{
	static const u8 code[] = {0x90, 0x90};
	struct fake *f = made_room(code, sizeof(code), 0, true);

	put64(f, fake_nmethod(1) - fake_vm.block_size + fake_vm.deopt.at, no_handler);
	f->fp = f->sp + FAKE_FRAME - 16;
	f->sp -= 48;
	put_stale(f);
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "1aN");
	assert_false(frame_flags(&f->frames[1]) & FRAME_GUESS);
	fake_destroy(f);
}

static void test_wrapper(void **state)
{
	check_wrapper(0);
	check_wrapper(fake_nmethod(1));
}

/* Nothing there has called it: no caller is made up. Who goes on later does so behind the frame, not at it again. */
static void test_uncalled(void **state)
{
	static const u8 code[] = {0x90, 0x90};
	struct fake *f = made_room(code, sizeof(code), 0, true);

	for (u32 i = 0; i < 20; i++)
		put64(f, f->sp + FAKE_FRAME - 8 + i * 8, 0x1234);
	assert_int_equal(fake_walk(f), STOP_BAD_RETADDR);
	expect(f, "1");
	assert_int_equal(f->walk.reg[REG_PC], 0);
	fake_destroy(f);
}

static void test_deoptimised(void **state)
{
	struct fake *f = fake_create();

	fake_interpreted(f, 0, 5);
	fake_compiled(f, 1, 64);
	put64(f, f->sp + FAKE_ORIG_PC, f->pc);
	f->pc = fake_code(1) + FAKE_DEOPT;
	fake_compiled(f, 2, 64);
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "21aN");
	assert_int_equal(hotspot_pc_offset(&f->frames[1]), 64);
	fake_destroy(f);
}

static void test_depth(void **state)
{
	struct fake *f = fake_create();

	for (u32 i = 0; i < 60; i++) {
		fake_interpreted(f, 0, 1);
		fake_compiled(f, 1, 64);
	}
	assert_int_equal(fake_walk(f), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 121);
	fake_destroy(f);
}

/* A caller that is an nmethod, with its address and compile_id; the frames around it are interpreted. */
static void expect_nmethod(struct fake *f, u64 block, u32 id)
{
	assert_int_equal(fake_walk(f), STOP_ROOT);
	assert_int_equal(f->walk.nframes, 4);
	assert_int_equal(hotspot_kind(&f->frames[1]), HOTSPOT_NMETHOD);
	assert_int_equal(frame_addr(&f->frames[1]), block + fake_vm.block_size);
	assert_int_equal(hotspot_cookie(&f->frames[1]), id);
	assert_int_equal(frame_addr(&f->frames[2]), fake_method(0));
}

static struct fake *one_compiled(void)
{
	struct fake *f = fake_create();

	fake_interpreted(f, 0, 5);
	fake_compiled(f, 1, 64);
	fake_interpreted(f, 1, 9);
	return f;
}

/* A later walk finds the same with fewer reads. */
static void test_recalled(void **state)
{
	struct fake *f = mixed();
	struct frame before[FAKE_FRAMES];
	int reads;

	assert_int_equal(fake_walk(f), STOP_ROOT);
	memcpy(before, f->frames, sizeof(before));
	reads = f->reads;
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "b21aN");
	assert_memory_equal(before, f->frames, f->walk.nframes * sizeof(*before));
	assert_true(f->reads <= reads - 4);
	fake_destroy(f);
}

/* What was found is another nmethod when it is asked for again: in its place, around it, or in a part of it. */
static void test_reused(void **state)
{
	const u64 block = fake_nmethod(1) - fake_vm.block_size, before = block - 4 * FAKE_SEGMENT,
	          behind = block + 2 * FAKE_SEGMENT;
	struct fake *f = one_compiled();

	expect_nmethod(f, block, 1);
	fake_put_header(f, block, 16, fake_code(1), 3);
	expect_nmethod(f, block, 3);
	put64(f, block + fake_vm.used.at, 0); /* freed: all else of the header stays */
	fake_put_header(f, before, 20, fake_code(1), 4);
	expect_nmethod(f, before, 4);
	put64(f, before + fake_vm.used.at, 0);
	put64(f, block + fake_vm.used.at, 0);
	fake_put_header(f, block, 2, block + 128, 5);
	fake_put_header(f, behind, 14, fake_code(1), 6);
	expect_nmethod(f, behind, 6);
	fake_destroy(f);
}

/* A freed block without a new owner of its memory is not recalled either, nor one that is too short by now. */
static void test_not_recalled(void **state)
{
	const u64 block = fake_nmethod(1) - fake_vm.block_size;
	struct fake *f = one_compiled();
	int cold, warm;

	expect_nmethod(f, block, 1);
	cold = f->reads;
	expect_nmethod(f, block, 1);
	warm = f->reads;
	assert_true(warm < cold);
	put64(f, block + fake_vm.used.at, 0);
	fake_walk(f);
	assert_true(f->reads > warm);
	put64(f, block + fake_vm.used.at, 1);
	put64(f, block + fake_vm.length.at, (fake_code(1) + 64 - block) / FAKE_SEGMENT);
	fake_walk(f);
	assert_true(f->reads > warm);
	put64(f, block + fake_vm.length.at, 16);
	put32(f, block + fake_vm.kind.at, 8);
	fake_walk(f);
	assert_true(f->reads > warm);
	fake_destroy(f);
}

/* Cells of two writers at once, of nobody, of others: each bit that is not as it was left. */
static void test_torn(void **state)
{
	struct fake *f = mixed();
	struct walk_cache *at[2] = {0}, saved;

	assert_int_equal(fake_walk(f), STOP_ROOT);
	for (u32 i = 0, n = 0; i < WALK_CACHES && n < 2; i++)
		if (f->caches[i].key)
			at[n++] = &f->caches[i];
	assert_non_null(at[1]);
	saved = *at[0];
	at[0]->value = at[1]->value;
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "b21aN");
	for (u32 bit = 0; bit < 128; bit++) {
		*at[0] = saved;
		*(bit < 64 ? &at[0]->key : &at[0]->value) ^= 1ull << (bit & 63);
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "b21aN");
	}
	fake_destroy(f);
}

/* Each read fails once: the walk ends with a reason, and shows no frame that is not there, and all if it is complete.
 */
static void faults(struct fake *f)
{
	u32 frames, truncated = 0;
	int reads;

	assert_int_equal(fake_walk(f), STOP_ROOT);
	reads = f->reads;
	frames = f->walk.nframes;
	assert_true(reads > 5);
	for (f->fail = 0; f->fail < reads; f->fail++) {
		memset(f->caches, 0, sizeof(f->caches));
		for (u32 warm = 0; warm < 2; warm++) {
			int stop = fake_walk(f);

			assert_true(stop > STOP_NONE && stop < STOP_MAX && stop != STOP_DEPTH);
			assert_true(f->walk.nframes <= frames);
			assert_true(!stop_is_complete(stop) || f->walk.nframes == frames);
			truncated += !stop_is_complete(stop);
		}
	}
	assert_true(truncated > 0);
	fake_destroy(f);
}

static void test_faults(void **state)
{
	faults(mixed());
	faults(parked());
}

/* Every word of these ranges takes bad values: the walk ends. */
static void broken(struct fake *f, const u64 (*ranges)[2], u32 n)
{
	for (u32 r = 0; r < n; r++)
		for (u64 at = ranges[r][0]; at < ranges[r][1]; at += 8) {
			const u64 bad[] = {
			        0, ~0ull, 1, 7, at, at + 8, at - 8, fake_code(1) + 64, FAKE_INTERP + 8, 1ull << 63};
			u64 saved;

			memcpy(&saved, fake_at(f, at, 8), 8);
			for (u32 k = 0; k < sizeof(bad) / sizeof(*bad); k++) {
				int stop;

				put64(f, at, bad[k]);
				stop = fake_walk(f);
				assert_true(stop > STOP_NONE && stop < STOP_MAX);
			}
			put64(f, at, saved);
		}
	fake_destroy(f);
}

static void test_broken(void **state)
{
	struct fake *f = mixed();
	const u64 stack[][2] = {{f->sp, FAKE_STACK + FAKE_BYTES - 4096}, {fake_nmethod(1), fake_nmethod(1) + 64},
	        {FAKE_DATA + 32, FAKE_DATA + 96}, {fake_method(0), fake_method(0) + 192}};
	const u64 chunks[][2] = {{FAKE_THREAD + 64, FAKE_THREAD + 80}, {FAKE_CONT, FAKE_CONT + 64},
	        {FAKE_JAVA + 4096, FAKE_JAVA + 4096 + 64},
	        {FAKE_JAVA + 4096 + 64 + 200 * 8, FAKE_JAVA + 4096 + 64 + 256 * 8},
	        {FAKE_JAVA + 4 * 4096, FAKE_JAVA + 4 * 4096 + 64}};

	broken(f, stack, 4);
	broken(parked(), chunks, 5);
}

/* Of JavaThread and OSThread; the first JavaThread, and another. */
enum { NEXT = 8, OSTHREAD = 16, ANCHOR_SP = 24, ANCHOR_PC = 32, ANCHOR_FP = 40, PTHREAD = 8 };

#define THREAD_LIST  (FAKE_JAVA + 1024)
#define THREAD_FIRST (FAKE_JAVA + 1088)
#define THREAD_OTHER (FAKE_JAVA + 1216)
#define THIS_PTHREAD 0x7fff12340700ull

static void attach(struct fake *f, u64 thread)
{
	u64 osthread = thread + 64;

	put64(f, THREAD_LIST, thread);
	put64(f, thread + OSTHREAD, osthread);
	put64(f, osthread + PTHREAD, THIS_PTHREAD);
}

/* Where a walk goes on that was lost at once; 0: nowhere. */
static u64 resumed(struct fake *f)
{
	int stop = fake_walk(f);

	f->walk.thread_pointer = THIS_PTHREAD;
	f->walk.resume[0] = (struct region_resume){.runtime = RUNTIME_HOTSPOT, .vm = f->vm};
	return walk_resume(&f->walk, (u32)stop, false) ? 0 : f->walk.reg[REG_PC];
}

/* What a walk has found or missed before does not bind a later one. */
static void test_resumes(void **state)
{
	struct fake *f = mixed();
	struct hotspot_vm *vm = arena_at(f->arena, f->vm, sizeof(*vm));
	u64 sp = f->sp, pc = f->pc, fp = f->fp;

	vm->anchor = (struct hotspot_anchor){.list = THREAD_LIST,
	        .next = NEXT,
	        .osthread = OSTHREAD,
	        .pthread_id = PTHREAD,
	        .sp = ANCHOR_SP,
	        .pc = ANCHOR_PC,
	        .fp = ANCHOR_FP};
	f->sp -= 256;
	f->pc = 0x12345678; /* nobody's */
	assert_int_equal(resumed(f), 0);
	attach(f, THREAD_FIRST);
	assert_int_equal(resumed(f), 0);
	for (u64 thread = THREAD_FIRST; thread <= THREAD_OTHER; thread += THREAD_OTHER - THREAD_FIRST) {
		attach(f, thread);
		put64(f, thread + ANCHOR_SP, sp);
		put64(f, thread + ANCHOR_PC, pc);
		put64(f, thread + ANCHOR_FP, fp);
		assert_int_equal(resumed(f), pc);
		assert_int_equal(f->walk.reg[REG_SP], sp);
		put64(f, thread + ANCHOR_SP, 0);
		assert_int_equal(resumed(f), 0);
		put64(f, thread + OSTHREAD, 0);
		assert_int_equal(resumed(f), 0);
	}
	fake_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_resumes),
	        cmocka_unit_test(test_mixed),
	        cmocka_unit_test(test_room),
	        cmocka_unit_test(test_takes),
	        cmocka_unit_test(test_stale),
	        cmocka_unit_test(test_stale_interpreter),
	        cmocka_unit_test(test_unproven),
	        cmocka_unit_test(test_wrapper),
	        cmocka_unit_test(test_uncalled),
	        cmocka_unit_test(test_deoptimised),
	        cmocka_unit_test(test_depth),
	        cmocka_unit_test(test_recalled),
	        cmocka_unit_test(test_reused),
	        cmocka_unit_test(test_not_recalled),
	        cmocka_unit_test(test_torn),
	        cmocka_unit_test(test_faults),
	        cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
