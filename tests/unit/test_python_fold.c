/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames one frame stands for: event loops and imports, over code objects of fake memory. */
#include "unit.h"

#include "profile/expand.h"
#include "python_fake.h"
#include "runtimes/python/python_fold.h"
#include "runtimes/python/python_glue.h"
#include "runtime.h"

#define FRAMES_MAX 32
#define NATIVE     "(native)"
#define UVLOOP     "(uvloop)" /* a native frame of its module; of libuv; in uv_run() of either */
#define UVLOOP_RUN "(uvloop run)"
#define LIBUV      "(libuv)"
#define LIBUV_RUN  "(libuv run)"
#define UV_BYTES   0x1000
#define UV_START   0x7f0000000000ull
#define UV_RUN     0x800 /* from here on uv_run() */

struct stack {
	struct python_fake *p;
	struct python_names *names;
	struct python_uvloop uvloop[PYTHON_UVLOOP_MODULES];
	struct runtime_process process;
	struct frame frame[FRAMES_MAX];
	u32 n;
};

static struct image images[PYTHON_UVLOOP_MODULES] = {
        {.path = "/lib/uvloop/loop.cpython-312-x86_64-linux-gnu.so"}, {.path = "/lib/libuv.so.1"}};
static struct mapping mappings[PYTHON_UVLOOP_MODULES];

static int setup(void **state)
{
	struct stack *s = calloc(1, sizeof(*s));

	s->p = python_fake_create(PYTHON_ENTRY_FRAME);
	s->names = python_names_create(&s->p->layout, PYTHON_TYPE);
	s->process.memory = &s->p->f->memory;
	s->process.mappings = mappings;
	s->process.nmappings = PYTHON_UVLOOP_MODULES;
	for (u32 i = 0; i < PYTHON_UVLOOP_MODULES; i++) {
		mappings[i] = (struct mapping){.start = UV_START + UV_BYTES * i,
		        .end = UV_START + UV_BYTES * (i + 1),
		        .bias = UV_START + UV_BYTES * i,
		        .image = &images[i]};
		s->uvloop[i] = (struct python_uvloop){&images[i], UV_RUN, UV_RUN + 0x100};
	}
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct stack *s = *state;

	python_names_destroy(s->names);
	python_fake_destroy(s->p);
	free(s);
	return 0;
}

/* A frame of the loop's modules in C. */
static void put_native(struct frame *f, const char *text)
{
	bool libuv = !strncmp(text, "(libuv", 6);

	if (strcmp(text, NATIVE))
		f->where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, FRAME_RETADDR,
		        UV_START + (libuv ? UV_BYTES : 0) + (strstr(text, " run") ? UV_RUN : 0) + 16);
}

/* "file function" is walked as a real stack would be; NATIVE is a frame of C. The leaf comes first. */
static void build(struct stack *s, const char *const *texts)
{
	u32 n = 0;

	python_names_destroy(s->names); /* it remembers code objects by their address */
	s->names = python_names_create(&s->p->layout, PYTHON_TYPE);
	s->p->heap = PYTHON_HEAP_FIRST;
	s->p->sp = PYTHON_HEAP - 64;
	s->p->pc = s->p->root + FAKE_RETURN;
	s->p->current = 0;
	s->n = 0;
	while (texts[n])
		n++;
	while (n-- > 0) {
		char file[64], name[64];
		u64 code;

		if (*texts[n] == '(') {
			python_fake_call(s->p, s->p->c, PYTHON_C_BYTES);
			continue;
		}
		assert_int_equal(sscanf(texts[n], "%63[^:]:%63s", file, name), 2);
		code = python_fake_code_of(s->p, file, name, 7);
		python_fake_eval(s->p, &code, 1);
	}
	assert_int_equal(python_fake_walk(s->p), STOP_ROOT);
	for (u32 i = 0; i < s->p->f->walk.nframes; i++)
		if (!(frame_flags(&s->p->f->frames[i]) & FRAME_VM))
			s->frame[s->n++] = s->p->f->frames[i];
	s->n--; /* the root */
	for (n = 0; n < s->n; n++)
		if (frame_kind(&s->frame[n]) == FRAME_NATIVE)
			put_native(&s->frame[n], texts[n]);
}

