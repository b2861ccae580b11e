/* SPDX-License-Identifier: Apache-2.0 */
/* The LuaJIT walker over fake memory: each type of frame, reads that fail, links that are broken. */
#include "unit.h"

#include "luajit_fake.h"

#define C_FUNCTION (CODE_C + 0x100) /* code of a lua_CFunction */
#define FFID       42
#define NO_POS     LUAJIT_NO_POS

enum { LINK_C = 1, LINK_VARG = 3, LINK_CP = 5, LINK_PCALL = 6 };

/*
 * Expected frames, leaf first: N native, V the VM's own, L Lua (its position is the next of positions), J the same as
 * machine code, C a C function, B a builtin, G the global state of a trace, T the trace, W the VM's own work.
 */
static char kind_of(const struct frame *f)
{
	if (frame_kind(f) == FRAME_NATIVE)
		return frame_flags(f) & FRAME_VM ? 'V' : 'N';
	switch (luajit_function(f)) {
	case LUAJIT_LUA:
		return f->detail & LUAJIT_JIT ? 'J' : 'L';
	case LUAJIT_C:
		return 'C';
	case LUAJIT_MCODE:
		return 'T';
	default:
		if (f->detail & LUAJIT_JIT)
			return 'G';
		return frame_addr(f) >= LUAJIT_WORK ? 'W' : 'B';
	}
}

static void expect(const struct fake *f, const char *kinds, const u32 *positions)
{
	for (u32 i = 0; kinds[i] && i < f->walk.nframes; i++) {
		const struct frame *frame = &f->frames[i];

		if (kind_of(frame) != kinds[i])
			fail_msg("frame %u is %c, not %c", i, kind_of(frame), kinds[i]);
		if (kinds[i] == 'L' || kinds[i] == 'J')
			assert_int_equal(luajit_pos(frame), *positions++);
		if (kinds[i] == 'C')
			assert_int_equal(frame_addr(frame), C_FUNCTION);
		if (kinds[i] == 'B')
			assert_int_equal(frame_addr(frame), FFID);
		if (kinds[i] == 'G')
			assert_int_equal(frame_addr(frame), f->g);
		if (kinds[i] == 'T')
			assert_int_equal(luajit_pos(frame), 7);
		if (kinds[i] == 'W')
			assert_int_equal(frame_addr(frame), LUAJIT_WORK + LUAJIT_VMST_GC);
	}
	assert_int_equal(f->walk.nframes, strlen(kinds));
}

struct scene {
	struct fake *f;
	struct fake_registers regs;
	const char *kinds;
	u32 positions[8];
};

#define SCENE_FUNCTIONS                                                                                                \
	u64 one = fake_lua_function(f, 1), two = fake_lua_function(f, 2), c = fake_c_function(f, 1, C_FUNCTION);       \
	u64 builtin = fake_c_function(f, FFID, 0);                                                                     \
	struct fake_thread t = fake_thread(f);                                                                         \
	(void)two, (void)c, (void)builtin

/* C calls Lua, Lua calls Lua, Lua calls C. */
static struct scene scene_plain(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	fake_call(f, &t, two, fake_pc(f, one, 4));
	fake_call(f, &t, c, fake_pc(f, two, 7));
	return (struct scene){f, {.pc = CODE_C + 8}, "NCLLVNN", {7, 4}};
}

/* The interpreter itself runs: position and base are in registers only. */
static struct scene scene_leaf(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_CP);
	put64(f, t.l + fake_vm.l_base, t.base);
	u64 stale = t.base;
	fake_call(f, &t, two, fake_pc(f, one, 4));
	put64(f, t.l + fake_vm.l_base, stale);
	return (struct scene){f, {CODE_INTERP + 8, .rbx = fake_pc(f, two, 9), .rdx = t.base}, "LLVNN", {9, 4}};
}

/* The callee's frame is overwritten by its results; rbx already says where its caller goes on. */
static struct scene scene_returning(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	fake_call(f, &t, builtin, fake_pc(f, one, 4));
	put64(f, t.base - 16, 0x4000000000000000);
	put64(f, t.base - 8, 0x4010000000000123);
	return (struct scene){f, {CODE_INTERP + 8, .rbx = fake_pc(f, one, 4), .rdx = t.base}, "LVNN", {4}};
}

/* pcall, a function with varargs in two frames, and a metamethod with a continuation. */
static struct scene scene_types(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	fake_call(f, &t, builtin, fake_pc(f, one, 3));
	fake_link(f, &t, two, LINK_PCALL);
	fake_link(f, &t, two, LINK_VARG);
	fake_continuation(f, &t, one, fake_pc(f, two, 6), 0x400100);
	fake_call(f, &t, c, fake_pc(f, one, 8));
	return (struct scene){f, {.pc = CODE_C + 8}, "NCLLBLVNN", {8, 6, 3}};
}

