/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that were disassembled before are those that capstone finds, wherever they are. */
#include <capstone/capstone.h>

#include "unit.h"

#include "runtimes/hotspot/code/hotspot_flow_known.h"

extern const u8 __executable_start, etext;

#define AT   0x7000000000
#define PART 65521 /* pieces begin in the middle of instructions */

static void expect_size(csh handle, const u8 *bytes, size_t size, const struct flow_ins *ins)
{
	cs_insn *in;

	if (bytes[0] == 0xc4 || bytes[0] == 0xc5 || bytes[0] == 0x62) /* vector_length() knows more of them */
		return;
	assert_int_equal(cs_disasm(handle, bytes, size, ins->addr, 1, &in), 1);
	assert_int_equal(in->size, ins->size);
	cs_free(in, 1);
}

static void read_twice(csh handle, const u8 *bytes, size_t size)
{
	struct flow first = {0}, again = {0};

	assert_null(flow_read(bytes, AT, size, &first));
	assert_null(flow_read(bytes, 2 * AT, size, &again));
	assert_int_equal(first.n, again.n);
	for (u32 i = 0; i < first.n; i++) {
		struct flow_ins *a = &first.ins[i], *b = &again.ins[i];

		expect_size(handle, bytes + (a->addr - AT), size - (a->addr - AT), a);
		b->addr -= AT;
		b->target -= b->target ? AT : 0;
		assert_memory_equal(a, b, offsetof(struct flow_ins, size) + sizeof(a->size)); /* padding follows */
	}
	flow_free(&first);
	flow_free(&again);
}

/* Of this program, from its ELF header to the end of its code: also bytes that are no instructions. */
static void test_as_capstone(void **state)
{
	size_t left = (size_t)(&etext - &__executable_start), size;
	csh handle;

	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
	for (const u8 *at = &__executable_start; left; at += size, left -= size) {
		size = left < PART ? left : PART;
		read_twice(handle, at, size);
	}
	cs_close(&handle);
}

static void test_where_it_is(void **state)
{
	const u8 call[] = {0xe8, 0x10, 0, 0, 0}, far[] = {0xe8, 0, 0xff, 0xff, 0xff}, jump[] = {0xff, 0xe0};
	struct flow_ins ins = {.addr = AT, .target = AT + 0x15, .size = sizeof(call), .op = FLOW_CALL}, got;

	flow_known_keep(call, &ins);
	assert_true(flow_known_find(call, sizeof(call), 0x1000, &got));
	assert_int_equal(got.addr, 0x1000);
	assert_int_equal(got.target, 0x1015);
	assert_false(flow_known_find(call, sizeof(call) - 1, 0x1000, &got)); /* cut off */
	assert_true(flow_known_find(far, sizeof(far), 0x1000, &got));
	assert_int_equal(got.target, 0x1000 + sizeof(far) - 0x100);
	ins = (struct flow_ins){.addr = AT, .size = sizeof(jump), .op = FLOW_END};
	flow_known_keep(jump, &ins);
	assert_true(flow_known_find(jump, sizeof(jump), 0x1000, &got));
	assert_int_equal(got.target, 0);
}

/* What another JVM has elsewhere, and other constants than a state depends on. */
static void test_without_addresses(void **state)
{
	static const struct {
		u8 bytes[10], other[10];
		u32 size;
		bool known;
	} cases[] = {
	        {{0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8}, {0x49, 0xba, 8, 7, 6, 5, 4, 3, 2, 1}, 10, true},
	        {{0x4c, 0x8b, 0x15, 1, 2, 3, 4}, {0x4c, 0x8b, 0x15, 4, 3, 2, 1}, 7, true},  /* mov at(%rip), %r10 */
	        {{0x83, 0x3d, 1, 2, 3, 4, 9}, {0x83, 0x3d, 4, 3, 2, 1, 9}, 7, true},        /* cmpl $9, at(%rip) */
	        {{0x48, 0x81, 0xec, 1, 2, 3, 4}, {0x48, 0x81, 0xec, 1, 2, 3, 5}, 7, false}, /* sub %rsp */
	        {{0x48, 0x89, 0xac, 0x24, 1, 2, 3}, {0x48, 0x89, 0xac, 0x24, 3, 2, 1}, 8, false}, /* mov (%rsp) */
	};
	struct flow_ins ins = {.addr = AT, .op = FLOW_OTHER}, got;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ins.size = (u8)cases[i].size;
		flow_known_keep(cases[i].bytes, &ins);
		assert_true(flow_known_find(cases[i].bytes, cases[i].size, AT, &got));
		assert_int_equal(flow_known_find(cases[i].other, cases[i].size, AT, &got), cases[i].known);
	}
}

/* A prefix at the end of what was read may belong to any instruction. */
static void test_prefix(void **state)
{
	const u8 alone[] = {0x66};
	struct flow_ins ins = {.addr = AT, .size = 1}, got;

	flow_known_keep(alone, &ins);
	assert_false(flow_known_find(alone, sizeof(alone), AT, &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_as_capstone),
	        cmocka_unit_test(test_where_it_is),
	        cmocka_unit_test(test_without_addresses),
	        cmocka_unit_test(test_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
