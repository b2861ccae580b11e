/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's walker over fake memory: compiled and interpreted frames, leaves at each place, reads that fail. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hotspot_fake.h"

/* Expected frames, leaf first: digit 1 or 2: the nmethod; a to d: method 0 to 3, interpreted; S: a stub; N: native. */
static void expect(const struct fake *f, const char *kinds)
{
	assert_int_equal(f->walk.nframes, strlen(kinds));
	for (u32 i = 0; kinds[i]; i++) {
		const struct frame *frame = &f->frames[i];

		if (kinds[i] == 'N') {
			assert_int_equal(frame_kind(frame), FRAME_NATIVE);
		} else if (kinds[i] == 'S') {
			assert_int_equal(hotspot_kind(frame), HOTSPOT_STUB);
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

/* What the code gives back behind the call tells how much room it has made. */
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

/* Where the code does not tell, a call that leads to this nmethod is looked for above what it has called. */
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

/* A leaf's stack pointer is where its frame says; what proves no call is a guess. */
static void test_leaf_unproven(void **state)
{
	static const u8 code[] = {0x90, 0x90};
	struct fake *f = made_room(code, sizeof(code), 0, false);

	put_stale(f);
	fake_walk(f);
	assert_true(f->walk.nframes > 1);
	assert_true(frame_flags(&f->frames[1]) & FRAME_GUESS);
	fake_destroy(f);
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

/* Nothing there has called it: no caller is made up. Who goes on later does so behind the frame, not at it again. */
static void test_uncalled(void **state)
{
	static const u8 code[] = {0x90, 0x90};
	struct fake *f = made_room(code, sizeof(code), 0, true);

	for (u32 i = 0; i < 20; i++)
		put64(f, f->sp + FAKE_FRAME - 8 + i * 8, 0x1234);
	assert_int_equal(fake_walk(f), STOP_BAD_RETADDR);
	expect(f, "1");
	assert_int_equal(f->walk.reg[REG_PC], 0x1234);
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

/* A virtual thread whose callers are in the heap still, and nobody tells where. */
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

/* On the stack enterSpecial and one thawed frame; in two chunks, with an empty one between and one on top, those that
 * it returns to. */
static struct fake *parked(void)
{
	struct fake *f = fake_create();
	struct fake_chunk c;

	fake_enter(f);
	c = fake_chunk(f, 1);
	fake_frozen_interpreted(f, &c, 0, 5);
	fake_frozen_compiled(f, &c, 1, 64);
	fake_frozen_interpreted(f, &c, 1, 9);
	fake_chunk(f, 2);
	c = fake_chunk(f, 3);
	fake_frozen_compiled(f, &c, 1, 72);
	fake_frozen_compiled(f, &c, 1, 80);
	fake_frozen_interpreted(f, &c, 2, 11);
	fake_frozen_interpreted(f, &c, 0, 12);
	fake_chunk(f, 4);
	f->pc = fake_vm.return_barrier;
	fake_compiled(f, 1, 88);
	return f;
}

#define PARKED "1ac11b1a2dN"

static void test_parked(void **state)
{
	struct fake *f = parked();

	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, PARKED);
	assert_int_equal(hotspot_bci(&f->frames[1]), 12);
	assert_int_equal(hotspot_bci(&f->frames[2]), 11);
	assert_int_equal(hotspot_pc_offset(&f->frames[3]), 80);
	assert_int_equal(hotspot_pc_offset(&f->frames[4]), 72);
	assert_int_equal(hotspot_bci(&f->frames[5]), 9);
	assert_int_equal(hotspot_bci(&f->frames[7]), 5);
	assert_true(frame_flags(&f->frames[1]) & FRAME_RETADDR);
	fake_destroy(f);
}

/* The same with references of 32 bits and with coloured ones. */
static void test_parked_references(void **state)
{
	const u64 fields[] = {FAKE_CONT + fake_vm.frozen.tail, FAKE_JAVA + 4 * 4096 + fake_vm.frozen.parent,
	        FAKE_JAVA + 3 * 4096 + fake_vm.frozen.parent, FAKE_JAVA + 2 * 4096 + fake_vm.frozen.parent};

	for (u32 kind = HOTSPOT_OOP_NARROW; kind <= HOTSPOT_OOP_COLOURED; kind++) {
		struct fake *f = parked();
		struct hotspot_vm *vm = fake_colour(f, 2);

		vm->frozen.oops = kind;
		vm->frozen.oop_base = FAKE_JAVA - 4096;
		vm->frozen.oop_shift = 3;
		for (u32 i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
			u64 oop;

			memcpy(&oop, fake_at(f, fields[i], 8), 8);
			put64(f, fields[i],
			        kind == HOTSPOT_OOP_NARROW ? (oop - FAKE_JAVA + 4096) >> 3 | 7ull << 32
			                                   : fake_coloured(oop, i));
		}
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, PARKED);
		put64(f, fields[1], kind == HOTSPOT_OOP_NARROW ? 1 << 20 : FAKE_JAVA << 13 | 1 << 12);
		assert_int_equal(fake_walk(f), STOP_VM_FROZEN);
		fake_destroy(f);
	}
}

/* A virtual thread with one chunk, references of state 0, and the chunk moved to page 3. Returns the copy. */
static struct fake *moved(u64 *chunk, u64 *copy)
{
	struct fake *f = fake_create();
	struct hotspot_vm *vm;
	struct fake_chunk c;

	fake_enter(f);
	vm = fake_colour(f, 0);
	vm->frozen.cont = 48;
	c = fake_chunk(f, 1);
	fake_frozen_compiled(f, &c, 1, 72);
	put64(f, c.at + vm->frozen.parent, fake_coloured(0, 0));
	put64(f, c.at + vm->frozen.cont, fake_coloured(FAKE_CONT, 0));
	put64(f, FAKE_CONT + vm->frozen.tail, fake_coloured(c.at, 0));
	f->pc = fake_vm.return_barrier;
	fake_interpreted(f, 0, 5);
	*chunk = c.at;
	*copy = c.at + 2 * 4096;
	memcpy(fake_at(f, *copy, 4096), fake_at(f, *chunk, 4096), 4096);
	return f;
}

#define MOVED_SLOT 3 /* zHash of the chunk's index, modulo FAKE_ENTRIES */

static void set_good(struct fake *f, u32 state)
{
	put64(f, fake_vm.frozen.z.good_mask_at, 1ull << (12 + state));
	put64(f, FAKE_HANDLE, fake_coloured(FAKE_CARRIER, state));
}

/* The state of generations now, of a reference of state 0, and which of them has moved its object since; both if it is
 * told by the table. */
static void test_parked_forwarded(void **state)
{
	static const struct {
		u32 now;
		bool old;
	} cases[] = {{1, false}, {2, true}, {3, false}, {3, true}};
	u64 chunk, copy;

	for (u32 i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake *f = moved(&chunk, &copy);
		u64 forwarding = fake_forwarding(f, cases[i].old, 1);

		set_good(f, cases[i].now);
		assert_int_equal(fake_walk(f), STOP_ROOT); /* it is not moved yet */
		expect(f, "a12dN");
		memset(fake_at(f, chunk, 4096), 0x55, 4096);
		assert_int_equal(fake_walk(f), STOP_VM_FROZEN);
		fake_moved(f, forwarding, MOVED_SLOT, chunk, copy);
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "a12dN");
		fake_moved(f, forwarding, MOVED_SLOT, chunk + 8, copy);
		fake_moved(f, forwarding, MOVED_SLOT + 1, chunk, copy);
		assert_int_equal(fake_walk(f), STOP_ROOT);
		fake_destroy(f);
	}
}

/* What the table does not hold is where it was, but not in a page that was given up; nor is anything known of a table
 * without end. */
static void test_parked_unknown(void **state)
{
	u64 chunk, copy, forwarding;
	struct fake *f = moved(&chunk, &copy);

	set_good(f, 1);
	assert_int_equal(fake_walk(f), STOP_ROOT); /* its page was not moved */
	forwarding = fake_forwarding(f, false, 1);
	for (int count = -1; count <= 0; count++) {
		put32(f, forwarding + fake_vm.frozen.z.ref_count, count);
		assert_int_equal(fake_walk(f), STOP_VM_FROZEN);
		expect(f, "a");
	}
	put32(f, forwarding + fake_vm.frozen.z.ref_count, 1);
	for (u32 i = 0; i < FAKE_ENTRIES; i++)
		fake_moved(f, forwarding, i, chunk + 8, copy);
	assert_int_equal(fake_walk(f), STOP_VM_FROZEN);
	fake_destroy(f);
}

/* A chunk of another continuation. */
static void test_parked_foreign(void **state)
{
	u64 chunk, copy;
	struct fake *f = moved(&chunk, &copy);

	put64(f, chunk + 48, fake_coloured(FAKE_CONT + 64, 0));
	assert_int_equal(fake_walk(f), STOP_VM_FROZEN);
	expect(f, "a");
	fake_destroy(f);
}

/* A collector has moved the chunk: its header leads to the copy, or it is something else by now. */
static void test_parked_moved(void **state)
{
	struct fake *f = parked();
	u64 chunk = FAKE_JAVA + 3 * 4096, copy = FAKE_JAVA + 6 * 4096;

	memcpy(fake_at(f, copy, 4096), fake_at(f, chunk, 4096), 4096);
	memset(fake_at(f, chunk + 8, 4088), 0x55, 4088);
	put64(f, chunk, copy | 3);
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, PARKED);
	put64(f, chunk, 1);
	assert_int_equal(fake_walk(f), STOP_VM_FROZEN);
	expect(f, "1");
	fake_destroy(f);
}

/* A chunk that is its own parent. */
static void test_parked_circle(void **state)
{
	struct fake *f = parked();

	put64(f, FAKE_JAVA + 2 * 4096 + fake_vm.frozen.parent, FAKE_JAVA + 2 * 4096);
	assert_int_equal(fake_walk(f), STOP_DEPTH);
	fake_destroy(f);
}

/* Of continuations within each other, the one that the stack pointer is in. */
static void test_nested(void **state)
{
	struct fake *f = fake_create();
	struct fake_chunk c;
	u64 outer;

	fake_enter(f);
	outer = f->sp;
	c = fake_chunk(f, 1);
	fake_frozen_compiled(f, &c, 1, 72);
	f->pc = fake_vm.return_barrier;
	fake_interpreted(f, 0, 5);
	fake_compiled(f, 2, 64);
	put64(f, f->sp + 8, outer);
	put64(f, FAKE_THREAD + fake_vm.frozen.cont_entry, f->sp);
	fake_interpreted(f, 1, 5);
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "b2a12dN");
	fake_destroy(f);
}