/* Lua > C > Lua > C: two cframes, whose frames alternate with native ones. SAVE_PC serves where C broke the links. */
static struct scene scene_two_cframes(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	fake_call(f, &t, c, fake_pc(f, one, 5));
	fake_native(f);
	fake_cframe(f, &t, t.l, 2);
	fake_link(f, &t, two, LINK_CP);
	fake_call(f, &t, c, fake_pc(f, two, 2));
	return (struct scene){f, {.pc = CODE_C + 8}, "NCLVNCLVNN", {2, 5}};
}

/* The VM called back by itself, out of a Lua function (__gc): its position is that of the cframe. */
static struct scene scene_saved_pc(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, fake_pc(f, one, 11), 1);
	fake_link(f, &t, one, LINK_C);
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, two, LINK_CP);
	fake_call(f, &t, c, fake_pc(f, two, 2));
	return (struct scene){f, {.pc = CODE_C + 8}, "NCLVNLVNN", {2, 11}};
}

/* lua_cpcall: a cframe without a Lua frame of its own. */
static struct scene scene_cpcall(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	fake_call(f, &t, c, fake_pc(f, one, 5));
	fake_native(f);
	fake_cframe(f, &t, t.l, -(s32)(t.base + 8 - t.stack));
	return (struct scene){f, {.pc = CODE_C + 8}, "NVNCLVNN", {5}};
}

/* C > Lua > C by a callback of the FFI > Lua. */
static struct scene scene_ffi_callback(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	fake_call(f, &t, builtin, fake_pc(f, one, 5));
	fake_native(f);
	fake_cframe(f, &t, t.l, 0);
	fake_continuation(f, &t, two, 0, 1);
	fake_call(f, &t, c, fake_pc(f, two, 2));
	return (struct scene){f, {.pc = CODE_C + 8}, "NCLVNBLVNN", {2, 5}};
}

/* A coroutine: its frames end at the bottom of its own stack, its resumer's are found by the native stack. */
static struct scene scene_coroutine(struct fake *f)
{
	SCENE_FUNCTIONS;
	struct fake_thread co = fake_thread(f);

	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	fake_call(f, &t, builtin, fake_pc(f, one, 5));
	fake_cframe(f, &co, 0, 0);
	fake_link(f, &co, two, LINK_CP);
	fake_call(f, &co, c, fake_pc(f, two, 2));
	put64(f, co.l + fake_vm.l_cframe, co.cframe | 1);
	return (struct scene){f, {.pc = CODE_C + 8}, "NCLVBLVNN", {2, 5}};
}

/* A host resumes each coroutine: the first of a request waits for another, and that one for the one that runs. */
static struct scene scene_waiting(struct fake *f)
{
	SCENE_FUNCTIONS;
	struct fake_thread middle = fake_thread(f), inner = fake_thread(f);
	u64 record;

	fake_native(f);
	fake_link(f, &t, one, LINK_CP);
	fake_call(f, &t, c, fake_pc(f, one, 5));
	fake_yield(f, &t);
	fake_link(f, &middle, two, LINK_CP);
	fake_call(f, &middle, c, fake_pc(f, two, 6));
	fake_yield(f, &middle);
	fake_cframe(f, &inner, 0, 0);
	fake_link(f, &inner, two, LINK_CP);
	fake_call(f, &inner, c, fake_pc(f, two, 2));
	record = fake_record(f, &t, 0, 3, FAKE_NORMAL);
	record = fake_record(f, &middle, record, (u32)-2, FAKE_NORMAL);
	fake_record(f, &inner, record, (u32)-2, FAKE_RUNNING);
	return (struct scene){f, {.pc = CODE_C + 8}, "NCLCLCLVNN", {2, 6, 5}};
}

/* A trace runs in the cframe of the interpreter; the registers lead to it. */
static struct scene scene_trace(struct fake *f)
{
	SCENE_FUNCTIONS;
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	fake_call(f, &t, two, fake_pc(f, one, 5));
	put_ref(f, f->g + fake_vm.g_cur_l, t.l);
	put_ref(f, f->g + FAKE_JIT_BASE, t.base);
	put32(f, f->g + fake_vm.g_vmstate, 7);
	put64(f, t.l + fake_vm.l_base, t.stack + 16);
	return (struct scene){f, {CODE_TRACE + 8, .r14 = f->g + fake_vm.g2disp}, "GTJLVNN", {NO_POS, 5}};
}

/* A trace is left, and the handler runs a finalizer: in a lua_State of its own, which cur_L is meanwhile. */
static struct scene scene_finalizer(struct fake *f)
{
	SCENE_FUNCTIONS;
	struct fake_thread own = fake_thread(f);

