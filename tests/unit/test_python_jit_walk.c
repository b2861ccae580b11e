/* SPDX-License-Identifier: Apache-2.0 */
/* The Python walker over fake memory: code that CPython makes at run time. */
#include "python_stack_fake.h"

/* 3.15: C that the loop calls calls compiled code, which keeps something on the stack. */
static void test_compiled(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);

	config(&s)->jit_return = s.p->c + FAKE_RETURN;
	python_fake_call(s.p, s.p->jit, 48);
	expect(&s, STOP_ROOT, "ndcenbaer");
	python_fake_call(s.p, s.p->c, PYTHON_C_BYTES);
	expect(&s, STOP_ROOT, "nndcenbaer");
	config(&s)->jit_return = 8;
	python_fake_walk(s.p);
	assert_false(s.p->f->walk.nframes && frame_kind(&s.p->f->frames[1]) == FRAME_SCRIPT);
	python_fake_destroy(s.p);
}

/* 3.14: the loop calls a stub of five pushes, of which compiled code is called. */
static void test_compiled_stub(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);
	u64 stub = PYTHON_HEAP + FAKE_PAGE * 2, back = stub + PYTHON_JIT_STUB_BACK, code[] = {PYTHON_JIT_STUB};

	config(&s)->jit_locals = 64;
	config(&s)->jit_start = stub;
	config(&s)->jit_end = stub + FAKE_PAGE;
	python_fake_put(s.p, back, code, sizeof(code));
	s.p->sp += PYTHON_C_BYTES;
	s.p->pc = s.p->eval + FAKE_RETURN;
	python_fake_call(s.p, s.p->jit, 48);
	s.p->pc = back;
	python_fake_call(s.p, s.p->jit, 32);
	expect(&s, STOP_ROOT, "dcenbaer");
	config(&s)->jit_start = config(&s)->jit_end =
	        0; /* made after the maps were read: recognised by where in its page it lies */
	expect(&s, STOP_ROOT, "dcenbaer");
	python_fake_put(s.p, back, &(u64){0}, 8);
	assert_int_not_equal(python_fake_walk(s.p), STOP_ROOT);
	python_fake_destroy(s.p);
}

/* What was no code when the maps were read is compiled code if the stack says so, else nothing at all. */
static void test_compiled_late(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);

	config(&s)->jit_return = s.p->c + FAKE_RETURN;
	for (u32 i = 0; i < s.p->f->nregions; i++)
		if (s.p->f->region[i].part == PYTHON_JIT)
			s.p->f->region[i].part = PYTHON_JIT_LATE;
	python_fake_call(s.p, s.p->jit, 48);
	expect(&s, STOP_ROOT, "ndcenbaer");
	python_fake_call(s.p, s.p->c, PYTHON_C_BYTES);
	expect(&s, STOP_ROOT, "nndcenbaer");
	config(&s)->jit_return = 8;
	assert_int_equal(python_fake_walk(s.p), STOP_BAD_RETADDR);
	python_fake_destroy(s.p);
}

/* The loop is called by a trampoline, which has no unwind information; what is in rbp below it is another form's
 * return address. */
static void test_trampoline(void **state)
{
	static const enum python_part parts[] = {PYTHON_TRAMPOLINE, PYTHON_TRAMPOLINE_FP};

	FOR_EACH_LINKAGE(l)
	{
		for (u32 i = 0; i < 2; i++) {
			struct stack s = make(linkages[l]);

			for (u32 k = 0; k < s.p->f->nregions; k++)
				if (s.p->f->region[k].part == PYTHON_JIT)
					s.p->f->region[k].part = (u8)parts[i];
			python_fake_call(s.p, s.p->jit, 16);
			fake_put(s.p->f, s.p->sp, s.p->c + FAKE_RETURN);
			python_fake_eval(s.p, &s.d, 1);
			expect(&s, STOP_ROOT, "dendcenbaer");
			assert_int_equal(s.p->f->walk.reg[REG_FP], i ? s.p->c + FAKE_RETURN : 0);
			for (u32 k = 0; k < s.p->f->walk.nframes; k++)
				assert_false(frame_flags(&s.p->f->frames[k]) & FRAME_GUESS);
			python_fake_destroy(s.p);
		}
	}
}

