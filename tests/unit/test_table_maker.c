/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables that a thread makes: this process is looked at before it has those of its large files, and after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/arena.h"
#include "unwind/process/process.h"

#define TRIES 6000 /* of 10 ms */

static struct {
	struct arena *arena;
	struct modules *modules;
	struct process *process;
} here;

static int setup(void **state)
{
	(void)state;
	assert_null(arena_create(NULL, &here.arena));
	assert_null(modules_create(here.arena, NULL, &here.modules));
	here.modules->make_later = true;
	assert_null(process_create(here.modules, getpid(), 1, &here.process));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	process_destroy(here.process);
	modules_destroy(here.modules);
	arena_destroy(here.arena);
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

	(void)state;
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
	(void)state;
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
	(void)state;
	assert_true(here.process->unfinished);
}

/* Where somebody waits, both make tables: nothing is left unfinished. */
static void test_helps(void **state)
{
	u32 n = 0;

	(void)state;
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
	        cmocka_unit_test_setup_teardown(test_helps, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