/* doYield freezes: before the chunk has the frames of the stack, and when it has. */
static void test_freezing(void **state)
{
	for (u32 done = 0; done < 2; done++) {
		struct fake *f = fake_create();
		struct fake_chunk c;

		fake_enter(f);
		put64(f, FAKE_THREAD + fake_vm.frozen.last_java_sp, f->sp);
		c = fake_chunk(f, 1);
		fake_frozen_interpreted(f, &c, 0, 5);
		f->pc = fake_vm.return_barrier;
		fake_interpreted(f, 1, 5);
		fake_interpreted(f, 2, 5);
		if (done) {
			fake_frozen_interpreted(f, &c, 1, 5);
			fake_frozen_interpreted(f, &c, 2, 5);
		}
		put32(f, fake_nmethod(1) - fake_vm.block_size + fake_vm.frame_size.at, 2);
		put64(f, f->sp - 8, f->pc);
		put64(f, f->sp - 16, f->fp);
		f->sp -= 16;
		f->pc = fake_code(1) + 96;
		f->called = true;
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "1cba2dN");
		fake_destroy(f);
	}
}

enum thawing { THAWING_INTERPRETED, THAWING_COMPILED, THAWING_LAST, THAWING_LAST_COMPILED, THAWINGS };

enum taken { TAKEN_NOT, TAKEN_OFF, TAKEN_LAST /* the chunk says that it has no interpreted frames */ };

