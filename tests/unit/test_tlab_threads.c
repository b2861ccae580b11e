/* SPDX-License-Identifier: Apache-2.0 */
/* tlab_threads.h: exact bytes by thread, and what samples are scaled by. */
#include <math.h>

#include "unit.h"

#include "probes/tlab/tlab_threads.h"
#include "unwind/runtime.h"
#include "unwind/runtime_alloc.h"

#define PROCESS 7
#define MANY    20 /* samples: a thread is scaled by itself */

static struct alloc_thread now[8];
static u32 nnow;

static u32 tell(void *instance, const struct runtime_process *p, struct alloc_thread *ret, u32 max)
{
	assert_true(nnow <= max);
	for (u32 i = 0; i < nnow; i++)
		ret[i] = now[i];
	return nnow;
}

static const struct runtime_alloc_ops alloc_ops = {.threads = tell};
static const struct runtime_ops ops = {.alloc = &alloc_ops};
static struct modules modules;
static struct instance instance = {.ops = &ops, .data = &instance};
static struct process process = {.number = PROCESS, .modules = &modules, .instances = &instance, .ninstances = 1};
static struct process *processes[] = {&process};
static struct targets targets = {.processes = processes, .nprocesses = 1};

static struct tlab_threads *begin(bool apart)
{
	struct tlab_threads *ret;

	nnow = 0;
	assert_null(tlab_threads_create(&targets, apart, &ret));
	return ret;
}

static void look(struct tlab_threads *t, bool first, u32 n, const u64 *allocated)
{
	nnow = n;
	for (u32 i = 0; i < n; i++)
		now[i] = (struct alloc_thread){.thread = 0x1000 * (i + 1), .allocated = allocated[i]};
	assert_null(tlab_threads_count(t, first));
}

static u32 find(struct tlab_threads *t, u32 i)
{
	u32 ret;

	assert_null(tlab_threads_find(t, PROCESS, 0x1000 * (i + 1), &ret));
	return ret;
}

/* Before the start does not count; threads that come later began at 0, also those in the place of one that has ended.
 */
static void test_exact(void **state)
{
	struct tlab_threads *t = begin(false);
	struct tlab_totals totals;

	look(t, true, 2, (u64[]){1000, 5000});
	look(t, false, 3, (u64[]){1500, 5000, 70});
	look(t, false, 3, (u64[]){1700, 40, 90});
	look(t, false, 1, (u64[]){1800});
	tlab_threads_scale(t, &totals);
	assert_true(totals.bytes == 800 + 40 + 90);
	assert_int_equal(totals.threads, 3);
	assert_true(totals.unseen == totals.bytes);
	tlab_threads_destroy(t);
}

/* Two of many samples by themselves, two of few and one of none together, as if what these stand for were of all three.
 */
static void test_scale(void **state)
{
	struct tlab_threads *t = begin(false);
	struct tlab_totals totals;

	look(t, true, 5, (u64[]){0, 0, 0, 0, 0});
	look(t, false, 5, (u64[]){1000, 4000, 300, 200, 100});
	tlab_threads_add(t, find(t, 0), MANY, 2000);
	tlab_threads_add(t, find(t, 1), MANY, 2000);
	tlab_threads_add(t, find(t, 2), 2, 250);
	tlab_threads_add(t, find(t, 3), 1, 50);
	tlab_threads_scale(t, &totals);
	assert_true(fabs(tlab_threads_factor(t, find(t, 0)) - 0.5) < 1e-9);
	assert_true(fabs(tlab_threads_factor(t, find(t, 1)) - 2) < 1e-9);
	assert_true(fabs(tlab_threads_factor(t, find(t, 2)) - 2) < 1e-9);
	assert_true(fabs(tlab_threads_factor(t, find(t, 3)) - 2) < 1e-9);
	assert_true(totals.bytes == 5600 && totals.unseen == 0);
	tlab_threads_destroy(t);
}

/* Where threads are shown by themselves nothing may stand for one that has no sample. */
static void test_apart(void **state)
{
	struct tlab_threads *t = begin(true);
	struct tlab_totals totals;

	look(t, true, 3, (u64[]){0, 0, 0});
	look(t, false, 3, (u64[]){1000, 300, 200});
	tlab_threads_add(t, find(t, 0), MANY, 2000);
	tlab_threads_add(t, find(t, 1), 1, 100);
	tlab_threads_scale(t, &totals);
	assert_true(fabs(tlab_threads_factor(t, find(t, 1)) - 3) < 1e-9);
	assert_true(totals.bytes == 1500 && totals.unseen == 200);
	tlab_threads_destroy(t);
}

/* One that the runtime does not report keeps what its samples stand for. */
static void test_unknown(void **state)
{
	struct tlab_threads *t = begin(false);
	struct tlab_totals totals;

	tlab_threads_add(t, find(t, 4), 3, 500);
	tlab_threads_scale(t, &totals);
	assert_true(tlab_threads_factor(t, find(t, 4)) == 1);
	assert_true(totals.bytes == 0 && totals.threads == 0 && totals.unseen == 0);
	tlab_threads_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_exact),
	        cmocka_unit_test(test_scale),
	        cmocka_unit_test(test_apart),
	        cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
