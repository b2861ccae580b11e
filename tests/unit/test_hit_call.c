/* SPDX-License-Identifier: Apache-2.0 */
/* hit_call.h: what a call is shown as, out of a record that may hold anything. */
#include <sys/syscall.h>

#include "unit.h"

#include "probes/hit/hit_call.h"
#include "unwind/process/syscall.h"

#define DI 5
#define SI 4
#define DX 1

static void expect(struct hit_function *f, const struct latency_record *record, const char *wanted)
{
	char *text = hit_call_text(f, record);

	assert_non_null(text);
	assert_string_equal(text, wanted);
	free(text);
}

static void point(struct latency_record *r, u32 reg, u64 addr, const void *bytes, size_t size)
{
	r->reg[reg] = addr;
	r->read |= 1u << reg;
	memcpy(r->memory[reg], bytes, size);
}

static void test_code(void **state)
{
	struct hit_function f = {.name = "f", .looked = true, .syscall = -1};
	struct latency_record r = {.reg = {[DI] = 3, [SI] = (u64)-2, [DX] = 0x7f0000001000}};

	expect(&f, &r, "f(...)");
	f.nregs = 3;
	expect(&f, &r, "f(3, -2, 0x7f0000001000)");
	point(&r, DX, 0x7f0000001000, "a \"b\"\n", 7);
	expect(&f, &r, "f(3, -2, \"a \\\"b\\\"\\n\")");
	point(&r, DX, 0x7f0000001000, "a\x1b[2J", 6);
	expect(&f, &r, "f(3, -2, 0x7f0000001000)");
	point(&r, DX, 0x7f0000001000, " \xef\xbf\xbd", 5); /* bytes of a structure */
	expect(&f, &r, "f(3, -2, 0x7f0000001000)");
	point(&r, DX, 0x7f0000001000, "ab\xff", 4);
	expect(&f, &r, "f(3, -2, 0x7f0000001000)");
	point(&r, DX, 0x7f0000001000, "M\xc3\xbcller", 8);
	expect(&f, &r, "f(3, -2, \"M\xc3\xbcller\")");
	point(&r, DX, 0x7f0000001000, "x", 2); /* one letter may be a number */
	expect(&f, &r, "f(3, -2, 0x7f0000001000)");
	f.nregs = 1000;
	r.read = 0;
	expect(&f, &r, "f(3, -2, 0x7f0000001000, 0, 0, 0)");
}

/* What is longer than what was taken of it is cut, and marked so. */
static void test_cut(void **state)
{
	struct hit_function f = {.name = "f", .looked = true, .syscall = -1, .nregs = 1};
	struct latency_record r = {0};
	char wanted[LATENCY_MEMORY + 16] = "f(\"";

	memset(wanted + 3, 'a', LATENCY_MEMORY);
	strcpy(wanted + 3 + LATENCY_MEMORY, "\"...)");
	memset(r.memory[DI], 'a', LATENCY_MEMORY);
	r.reg[DI] = 1ull << 40;
	r.read = 1u << DI;
	expect(&f, &r, wanted);
}

static void test_described(void **state)
{
	struct hit_function f = {.name = "f",
	        .looked = true,
	        .syscall = -1,
	        .described = true,
	        .parameters = {.n = 6,
	                .of = {{.name = "a", .kind = PARAMETER_SIGNED, .size = 2, .nregs = 1, .reg = {DI}},
	                        {.kind = PARAMETER_BOOL, .size = 1, .nregs = 1, .reg = {SI}},
	                        {.name = "s", .kind = PARAMETER_TEXT, .nregs = 2, .reg = {DX, 2}},
	                        {.name = "gone", .kind = PARAMETER_SIGNED, .size = 4},
	                        {.name = "far", .kind = PARAMETER_SIGNED, .size = 4, .nregs = 1, .reg = {200}},
	                        {.name = "last", .kind = PARAMETER_UNSIGNED, .size = 1, .stack = 16}}}};
	struct latency_record r = {.reg = {[DI] = 0xabcdffff, [SI] = 0xff00, [2] = 3, [LATENCY_SP] = 0x7000}};

	point(&r, DX, 0x5000, "text", 5);
	expect(&f, &r, "f(a = -1, false, s = \"tex\", gone = ?, far = ?, last = ?)");
	point(&r, LATENCY_SP, 0x7000, "return..0123456\x85", 16);
	r.memory[LATENCY_SP][16] = 0x2a;
	expect(&f, &r, "f(a = -1, false, s = \"tex\", gone = ?, far = ?, last = 42)");
	f.parameters.of[5].stack = LATENCY_MEMORY - 4;
	r.reg[2] = 5; /* one byte of it is no text */
	expect(&f, &r, "f(a = -1, false, s = 0x5000, 5 bytes, gone = ?, far = ?, last = ?)");
}

/* A pointer to a structure of a pointer and a length, in both orders. */
static void test_behind(void **state)
{
	struct hit_function f = {.name = "f",
	        .looked = true,
	        .syscall = -1,
	        .described = true,
	        .parameters = {.n = 1, .of = {{.kind = PARAMETER_TO_TEXT, .nregs = 1, .reg = {DI}}}}};
	u64 words[2] = {0x9000, 4}, turned[2] = {4, 0x9000};
	struct latency_record r = {0};

	point(&r, DI, 0x5000, words, sizeof(words));
	expect(&f, &r, "f(0x5000)");
	r.followed = 1u << DI;
	memcpy(r.behind[DI], "/abc", 4);
	expect(&f, &r, "f(\"/abc\")");
	f.parameters.of[0].kind = PARAMETER_TO_SIZED;
	point(&r, DI, 0x5000, turned, sizeof(turned));
	expect(&f, &r, "f(\"/abc\")");
}

static void test_system_call(void **state)
{
	struct hit_function f = {.name = "open", .looked = true, .syscall = SYS_open};
	struct latency_record r = {.reg = {[SI] = 0x241}};

	point(&r, DI, 0x5000, "/etc/\x1bpasswd", 13);
	expect(&f, &r, "open(\"/etc/?passwd\", 0x241)");
	memset(r.memory[DI], 'p', LATENCY_MEMORY);
	char *text = hit_call_text(&f, &r);
	assert_non_null(strstr(text, "ppp...\", 0x241)"));
	free(text);
	assert_int_equal(syscall_number("open"), SYS_open);
	assert_int_equal(syscall_number("no such call"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_code), cmocka_unit_test(test_cut),
	        cmocka_unit_test(test_described), cmocka_unit_test(test_behind), cmocka_unit_test(test_system_call)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
