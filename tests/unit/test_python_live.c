/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of a live Python walked at any instruction: who may call whom is fixed, and given by the script. */
#include "python_target.h"

#define BURSTS    10
#define STEPS     2000
#define RANDOM    300
#define TORN_MAX  0.0005
#define PAIRS_MAX 128

static char pairs[PAIRS_MAX][2][NAME_MAX_BYTES];
static u32 npairs, stops, torn;

static void read_pairs(struct target *t)
{
	char line[NAME_MAX_BYTES], *tab;

	npairs = 0;
	while (fgets(line, sizeof(line), t->out) && (tab = strchr(line, '\t'))) {
		assert_true(npairs < PAIRS_MAX);
		*tab = '\0';
		tab[strcspn(tab + 1, "\n") + 1] = '\0';
		snprintf(pairs[npairs][0], NAME_MAX_BYTES, "%s", line);
		snprintf(pairs[npairs++][1], NAME_MAX_BYTES, "%s", tab + 1);
	}
	assert_true(npairs > 20);
}

/* A function that the script says nothing of is the standard library's. */
static bool may_call(const char *caller, const char *callee)
{
	bool known = false;

	for (u32 i = 0; i < npairs; i++) {
		if (strcmp(pairs[i][0], callee))
			continue;
		known = true;
		if (!strcmp(pairs[i][1], caller))
			return true;
	}
	return !known && strcmp(callee, "<module>") != 0;
}

static bool is_eval(const struct target *t, u32 i)
{
	return frame_kind(&t->frames[i]) == FRAME_NATIVE && (frame_flags(&t->frames[i]) & FRAME_VM);
}

/* Between two Python frames that C lies between there must be an eval loop, and C outside of it. */
static void check_between(struct target *t, u32 from, u32 to, const char *callee)
{
	bool eval = false;

	for (u32 i = from + 1; i < to; i++)
		eval |= is_eval(t, i);
	if ((to > from + 1) != eval)
		fail_msg("at 0x%lx C without an eval loop calls %s", frame_addr(&t->frames[0]), callee);
	if ((!strcmp(callee, "by_key") || !strcmp(callee, "compared") || !strcmp(callee, "Thing.__lt__")) &&
	        to < from + 3)
		fail_msg("at 0x%lx nothing lies between %s and its caller", frame_addr(&t->frames[0]), callee);
}

static void check_path(struct target *t)
{
	struct frame_name caller, callee = {.name = ""};
	u32 last = t->nframes;

	for (u32 i = target_script(t, 0); i < t->nframes; i = target_script(t, i + 1)) {
		if (!target_name(t, i, &caller))
			fail_msg("frame %u of %u has no name", i, t->nframes);
		if (last < t->nframes) {
			if (!may_call(caller.name, callee.name))
				fail_msg("at 0x%lx '%s' calls '%s'", frame_addr(&t->frames[0]), caller.name,
				        callee.name);
			check_between(t, last, i, callee.name);
		}
		callee = caller;
		last = i;
	}
	if (last == t->nframes)
		fail_msg("at 0x%lx no frame of Python in %u", frame_addr(&t->frames[0]), t->nframes);
	assert_string_equal(callee.name, "<module>");
}

/* A closure's stub, of libffi's own code (which may be in ctypes') or made by it, has no unwind information. */
static bool is_stub(const struct target *t)
{
	const struct mapping *m = process_mapping(t->process, frame_addr(&t->frames[0]));

	return m && (m->anonymous || strstr(m->name, "libffi") || strstr(m->name, "_ctypes"));
}

/* Between two stores of the loop that are not known to belong together links do not hold, which is said, and is rare.
 */
static bool is_torn(const struct target *t, int stop)
{
	return (stop == STOP_VM_BROKEN || stop == STOP_VM_ABSENT) &&
	       (frame_kind(&t->frames[0]) == FRAME_SCRIPT || is_eval(t, 0));
}

static void check_stop(struct target *t)
{
	int stop = target_walk(t);

	stops++;
	if (is_torn(t, stop)) {
		torn++;
		return;
	}
	if (stop != STOP_ROOT)
		fail_msg("at 0x%lx the walk ended after %u frames for reason %d", frame_addr(&t->frames[0]), t->nframes,
		        stop);
	for (u32 i = 0; i < t->nframes; i++)
		if ((frame_flags(&t->frames[i]) & FRAME_GUESS) && !is_stub(t))
			fail_msg("at 0x%lx frame %u (0x%lx) is a guess", frame_addr(&t->frames[0]), i,
			        frame_addr(&t->frames[i]));
	check_path(t);
}

static struct target *start(void)
{
	struct target *t = target_start("calls.py");

	assert_true(target_continue(t, 0));
	read_pairs(t);
	return t;
}

static void step(struct target *t)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, t->pid, 0, 0), 0);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_true(WIFSTOPPED(status));
}

static void check_torn(void)
{
	print_message("%u stops, %u torn\n", stops, torn);
	assert_true(torn <= stops * TORN_MAX);
	stops = torn = 0;
}

static void test_steps(void **state)
{
	struct target *t = start();

	for (u32 i = 0; i < BURSTS; i++) {
		target_continue(t, 1000 + i * 137);
		for (u32 k = 0; k < STEPS; k++) {
			check_stop(t);
			step(t);
		}
	}
	check_torn();
	target_end(t);
}

static void test_random_stops(void **state)
{
	struct target *t = start();

	for (u32 i = 0; i < RANDOM; i++) {
		target_continue(t, 200 + (useconds_t)(i * 7919 % 1000));
		check_stop(t);
	}
	check_torn();
	target_end(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_steps),
	        cmocka_unit_test(test_random_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
