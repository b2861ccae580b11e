/* SPDX-License-Identifier: Apache-2.0 */
/* The Python walker over fake memory: order, beginnings and ends of native frames, damage. */
#include "python_stack_fake.h"

static void test_order(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct stack s = make(linkages[l]);

		expect(&s, STOP_ROOT, "ndcenbaer");
		assert_int_equal(python_pos(&s.p->f->frames[1]), 3);
		assert_int_equal(python_pos(&s.p->f->frames[2]), 2);
		python_fake_destroy(s.p);
	}
}

/* Leaves of the eval loop itself: in the loop; at the beginning, where nothing is linked; where half of it is. */
static void test_leaves(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct stack s = make(linkages[l]);
		u64 cfa;

		s.p->sp += PYTHON_C_BYTES;
		s.p->pc = s.p->eval + 1;
		expect(&s, STOP_ROOT, "dcenbaer");
		s.p->pc = s.p->eval + FAKE_RETURN;
		cfa = python_fake_call(s.p, s.p->enter, PYTHON_EVAL_BYTES);
		expect(&s, STOP_ROOT, "edcenbaer");
		if (linkages[l] == PYTHON_NO_CFRAME) { /* the thread state leads to the new frame already */
			fake_put(s.p->f, cfa - s.p->vm.entry_below + s.p->vm.f_previous, s.p->current);
			fake_put(s.p->f, PYTHON_STATE + s.p->vm.ts_frame, python_fake_frame(s.p, s.a, 0, 0));
			s.p->pc = s.p->link + FAKE_RETURN;
			expect(&s, STOP_ROOT, "edcenbaer");
		}
		python_fake_destroy(s.p);
	}
}

/* On the way out of the loop the thread state leads to the caller's frame again. */
static void test_unlinked(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);
	u64 outer;

	s.p->sp += PYTHON_C_BYTES;
	memcpy(&outer, fake_at(s.p->f, s.p->sp + PYTHON_EVAL_BYTES - s.p->vm.entry_below + s.p->vm.f_previous, 8), 8);
	fake_put(s.p->f, PYTHON_STATE + s.p->vm.ts_frame, outer);
	s.p->pc = s.p->eval + 1;
	expect(&s, STOP_ROOT, "enbaer");
	python_fake_destroy(s.p);
}

/* Without thread state 3.11 and 3.12 miss nothing; 3.13 says that frames are missing. */
static void test_no_thread_state(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct stack s = make(linkages[l]);
		bool needed = linkages[l] == PYTHON_NO_CFRAME;

		fake_put(s.p->f, PYTHON_POINTER + PYTHON_SLOT, 0);
		expect(&s, needed ? STOP_VM_ABSENT : STOP_ROOT, needed ? "nener" : "ndcenbaer");
		python_fake_destroy(s.p);
	}
}

/* The walk of a function that no row covers, called by the innermost one. */
static void expect_lost(struct stack *s, int wanted, const char *frames)
{
	u64 lost = fake_function(s->p->f, NULL), reg[ARCH_NREGS] = {[REG_PC] = lost + 1, [REG_SP] = s->p->sp - 1024};
	struct walk *w = &s->p->f->walk;
	int stop = STOP_NONE;

	for (u64 at = s->p->sp - 1024; at < s->p->sp; at += 8) /* no return address is near */
		fake_put(s->p->f, at, 0);
	fake_start(s->p->f, reg);
	w->thread_pointer = PYTHON_POINTER;
	for (u32 i = 0; i < s->p->f->nregions; i++)
		if (s->p->f->region[i].runtime == RUNTIME_PYTHON)
			w->resume[0] = (struct region_resume){.runtime = RUNTIME_PYTHON, .vm = s->p->f->region[i].vm};
	do {
		for (u32 i = 0; i < walk_steps_max(w) && stop == STOP_NONE; i++)
			stop = walk_step(w);
		stop = walk_resume(w, walk_end(w, (u32)stop), false);
	} while (stop == STOP_NONE);
	assert_int_equal(stop, wanted);
	assert_string_equal(text(s), frames);
}

/* Where the loop has no rule that could be gone on with: the frames of the thread state, with gaps for what must lie
 * between. */