	fake_native(f);
	fake_cframe(f, &t, fake_pc(f, one, 11), 1);
	fake_link(f, &t, one, LINK_C);
	fake_exit(f);
	fake_native(f);
	fake_cframe(f, &own, own.l, 1);
	put64(f, own.cframe + 64, t.l); /* rbp, as the handler has it */
	fake_link(f, &own, two, LINK_CP);
	fake_call(f, &own, c, fake_pc(f, two, 2));
	put_ref(f, f->g + fake_vm.g_cur_l, own.l);
	return (struct scene){f, {.pc = CODE_C + 8}, "NCLVNLVNN", {2, NO_POS}};
}

/* The collector at work. */
static struct scene scene_gc(struct fake *f)
{
	struct scene s = scene_plain(f);

	put32(f, f->g + fake_vm.g_vmstate, ~(u32)LUAJIT_VMST_GC);
	s.kinds = "NWCLLVNN";
	return s;
}

static struct scene (*const scenes[])(struct fake *) = {scene_plain, scene_leaf, scene_returning, scene_types,
        scene_two_cframes, scene_saved_pc, scene_cpcall, scene_ffi_callback, scene_coroutine, scene_waiting,
        scene_trace, scene_finalizer, scene_gc};
#define NSCENES (sizeof(scenes) / sizeof(*scenes))

static void test_scenes(void **state)
{
	for (u32 i = 0; i < NSCENES; i++) {
		struct fake *f = fake_create();
		struct scene s = scenes[i](f);

		print_message("scene %u: %s\n", i, s.kinds);
		assert_int_equal(fake_walk(f, s.regs), STOP_ROOT);
		expect(f, s.kinds, s.positions);
		assert_false(f->walk.flags);
		fake_destroy(f);
	}
}

/* The cookie of a frame is the instruction at its position; of one that the JIT may rewrite operand A at most. */
static void test_cookies(void **state)
{
	struct fake *f = fake_create();
	struct scene s = scene_plain(f);

	fake_walk(f, s.regs);
	assert_int_equal(f->frames[2].detail >> LUAJIT_COOKIE_BITS, FAKE_CALL | FAKE_CALL_A << 8 | 7 << 16 | 2u << 24);
	put32(f, frame_addr(&f->frames[3]) + fake_vm.proto_size + 4 * 4, 79 | FAKE_CALL_A << 8 | 1 << 16);
	fake_walk(f, s.regs);
	assert_int_equal(f->frames[3].detail >> LUAJIT_COOKIE_BITS, FAKE_CALL_A << 8);
	for (u32 op = 69; op < LUAJIT_OPS; op++) { /* what becomes JLOOP does not keep that either */
		const char *name = luajit_ops[op].name;
		bool loop = !strncmp(name, "RET", 3) || !strcmp(name, "LOOP") || !strcmp(name, "ILOOP") ||
		            !strcmp(name, "JLOOP") || !strcmp(name, "ITERC") || !strcmp(name, "ITERN");

		assert_int_equal(luajit_cookie(LUAJIT_OP_PATCHED, op | FAKE_CALL_A << 8), loop ? 0 : FAKE_CALL_A << 8);
	}
	fake_destroy(f);
}

/* Machine code that is not LuaJIT's: neither r14 nor the stack leads to a VM that runs a trace. */
static void test_foreign_code(void **state)
{
	struct fake *f = fake_create();
	struct scene s = scene_trace(f);

	s.regs.r14 = FAKE_LUA + 1024;
	put_ref(f, f->g + fake_vm.g_cur_l, 0);
	assert_int_not_equal(fake_walk(f, s.regs), STOP_NONE);
	assert_true(f->walk.nframes > 0);
	assert_int_equal(kind_of(&f->frames[0]), 'N');
	assert_int_equal(frame_addr(&f->frames[0]), s.regs.pc);
	fake_destroy(f);
}

