/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a real Python's threads, read from outside, against threading's own: fixtures/python/thread_names.py. */
#include "python_target.h"

#include "process/own_tid.h"
#include "runtime.h"

/* What the program says of a thread. */
struct told {
	pid_t tid;
	bool named;
	char name[NAME_MAX_BYTES * 4];
};

static void unhex(const char *hex, char *ret, size_t size)
{
	size_t n = 0;
	unsigned byte;

	while (n + 1 < size && sscanf(hex + 2 * n, "%2x", &byte) == 1)
		ret[n++] = (char)byte;
	ret[n] = '\0';
}

/* False: the stage's last line was read. */
static bool read_told(struct target *t, struct told *ret)
{
	char line[NAME_MAX_BYTES * 8], hex[NAME_MAX_BYTES * 8];

	assert_non_null(fgets(line, sizeof(line), t->out));
	if (line[0] == '\n')
		return false;
	*hex = '\0';
	assert_in_range(sscanf(line, "%d %4000s", &ret->tid, hex), 1, 2);
	ret->named = strcmp(hex, "-");
	unhex(hex, ret->name, sizeof(ret->name));
	return true;
}

static bool ask(const struct target *t, pid_t tid, char *ret, size_t size)
{
	struct runtime_process view = process_view(t->process);

	for (u32 k = 0; k < t->process->ninstances; k++) {
		const struct instance *instance = &t->process->instances[k];

		if (instance->data && instance->ops->thread_name &&
		        instance->ops->thread_name(instance->data, &view, tid, ret, size))
			return true;
	}
	return false;
}

static u32 check_stage(struct target *t)
{
	char name[NAME_MAX_BYTES], cut[8];
	struct told told;
	u32 n = 0;

	for (; read_told(t, &told); n++) {
		bool named = ask(t, told.tid, name, sizeof(name));

		if (named != told.named || (named && strcmp(name, told.name)))
			fail_msg("thread %d is \"%s\", not \"%s\"", told.tid, told.named ? told.name : "(unknown)",
			        named ? name : "(unknown)");
		if (named) {
			assert_true(ask(t, told.tid, cut, sizeof(cut)));
			assert_true(strlen(cut) < sizeof(cut));
		}
	}
	assert_false(ask(t, 1 << 29, name, sizeof(name)));
	return n;
}

static void test_names(void **state)
{
	struct target *t = target_start("thread_names.py");
	u32 stages = 0, threads = 0;

	while (target_continue(t, 0)) {
		threads += check_stage(t);
		stages++;
	}
	target_end(t);
	assert_int_equal(stages, 5);
	assert_true(threads > 600);
}

static void test_own_tid(void **state)
{
	assert_int_equal(own_tid(getpid(), getpid()), getpid());
	assert_int_equal(own_tid(getpid(), 1 << 29), 1 << 29);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_tid), cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
