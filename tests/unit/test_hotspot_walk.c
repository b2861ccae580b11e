/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's walker over fake memory: compiled and interpreted frames, leaves at each place, reads that fail. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotspot_fake.h"

/* Expected frames, leaf first: digit 1 or 2: the nmethod; a to d: method 0 to 3, interpreted; N: native. */
static void expect(const struct fake *f, const char *kinds)
{
	assert_int_equal(f->walk.nframes, strlen(kinds));
	for (u32 i = 0; kinds[i]; i++) {
		const struct frame *frame = &f->frames[i];

		if (kinds[i] == 'N') {
			assert_int_equal(frame_kind(frame), FRAME_NATIVE);
		} else if (kinds[i] >= 'a') {
			assert_int_equal(hotspot_kind(frame), HOTSPOT_METHOD);
			assert_int_equal(frame_addr(frame), fake_method(kinds[i] - 'a'));
			assert_int_equal(hotspot_tier(frame), 0);
		} else {
			assert_int_equal(hotspot_kind(frame), HOTSPOT_NMETHOD);
			assert_int_equal(frame_addr(frame), fake_nmethod(kinds[i] - '0'));
			assert_int_equal(hotspot_cookie(frame), kinds[i] - '0');
		}
	}
}

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

/* The interpreter is making the frame: method and sender are in registers yet. */
static void test_entry(void **state)
{
	struct fake *f = fake_create();

	fake_interpreted(f, 0, 5);
	fake_interpreted(f, 1, 0);
	f->r13 = f->fp + 16;
	f->rbx = fake_method(2);
	f->sp = f->fp;
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "caN");
	fake_destroy(f);
}

/* Each instruction of the prologue and of the epilogue as the leaf. */
static void test_leaves(void **state)
{
	static const struct {
		u32 offset, sp; /* from where it stands when the frame is whole */
		bool saved;	/* rbp is on the stack */
	} at[] = {{0, 56, false}, {7, 56, false}, {8, 48, true}, {12, 0, true}, {64, 0, true}, {128, 0, true},
	        {132, 48, true}, {133, 56, false}, {140, 56, false}, {146, 56, false}};

	for (u32 i = 0; i < sizeof(at) / sizeof(*at); i++) {
		struct fake *f = fake_create();
		u64 fp;

		fake_interpreted(f, 0, 5);
		fp = f->fp;
		fake_compiled(f, 1, at[i].offset);
		f->sp += at[i].sp;
		f->fp = at[i].saved ? 0x1234 : fp;
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "1aN");
		fake_destroy(f);
	}
}

/* C2 has pushed two words for a moment. */
static void test_moved(void **state)
{
	struct fake *f = fake_create();

	fake_interpreted(f, 0, 5);
	fake_compiled(f, 1, 64);
	f->sp -= 16;
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "1aN");
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

/* Its method is not there yet: it was deoptimised just now. The links hold, and the walk goes on. */
static void test_skeleton(void **state)
{
	struct fake *f = fake_create();

	fake_interpreted(f, 0, 5);
	fake_interpreted(f, 1, 5);
	put64(f, f->fp - 24, 0);
	assert_int_equal(fake_walk(f), STOP_ROOT);
	assert_int_equal(hotspot_kind(&f->frames[0]), HOTSPOT_STUB);
	assert_true(frame_flags(&f->frames[0]) & FRAME_APPROX);
	assert_int_equal(frame_addr(&f->frames[1]), fake_method(0));
	fake_destroy(f);
}

/* A virtual thread whose callers are in the heap still: it returns to the barrier. */
static void test_frozen(void **state)
{
	struct fake *f = fake_create();

	f->pc = fake_vm.return_barrier;
	fake_compiled(f, 1, 64);
	fake_interpreted(f, 0, 5);
	assert_int_equal(fake_walk(f), STOP_VM_FROZEN);
	expect(f, "a1");
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
	const u64 block = fake_nmethod(1) - fake_vm.block_size, before = block - 4 * FAKE_SEGMENT, behind = block + 2 * FAKE_SEGMENT;
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
	struct walk_memo *at[2] = {0}, saved;

	assert_int_equal(fake_walk(f), STOP_ROOT);
	for (u32 i = 0, n = 0; i < WALK_MEMOS && n < 2; i++)
		if (f->memos[i].key)
			at[n++] = &f->memos[i];
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

/* Each read fails once: the walk ends with a reason, and shows no frame that is not there. */
static void test_faults(void **state)
{
	struct fake *f = mixed();
	u32 frames, truncated = 0;
	int reads;

	assert_int_equal(fake_walk(f), STOP_ROOT);
	reads = f->reads;
	frames = f->walk.nframes;
	assert_true(reads > 5);
	for (f->fail = 0; f->fail < reads; f->fail++) {
		memset(f->memos, 0, sizeof(f->memos));
		for (u32 warm = 0; warm < 2; warm++) {
			int stop = fake_walk(f);

			assert_true(stop > STOP_NONE && stop < STOP_MAX && stop != STOP_DEPTH);
			assert_true(f->walk.nframes <= frames);
			truncated += !stop_is_complete(stop);
		}
	}
	assert_true(truncated > 0);
	fake_destroy(f);
}

/* Every word of the stack and of the headers takes bad values: the walk ends. */
static void test_broken(void **state)
{
	struct fake *f = mixed();
	const u64 ranges[][2] = {{f->sp, FAKE_STACK + FAKE_BYTES - 4096}, {fake_nmethod(1), fake_nmethod(1) + 64},
	        {FAKE_DATA + 32, FAKE_DATA + 96}, {fake_method(0), fake_method(0) + 192}};

	for (u32 r = 0; r < sizeof(ranges) / sizeof(*ranges); r++)
		for (u64 at = ranges[r][0]; at < ranges[r][1]; at += 8) {
			const u64 bad[] = {0, ~0ull, 1, 7, at, at + 8, at - 8, fake_code(1) + 64, FAKE_INTERP + 8, 1ull << 63};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_mixed),
	        cmocka_unit_test(test_entry),
	        cmocka_unit_test(test_leaves),
	        cmocka_unit_test(test_moved),
	        cmocka_unit_test(test_deoptimised),
	        cmocka_unit_test(test_skeleton),
	        cmocka_unit_test(test_frozen),
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