/* Who made a thread of nginx's does not wait for it; who is not known for sure to wait is not shown. */
static void test_not_waiting(void **state)
{
	struct change {
		u32 ref, flags, parent_flags;
		u8 status;
		bool waits;
	} changes[] = {
	        {(u32)-2, FAKE_RUNNING, FAKE_NORMAL, 1, true},
	        {(u32)-2, FAKE_SUSPENDED, FAKE_RUNNING, 1, true}, /* in coroutine.yield */
	        {4, FAKE_RUNNING | FAKE_SPAWNED, FAKE_NORMAL, 1, false},
	        {(u32)-2, FAKE_RUNNING | FAKE_SPAWNED, FAKE_NORMAL, 1, false},
	        {4, FAKE_RUNNING, FAKE_NORMAL, 1, false},
	        {(u32)-2, FAKE_RUNNING, FAKE_RUNNING, 1, false},
	        {(u32)-2, FAKE_RUNNING, FAKE_NORMAL, 0, false},
	        {(u32)-2, FAKE_RUNNING, FAKE_NORMAL | 1u << 20, 1, false},
	};

	for (u32 i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct fake *f = fake_create();
		struct fake_thread t = fake_thread(f), co = fake_thread(f);
		u64 fn = fake_lua_function(f, 1), c = fake_c_function(f, 1, C_FUNCTION), record;

		fake_native(f);
		fake_link(f, &t, fn, LINK_CP);
		fake_call(f, &t, c, fake_pc(f, fn, 5));
		fake_yield(f, &t);
		put8(f, t.l + fake_vm.l_status, changes[i].status);
		fake_cframe(f, &co, 0, 0);
		fake_link(f, &co, fn, LINK_CP);
		fake_call(f, &co, c, fake_pc(f, fn, 2));
		record = fake_record(f, &t, 0, 3, changes[i].parent_flags);
		fake_record(f, &co, record, changes[i].ref, changes[i].flags);
		print_message("change %u\n", i);
		assert_int_equal(fake_walk(f, (struct fake_registers){.pc = CODE_C + 8}), STOP_ROOT);
		expect(f, changes[i].waits ? "NCLCLVNN" : "NCLVNN", (const u32[]){2, 5});
		fake_destroy(f);
	}
}

static void test_depth(void **state)
{
	struct fake *f = fake_create();
	SCENE_FUNCTIONS;

	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, LINK_C);
	for (u32 i = 0; i < 60; i++)
		fake_call(f, &t, two, fake_pc(f, i ? two : one, 1));
	assert_int_equal(fake_walk(f, (struct fake_registers){CODE_INTERP, .rbx = fake_pc(f, two, 3), .rdx = t.base}),
	        STOP_ROOT);
	assert_int_equal(f->walk.nframes, 61 + 3);
	fake_destroy(f);
}

/* Every read of every scene fails once: the walk ends, with a reason, and shows no frame that is not there. */
static void test_faults(void **state)
{
	for (u32 i = 0; i < NSCENES; i++) {
		struct fake *f = fake_create();
		struct scene s = scenes[i](f);
		u32 frames, truncated = 0;
		int reads;

		assert_int_equal(fake_walk(f, s.regs), STOP_ROOT);
		reads = f->reads;
		frames = f->walk.nframes;
		assert_true(reads > 5);
		for (f->fail = 0; f->fail < reads; f->fail++) {
			int stop = fake_walk(f, s.regs);

			assert_int_not_equal(stop, STOP_NONE);
			assert_int_not_equal(stop, STOP_DEPTH);
			assert_true(f->walk.nframes <= frames);
			truncated += !stop_is_complete(stop);
		}
		assert_true(truncated > 0);
		fake_destroy(f);
	}
}

/* Every word of the Lua stacks and of the lua_State takes every bad value: the walk ends. */
static void test_broken(void **state)
{
	for (u32 i = 0; i < NSCENES; i++) {
		struct fake *f = fake_create();
		struct scene s = scenes[i](f);
		u8 *saved = malloc(FAKE_BYTES);

		memcpy(saved, f->lua, FAKE_BYTES);
		for (u64 at = 4096; at < f->free; at += 8) {
			const u64 here = FAKE_LUA + at;
			const u64 bad[] = {0, ~0ull, 1, 2, 5, 9, 17, 18, 0x80001, here, here | 1, here + 16,
			        FAKE_NATIVE + 64, 1ull << 63, 0x7fffffffffff};

			for (u32 k = 0; k < sizeof(bad) / sizeof(*bad); k++) {
				int stop;

				put64(f, here, bad[k]);
				stop = fake_walk(f, s.regs);
				assert_true(stop > STOP_NONE && stop < STOP_MAX && stop != STOP_DEPTH);
			}
			memcpy(f->lua, saved, FAKE_BYTES);
		}
		free(saved);
		fake_destroy(f);
	}
}

static int use_gc64(void **state)
{
	fake_vm = fake_gc64;
	return 0;
}

static int use_gc32(void **state)
{
	fake_vm = fake_gc32;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_scenes),
	        cmocka_unit_test(test_cookies),
	        cmocka_unit_test(test_foreign_code),
	        cmocka_unit_test(test_not_waiting),
	        cmocka_unit_test(test_depth),
	        cmocka_unit_test(test_faults),
	        cmocka_unit_test(test_broken),
	};
	int failed = cmocka_run_group_tests_name("GC64", tests, use_gc64, NULL);

	return failed + cmocka_run_group_tests_name("references of 32 bits", tests, use_gc32, NULL);
}