/* The innermost frame of the chunk is just being thawed: it is there still, or it is taken off. */
static struct fake *thawing(enum thawing kind, enum taken taken)
{
	struct fake *f = fake_create();
	struct fake_chunk c, rest;
	u64 entry, sp;

	fake_enter(f);
	entry = f->sp;
	c = fake_chunk(f, 1);
	if (kind < THAWING_LAST)
		fake_frozen_interpreted(f, &c, 0, 5);
	if (kind == THAWING_COMPILED)
		fake_frozen_compiled(f, &c, 1, 72);
	rest = c;
	if (kind == THAWING_COMPILED || kind == THAWING_LAST_COMPILED)
		fake_frozen_compiled(f, &c, 1, 64);
	else
		fake_frozen_interpreted(f, &c, 2, 5);
	f->sp = ((entry - ((c.end - c.sp) / 8 + 4) * 8) & ~15ull) - 32;
	f->pc = fake_vm.return_barrier + 32;
	f->called = true;
	if (!taken)
		return f;
	sp = kind == THAWING_INTERPRETED ? c.fp + 16 : rest.sp;
	put32(f, c.at + fake_vm.frozen.sp, (sp - c.at - fake_vm.frozen.stack) / 8);
	put32(f, c.at + fake_vm.frozen.max_thawing, (c.end - rest.sp) / 8);
	if (taken == TAKEN_LAST)
		put32(f, c.at + fake_vm.frozen.flags, 0);
	return f;
}

