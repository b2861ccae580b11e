/* SPDX-License-Identifier: Apache-2.0 */
/* PUC-Lua's walker over fake memory: functions of a stack that is being moved, objects that can not be read. */
#include "unit.h"

#include "native_fake.h"
#include "runtimes/lua/lua.h"

#define HEAP    (FAKE_STACK + 6 * FAKE_PAGE)
#define C_BYTES 32
#define CODE    8 /* instructions of each function */
#define SLOTS   5 /* 5.1: of the Lua stack that each one has, behind its own */

/* Of 5.1.5 and 5.4.6. */
static const struct lua_vm vms[] = {{.version = 501,
                                            .l_reg = DWREG_RBX,
                                            .pc_in_register = 1,
                                            .pc_reg = DWREG_R12,
                                            .pc_kept = 1,
                                            .l_tt = 8,
                                            .l_ci = 40,
                                            .l_stack = 64,
                                            .l_stack_last = 56,
                                            .l_base_ci = 80,
                                            .l_savedpc = 48,
                                            .ci_func = 8,
                                            .ci_top = 16,
                                            .ci_savedpc = 24,
                                            .ci_size = 40,
                                            .cl_p = 32,
                                            .cl_f = 32,
                                            .cl_is_c = 10,
                                            .p_code = 24,
                                            .p_sizecode = 80,
                                            .p_linedefined = 96,
                                            .p_lastlinedefined = 100,
                                            .p_maxstacksize = 115,
                                            .op_mask = 0x3f,
                                            .op_call = 28,
                                            .op_tailcall = 29},
        {.version = 504,
                .l_reg = DWREG_RBX,
                .l_tt = 8,
                .l_ci = 32,
                .l_stack = 48,
                .l_stack_last = 40,
                .l_first_ci = 96,
                .ci_func = 0,
                .ci_previous = 16,
                .ci_savedpc = 32,
                .ci_status = 62,
                .ci_status_size = 2,
                .ci_size = 64,
                .cl_p = 24,
                .cl_f = 24,
                .p_code = 64,
                .p_sizecode = 24,
                .p_linedefined = 44,
                .p_lastlinedefined = 48,
                .lua_mask = 2,
                .lua_bits = 2,
                .fresh_mask = 4,
                .fresh_bits = 4}};

/*
 * A lua_State in luaV_execute(), which has called C code: f has called g, and both are on the Lua stack. 5.1's CallInfo
 * are in an array; 5.4's are linked.
 */
struct target {
	struct fake *f;
	const struct lua_vm *vm;
	u64 heap, thread, stack, ci[3], slot[3], closure[3], proto[3], code[3];
	u64 reg[ARCH_NREGS];
};

static u64 allocate(struct target *t, u64 size)
{
	u64 at = t->heap;

	t->heap += (size + 15) & ~15ull;
	return at;
}

static void half(struct target *t, u64 addr, u32 value)
{
	memcpy(t->f->stack + (addr - FAKE_STACK), &value, sizeof(value));
}

static void type(struct target *t, u64 object, u8 tt)
{
	t->f->stack[object + t->vm->l_tt - FAKE_STACK] = tt;
}

/* Puts function i where its slot is. */
static void function(struct target *t, u32 i)
{
	t->proto[i] = allocate(t, 128);
	t->closure[i] = allocate(t, 40);
	t->code[i] = allocate(t, 4 * CODE);
	for (u32 j = 0; j < CODE; j++)
		half(t, t->code[i] + 4 * j, t->vm->op_call);
	type(t, t->proto[i], 9);
	type(t, t->closure[i], 6);
	fake_put(t->f, t->proto[i] + t->vm->p_code, t->code[i]);
	half(t, t->proto[i] + t->vm->p_sizecode, CODE);
	fake_put(t->f, t->closure[i] + t->vm->cl_p, t->proto[i]);
	fake_put(t->f, t->slot[i], t->closure[i]);
	fake_put(t->f, t->slot[i] + 8, t->vm->version == 501 ? 6 : 6 | 1 << 6);
}

static void setup_calls(struct target *t)
{
	const struct lua_vm *vm = t->vm;
	u64 infos = vm->version == 501 ? allocate(t, 3 * 40) : 0;

	for (u32 i = 0; i < 3; i++) {
		t->ci[i] = infos ? infos + i * 40 : i ? allocate(t, 72) : t->thread + vm->l_first_ci;
		t->slot[i] = t->stack + 32 * i;
		fake_put(t->f, t->ci[i] + vm->ci_func, t->slot[i]);
		if (!i)
			continue;
		function(t, i);
		fake_put(t->f, t->ci[i] + vm->ci_savedpc, t->code[i] + 8);
		if (infos) {
			fake_put(t->f, t->ci[i] + vm->ci_base, t->slot[i] + 16);
			fake_put(t->f, t->ci[i] + vm->ci_top, t->slot[i] + 16 + SLOTS * 16);
			t->f->stack[t->proto[i] + vm->p_maxstacksize - FAKE_STACK] = SLOTS;
			continue;
		}
		fake_put(t->f, t->ci[i] + vm->ci_previous, t->ci[i - 1]);
		fake_put(t->f, t->ci[i] + 56, (u64)(i == 1 ? 6 : 2) << 48);
	}
	fake_put(t->f, t->thread + vm->l_ci, t->ci[2]);
	if (infos) {
		fake_put(t->f, t->thread + vm->l_base_ci, infos);
		fake_put(t->f, t->thread + vm->l_savedpc, t->code[2] + 8);
	}
}