static void test_lost(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);

	expect_lost(&s, STOP_RESUMED, "ngdcgbag");
	fake_put(s.p->f, PYTHON_POINTER + PYTHON_SLOT, 0); /* a thread without a state has no frames, it seems */
	expect_lost(&s, STOP_NO_CFI, "n");
	python_fake_destroy(s.p);
	s.p = python_fake_create(PYTHON_FRAME_OBJECT);
	s.a = python_fake_code(s.p, "a", 10);
	s.b = python_fake_code(s.p, "b", 20);
	python_fake_object(s.p, s.a, 3);
	python_fake_object(s.p, s.b, 4);
	expect_lost(&s, STOP_RESUMED, "ngbag");
	fake_put(s.p->f, PYTHON_STATE + s.p->vm.ts_frame, 8);
	expect_lost(&s, STOP_VM_ABSENT, "ng");
	python_fake_destroy(s.p);
}

/* It is taking another interpreter down, or its state in that one has no frames yet: it goes on in the state that has.
 */
static void test_other_state(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);
	u64 interp = python_fake_alloc(s.p, 64), fresh = python_fake_alloc(s.p, 128), base = python_fake_alloc(s.p, 96);
	u8 owner = PYTHON_OWNER_NONE;
	struct python_vm *vm = config(&s);

	vm->interpreters = interp + 16;
	vm->interp_threads = vm->ts_thread_id = 8;
	fake_put(s.p->f, interp + 16, interp);
	fake_put(s.p->f, interp + 8, fresh);
	fake_put(s.p->f, fresh, PYTHON_STATE);
	fake_put(s.p->f, fresh + 8, PYTHON_POINTER);
	fake_put(s.p->f, fresh + vm->ts_frame, base);
	python_fake_put(s.p, base + vm->f_entry, &owner, 1);
	fake_put(s.p->f, PYTHON_STATE + 8, PYTHON_POINTER);
	for (u32 i = 0; i < 2; i++) {
		fake_put(s.p->f, PYTHON_POINTER + PYTHON_SLOT, i ? fresh : 0);
		expect(&s, STOP_ROOT, "ndcenbaer");
	}
	fake_put(s.p->f, PYTHON_POINTER + PYTHON_SLOT, 0);
	fake_put(s.p->f, PYTHON_STATE + 8, PYTHON_POINTER + 8); /* another thread's */
	expect(&s, STOP_VM_ABSENT, "nener");
	python_fake_destroy(s.p);
}

static void test_shim(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);

	fake_put(s.p->f, s.c + s.p->vm.co_code, 3);
	python_fake_put(s.p, s.c + s.p->layout.co_firstlineno.at, &(u32){0}, 4);
	expect(&s, STOP_ROOT, "ndenbaer");
	python_fake_destroy(s.p);
}

static void test_no_code_object(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct stack s = make(linkages[l]);

		fake_put(s.p->f, s.d + 8, 0);
		assert_int_equal(python_fake_walk(s.p), STOP_VM_BROKEN);
		assert_string_equal(text(&s) + strlen(text(&s)) - 2, "er"); /* the walk went on */
		python_fake_destroy(s.p);
	}
}

/* A frame that is its own caller: the depth ends it. */
static void test_circle(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct stack s = make(linkages[l]);

		fake_put(s.p->f, s.p->current + s.p->vm.f_previous, s.p->current);
		assert_int_equal(python_fake_walk(s.p), STOP_DEPTH);
		assert_int_equal(s.p->f->walk.nframes, FAKE_FRAMES);
		python_fake_destroy(s.p);
	}
}

/* An entry frame that lies elsewhere belongs to another native frame. */
static void test_wrong_entry(void **state)
{
	struct stack s = make(PYTHON_ENTRY_FRAME);
	u64 entry = python_fake_frame(s.p, 0, 0, PYTHON_OWNER_NONE);

	fake_put(s.p->f, s.p->sp + PYTHON_C_BYTES + PYTHON_EVAL_BYTES - s.p->vm.cframe_below + s.p->vm.cf_frame, entry);
	expect(&s, STOP_VM_BROKEN, "nenbaer");
	python_fake_destroy(s.p);
}

