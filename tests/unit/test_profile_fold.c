/* SPDX-License-Identifier: Apache-2.0 */
/* Walls of a recording as one frame each: an event loop, imports, what lies between and at the leaf. */
#include "unit.h"

#include "profile_text.h"
#include "unwind/profile/profile_fold.h"
#include "unwind/runtime.h"

#define FLAGS (EXPAND_LOOP | EXPAND_IMPORTS)

static u32 python(struct profile *p, u32 node, const char *name, const char *file)
{
	return add_frame(p, node, KIND_SCRIPT, name, "python", file);
}

static u32 native(struct profile *p, u32 node, const char *name)
{
	return add_frame(p, node, KIND_NATIVE, name, "libpython", "");
}

static void expect(struct profile *p, u32 flags, const char *text)
{
	struct profile *folded;
	struct bytes b;

	profile_finish(p);
	assert_null(fold_profile(p, flags, &folded));
	assert_int_equal(folded->nodes[0].total, p->nodes[0].total);
	assert_string_equal(folded->meta.unit, p->meta.unit);
	b = written(folded, &format_folded);
	assert_string_equal(b.data, text);
	free(b.data);
	profile_destroy(folded);
	profile_destroy(p);
}

static struct profile *make(u32 *main)
{
	struct profile *p;

	assert_null(profile_create(&p));
	p->meta.unit = "samples";
	*main = python(p, 0, "main (app.py:1)", "/app.py");
	return p;
}

/* From the loop's start to where it runs something, natives between. */
static u32 loop(struct profile *p, u32 node)
{
	node = native(p, python(p, node, "run (runners.py:1)", "/lib/asyncio/runners.py"), "eval");
	return python(p,
	        native(p,
	                python(p, node, "BaseEventLoop.run_forever (base_events.py:2)", "/lib/asyncio/base_events.py"),
	                "eval"),
	        "Handle._run (events.py:3)", "/lib/asyncio/events.py");
}

static void test_loop(void **state)
{
	struct profile *p;
	u32 at;

	p = make(&at);
	at = loop(p, at);
	profile_add(p, native(p, at, "poll"), 2);
	profile_add(p, python(p, native(p, at, "task_step"), "task (app.py:9)", "/app.py"), 3);
	expect(p, FLAGS,
	        "main (app.py:1);asyncio (event loop);poll 2\nmain (app.py:1);asyncio (event loop);task (app.py:9) "
	        "3\n");
}

static void test_imports(void **state)
{
	struct profile *p;
	u32 at;

	p = make(&at);
	at = python(p, at, "_find_and_load (_bootstrap.py:1)", "<frozen importlib._bootstrap>");
	at = python(p, native(p, at, "exec"), "_call (_bootstrap.py:2)", "<frozen importlib._bootstrap>");
	profile_add(p, python(p, at, "<module> (lib.py:1)", "/lib.py"), 5);
	expect(p, FLAGS, "main (app.py:1);import;<module> (lib.py:1) 5\n");
}

static u32 uvloop(struct profile *p, u32 node, const char *name)
{
	struct profile_function fn = {
	        .name = name, .module = "loop.cpython-312-x86_64-linux-gnu.so", .file = "", .kind = KIND_NATIVE};
	u32 function, ret;

	assert_null(profile_image(p, "/lib/uvloop/loop.cpython-312-x86_64-linux-gnu.so", "", &fn.image));
	assert_null(profile_function(p, 0, &fn, false, &function));
	assert_null(profile_child(p, node, function, &ret));
	return ret;
}

/* A loop in C, as it runs a task, as a leaf, and what a task calls of it. */
static void test_uvloop(void **state)
{
	struct profile *p;
	u32 at, task;

	p = make(&at);
	at = uvloop(p, uvloop(p, native(p, at, "call"), "uv_run"), "uvloop.loop.Handle._run");
	profile_add(p, native(p, at, "epoll_wait"), 2);
	task = python(p, native(p, at, "task_step"), "task (app.py:9)", "/app.py");
	profile_add(p, task, 3);
	profile_add(p, uvloop(p, task, "uvloop.loop.UVStream.write"), 1);
	expect(p, FLAGS,
	        "main (app.py:1);call;asyncio (event loop);epoll_wait 2\nmain (app.py:1);call;asyncio (event "
	        "loop);task (app.py:9) 3\n"
	        "main (app.py:1);call;asyncio (event loop);task (app.py:9);uvloop.loop.UVStream.write 1\n");
}

/* Files of the loop without what runs it, another runtime's functions of that name, and no flag: all stays. */
static void test_none(void **state)
{
	struct profile *p;
	u32 at;

	p = make(&at);
	at = python(p, at, "Handle._run (events.py:3)", "/lib/asyncio/events.py");
	at = add_frame(p, at, KIND_SCRIPT, "run (runners.py:1)", "luajit", "/lib/asyncio/runners.py");
	profile_add(p, at, 1);
	expect(p, FLAGS, "main (app.py:1);Handle._run (events.py:3);run (runners.py:1) 1\n");
	p = make(&at);
	profile_add(p, loop(p, at), 1);
	expect(p, EXPAND_IMPORTS,
	        "main (app.py:1);run (runners.py:1);eval;BaseEventLoop.run_forever (base_events.py:2);eval;Handle._run "
	        "(events.py:3) 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_loop),
	        cmocka_unit_test(test_imports),
	        cmocka_unit_test(test_uvloop),
	        cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