static struct target make(u32 which)
{
	struct cfi_rule root = fake_rule(CFI_ROOT, DWREG_RSP, 8), c = fake_rule(CFI_REG, DWREG_RSP, C_BYTES);
	struct target t = {.f = fake_create(), .vm = &vms[which], .heap = HEAP};
	u64 starts[3], sp = HEAP - 256;
	u32 config;

	if (arena_alloc(t.f->arena, sizeof(*t.vm), &config))
		abort();
	memcpy(arena_at(t.f->arena, config, sizeof(*t.vm)), t.vm, sizeof(*t.vm));
	starts[0] = fake_function(t.f, &root);
	starts[1] = fake_function(t.f, &c);
	t.f->region[1].runtime = RUNTIME_LUA;
	t.f->region[1].vm = config;
	starts[2] = fake_function(t.f, &c);
	t.thread = allocate(&t, 256);
	t.stack = allocate(&t, 512);
	type(&t, t.thread, 8);
	fake_put(t.f, t.thread + t.vm->l_stack, t.stack);
	fake_put(t.f, t.thread + t.vm->l_stack_last, t.stack + 512);
	setup_calls(&t);
	for (u32 i = 0; i < 2; i++)
		fake_put(t.f, sp + C_BYTES * (i + 1) - 8, starts[1 - i] + FAKE_RETURN);
	t.reg[REG_PC] = starts[2] + FAKE_RETURN;
	t.reg[REG_SP] = sp;
	t.reg[DWREG_RBX] = t.thread;
	t.reg[DWREG_R12] = which ? t.ci[2] : t.code[2] + 8;
	return t;
}

/* The frames, leaf first: "g" and "f"; "L": luaV_execute(), "n": other native frames. */
static void expect(struct target *t, int stop, const char *frames)
{
	char found[FAKE_FRAMES + 1] = "";
	int reason = fake_walk(t->f, t->reg);

	for (u32 i = 0; i < t->f->walk.nframes; i++) {
		const struct frame *frame = &t->f->frames[i];

		if (frame_kind(frame) != FRAME_SCRIPT)
			found[i] = frame_flags(frame) & FRAME_VM ? 'L' : 'n';
		else
			found[i] = frame_addr(frame) == t->proto[2]   ? 'g'
			           : frame_addr(frame) == t->proto[1] ? 'f'
			                                              : '?';
	}
	assert_string_equal(found, frames);
	assert_int_equal(reason, stop);
	fake_destroy(t->f);
}

/* A caller is the function before once more, or another one. */
static void test_recursion(void **state)
{
	for (u32 which = 0; which < 2; which++) {
		struct target t = make(which);

		fake_put(t.f, t.slot[1], t.closure[2]);
		fake_put(t.f, t.ci[1] + t.vm->ci_savedpc, t.code[2] + 12);
		assert_int_equal(fake_walk(t.f, t.reg), STOP_ROOT);
		assert_int_equal(t.f->frames[2].detail & LUA_NO_POS, 2);
		expect(&t, STOP_ROOT, "nggLn");
	}
}

static void test_plain(void **state)
{
	for (u32 which = 0; which < 2; which++) {
		struct target t = make(which);

		expect(&t, STOP_ROOT, "ngfLn");
	}
}

/* luaD_reallocstack() has moved the stack, but not corrected the CallInfos yet. */
static void move(struct target *t, u64 distance)
{
	for (u32 i = 0; i < 3; i++)
		fake_put(t->f, t->ci[i] + t->vm->ci_func, t->slot[i] + distance);
}

/* From 5.2 on: uncorrected ones, and ones in a stack that lua_State does not have yet. */
static void test_moved(void **state)
{
	for (u32 how = 0; how < 3; how++) {
		struct target t = make(1);

		if (!how) {
			move(&t, 0x100000);
			expect(&t, STOP_ROOT, "ngfLn");
			continue;
		}
		t.slot[1] = allocate(&t, 16);
		function(&t, 1);
		fake_put(t.f, t.ci[1] + t.vm->ci_func, t.slot[1]);
		fake_put(t.f, t.ci[1] + t.vm->ci_savedpc, t.code[how] + 8);
		expect(&t, how == 1 ? STOP_ROOT : STOP_VM_BROKEN, how == 1 ? "ngfLn" : "ngLn");
	}
}