/* Folds the stack, and compares: names of what is left. */
static void expect(struct stack *s, u32 flags, const char *const *texts)
{
	struct frame ret[2];
	u32 eaten, k = 0;

	for (u32 i = 0; i < s->n; i += eaten) {
		u32 put = python_fold(s->names, s->uvloop, &s->process, s->frame, i, s->n, flags, ret, &eaten);

		assert_int_equal(put > 0, eaten > 0);
		if (!eaten) {
			ret[0] = s->frame[i];
			put = eaten = 1;
		}
		for (u32 j = 0; j < put; j++, k++) {
			struct frame_name name = {.name = NATIVE};

			assert_non_null(texts[k]);
			if (python_fold_name(&ret[j]))
				snprintf(name.name, sizeof(name.name), "%s", python_fold_name(&ret[j]));
			else if (frame_kind(&ret[j]) == FRAME_SCRIPT)
				assert_true(python_name_frame(s->names, &s->p->f->memory, &ret[j], &name));
			assert_string_equal(name.name, texts[k]);
		}
	}
	assert_null(texts[k]);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define LOOP       "asyncio (event loop)"
#define ASYNC      "/usr/lib/python3.11/asyncio/"

static void test_loop(void **state)
{
	build(*state, TEXTS(NATIVE, "a.py:work", "a.py:main", NATIVE, NATIVE, ASYNC "events.py:Handle._run",
	                      ASYNC "base_events.py:_run_once", ASYNC "base_events.py:BaseEventLoop.run_forever",
	                      NATIVE, ASYNC "runners.py:run", "a.py:module"));
	expect(*state, EXPAND_LOOP, TEXTS(NATIVE, "work", "main", LOOP, "module"));
	expect(*state, EXPAND_IMPORTS,
	        TEXTS(NATIVE, "work", "main", NATIVE, NATIVE, "Handle._run", "_run_once", "BaseEventLoop.run_forever",
	                NATIVE, "run", "module"));
}

/* What the loop itself does is shown inside it. */
static void test_leaf_inside(void **state)
{
	build(*state, TEXTS(NATIVE, ASYNC "base_events.py:_run_once", ASYNC "base_events.py:run_forever"));
	expect(*state, EXPAND_LOOP, TEXTS(NATIVE, LOOP));
	build(*state, TEXTS(ASYNC "base_events.py:run_forever"));
	expect(*state, EXPAND_LOOP, TEXTS(LOOP));
}

/* A task that calls asyncio runs no loop by that; coroutines of asyncio are no part of the loop; nor are files like
 * them. */
static void test_no_loop(void **state)
{
	build(*state,
	        TEXTS(ASYNC "base_events.py:call_soon", "a.py:main", ASYNC "streams.py:read", ASYNC "events.py:_run",
	                ASYNC "base_events.py:run_forever", "/a/events.py:run", "events.py:run"));
	expect(*state, EXPAND_LOOP, TEXTS("call_soon", "main", "read", LOOP, "run", "run"));
}

/* A loop that a callback of another one runs. */
static void test_nested(void **state)
{
	build(*state, TEXTS("a.py:inner", ASYNC "base_events.py:run_until_complete", "a.py:outer", NATIVE,
	                      ASYNC "events.py:_run", ASYNC "base_events.py:run_forever"));
	expect(*state, EXPAND_LOOP, TEXTS("inner", LOOP, "outer", LOOP));
}

/* uvloop's loop is in C: what it has inside the task, and what a task calls of it, is none. */
static void test_uvloop(void **state)
{
	build(*state, TEXTS("a.py:task", NATIVE, UVLOOP, UVLOOP, UVLOOP_RUN, UVLOOP, NATIVE,
	                      ASYNC "runners.py:Runner.run", "a.py:module"));
	expect(*state, EXPAND_LOOP, TEXTS("task", LOOP, "module"));
	build(*state, TEXTS(NATIVE, UVLOOP, UVLOOP_RUN, UVLOOP, NATIVE, "a.py:module"));
	expect(*state, EXPAND_LOOP, TEXTS(NATIVE, LOOP, NATIVE, "module"));
	build(*state, TEXTS(NATIVE, UVLOOP, UVLOOP, "a.py:task", NATIVE, UVLOOP, UVLOOP, ASYNC "runners.py:run",
	                      "a.py:module"));
	expect(*state, EXPAND_LOOP, TEXTS(NATIVE, NATIVE, NATIVE, "task", LOOP, "module"));
	build(*state, TEXTS(UVLOOP, "a.py:module"));
	expect(*state, EXPAND_LOOP, TEXTS(NATIVE, "module"));
	expect(*state, EXPAND_IMPORTS, TEXTS(NATIVE, "module"));
}

/* libuv of its own is part of the loop beside uvloop only. */
static void test_libuv(void **state)
{
	build(*state, TEXTS("a.py:task", UVLOOP, LIBUV, LIBUV_RUN, UVLOOP, NATIVE, "a.py:module"));
	expect(*state, EXPAND_LOOP, TEXTS("task", LOOP, NATIVE, "module"));
	build(*state, TEXTS(NATIVE, LIBUV, LIBUV_RUN, UVLOOP, "a.py:module"));
	expect(*state, EXPAND_LOOP, TEXTS(NATIVE, LOOP, "module"));
	build(*state, TEXTS("a.py:task", LIBUV, LIBUV_RUN, NATIVE, "a.py:module"));
	expect(*state, EXPAND_LOOP, TEXTS("task", NATIVE, NATIVE, NATIVE, "module"));
}

#define FROZEN "<frozen importlib._bootstrap>:"

static void test_import(void **state)
{
	build(*state, TEXTS("b.py:module", NATIVE, FROZEN "_call_with_frames_removed",
	                      "<frozen importlib._bootstrap_external>:exec_module", FROZEN "_load_unlocked",
	                      FROZEN "_find_and_load", NATIVE, "a.py:module"));
	expect(*state, EXPAND_IMPORTS, TEXTS("module", "import", NATIVE, "module"));
	build(*state, TEXTS("b.py:module", "/usr/lib/python3.5/importlib/_bootstrap.py:_gcd_import",
	                      "/usr/lib/importlib/__init__.py:import_module"));
	expect(*state, EXPAND_IMPORTS | EXPAND_LOOP, TEXTS("module", "import", "import_module"));
	build(*state, TEXTS(FROZEN "_handle_fromlist", "a.py:module"));
	expect(*state, EXPAND_IMPORTS, TEXTS("_handle_fromlist", "module"));
}

/* A frame without a code object of this address is no fold group's, and other runtimes' frames are left alone. */
static void test_others(void **state)
{
	struct stack *s = *state;
	struct frame other = {.where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, 0x1000)}, ret[2];
	u32 eaten;

	assert_null(python_fold_name(&(struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, 0)}));
	assert_null(
	        python_fold_name(&(struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, 1ull << 40)}));
	assert_null(python_fold_name(
	        &(struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, 8), .detail = 1}));
	assert_int_equal(
	        python_fold(s->names, s->uvloop, &s->process, &other, 0, 1, EXPAND_LOOP | EXPAND_IMPORTS, ret, &eaten),
	        0);
	assert_int_equal(eaten, 0);
}

