/* SPDX-License-Identifier: Apache-2.0 */
/* The stubs that thaw frames, and the code that calls them, in a test's own memory. */
#include "unit.h"

#include "runtimes/hotspot/code/hotspot_frozen_code.h"

#define BASE    0x7f0000ull
#define BYTES   4096
#define THAW    1024
#define SIZE    160 /* of cont_thaw */
#define BARRIER (BASE + THAW + SIZE)

static const u8 begin[] = {0x49, 0x8b, 0xa7, 0xc0, 0x04, 0, 0}, keeps[] = {0x48, 0x8b, 0xd8};
static const u8 end[] = {0x48, 0x8b, 0xe3, 0x48, 0x83, 0xec, 0x10, 0x5d, 0xc3};

struct code {
	struct memory memory;
	u8 bytes[BYTES];
};

static bool read_code(struct memory *memory, void *dst, size_t size, uint64_t addr)
{
	struct code *c = (struct code *)memory;

	if (addr < BASE || addr - BASE > BYTES || size > BYTES - (addr - BASE))
		return false;
	memcpy(dst, c->bytes + (addr - BASE), size);
	return true;
}

static void put_at(struct code *c, u32 at, const void *from, u32 size)
{
	memcpy(c->bytes + at, from, size);
}

/* Two calls, what they return, and the end. */
static void put_stub(struct code *c, u32 at, u32 size)
{
	put_at(c, at + size / 2, keeps, sizeof(keeps));
	put_at(c, at + size - 40, keeps, sizeof(keeps));
	put_at(c, at + size - sizeof(end), end, sizeof(end));
}

static void put_call(struct code *c, u32 at, u64 target)
{
	s32 distance = target - (BASE + at + 5);

	c->bytes[at] = 0xe8;
	put_at(c, at + 1, &distance, sizeof(distance));
}

/* A stub that ends alike comes first, then cont_thaw, the barrier, and that for exceptions, which begins like it. */
static void make(struct code *c)
{
	memset(c, 0x90, sizeof(*c));
	c->memory.read = read_code;
	put_at(c, 500, end, sizeof(end));
	c->bytes[THAW] = 0x59;
	put_stub(c, THAW, SIZE);
	put_at(c, THAW + SIZE, begin, sizeof(begin));
	put_stub(c, THAW + SIZE, SIZE + 20);
	put_at(c, THAW + 2 * SIZE + 20, begin, sizeof(begin));
}

static void finds_the_barrier(void **state)
{
	struct code c;
	u16 entry;

	make(&c);
	assert_int_equal(hotspot_barrier_code(c.bytes, BYTES, BASE), BARRIER);
	for (u32 size = 0; size < THAW + SIZE + 3; size++)
		assert_int_equal(hotspot_barrier_code(c.bytes, size, BASE), 0);
	assert_true(hotspot_barrier_entry(&c.memory, BARRIER, &entry));
	assert_int_equal(entry, 0x4c0);
	assert_false(hotspot_barrier_entry(&c.memory, BARRIER - 1, &entry));
	assert_false(hotspot_barrier_entry(&c.memory, BASE + BYTES - 4, &entry));
	c.bytes[THAW + SIZE] = 0x48;
	assert_int_equal(hotspot_barrier_code(c.bytes, BYTES, BASE), BASE + THAW + 2 * SIZE + 20);
}

static void measures_the_stubs(void **state)
{
	struct hotspot_vm vm = {.return_barrier = BARRIER};
	struct code c;

	make(&c);
	hotspot_thaw_code(&c.memory, BARRIER - 500, &vm);
	assert_int_equal(vm.thaw, 0);
	hotspot_thaw_code(
	        &c.memory, BASE + 600, &vm); /* no stub begins there: the first end is not just before the barrier */
	assert_int_equal(vm.thaw, 0);
	hotspot_thaw_code(&c.memory, BASE + THAW, &vm);
	assert_int_equal(vm.thaw, BASE + THAW);
	assert_int_equal(vm.thaw_size, SIZE);
	assert_int_equal(vm.thaws_size, 2 * SIZE + 20 - 1);
	assert_int_equal(vm.thaw_landing, 40 - sizeof(keeps) - 1);
	assert_int_equal(vm.barrier_landing, 40 - sizeof(keeps) - 1);
}

/* Of 25: movq $0, [r15 + 0x480] …; mov rsp, [r15 + 0x4c0]; …; pop rbp; ret */
static void finds_where_the_preempted_return(void **state)
{
	static const u8 forgets[] = {0x49, 0xc7, 0x87, 0x80, 0x04, 0, 0, 0, 0, 0, 0}, leaves[] = {0x5d, 0xc3};
	struct hotspot_vm vm = {.return_barrier = BARRIER, .frozen = {.cont_entry = 0x4c0, .last_java_sp = 0x480}};
	const u32 at = BARRIER - BASE + 300;
	struct code c;

	make(&c);
	hotspot_preempt_code(&c.memory, &vm);
	assert_int_equal(vm.preempt, 0);
	put_at(&c, at, forgets, sizeof(forgets));
	put_at(&c, at + 36, begin, sizeof(begin));
	hotspot_preempt_code(&c.memory, &vm);
	assert_int_equal(vm.preempt, 0);
	put_at(&c, at + 100, leaves, sizeof(leaves));
	hotspot_preempt_code(&c.memory, &vm);
	assert_int_equal(vm.preempt, BASE + at);
	assert_int_equal(vm.preempt_moved, 43);
	assert_int_equal(vm.preempt_left, 100);
	assert_int_equal(vm.preempt_size, 102);
	vm.preempt = 0;
	vm.frozen.last_java_sp = 0x488;
	hotspot_preempt_code(&c.memory, &vm);
	assert_int_equal(vm.preempt, 0);
}

static void finds_the_call(void **state)
{
	struct hotspot_blob nm = {.code = BASE + 2048, .code_end = BASE + 2048 + 200};
	struct code c;
	u64 thaw, pc;

	make(&c);
	put_call(&c, 2048 + 20, BASE);
	put_call(&c, 2048 + 30, BARRIER);
	put_call(&c, 2048 + 40, BARRIER + 8);
	assert_false(hotspot_enter_special_call(&c.memory, &nm, BARRIER, &thaw, &pc));
	put_call(&c, 2048 + 60, BASE + THAW);
	assert_true(hotspot_enter_special_call(&c.memory, &nm, BARRIER, &thaw, &pc));
	assert_int_equal(thaw, BASE + THAW);
	assert_int_equal(pc, BASE + 2048 + 65);
	put_call(&c, 2048 + 195, BASE + THAW);
	assert_false(hotspot_enter_special_call(&c.memory, &nm, BARRIER, &thaw, &pc));
	nm.code_end -= 4; /* a call that is cut */
	assert_true(hotspot_enter_special_call(&c.memory, &nm, BARRIER, &thaw, &pc));
	nm.code_end = nm.code + BYTES;
	assert_false(hotspot_enter_special_call(&c.memory, &nm, BARRIER, &thaw, &pc));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(finds_the_barrier),
	        cmocka_unit_test(measures_the_stubs),
	        cmocka_unit_test(finds_where_the_preempted_return),
	        cmocka_unit_test(finds_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