/* Any one read fails: no stack is called complete that is not. */
static void test_failing_reads(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct stack s = make(linkages[l]);
		u32 reads, cut = 0;

		assert_int_equal(python_fake_walk(s.p), STOP_ROOT);
		reads = s.p->f->reads;
		s.p->f->failures = 1;
		for (u32 i = 0; i < reads; i++) {
			int stop;

			s.p->f->fail = i;
			stop = python_fake_walk(s.p);
			if (stop_is_complete((u32)stop))
				assert_string_equal(text(&s), "ndcenbaer");
			else
				cut++;
		}
		assert_true(cut > reads / 2);
		python_fake_destroy(s.p);
	}
}

/* Up to 3.10: C calls a, which calls b, both through the eval loop; C calls c, which is at its beginning. */
static struct stack make_objects(void)
{
	struct python_fake *p = python_fake_create(PYTHON_FRAME_OBJECT);
	struct stack s = {.p = p,
	        .a = python_fake_code(p, "a", 10),
	        .b = python_fake_code(p, "b", 20),
	        .c = python_fake_code(p, "c", 30)};

	python_fake_object(p, s.a, 4);
	python_fake_object(p, s.b, 6);
	python_fake_call(p, p->c, PYTHON_C_BYTES);
	python_fake_object(p, s.c, UINT32_MAX);
	python_fake_call(p, p->c, PYTHON_C_BYTES);
	return s;
}

static void test_objects(void **state)
{
	struct stack s = make_objects();

	expect(&s, STOP_ROOT, "ncenbeaer");
	assert_int_equal(python_pos(&s.p->f->frames[1]), PYTHON_NO_POS);
	assert_int_equal(python_pos(&s.p->f->frames[4]), 3);
	assert_int_equal(python_pos(&s.p->f->frames[6]), 2);
	s.p->sp += PYTHON_C_BYTES;
	s.p->pc = s.p->eval + 1;
	expect(&s, STOP_ROOT, "cenbeaer");
	s.p->pc = s.p->enter + 1;
	python_fake_call(s.p, s.p->enter, PYTHON_EVAL_BYTES);
	fake_put(s.p->f, s.p->sp + PYTHON_EVAL_BYTES - 8, s.p->eval + FAKE_RETURN);
	expect(&s, STOP_ROOT, "ecenbeaer");
	fake_put(s.p->f, PYTHON_POINTER + PYTHON_SLOT, 0);
	expect(&s, STOP_VM_ABSENT, "eeneer");
	python_fake_destroy(s.p);
}

/* Generators b, c and d delegate to the next one. C throws into b: d is run, b and c only linked. */
static struct stack make_thrown(void)
{
	struct python_fake *p = python_fake_create(PYTHON_FRAME_OBJECT);
	struct stack s = {.p = p,
	        .a = python_fake_code(p, "a", 10),
	        .b = python_fake_code(p, "b", 20),
	        .c = python_fake_code(p, "c", 30),
	        .d = python_fake_code(p, "d", 40)};

	python_fake_object(p, s.a, 4);
	python_fake_call(p, p->c, PYTHON_C_BYTES);
	python_fake_object_generator(p, python_fake_object_only(p, s.b, 6), 0);
	python_fake_object_generator(p, python_fake_object_only(p, s.c, 6), 0);
	python_fake_object_generator(p, python_fake_object(p, s.d, 6), PYTHON_STATE);
	return s;
}

static void test_thrown_through(void **state)
{
	struct stack s = make_thrown();
	u32 reads;

	expect(&s, STOP_ROOT, "dencbaer");
	expect_lost(&s, STOP_RESUMED, "ngdcbag");
	assert_int_equal(python_fake_walk(s.p), STOP_ROOT);
	reads = s.p->f->reads;
	s.p->f->failures = 1;
	for (u32 i = 0; i < reads; i++) {
		s.p->f->fail = i;
		if (stop_is_complete((u32)python_fake_walk(s.p)))
			assert_string_equal(text(&s), "dencbaer");
	}
	python_fake_destroy(s.p);
}

/* 3.9 links such a frame, but not to its caller's. */
static void test_thrown_through_unlinked(void **state)
{
	struct stack s = make_thrown();
	u64 c, b;

	memcpy(&c, fake_at(s.p->f, s.p->current + s.p->vm.f_previous, 8), 8);
	memcpy(&b, fake_at(s.p->f, c + s.p->vm.f_previous, 8), 8);
	fake_put(s.p->f, b + s.p->vm.f_previous, 0);
	expect(&s, STOP_VM_BROKEN, "dencber");
	expect_lost(&s, STOP_RESUMED, "ngdcbg");
	python_fake_destroy(s.p);
}

