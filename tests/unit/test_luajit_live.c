/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of a live LuaJIT walked at any instruction: who may call whom is fixed. */
#include "luajit_levels.h"

#define TRIES  20
#define BURSTS 11
#define STEPS  2000

static bool in_module(struct target *t, u64 pc, const char *name)
{
	const struct mapping *m = process_mapping(t->process, pc);

	return m && strstr(m->name, name);
}

/* Does a call end at this address: E8 and 32 bits, or FF /2 of up to 7 bytes? */
static bool behind_call(struct target *t, u64 pc)
{
	u8 b[7];

	if (!memory_read(t->process->memory, b, sizeof(b), pc - sizeof(b)))
		return false;
	if (b[2] == 0xe8)
		return true;
	for (int i = 0; i < 6; i++)
		if (b[i] == 0xff && (b[i + 1] & 0x38) == 0x10)
			return true;
	return false;
}

/* Who may call whom in calls.lua; a name that is no key may be called by anyone. */
static bool may_call(const char *caller, const char *callee)
{
	static const struct {
		const char *callee, *callers;
	} allowed[] = {
	        {"leaf", " mid tail body "},
	        {"vleaf", " mid tail "},
	        {"mid", " work "},
	        {"tail", " work "},
	        {"work", " main chunk "},
	        {"main chunk", ""},
	        {"table.sort", " work "},
	        {"string.gsub", " work "},
	        {"pcall", " work "},
	        {"xpcall", " work "},
	        {"coroutine.resume", " work "},
	};
	char key[NAME_MAX_BYTES + 2];

	snprintf(key, sizeof(key), " %s ", caller);
	for (u32 i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		if (!strcmp(allowed[i].callee, callee))
			return strstr(allowed[i].callers, key);
	return strcmp(caller, "main chunk") != 0 || !strcmp(callee, "");
}

static void check_path(struct target *t)
{
	struct frame_name caller, callee = {.name = ""};
	bool first = true;

	find_functions(t);
	for (u32 i = 0; i < nfunctions; i++) {
		if (!target_name(t, functions[i], &caller))
			fail_msg("at 0x%lx frame %u of %u, 0x%lx with detail 0x%lx, has no name",
			        frame_addr(&t->frames[0]), functions[i], t->nframes,
			        frame_addr(&t->frames[functions[i]]), t->frames[functions[i]].detail);
		if (!first && !may_call(caller.name, callee.name))
			fail_msg("at 0x%lx '%s' calls '%s'", frame_addr(&t->frames[0]), caller.name, callee.name);
		callee = caller;
		first = false;
	}
	assert_false(first);
	assert_string_equal(callee.name, "main chunk");
}

static void check_stop(struct target *t)
{
	int stop = target_walk(t);

	if (stop != STOP_ROOT)
		fail_msg("at 0x%lx the walk ended after %u frames for reason %d", frame_addr(&t->frames[0]), t->nframes,
		        stop);
	for (u32 i = 0; i < t->nframes; i++) {
		u32 flags = frame_flags(&t->frames[i]);

		if (frame_kind(&t->frames[i]) != FRAME_NATIVE)
			continue;
		assert_false(flags & FRAME_GUESS);
		if ((flags & FRAME_RETADDR) && !behind_call(t, frame_addr(&t->frames[i])))
			fail_msg("at 0x%lx frame %u of %u returns to 0x%lx, which no call precedes",
			        frame_addr(&t->frames[0]), i, t->nframes, frame_addr(&t->frames[i]));
	}
	check_path(t);
}

/*
 * While the unwinder of exceptions lands in a handler, its own frames do not hold: libgcc's, or libunwind's, which
 * comes in its place where a program links it, and whatever it calls (with sanitizers, their interceptors).
 */
static bool is_landing(struct target *t)
{
	target_walk(t);
	for (u32 i = 0; i < t->nframes; i++) {
		u64 addr = frame_addr(&t->frames[i]);

		if (frame_kind(&t->frames[i]) == FRAME_NATIVE &&
		        (in_module(t, addr, "libgcc_s") || in_module(t, addr, "libunwind")))
			return true;
	}
	return false;
}

static bool has_vm(const struct target *t)
{
	for (u32 i = 0; i < t->process->ninstances; i++)
		if (t->process->instances[i].data)
			return true;
	return false;
}

/* Goes on until the VM is found: a check that fails while a call is made is repeated, but a stopped VM stays there. */
static void find_vm(struct target *t)
{
	target_continue(t, 100000);
	for (u32 i = 0; i < TRIES && !has_vm(t); i++) {
		process_destroy(t->process);
		t->process = NULL;
		target_continue(t, 1000);
	}
}

static void step_through(const char *jit)
{
	struct target *t = target_start("calls.lua", jit, NULL);
	u32 checked = 0, landing = 0;
	int status;

	find_vm(t);
	for (u32 i = 0; i < BURSTS; i++) {
		target_continue(t, 1000 + i * 100);
		for (u32 k = 0; k < STEPS; k++) {
			if (is_landing(t)) {
				landing++;
			} else {
				check_stop(t);
				checked++;
			}
			ptrace(PTRACE_SINGLESTEP, t->pid, 0, 0);
			waitpid(t->pid, &status, 0);
			assert_true(WIFSTOPPED(status));
		}
	}
	print_message("%u stops checked, %u in an unwinder of exceptions left out\n", checked, landing);
	assert_true(checked > 5000);
	target_end(t);
}

static void test_steps_interpreter(void **state)
{
	step_through("off");
}

static void test_steps_jit(void **state)
{
	step_through("on");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_steps_interpreter),
	        cmocka_unit_test(test_steps_jit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