/* A thread is in the trampoline itself. */
static void test_trampoline_leaf(void **state)
{
	static const struct {
		enum python_part part;
		u32 word; /* is one on the stack? */
		u8 code[4];
	} places[] = {
	        {PYTHON_TRAMPOLINE, 0, {0xf3, 0x0f, 0x1e, 0xfa}},
	        {PYTHON_TRAMPOLINE, 0, {0x48, 0x83, 0xec, 0x08}},
	        {PYTHON_TRAMPOLINE, 1, {0xff, 0xd1, 0x48, 0x83}},
	        {PYTHON_TRAMPOLINE, 1, {0x48, 0x83, 0xc4, 0x08}},
	        {PYTHON_TRAMPOLINE, 0, {0xc3, 0x48, 0x83, 0xec}},
	        {PYTHON_TRAMPOLINE_FP, 0, {0x55, 0x48, 0x89, 0xe5}},
	        {PYTHON_TRAMPOLINE_FP, 1, {0x48, 0x89, 0xe5, 0xff}},
	        {PYTHON_TRAMPOLINE_FP, 1, {0xff, 0xd1, 0x5d, 0xc3}},
	        {PYTHON_TRAMPOLINE_FP, 1, {0x5d, 0xc3, 0x55, 0x48}},
	        {PYTHON_TRAMPOLINE_FP, 0, {0xc3, 0x55, 0x48, 0x89}},
	};

	for (u32 i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct stack s = make(PYTHON_NO_CFRAME);

		for (u32 k = 0; k < s.p->f->nregions; k++)
			if (s.p->f->region[k].part == PYTHON_JIT)
				s.p->f->region[k].part = (u8)places[i].part;
		python_fake_call(s.p, s.p->jit, 8 + 8 * places[i].word);
		s.p->pc = s.p->jit;
		memcpy(s.p->f->code + (s.p->jit - FAKE_CODE), places[i].code, sizeof(places[i].code));
		expect(&s, STOP_ROOT, "ndcenbaer");
		python_fake_destroy(s.p);
	}
}

/* Trampolines made after the maps were read are known by their code, before a return address or around a leaf; all else
 * there is nothing. */
static void test_trampoline_late(void **state)
{
	static const struct {
		u8 code[16];
		u32 len;
		u32 word[16]; /* has a leaf at this byte one on the stack? 2: no instruction begins here */
	} forms[] = {
	        {"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 11, {0, 2, 2, 2, 1, 2, 1, 2, 2, 2, 0}},
	        {"\xf3\x0f\x1e\xfa\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 15,
	                {0, 2, 2, 2, 0, 2, 2, 2, 1, 2, 1, 2, 2, 2, 0}},
	        {"\x55\x48\x89\xe5\xff\xd1\x5d\xc3", 8, {0, 1, 2, 2, 1, 2, 1, 0}},
	        {"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xff\xd1\x5d\xc3", 12, {0, 2, 2, 2, 0, 1, 2, 2, 1, 2, 1, 0}},
	};

	for (u32 i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		for (u32 at = 0; at < forms[i].len; at++) {
			struct stack s = make(PYTHON_NO_CFRAME);
			u8 *code = s.p->f->code + (s.p->jit - FAKE_CODE);

			if (forms[i].word[at] != 2) {
				for (u32 k = 0; k < s.p->f->nregions; k++)
					if (s.p->f->region[k].part == PYTHON_JIT)
						s.p->f->region[k].part = PYTHON_JIT_LATE;
				memcpy(code, forms[i].code, forms[i].len);
				python_fake_call(s.p, s.p->jit, 8 + 8 * forms[i].word[at]);
				s.p->pc = s.p->jit + at;
				expect(&s, STOP_ROOT, "ndcenbaer");
				code[forms[i].len - 1] ^= 1;
				assert_int_equal(python_fake_walk(s.p), STOP_NO_REGION);
			}
			python_fake_destroy(s.p);
		}
}

/* A bytecode's function with a frame that the file does not describe: the caller's frame pointer and the return address
 * are on the stack. */
static void test_bare(void **state)
{
	for (u32 leaf = 0; leaf < 2; leaf++) {
		struct stack s = make(PYTHON_NO_CFRAME);

		for (u32 k = 0; k < s.p->f->nregions; k++)
			if (s.p->f->region[k].part == PYTHON_JIT)
				s.p->f->region[k].part = PYTHON_BARE + 1;
		python_fake_call(s.p, s.p->jit, 16);
		fake_put(s.p->f, s.p->sp, 0x1234);
		if (!leaf)
			python_fake_call(s.p, s.p->c, PYTHON_C_BYTES);
		expect(&s, STOP_ROOT, leaf ? "nndcenbaer" : "nnndcenbaer");
		assert_int_equal(s.p->f->walk.reg[REG_FP], 0x1234);
		assert_int_equal(!(frame_flags(&s.p->f->frames[!leaf]) & FRAME_RETADDR), leaf);
		python_fake_destroy(s.p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_compiled),
	        cmocka_unit_test(test_compiled_stub),
	        cmocka_unit_test(test_compiled_late),
	        cmocka_unit_test(test_trampoline),
	        cmocka_unit_test(test_trampoline_leaf),
	        cmocka_unit_test(test_trampoline_late),
	        cmocka_unit_test(test_bare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