static void test_thawing(void **state)
{
	static const char *const frames[] = {"Sca2dN", "S11a2dN", "Sc2dN", "S12dN"};

	for (u32 kind = 0; kind < THAWINGS; kind++)
		for (u32 taken = TAKEN_NOT; taken <= (kind < THAWING_LAST ? TAKEN_OFF : TAKEN_LAST); taken++) {
			struct fake *f = thawing(kind, taken);

			assert_int_equal(fake_walk(f), STOP_ROOT);
			expect(f, frames[kind]);
			fake_destroy(f);
		}
}

/* Between two of the chunk's fields: the last frame is taken off by one, not yet by the other; nor is it found where
 * none can be. */
static void test_thawing_torn(void **state)
{
	for (u32 kind = THAWING_LAST; kind < THAWINGS; kind++) {
		struct fake *f = thawing(kind, TAKEN_NOT);

		put32(f, FAKE_JAVA + 4096 + fake_vm.frozen.sp, FAKE_CHUNK_WORDS);
		if (kind == THAWING_LAST_COMPILED)
			put32(f, FAKE_JAVA + 4096 + fake_vm.frozen.flags, 0);
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, kind == THAWING_LAST ? "Sc2dN" : "S12dN");
		put32(f, FAKE_JAVA + 4096 + fake_vm.frozen.max_thawing, FAKE_CHUNK_WORDS + 1);
		assert_int_equal(fake_walk(f), STOP_VM_FROZEN);
		expect(f, "S2dN");
		fake_destroy(f);
	}
}

/* cont_thaw, which enterSpecial calls, and the end of both stubs. */
static void test_mounting(void **state)
{
	struct fake *f = fake_create();

	fake_enter(f);
	f->sp -= 200;
	f->pc = fake_vm.thaw + 16;
	f->called = true;
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "S2dN");
	fake_destroy(f);
}

static void test_landing(void **state)
{
	static const u8 end[] = {0x48, 0x83, 0xec, 0x10, 0x5d, 0xc3};
	static const u32 at[] = {0, 4, 5}, down[] = {0, 16, 8};

	for (u32 i = 0; i < 3; i++) {
		struct fake *f = fake_create();

		fake_interpreted(f, 3, 7);
		fake_compiled(f, 2, 64);
		fake_compiled(f, 1, 64);
		put64(f, f->sp - 8, f->pc);
		put64(f, f->sp - 16, f->fp);
		f->sp -= down[i];
		memcpy(fake_at(f, fake_vm.thaw + fake_vm.thaws_size - 5, 6), end, 6);
		f->pc = fake_vm.thaw + fake_vm.thaws_size - 5 + at[i];
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "S12dN");
		fake_destroy(f);
	}
}

/* Before that the stack pointer is where the stub likes, and rbx tells. */
static void test_landing_ahead(void **state)
{
	struct fake *f = fake_create();
	struct hotspot_vm *vm = arena_at(f->arena, f->vm, sizeof(*vm));

	vm->barrier_landing = 20;
	fake_interpreted(f, 3, 7);
	fake_compiled(f, 2, 64);
	fake_compiled(f, 1, 64);
	put64(f, f->sp - 8, f->pc);
	put64(f, f->sp - 16, f->fp);
	f->rbx = f->sp;
	f->sp += 24;
	f->pc = fake_vm.thaw + fake_vm.thaws_size - 20;
	assert_int_equal(fake_walk(f), STOP_ROOT);
	expect(f, "S12dN");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_mixed),
	        cmocka_unit_test(test_entry),
	        cmocka_unit_test(test_leaves),
	        cmocka_unit_test(test_leaves_amid),
	        cmocka_unit_test(test_moved),
	        cmocka_unit_test(test_room),
	        cmocka_unit_test(test_stale),
	        cmocka_unit_test(test_leaf_unproven),
	        cmocka_unit_test(test_wrapper),
	        cmocka_unit_test(test_handle),
	        cmocka_unit_test(test_uncalled),
	        cmocka_unit_test(test_deoptimised),
	        cmocka_unit_test(test_skeleton),
	        cmocka_unit_test(test_frozen),
	        cmocka_unit_test(test_parked),
	        cmocka_unit_test(test_parked_references),
	        cmocka_unit_test(test_parked_forwarded),
	        cmocka_unit_test(test_parked_unknown),
	        cmocka_unit_test(test_parked_foreign),
	        cmocka_unit_test(test_parked_moved),
	        cmocka_unit_test(test_parked_circle),
	        cmocka_unit_test(test_nested),
	        cmocka_unit_test(test_freezing),
	        cmocka_unit_test(test_thawing),
	        cmocka_unit_test(test_thawing_torn),
	        cmocka_unit_test(test_mounting),
	        cmocka_unit_test(test_landing),
	        cmocka_unit_test(test_landing_ahead),
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