/* 3.11: a throws into b, which delegates to c. Both were run by native frames of their own before. */
static void test_thrown_through_by_flag(void **state)
{
	struct python_fake *p = python_fake_create(PYTHON_ENTRY_FLAG);
	struct stack s = {.p = p,
	        .a = python_fake_code(p, "a", 10),
	        .b = python_fake_code(p, "b", 20),
	        .c = python_fake_code(p, "c", 30)};
	u64 gen, cframe = p->sp - p->vm.cframe_below + p->vm.cf_frame;

	python_fake_eval(p, &s.a, 1);
	gen = python_fake_alloc(p, PYTHON_CORO_BYTES + 32);
	fake_put(p->f, cframe, python_fake_link(p, gen + p->layout.gen_frame.at, s.b, 2, 1));
	python_fake_generator(p, p->current);
	python_fake_call(p, p->c, PYTHON_C_BYTES);
	python_fake_eval(p, &s.c, 1);
	python_fake_generator(p, p->current);
	fake_put(p->f, p->current - p->vm.gen_outer, PYTHON_STATE);
	expect(&s, STOP_ROOT, "cenbaer");
	fake_put(p->f, gen + p->layout.gen_outer.at, PYTHON_STATE); /* run by the native frame */
	expect(&s, STOP_ROOT, "cenber");
	python_fake_destroy(p);
}

/* More native frames than frame objects; an object of another type. */
static void test_objects_broken(void **state)
{
	struct stack s = make_objects();
	u64 top = s.p->current;

	fake_put(s.p->f, top + s.p->vm.f_previous, 0);
	expect(&s, STOP_VM_BROKEN, "nceneer");
	fake_put(s.p->f, top + s.p->vm.ob_type, PYTHON_TYPE);
	assert_int_equal(python_fake_walk(s.p), STOP_VM_BROKEN);
	python_fake_destroy(s.p);
}

/* The state's address is behind two more loads, as in a module that was loaded late, or in musl. */
static void test_way_to_state(void **state)
{
	struct stack s = make_objects();
	struct python_vm *vm = arena_at(s.p->f->arena, s.p->f->region[s.p->f->nregions - 1].vm, sizeof(*vm));
	u64 vector = python_fake_alloc(s.p, 64), block = python_fake_alloc(s.p, 64);

	vm->slot = 40;
	vm->nvia = 2;
	vm->via[0] = 8;
	vm->via[1] = 32;
	fake_put(s.p->f, PYTHON_POINTER + 8, vector);
	fake_put(s.p->f, vector + 32, block);
	fake_put(s.p->f, block + 40, PYTHON_STATE);
	expect(&s, STOP_ROOT, "ncenbeaer");
	fake_put(s.p->f, PYTHON_POINTER + 8, 0);
	assert_int_equal(python_fake_walk(s.p), STOP_VM_UNKNOWN);
	python_fake_destroy(s.p);
}

#define FRAMES 60

/* Frames of functions cost one read each, of their code object, wherever the generators between them lie. */
static void test_window(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct stack s = make(linkages[l]);
		u64 outside = python_fake_alloc(s.p, 1024), top;

		python_fake_alloc(s.p, 17 << 10);
		python_fake_eval(s.p, (u64[]){s.a}, 1);
		for (u32 i = 1; i < FRAMES; i++) {
			if (i % 10) {
				python_fake_frame(s.p, i % 2 ? s.b : s.a, 2, 0);
			} else {
				top = python_fake_link(s.p, outside + i / 10 * 96, s.c, 2, 0);
				python_fake_generator(s.p, top);
			}
		}
		fake_put(s.p->f, s.p->sp + PYTHON_EVAL_BYTES - s.p->vm.cframe_below + s.p->vm.cf_frame, s.p->current);
		if (linkages[l] == PYTHON_NO_CFRAME)
			fake_put(s.p->f, PYTHON_STATE + s.p->vm.ts_frame, s.p->current);
		assert_int_equal(python_fake_walk(s.p), STOP_ROOT);
		for (u32 i = 0; i < FRAMES; i++)
			assert_int_equal(text(&s)[FRAMES - 1 - i], i && i % 10 == 0 ? 'c' : i % 2 ? 'b' : 'a');
		assert_string_equal(text(&s) + FRAMES, "endcenbaer");
		assert_in_range(s.p->f->reads, FRAMES, FRAMES + 30);
		python_fake_destroy(s.p);
	}
}

