/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables that a thread makes: this process is looked at before it has those of its large files, and after. */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "look.h"

#include "unwind/arena.h"
#include "unwind/process/process.h"
#include "unwind/process/table_maker.h"

#define TRIES  6000 /* of 10 ms */
#define ROUNDS 50
#define BEGUN  1000000 /* ns of CPU: to start the thread takes less, the largest file more */

static struct {
	struct arena *arena;
	struct modules *modules;
	struct process *process;
} here;

static int setup(void **state)
{
	assert_null(arena_create(NULL, &here.arena));
	assert_null(modules_create(here.arena, NULL, &here.modules));
	modules_make_later(here.modules, TABLES_SMALLEST_FIRST);
	assert_null(process_create(here.modules, getpid(), 1, &here.process));
	return 0;
}

static int teardown(void **state)
{
	look_end(here.arena, here.modules, here.process);
	return 0;
}

/* The mapping of libc's code. */
static const struct mapping *libc(void)
{
	return process_mapping(here.process, (u64)(uintptr_t)strlen);
}

static u32 regions_of(const struct mapping *m)
{
	const struct process_entry *entry = &here.process->entry;
	const struct region *r = arena_at(here.arena, entry->regions, entry->nregions * sizeof(*r));
	u32 n = 0;

	for (u32 i = 0; i < entry->nregions; i++)
		n += r[i].start >= m->start && r[i].end <= m->end;
	return n;
}

static void finish(void)
{
	bool changed;

	for (u32 i = 0; here.process->unfinished && i < TRIES; i++) {
		assert_null(process_rescan(here.process, &changed));
		usleep(here.process->unfinished ? 10000 : 0);
	}
	assert_false(here.process->unfinished);
}

/* Code whose tables are being made is not known, so that walks into it are done again later. */
static void test_before_and_after(void **state)
{
	u32 generation = here.process->generation;

	assert_true(here.process->unfinished);
	assert_true(libc()->unfinished);
	assert_int_equal(libc()->module, 0);
	assert_int_equal(regions_of(libc()), 0);
	finish();
	assert_int_not_equal(libc()->module, 0);
	assert_true(libc()->image->cfi->npieces > 0);
	assert_true(regions_of(libc()) > 0);
	assert_true(here.process->generation > generation);
	assert_false(process_starting(here.process));
}

/* A process that has ended meanwhile is finished by the mappings that it had. */
static void test_ended(void **state)
{
	here.process->dead = true;
	for (u32 i = 0; here.process->unfinished && i < TRIES; i++) {
		usleep(10000);
		if (process_starting(here.process))
			assert_null(process_finish(here.process));
	}
	assert_false(here.process->unfinished);
	assert_int_not_equal(libc()->module, 0);
	assert_true(regions_of(libc()) > 0);
}

/* Nobody waits for what nobody needs any more. */
static void test_dropped(void **state)
{
	assert_true(here.process->unfinished);
}

static u32 threads(void)
{
	struct stat st;

	assert_return_code(stat("/proc/self/task", &st), errno);
	return (u32)st.st_nlink - 2;
}

/* The largest file of this machine's libraries that this program has, by its mapping. */
static struct image *largest(const struct process *p)
{
	struct image *img = NULL;
	const struct map_line *line = NULL;

	for (u32 i = 0; i < p->maps.nlines; i++)
		if (p->maps.lines[i].prot & PROT_EXEC && p->maps.lines[i].ino &&
		        (!line || p->maps.lines[i].end - p->maps.lines[i].start > line->end - line->start))
			line = &p->maps.lines[i];
	assert_non_null(line);
	assert_null(image_open(map_open(getpid(), line), line->path, &img));
	assert_non_null(img);
	return img;
}

/* Waits until others have ended, such as those that tests before this one left alone. */
static void wait_for_threads(u32 n)
{
	for (u32 i = 0; threads() > n && i < TRIES; i++)
		usleep(10000);
	assert_int_equal(threads(), n);
}

static u64 clock_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (u64)at.tv_sec * 1000000000 + (u64)at.tv_nsec;
}