static void test_glue(void **state)
{
	static const char *const glue[] = {"", "PyObject_Call", "_PyEval_EvalFrame", "method_vectorcall_NOARGS",
	        "slot_tp_init", "type_call", "type_call.part.0", "pymain_run_python.constprop.0", "main",
	        "_PyCallMethodDescriptorFastWithKeywords_StackRef", "_PyCallMethodDescriptorFast_StackRef",
	        "_Py_BuiltinCallFast_StackRef", "_Py_CallBuiltinClass_StackRef", "_Py_VectorCall_StackRefSteal",
	        "_Py_VectorCallInstrumentation_StackRefSteal"};
	static const char *const shown[] = {"PyObject_GetAttr", "builtin_sum", "time.sleep", "type_calls", "main_loop",
	        "mainly", "numpy.run", "list.append", "_Py_BuildMap_StackRefSteal", "_PyObject_GetAttrStackRef"};

	for (u32 i = 0; i < sizeof(glue) / sizeof(*glue); i++)
		assert_true(python_is_glue(glue[i]));
	for (u32 i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		assert_false(python_is_glue(shown[i]));
}

/* Whose thread holds the GIL is given by flags of native frames, only if that was asked for. */
static void test_lock(void **state)
{
	struct stack *s = *state;
	struct python_fake *p = s->p;
	u64 gil = python_fake_alloc(p, 32), interp = python_fake_alloc(p, 64), list = python_fake_alloc(p, 16),
	    code = python_fake_code(p, "f", 1);
	struct python_vm *vm = NULL;

	python_fake_eval(p, &code, 1);
	for (u32 i = 0; i < p->f->nregions && !vm; i++)
		if (p->f->region[i].vm)
			vm = arena_at(p->f->arena, p->f->region[i].vm, sizeof(*vm));
	assert_non_null(vm);
	vm->ts_thread_id = 136;
	fake_put(p->f, gil + 8, PYTHON_STATE);
	fake_put(p->f, PYTHON_STATE + 136, PYTHON_POINTER);
	vm->interpreters = list;
	vm->interp_next = 8;
	vm->interp_gil = 16;
	fake_put(p->f, list, interp);
	fake_put(p->f, interp + 8, interp + 32);
	fake_put(p->f, interp + 16, 8); /* unreadable */
	for (u32 i = 0; i < 16; i++) {
		bool asked = i & 1, locked = i & 2, other = i & 4, shared = i & 8;
		bool held = false;

		vm->wants_lock = asked;
		vm->gil = shared ? gil : 0;
		fake_put(p->f, interp + 32 + 16, gil); /* of the second interpreter */
		fake_put(p->f, gil + 16, 0xffffffff00000000 | locked);
		fake_put(p->f, PYTHON_STATE + 136, PYTHON_POINTER + (other ? 64 : 0));
		python_fake_walk(p);
		for (u32 k = 0; k < p->f->walk.nframes; k++)
			held = held || frame_flags(&p->f->frames[k]) & FRAME_LOCK;
		assert_int_equal(held, asked && locked && !other);
	}
	vm->gil = 0;
	vm->wants_lock = 1;
	fake_put(p->f, interp + 32 + 16, 8);
	fake_put(p->f, interp + 32 + 8, interp); /* a list without an end */
	assert_int_equal(python_fake_walk(p), STOP_ROOT);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {T(test_loop), T(test_leaf_inside), T(test_no_loop), T(test_nested),
	        T(test_uvloop), T(test_libuv), T(test_import), T(test_others), T(test_glue), T(test_lock)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
