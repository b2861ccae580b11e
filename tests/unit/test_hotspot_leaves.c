/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's walker over fake memory: leaves at each place, whose frames are whole, there in part, or none. */
#include "hotspot_stack_fake.h"

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

/*
 * C1's second prologue, for on-stack replacement, behind a jump of the method's own; then what only looks like one:
 * room is made for a call, rbp is stored.
 */
static void test_leaves_amid(void **state)
{
	static const u8 code[] = {0xeb, 0xf0, 0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec,
	        FAKE_FRAME - 16, 0x90, 0x48, 0x83, 0xec, FAKE_FRAME - 16, 0x48, 0x83, 0xec, FAKE_FRAME - 8, 0x48, 0x89,
	        0x6c, 0x24, 0x10};
	static const struct {
		u32 offset, sp; /* as in test_leaves() */
		bool saved;
	} at[] = {{0, 0, true}, {2, 56, false}, {9, 56, false}, {10, 48, true}, {14, 0, true}, {15, 0, true},
	        {19, 0, true}, {23, 0, true}};

	for (u32 i = 0; i < sizeof(at) / sizeof(*at); i++) {
		struct fake *f = fake_create();
		u64 fp;

		memcpy(fake_at(f, fake_code(1) + 80, sizeof(code)), code, sizeof(code));
		fake_interpreted(f, 0, 5);
		fp = f->fp;
		fake_compiled(f, 1, 80 + at[i].offset);
		f->sp += at[i].sp;
		f->fp = at[i].saved ? 0x1234 : fp;
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "1aN");
		fake_destroy(f);
	}
}

