/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's walker over fake memory: virtual threads, whose frames are in the heap or on their way. */
#include "hotspot_stack_fake.h"

enum thawing { THAWING_INTERPRETED, THAWING_COMPILED, THAWING_LAST, THAWING_LAST_COMPILED, THAWINGS };

enum taken { TAKEN_NOT, TAKEN_OFF, TAKEN_LAST /* the chunk says that it has no interpreted frames */ };

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

/* A virtual thread whose callers are in the heap still, and nothing says where. */
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

/* The state of generations now, of a reference of state 0, and which of them has moved its object since; both if that
 * is known from the table. */
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

/*
 * The VM has frozen the thread and returned to its innermost frame, which is yet to jump to cont_preempt; or the
 * stack's frames are others than the chunk's, which look alike.
 */
static void test_preempted(void **state)
{
	for (u32 preempted = 0; preempted < 2; preempted++) {
		struct fake *f = fake_create();
		struct fake_chunk c;

		fake_enter(f);
		c = fake_chunk(f, 1);
		fake_frozen_compiled(f, &c, 2, 64);
		fake_frozen_compiled(f, &c, 1, 96);
		f->pc = fake_vm.return_barrier;
		fake_compiled(f, 2, 64);
		fake_compiled(f, 1, 96);
		put32(f, c.at + fake_vm.frozen.flags, preempted << 6 | 1);
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, preempted ? "122dN" : "12122dN");
		fake_destroy(f);
	}
}

/* doYield has left what was frozen: the JavaThread has the entry, or already the entry's parent. */
static void test_yielded(void **state)
{
	static const u8 code[] = {0x48, 0x83, 0xc4, 0x40, 0x5d, 0xc3}; /* add rsp, 64; pop rbp; ret */

	for (u32 left = 0; left < 2; left++) {
		struct fake *f = fake_create();

		fake_enter(f);
		put32(f, fake_nmethod(1) - fake_vm.block_size + fake_vm.frame_size.at, 2);
		memcpy(fake_at(f, fake_code(1) + 96, sizeof(code)), code, sizeof(code));
		if (left)
			put64(f, FAKE_THREAD + fake_vm.frozen.cont_entry, 0);
		f->pc = fake_code(1) + 96;
		assert_int_equal(fake_walk(f), STOP_ROOT);
		expect(f, "12dN");
		fake_destroy(f);
	}
}

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

/* Before that the stack pointer is where the stub likes, and rbx holds the right one. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	        cmocka_unit_test(test_preempted),
	        cmocka_unit_test(test_yielded),
	        cmocka_unit_test(test_thawing),
	        cmocka_unit_test(test_thawing_torn),
	        cmocka_unit_test(test_mounting),
	        cmocka_unit_test(test_landing),
	        cmocka_unit_test(test_landing_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