/* All threads of this process share one CPU from here on: while one runs the others stand still. */
static void share_cpu(cpu_set_t *ret_before)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	assert_true(cpu >= 0);
	assert_int_equal(sched_getaffinity(0, sizeof(*ret_before), ret_before), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* How long the other threads have run. */
static u64 others_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* At the end of a run the file that the thread is at may need some seconds more: it goes on alone, and cleans up. */
static void test_not_awaited(void **state)
{
	const struct cfi_options options = {.cache_dir = NULL};
	u32 before = 2; /* this one, and the one of the process looked at */
	bool went_on = false;
	cpu_set_t cpus;

	wait_for_threads(before);
	share_cpu(&cpus);
	for (u32 i = 0; i < ROUNDS && !went_on; i++) {
		u64 since = others_ns();
		struct table_maker *m = table_maker_create(&options, TABLES_SMALLEST_FIRST);
		u32 left;

		assert_non_null(m);
		assert_true(table_maker_put(m, largest(here.process), 1, 1, "/"));
		for (u32 k = 0; others_ns() - since < BEGUN && k < 100 * TRIES; k++)
			usleep(100);
		table_maker_destroy(m);
		left = threads();
		wait_for_threads(before);
		went_on = left > before;
	}
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	assert_true(went_on);
}

/* The image of a library of this process, put under this number. */
static void put(struct table_maker *m, const char *name, ino_t ino)
{
	struct image *img = NULL;

	for (u32 i = 0; i < here.process->maps.nlines && !img; i++)
		if (here.process->maps.lines[i].prot & PROT_EXEC && strstr(here.process->maps.lines[i].path, name))
			assert_null(image_open(map_open(getpid(), &here.process->maps.lines[i]), name, &img));
	assert_non_null(img);
	assert_true(table_maker_put(m, img, 1, ino, "/"));
}

/* What was put first, a large file, comes before smaller ones, where that is asked for. */
static void test_order(void **state)
{
	const struct cfi_options options = {.cache_dir = NULL};
	struct table_maker *m = table_maker_create(&options, TABLES_OLDEST_FIRST);
	struct image *large = NULL, *small = NULL;

	assert_non_null(m);
	put(m, "libc.so", 1); /* the thread may be at it before there are others */
	put(m, "libc.so", 2);
	put(m, "ld-linux", 3);
	for (u32 i = 0; !small && i < TRIES; i++) {
		usleep(1000);
		assert_true(table_maker_take(m, 1, 3, &small));
	}
	assert_non_null(small);
	assert_true(table_maker_take(m, 1, 2, &large));
	assert_non_null(large);
	image_put(small);
	image_put(large);
	table_maker_destroy(m);
}

/* Of a process that has ended and has a runtime nothing is asked again: files are added to what it had. */
static void test_ended_with_runtime(void **state)
{
	struct instance *none = calloc(1, sizeof(*none));
	u32 before = here.process->entry.nregions;

	assert_int_equal(regions_of(libc()), 0);
	here.process->dead = true;
	here.process->instances = none; /* its data is NULL: it is not asked */
	here.process->ninstances = 1;
	for (u32 i = 0; here.process->unfinished && i < TRIES; i++) {
		usleep(10000);
		if (process_starting(here.process))
			assert_null(process_finish(here.process));
	}
	assert_true(regions_of(libc()) > 0);
	assert_true(here.process->entry.nregions > before);
}

/* Where somebody waits, both make tables: nothing is left unfinished. */
static void test_helps(void **state)
{
	u32 n = 0;

	process_destroy(here.process);
	modules_destroy(here.modules);
	assert_null(modules_create(here.arena, NULL, &here.modules));
	assert_null(process_create(here.modules, getpid(), 1, &here.process));
	assert_false(here.process->unfinished);
	assert_non_null(here.modules->maker);
	for (u32 i = 0; i < here.process->maps.nlines; i++)
		n += here.process->mappings[i].image && here.process->mappings[i].image->cfi->npieces > 0;
	assert_true(n > 2);
	assert_true(regions_of(libc()) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_before_and_after, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_not_awaited, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_ended_with_runtime, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_helps, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
