/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/binary/memory.h"

#define PAGE 4096

/* Two readable pages of 'x', then one that is absent. */
static char *pages(void)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 'x', 2 * PAGE);
	assert_int_equal(munmap(p + 2 * PAGE, PAGE), 0);
	return p;
}

static void test_read(void **state)
{
	struct memory *mem = memory_live(getpid());
	char *p = pages(), buf[2 * PAGE];

	assert_non_null(mem);
	p[PAGE - 1] = 'y';
	assert_true(memory_read(mem, buf, 2 * PAGE, (uintptr_t)p));
	assert_memory_equal(buf, p, 2 * PAGE);
	assert_true(memory_read(mem, buf, 8, (uintptr_t)p + 2 * PAGE - 8));
	assert_false(memory_read(mem, buf, 8, (uintptr_t)p + 2 * PAGE - 4));
	assert_false(memory_read(mem, buf, 1, 0));
	assert_false(memory_read(mem, buf, 8, UINT64_MAX - 3));
	munmap(p, 2 * PAGE);
	memory_destroy(mem);
}

static void test_string(void **state)
{
	struct memory *mem = memory_live(getpid());
	char *p = pages(), buf[2 * PAGE + 1];
	uintptr_t end = (uintptr_t)p + 2 * PAGE;

	strcpy(p + PAGE - 3, "across"); /* the terminator is on the second page */
	assert_true(memory_string(mem, buf, sizeof(buf), (uintptr_t)p + PAGE - 3));
	assert_string_equal(buf, "across");
	assert_true(memory_string(mem, buf, 4, (uintptr_t)p + PAGE - 3));
	assert_string_equal(buf, "acr");
	assert_true(memory_string(mem, buf, sizeof(buf), (uintptr_t)p + PAGE + 3)); /* "" */
	assert_string_equal(buf, "");
	assert_true(memory_string(mem, buf, sizeof(buf), end - 5)); /* no terminator before the absent page */
	assert_string_equal(buf, "xxxxx");
	assert_false(memory_string(mem, buf, sizeof(buf), end));
	assert_string_equal(buf, "");
	assert_false(memory_string(mem, buf, 1, (uintptr_t)p));
	assert_false(memory_string(mem, buf, 0, (uintptr_t)p));
	munmap(p, 2 * PAGE);
	memory_destroy(mem);
}

static void test_other_process(void **state)
{
	static char text[16] = "before";
	struct memory *mem;
	char buf[16];
	int wait_for[2], status;
	pid_t pid;

	assert_int_equal(pipe(wait_for), 0);
	pid = fork();
	if (!pid) {
		char c;

		close(wait_for[1]);
		_exit(read(wait_for[0], &c, 1));
	}
	strcpy(text, "parent"); /* the child keeps its own */
	mem = memory_live(pid);
	assert_true(memory_string(mem, buf, sizeof(buf), (uintptr_t)text));
	assert_string_equal(buf, "before");
	close(wait_for[0]);
	close(wait_for[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(memory_read(mem, buf, 1, (uintptr_t)text));
	assert_false(memory_string(mem, buf, sizeof(buf), (uintptr_t)text));
	memory_destroy(mem);
	memory_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_read),
	        cmocka_unit_test(test_string),
	        cmocka_unit_test(test_other_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