/* Each instruction of the prologue and of the epilogue as the leaf. */
static void test_leaves(void **state)
{
	static const struct {
		u32 offset, sp; /* from where it stands when the frame is whole */
		bool saved;     /* rbp is on the stack */
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

/* The end of a frame as the leaf: at add rsp, at pop rbp, and at each of these places behind it. */
static void check_end(const u8 *code, u32 size, const u32 *behind, u32 n)
{
	for (u32 i = 0; i < n + 2; i++) {
		struct fake *f = fake_create();
		u64 fp;

		memcpy(fake_at(f, fake_code(1) + 64, size), code, size);
		fake_interpreted(f, 0, 5);
		fp = f->fp;
		fake_compiled(f, 1, 64 + (i < 2 ? i * 4 : behind[i - 2]));
		f->sp += i < 2 ? i * 48 : 56;
		f->fp = i < 2 ? 0x1234 : fp;
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "1aN");
		fake_destroy(f);
	}
}

/* An exception is left to a stub by a jump, with the frame taken off. */
static void test_leaves_by_a_jump(void **state)
{
	static const u8 code[] = {0x48, 0x83, 0xc4, FAKE_FRAME - 16, /* add rsp, the frame */
	        0x5d,                                                /* pop rbp */
	        0xe9, 0x00, 0x10, 0x00, 0x00};                       /* jmp */
	static const u32 behind[] = {5};

	check_end(code, sizeof(code), behind, 1);
}

/* A method with ReservedStackAccess asks for the reserved zone before it returns. */
static void test_leaves_reserved(void **state)
{
	static const u8 code[] = {0x48, 0x83, 0xc4, FAKE_FRAME - 16, 0x5d, /* add rsp, the frame; pop rbp */
	        0x49, 0x3b, 0xa7, 0xb8, 0x05, 0x00, 0x00,                  /* cmp rsp, [r15 + 0x5b8] */
	        0x72, 0x02, 0x90, 0x90, 0xc3};                             /* jb; the reserved zone's end; ret */
	static const u8 far[] = {0x48, 0x83, 0xc4, FAKE_FRAME - 16, 0x5d, 0x49, 0x3b, 0xa7, 0xb8, 0x05, 0x00, 0x00,
	        0x0f, 0x82, 0x02, 0x00, 0x00, 0x00, 0x90, 0x90, 0xc3};
	static const u32 behind[] = {5, 12};

	check_end(code, sizeof(code), behind, 2);
	check_end(far, sizeof(far), behind, 2);
}

/* Continuation.doYield, whose prologue is push rbp; mov rbp, rsp alone. */
static void test_pushes_rbp(void **state)
{
	static const u8 code[] = {0x55, 0x48, 0x8b, 0xec};

	for (u32 i = 0; i < 2; i++) {
		struct fake *f = fake_create();
		u64 fp;

		memcpy(fake_at(f, fake_code(1), sizeof(code)), code, sizeof(code));
		fake_interpreted(f, 0, 5);
		fp = f->fp;
		fake_compiled(f, 1, i);
		put32(f, fake_nmethod(1) - fake_vm.block_size + fake_vm.frame_size.at, 2);
		put32(f, fake_nmethod(1) - fake_vm.block_size + fake_vm.frame_complete.at, sizeof(code));
		f->sp += FAKE_FRAME - (i ? 16 : 8);
		f->fp = i ? 0x1234 : fp;
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

/* A leaf that has pushed a word was called by way of a method handle's intrinsic, which jumps to it. */
static void test_handle(void **state)
{
	static const u8 code[] = {0x90, 0x90};
	struct fake *f = fake_create();

	fake_interpreted(f, 0, 5);
	for (u32 i = 0; i < 3; i++) /* what is interpreted is too far above to be asked */
		fake_compiled(f, 2, 72);
	fake_compiled(f, 1, 64);
	memcpy(fake_at(f, fake_code(1) + 64, sizeof(code)), code, sizeof(code));
	fake_put_header(f, fake_nmethod(3) - fake_vm.block_size, 16, fake_code(3), 3);
	put64(f, fake_nmethod(3) - fake_vm.block_size + fake_vm.deopt.at, fake_nmethod(3));
	fake_call(f, fake_code(2) + 72, fake_code(3));
	f->sp -= 8;
	put64(f, f->sp, 7);
	put64(f, f->sp + FAKE_FRAME - 8, 0x1234);
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "1222aN");
	assert_true(frame_flags(&f->frames[1]) & FRAME_GUESS);
	fake_destroy(f);
}

/* An intrinsic of method handles has no frame; a barrier has pushed registers, one of them with an address of code. */
static void test_frameless(void **state)
{
	static const u8 code[] = {0x90, 0x90};

	for (u32 pushed = 0; pushed <= 27; pushed += 9)
		for (u32 called = 0; called < 2; called++) {
			struct fake *f = fake_create();

			fake_interpreted(f, 0, 5);
			fake_compiled(f, 2, 72);
			fake_compiled(f, 1, 64);
			f->sp = f->sp + FAKE_FRAME - 8 - pushed * 8;
			f->fp = 0x1234;
			for (u32 i = 0; i < pushed; i++)
				put64(f, f->sp + i * 8, i % 10 ? 0x1234 : fake_code(2) + 80);
			memcpy(fake_at(f, fake_code(1) + 64, sizeof(code)), code, sizeof(code));
			put32(f, fake_nmethod(1) - fake_vm.block_size + fake_vm.frame_size.at, 0);
			fake_call(f, fake_code(2) + 72, fake_code(1));
			f->called = called;
			assert_int_equal(fake_walk(f), STOP_ROOT);
			expect(f, "12aN");
			fake_destroy(f);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_entry),
	        cmocka_unit_test(test_leaves_amid),
	        cmocka_unit_test(test_leaves),
	        cmocka_unit_test(test_leaves_by_a_jump),
	        cmocka_unit_test(test_leaves_reserved),
	        cmocka_unit_test(test_pushes_rbp),
	        cmocka_unit_test(test_moved),
	        cmocka_unit_test(test_handle),
	        cmocka_unit_test(test_frameless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
