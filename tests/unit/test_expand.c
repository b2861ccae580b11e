/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that nothing expands, and how long they may become; what runtimes expand is tested with theirs. */
#include "unit.h"

#include "profile/expand.h"
#include "runtime.h"

#define FRAMES 600

static struct frame frames[FRAMES], expanded[FRAMES];

static int setup(void **state)
{
	for (u32 i = 0; i < FRAMES; i++) /* natives, scripts of LuaJIT, and of a runtime that there is not */
		frames[i] = (struct frame){
		        frame_where(i % 3 ? FRAME_SCRIPT : FRAME_NATIVE, i % 3 == 2 ? 15 : i % 3, 0, i), i};
	memset(expanded, 0, sizeof(expanded));
	return 0;
}

/* A process without instances, or that is not known, leaves all frames as they are. */
static void test_nobody(void **state)
{
	struct process p = {.number = 1};

	assert_int_equal(expand_stack(NULL, frames, FRAMES, 0, expanded, FRAMES), FRAMES);
	assert_memory_equal(frames, expanded, sizeof(frames));
	memset(expanded, 0, sizeof(expanded));
	assert_int_equal(expand_stack(&p, frames, FRAMES, EXPAND_TRACES, expanded, FRAMES), FRAMES);
	assert_memory_equal(frames, expanded, sizeof(frames));
}

static void test_room(void **state)
{
	struct process p = {.number = 1};

	assert_int_equal(expand_stack(&p, frames, FRAMES, 0, expanded, 7), 7);
	assert_memory_equal(frames, expanded, 7 * sizeof(*frames));
	assert_int_equal(expanded[7].where, 0);
	assert_int_equal(expand_stack(&p, frames, 0, 0, expanded, FRAMES), 0);
	assert_int_equal(expand_stack(&p, frames, FRAMES, 0, expanded, 0), 0);
}

/* An instance that could not attach has no data. */
static void test_not_attached(void **state)
{
	struct instance instance = {.ops = &luajit_runtime};
	struct process p = {.number = 1, .instances = &instance, .ninstances = 1};

	assert_int_equal(expand_stack(&p, frames, FRAMES, 0, expanded, FRAMES), FRAMES);
	assert_memory_equal(frames, expanded, sizeof(frames));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(test_nobody, setup),
	        cmocka_unit_test_setup(test_room, setup),
	        cmocka_unit_test_setup(test_not_attached, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