/* 5.1 reads the freed stack, and believes it as long as what stands there is a function in Lua at one of its calls. */
static void test_freed(void **state)
{
	enum { GOOD, IN_C, LIGHT, NO_CLOSURE, NO_PROTO, ELSEWHERE, END };

	for (u32 how = GOOD; how < END; how++) {
		struct target t = make(0);

		fake_put(t.f, t.ci[1] + t.vm->ci_func, HEAP - FAKE_PAGE);
		fake_put(t.f, HEAP - FAKE_PAGE, t.closure[1]);
		fake_put(t.f, HEAP - FAKE_PAGE + 8, how == LIGHT ? 22 : 6);
		if (how == IN_C)
			t.f->stack[t.closure[1] + t.vm->cl_is_c - FAKE_STACK] = 1;
		if (how == NO_CLOSURE)
			type(&t, t.closure[1], 5);
		if (how == NO_PROTO)
			type(&t, t.proto[1], 5);
		if (how == ELSEWHERE)
			fake_put(t.f, t.ci[1] + t.vm->ci_savedpc, t.code[2] + 8);
		if (how == GOOD)
			expect(&t, STOP_ROOT, "ngfLn");
		else
			expect(&t, STOP_VM_BROKEN, "ngLn");
	}
}

/* A Proto that can not be read makes the stack incomplete. */
static void test_unreadable(void **state)
{
	for (u32 which = 0; which < 2; which++) {
		struct target t = make(which);

		fake_put(t.f, t.closure[1] + t.vm->cl_p, 8);
		expect(&t, STOP_VM_ABSENT, "ngLn");
	}
}

/* The end of a page, the next one of which is absent: a copy of these bytes. */
static u64 at_end(struct target *t, u32 page, u64 object, u32 size)
{
	u64 at = HEAP + (page + 1) * FAKE_PAGE - size;

	memcpy(t->f->stack + (at - FAKE_STACK), t->f->stack + (object - FAKE_STACK), size);
	t->f->absent[(at + size - FAKE_STACK) / FAKE_PAGE] = true;
	return at;
}

/* No more of an object is read than it has. */
static void test_page_ends(void **state)
{
	for (u32 which = 0; which < 2; which++) {
		struct target t = make(which);

		if (which)
			fake_put(t.f, t.ci[2] + t.vm->ci_previous, at_end(&t, 2, t.ci[1], t.vm->ci_size));
		fake_put(t.f, t.slot[1], at_end(&t, 4, t.closure[1], which ? 32 : 40));
		expect(&t, STOP_ROOT, "ngfLn");
	}
}

enum { SAME, CLOSURE_GONE, OTHER_PROTO, OTHER_LINES, NOW_C, HOWS };

static void change(struct target *t, int how)
{
	if (how == CLOSURE_GONE)
		fake_put(t->f, t->closure[1] + t->vm->cl_p, 8);
	if (how == OTHER_PROTO)
		fake_put(t->f, t->closure[1] + t->vm->cl_p, t->proto[2]);
	if (how == OTHER_LINES)
		half(t, t->proto[1] + t->vm->p_linedefined, 7);
	if (how == NOW_C && t->vm->cl_is_c) {
		t->f->stack[t->closure[1] + t->vm->cl_is_c - FAKE_STACK] = 1;
		fake_put(t->f, t->ci[1] + t->vm->ci_top, t->slot[1] + 16 + 22 * 16);
	}
	if (how == NOW_C && !t->vm->cl_is_c)
		fake_put(t->f, t->slot[1] + 8, 6 | 1 << 6 | 2 << 4);
}

/*
 * What an earlier walk left of the caller is true if its Proto is the same still. Whether its function is one in Lua is
 * known from its slot, in 5.1 from how many slots it has. So the closure is not read.
 */
static void test_known(void **state)
{
	for (u32 which = 0; which < 2; which++) {
		for (int how = SAME; how < HOWS; how++) {
			struct walk_cache *caches = calloc(WALK_CACHES, sizeof(*caches));
			struct target t = make(which);
			u64 detail;
			u32 reads;

			assert_non_null(caches);
			t.f->caches = caches;
			assert_int_equal(fake_walk(t.f, t.reg), STOP_ROOT);
			detail = t.f->frames[2].detail;
			reads = t.f->reads;
			change(&t, how);
			fake_walk(t.f, t.reg);
			if (how == SAME || how == CLOSURE_GONE) {
				assert_true(t.f->frames[2].detail == detail);
				assert_int_equal(t.f->reads, reads - (which == 0 ? 2 : 1));
			}
			if (how == OTHER_LINES)
				assert_true(t.f->frames[2].detail != detail);
			expect(&t, STOP_ROOT, how == NOW_C ? "ngLn" : "ngfLn");
			free(caches);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_plain),
	        cmocka_unit_test(test_recursion),
	        cmocka_unit_test(test_moved),
	        cmocka_unit_test(test_freed),
	        cmocka_unit_test(test_unreadable),
	        cmocka_unit_test(test_page_ends),
	        cmocka_unit_test(test_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
