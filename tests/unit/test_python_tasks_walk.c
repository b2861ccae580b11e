/* SPDX-License-Identifier: Apache-2.0 */
/* The Python walker over fake memory: tasks that await each other, greenlets. */
#include "python_stack_fake.h"

/* A task that awaits c within b is awaited by that of d, and awaits the task whose coroutine a runs. */
static struct stack make_tasks(u64 awaiters)
{
	struct python_fake *p = python_fake_create(PYTHON_NO_CFRAME);
	struct stack s = {.p = p,
	        .a = python_fake_code(p, "a", 10),
	        .b = python_fake_code(p, "b", 20),
	        .c = python_fake_code(p, "c", 30),
	        .d = python_fake_code(p, "d", 40)};
	u64 last, middle, coro;

	python_fake_awaits(p, p->f->region[p->f->nregions - 1].vm);
	last = python_fake_task(p, python_fake_coroutine(p, s.d, PYTHON_STATE), 0, 0);
	middle = python_fake_task(p, python_fake_coroutine(p, s.b, python_fake_coroutine(p, s.c, 0)),
	        python_fake_set(p, last, 6, awaiters), 1);
	python_fake_eval(p, (u64[]){s.d}, 1);
	coro = python_fake_coroutine(p, s.a, 0);
	python_fake_runs(p, coro, s.a, python_fake_task(p, coro, middle, 0));
	python_fake_call(p, p->c, PYTHON_C_BYTES);
	return s;
}

static void test_awaiters(void **state)
{
	struct stack s = make_tasks(1);
	u32 reads;

	expect(&s, STOP_ROOT, "nacbder");
	reads = s.p->f->reads;
	s.p->f->failures = 1;
	for (s.p->f->fail = 0; s.p->f->fail < reads; s.p->f->fail++)
		if (stop_is_complete((u32)python_fake_walk(s.p)))
			assert_string_equal(text(&s), "nacbder");
	s.p->f->failures = 0;
	fake_put(s.p->f, PYTHON_STATE + s.p->vm.awaits.ts_task, 0);
	expect(&s, STOP_ROOT, "naer");
	python_fake_destroy(s.p);
}

static void test_several_awaiters(void **state)
{
	struct stack s = make_tasks(2);

	expect(&s, STOP_ROOT, "nacb?er");
	assert_int_equal(frame_addr(&s.p->f->frames[4]), PYTHON_SEVERAL_TASKS);
	python_fake_destroy(s.p);
}

/* Tasks that await each other, coroutines too: the walk ends. */
static void test_awaiting_circle(void **state)
{
	struct stack s = make_tasks(1);
	const struct python_awaits *a = &s.p->vm.awaits;
	u64 task, coro;

	memcpy(&task, fake_at(s.p->f, PYTHON_STATE + a->ts_task, 8), 8);
	memcpy(&coro, fake_at(s.p->f, task + a->task_coro, 8), 8);
	fake_put(s.p->f, coro + 176 - a->awaited_below, coro);
	fake_put(s.p->f, task + a->task_awaited_by, task);
	assert_int_equal(python_fake_walk(s.p), STOP_DEPTH);
	assert_int_equal(s.p->f->walk.nframes, FAKE_FRAMES);
	python_fake_destroy(s.p);
}

/* Above a greenlet's first function lies what is none of its stack, unless its Python frames go on there. */
static void test_greenlet(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		for (u32 outer = 0; outer < 2; outer++) {
			struct python_fake *p = python_fake_create(linkages[l]);
			struct stack s = {.p = p, .a = python_fake_code(p, "a", 10), .b = python_fake_code(p, "b", 20)};

			if (outer)
				python_fake_frame(p, s.a, 1, 1);
			p->pc = 8;
			python_fake_call(p, p->greenlet, PYTHON_C_BYTES);
			python_fake_eval(p, (u64[]){s.a, s.b}, 2);
			python_fake_call(p, p->c, PYTHON_C_BYTES);
			expect(&s, outer ? STOP_BAD_RETADDR : STOP_ROOT_RUNTIME, "nbaen");
			python_fake_destroy(p);
		}
	}
}

/* While greenlet 3 switches, no entry frame is linked from 3.12 on: what each follows says where the next native
 * frame's begin. */
static void test_greenlet_switch(void **state)
{
	static const enum python_linkage with_entries[] = {PYTHON_ENTRY_FRAME, PYTHON_NO_CFRAME};

	for (u32 l = 0; l < 2; l++) {
		struct python_fake *p = python_fake_create(with_entries[l]);
		struct stack s = {.p = p, .a = python_fake_code(p, "a", 10), .b = python_fake_code(p, "b", 20)};
		u64 outer, inner, entry, object = python_fake_alloc(p, PYTHON_OBJECT_BYTES);

		python_fake_eval(p, &s.a, 1);
		outer = p->current;
		memcpy(&entry, fake_at(p->f, outer + p->vm.f_previous, 8), 8);
		python_fake_call(p, p->c, PYTHON_C_BYTES);
		python_fake_eval(p, &s.b, 1);
		inner = p->current;
		python_fake_call(p, p->greenlet, PYTHON_C_BYTES);
		expect(&s, STOP_ROOT, "nbenaer");
		fake_put(p->f, inner + p->vm.f_previous, outer);
		expect(&s, STOP_ROOT, "nbenaer");
		fake_put(p->f, outer + p->vm.f_previous, 0); /* by the thread state it may be another greenlet's end */
		expect(&s, l ? STOP_VM_BROKEN : STOP_ROOT, "nbenaer");
		fake_put(p->f, outer + p->vm.f_instr - 8, object); /* unless greenlet has kept that it is this one's */
		expect(&s, l ? STOP_VM_BROKEN : STOP_ROOT, "nbenaer");
		fake_put(p->f, object + 72, entry);
		expect(&s, STOP_ROOT, "nbenaer");
		fake_put(p->f, object + 72, 0);
		p->sp += PYTHON_C_BYTES; /* not greenlet's module */
		p->pc = p->eval + FAKE_RETURN;
		python_fake_call(p, p->c, PYTHON_C_BYTES);
		assert_int_equal(python_fake_walk(p), STOP_VM_BROKEN);
		python_fake_destroy(p);
	}
}

/* A greenlet that begins, has ended, or runs C alone has no Python frame: its stack ends in greenlet's module all the
 * same. */
static void test_greenlet_alone(void **state)
{
	FOR_EACH_LINKAGE(l)
	{
		struct python_fake *p = python_fake_create(linkages[l]);
		struct stack s = {.p = p};
		u64 at = PYTHON_STATE + p->vm.ts_frame, cframe = python_fake_alloc(p, 64);

		if (linkages[l] != PYTHON_NO_CFRAME) {
			fake_put(p->f, at, cframe);
			at = cframe + p->vm.cf_frame;
		}
		fake_put(p->f, at, 0);
		p->pc = 8;
		python_fake_call(p, p->greenlet, PYTHON_C_BYTES);
		python_fake_call(p, p->c, PYTHON_C_BYTES);
		expect(&s, STOP_ROOT_RUNTIME, "nn");
		fake_put(p->f, at, PYTHON_STATE); /* it has some */
		expect(&s, STOP_BAD_RETADDR, "nn");
		python_fake_destroy(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_awaiters),
	        cmocka_unit_test(test_several_awaiters),
	        cmocka_unit_test(test_awaiting_circle),
	        cmocka_unit_test(test_greenlet),
	        cmocka_unit_test(test_greenlet_switch),
	        cmocka_unit_test(test_greenlet_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
