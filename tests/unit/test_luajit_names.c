/* SPDX-License-Identifier: Apache-2.0 */
/* Names of frames whose functions are gone, replaced or hostile; test_luajit_live.c compares those that hold. */
#include "unit.h"

#include "luajit_fake.h"

#include "runtimes/luajit/luajit_image.h"
#include "runtime.h"

struct naming {
	struct fake *fake;
	struct luajit_layout layout;
	struct luajit_image image;
	struct luajit_names *names;
	u64 proto, chunk;
	struct frame frame[2];
	struct frame_name name;
};

/* A Lua function at position 5 with a chunk name, called by itself. */
static int setup(void **state)
{
	struct naming *n = calloc(1, sizeof(*n));
	struct fake *f = fake_create();
	u64 bytecode;

	n->fake = f;
	n->layout = fake_layout();
	n->image = (struct luajit_image){.layout = &n->layout, .builtins = {.names = {[2] = "assert"}, .n = 3}};
	memcpy(&bytecode, fake_at(f, fake_lua_function(f, 1) + fake_vm.fn_pc, 8), 8);
	n->proto = bytecode - fake_vm.proto_size;
	n->chunk = fake_alloc(f, 600);
	put8(f, n->chunk + fake_vm.l_gct, 4);
	put32(f, n->chunk + 20, 6);
	memcpy(fake_at(f, n->chunk + 24, 6), "@a.lua", 6);
	put32(f, n->proto + 24, fake_vm.proto_size + 64);
	put64(f, n->proto + 32, n->chunk);
	put32(f, n->proto + 40, 42);
	put32(f, n->proto + 44, 10);
	for (u32 i = 0; i < 2; i++)
		n->frame[i] = (struct frame){frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, n->proto),
		        luajit_detail(LUAJIT_LUA, 5, FAKE_CALL | FAKE_CALL_A << 8 | 5 << 16 | 1u << 24)};
	n->names = luajit_names_create(&n->image);
	*state = n;
	return 0;
}

static int teardown(void **state)
{
	struct naming *n = *state;

	luajit_names_destroy(n->names);
	fake_destroy(n->fake);
	free(n);
	return 0;
}

static bool name(struct naming *n)
{
	struct runtime_process p = {.memory = &n->fake->memory};

	return luajit_name_frame(n->names, &p, n->frame, 0, 2, &n->name);
}

static void test_plain(void **state)
{
	struct naming *n = *state;

	assert_true(name(n));
	assert_string_equal(n->name.file, "a.lua");
	assert_int_equal(n->name.definition, 42);
	assert_int_equal(n->name.line, 0);
	assert_string_equal(n->name.name, "");
}

/* Read once: a second frame of the same function costs no read. */
static void test_cached(void **state)
{
	struct naming *n = *state;
	int reads;

	assert_true(name(n));
	reads = n->fake->reads;
	assert_true(name(n));
	assert_int_equal(n->fake->reads, reads);
}

/* Another prototype took the place: the instruction at the position shows it. */
static void test_replaced(void **state)
{
	struct naming *n = *state;

	assert_true(name(n));
	u64 identity = n->name.identity;
	put32(n->fake, n->proto + fake_vm.proto_size + 5 * 4, FAKE_CALL | 1 << 8);
	assert_true(name(n)); /* what was read when it was there */
	n->frame[0].detail = luajit_detail(LUAJIT_LUA, 5, FAKE_CALL | 1 << 8);
	put32(n->fake, n->proto + 40, 43);
	assert_true(name(n)); /* the new one */
	assert_int_equal(n->name.definition, 43);
	assert_int_not_equal(n->name.identity, identity);
	n->frame[0].detail = luajit_detail(LUAJIT_LUA, 5, FAKE_CALL | 2 << 8);
	assert_false(name(n)); /* neither */
}

static void test_gone(void **state)
{
	struct naming *n = *state;

	put8(n->fake, n->proto + fake_vm.l_gct, 5);
	assert_false(name(n));
	n->frame[0].where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, 0x1000);
	assert_false(name(n));
}

/* The JIT rewrote the instruction: of those only operand A is compared. */
static void test_patched(void **state)
{
	struct naming *n = *state;

	put32(n->fake, n->proto + fake_vm.proto_size + 5 * 4, 80 | 7 << 8 | 999u << 16);
	n->frame[0].detail = luajit_detail(LUAJIT_LUA, 5, 7 << 8);
	assert_true(name(n));
}

static void test_sizes(void **state)
{
	struct naming *n = *state;
	const u32 bad[] = {0, 1, 63, 64, 67, 1u << 30, 0xffffffff};

	for (u32 i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put32(n->fake, n->proto + 24, bad[i]);
		assert_false(name(n));
	}
	put32(n->fake, n->proto + 24, fake_vm.proto_size + 64);
	put32(n->fake, n->proto + fake_vm.proto_sizebc, 17);
	assert_false(name(n));
}

static void test_source(void **state)
{
	struct naming *n = *state;
	static const struct {
		const char *chunk, *shown;
	} sources[] = {
	        {"=stdin", "stdin"},
	        {"return 1", "[string \"return 1\"]"},
	        {"x = 1\nreturn x", "[string \"x = 1...\"]"},
	        {"0123456789012345678901234567890123456789012345678901234567890",
	                "[string \"012345678901234567890123456789012345678901234...\"]"},
	        {"", "[string \"\"]"},
	        {"-- Copyright 2020\n--\n-- SPDX-License-Identifier: X\n\n-- Counts\nreturn",
	                "[string \"-- Counts...\"]"},
	        {"--[[\n Copyright 2020\n]]\nreturn 1", "[string \"return 1\"]"},
	        {"--[[ Copyright 2020 ]] return 1\nx()", "[string \"--[[ Copyright 2020 ]] return 1...\"]"},
	        {"License = 1\nreturn License", "[string \"License = 1...\"]"},
	        {"-- Copyright 2020\nlocal s = \"Copyright\"\nf(s)", "[string \"local s = \"Copyright\"...\"]"},
	        {"-- Copyright 2020\n", "[string \"-- Copyright 2020...\"]"},
	};

	for (u32 i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
		size_t len = strlen(sources[i].chunk);

		put32(n->fake, n->chunk + 20, (u32)len);
		memcpy(fake_at(n->fake, n->chunk + 24, len + 1), sources[i].chunk, len + 1);
		luajit_names_destroy(n->names);
		n->names = luajit_names_create(&n->image);
		assert_true(name(n));
		assert_string_equal(n->name.file, sources[i].shown);
	}
}

static void test_builtins(void **state)
{
	struct naming *n = *state;

	n->frame[0] = (struct frame){
	        frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, 2), luajit_detail(LUAJIT_FAST, LUAJIT_NO_POS, 2)};
	assert_true(name(n));
	assert_string_equal(n->name.name, "assert");
	n->frame[0].where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, 250);
	assert_true(name(n));
	assert_string_equal(n->name.name, "builtin#250");
	n->frame[0] = (struct frame){
	        frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, CODE_C), luajit_detail(LUAJIT_C, LUAJIT_NO_POS, 1)};
	assert_true(name(n));
	assert_int_equal(n->name.native_address, CODE_C);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_plain), TEST(test_cached), TEST(test_replaced), TEST(test_gone),
	        TEST(test_patched), TEST(test_sizes), TEST(test_source), TEST(test_builtins)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