/* Frames on both sides of a page that can not be read: the window is clipped. */
static void test_window_clipped(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct python_fake *p = python_fake_create(linkages[l]);
		struct stack s = {.p = p, .a = python_fake_code(p, "a", 10), .b = python_fake_code(p, "b", 20)};
		u64 page = (p->heap + 2 * FAKE_PAGE) & ~(u64)(FAKE_PAGE - 1);

		p->heap = page;
		python_fake_eval(p, (u64[]){s.a, s.b, s.a, s.b}, 4);
		p->f->absent[(page - FAKE_STACK) / FAKE_PAGE - 1] = true;
		p->pc = p->eval + 1;
		expect(&s, STOP_ROOT, "babaer");
		python_fake_destroy(p);
	}
}

/* Free-threaded 3.14: the innermost frame is in its thread's copy of the bytecode, the next one in the first. */
static void test_own_bytecode(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);
	struct python_vm *vm = config(&s);
	u64 array = python_fake_alloc(s.p, 64), copy = python_fake_alloc(s.p, 64);

	vm->f_tlbc = 72;
	vm->co_tlbc = 200;
	python_fake_put(s.p, s.p->current + vm->f_tlbc, &(u32){2}, 4);
	fake_put(s.p->f, s.p->current + vm->f_instr, copy + 2 * 5);
	fake_put(s.p->f, s.d + vm->co_tlbc, array);
	fake_put(s.p->f, array + 8 + 2 * 8, copy);
	expect(&s, STOP_ROOT, "ndcenbaer");
	assert_int_equal(python_pos(&s.p->f->frames[1]), 5);
	assert_int_equal(python_pos(&s.p->f->frames[2]), 2);
	fake_put(s.p->f, array + 8 + 2 * 8, copy - 64); /* of another length */
	expect(&s, STOP_ROOT, "ndcenbaer");
	assert_int_equal(python_pos(&s.p->f->frames[1]), PYTHON_NO_POS);
	fake_put(s.p->f, s.d + vm->co_tlbc, 8);
	expect(&s, STOP_ROOT, "ndcenbaer");
	assert_int_equal(python_pos(&s.p->f->frames[1]), PYTHON_NO_POS);
	python_fake_destroy(s.p);
}

/* A bytecode that is a function of its own has handed over to the caller's frames. */
static void test_unlinked_below(void **state)
{
	struct stack s = make(PYTHON_NO_CFRAME);
	u64 outer, cfa = s.p->sp + PYTHON_C_BYTES + PYTHON_EVAL_BYTES;

	memcpy(&outer, fake_at(s.p->f, cfa - s.p->vm.entry_below + s.p->vm.f_previous, 8), 8);
	config(&s)->calls_late = 1;
	expect(&s, STOP_ROOT, "ndcenbaer");
	fake_put(s.p->f, PYTHON_STATE + s.p->vm.ts_frame, outer);
	expect(&s, STOP_ROOT, "nenbaer");
	config(&s)->calls_late = 0;
	assert_int_equal(python_fake_walk(s.p), STOP_VM_BROKEN);
	python_fake_destroy(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_order),
	        cmocka_unit_test(test_leaves),
	        cmocka_unit_test(test_unlinked),
	        cmocka_unit_test(test_no_thread_state),
	        cmocka_unit_test(test_lost),
	        cmocka_unit_test(test_other_state),
	        cmocka_unit_test(test_shim),
	        cmocka_unit_test(test_no_code_object),
	        cmocka_unit_test(test_circle),
	        cmocka_unit_test(test_wrong_entry),
	        cmocka_unit_test(test_failing_reads),
	        cmocka_unit_test(test_objects),
	        cmocka_unit_test(test_thrown_through),
	        cmocka_unit_test(test_thrown_through_unlinked),
	        cmocka_unit_test(test_thrown_through_by_flag),
	        cmocka_unit_test(test_objects_broken),
	        cmocka_unit_test(test_way_to_state),
	        cmocka_unit_test(test_window),
	        cmocka_unit_test(test_window_clipped),
	        cmocka_unit_test(test_own_bytecode),
	        cmocka_unit_test(test_unlinked_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
