/* SPDX-License-Identifier: Apache-2.0 */
/* PUC-Lua's stacks at every instruction. YRT_LUA names one interpreter instead of Debian's four. */
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/lua/lua.h"

#define STEPS 40000

static u64 identity(struct steps *s, const struct frame *f)
{
	if (f->detail & (LUA_COLLECTS | LUA_STATE))
		return 0;
	return steps_mix(f->where, f->detail & ~(u64)LUA_NO_POS);
}

static u64 place(struct steps *s, const struct frame *f)
{
	return f->detail & LUA_NO_POS;
}

/* How many functions of scripts the longer of two stacks has inside of what both share; none in between may differ. */
static u32 differing(const struct steps_stack *a, const struct steps_stack *b)
{
	u32 i = 0, k = 0, more = 0;

	for (;; i++, k++) {
		while (i < a->nitems && !a->items[i].script)
			i++;
		while (k < b->nitems && !b->items[k].script)
			k++;
		if (i == a->nitems || k == b->nitems || a->items[i].identity != b->items[k].identity)
			break;
	}
	if (i < a->nitems && k < b->nitems)
		return UINT32_MAX;
	for (; i < a->nitems; i++)
		more += a->items[i].script;
	for (; k < b->nitems; k++)
		more += b->items[k].script;
	return more;
}

/*
 * runtimes/lua/README.md, "Limits". Machine code that calls a C function may stand outside of it or inside while it is
 * being called, and the C function may be away between two of luaD_precall()'s steps.
 */
static bool known(struct steps *s, enum steps_fault fault)
{
	return fault != STEPS_CUT && fault != STEPS_PLACE && differing(s->now, s->before) <= 1;
}

/*
 * 5.1: closures, tail calls and errors have moments of which neither registers nor lists say what runs. Others: a hook
 * in 5.3, and an instruction of clone3(), which looks like the root of a thread.
 */
static void test_steps(void **state)
{
	const char *lua = *state;
	const struct steps_language language = {.identity = identity,
	        .place = place,
	        .shortest = 5,
	        .known = known,
	        .root = true,
	        .rare = strstr(lua, "5.1") ? 800 : 4000};

	steps_test(&language, (const char *[]){lua, "fixtures/lua/steps.lua", NULL}, STEPS);
}

int main(void)
{
	static char *const debian[] = {"lua5.1", "lua5.2", "lua5.3", "lua5.4"};
	const struct CMUnitTest tests[] = {
	        {"5.1", test_steps, NULL, NULL, debian[0]},
	        {"5.2", test_steps, NULL, NULL, debian[1]},
	        {"5.3", test_steps, NULL, NULL, debian[2]},
	        {"5.4", test_steps, NULL, NULL, debian[3]},
	};
	const struct CMUnitTest one[] = {{"YRT_LUA", test_steps, NULL, NULL, getenv("YRT_LUA")}};

	if (one[0].initial_state)
		return cmocka_run_group_tests(one, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
