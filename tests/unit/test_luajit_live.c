/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of a live LuaJIT compared with what it says itself, and walked at any instruction. */
#include "luajit_target.h"

#include "runtimes/luajit/luajit.h"

#define LINE 1024

struct level { /* as Lua tells it */
	char what[16], name[256], source[256];
	int definition, line;
};

/* The next level of an expectation; false at its end. */
static bool read_level(struct target *t, struct level *ret)
{
	char line[LINE], *field = line;
	const char *part[5];

	if (!fgets(line, sizeof(line), t->expectation) || line[0] == '\n')
		return false;
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < 5; i++)
		part[i] = strsep(&field, "\t");
	assert_non_null(part[4]);
	snprintf(ret->what, sizeof(ret->what), "%s", part[0]);
	ret->definition = atoi(part[1]);
	ret->line = atoi(part[2]);
	snprintf(ret->name, sizeof(ret->name), "%s", part[3]);
	snprintf(ret->source, sizeof(ret->source), "%s", part[4]);
	return true;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* Lua shortens the paths of files to 60 bytes, with "..." in front. */
static bool same_source(const char *full, const char *shown)
{
	return !strcmp(full, shown) || (!strncmp(shown, "...", 3) && ends_with(full, shown + 3));
}

/* Builtins are shown by their own names; Lua tells the caller's variable, which is the last part of it or one of these.
 */
static bool same_builtin(const char *own, const char *variable)
{
	static const struct {
		const char *own, *variable;
	} aliases[] = {
	        {"coroutine.wrap_aux", "generator"},
	        {"cdata.__call", "twice"},
	        {"cdata.__call", "beacon"},
	};

	for (u32 i = 0; i < sizeof(aliases) / sizeof(*aliases); i++)
		if (!strcmp(own, aliases[i].own) && !strcmp(variable, aliases[i].variable))
			return true;
	return !variable[0] || ends_with(own, variable);
}

static bool same_function(const struct level *level, const struct frame_name *name, const struct frame *f, bool by_lua)
{
	if (!strcmp(level->what, "C")) {
		if (luajit_function(f) == LUAJIT_FAST)
			return same_builtin(name->name, level->name);
		return luajit_function(f) == LUAJIT_C && !strcmp(name->name, level->name);
	}
	if (luajit_function(f) != LUAJIT_LUA || (int)name->definition != level->definition ||
	        !same_source(name->file, level->source))
		return false;
	if (!strcmp(level->what, "main"))
		return !strcmp(name->name, "main chunk");
	/* C called it, so the bytecode below is that of whoever called C: Lua takes a name from there all the same */
	if (!by_lua)
		return !name->name[0];
	return !strcmp(name->name, level->name);
}

static void compare_level(struct target *t, u32 i, const struct level *level, bool with_line)
{
	bool by_lua = i + 1 < t->nframes && frame_kind(&t->frames[i + 1]) == FRAME_SCRIPT;
	struct frame_name name;

	if (!target_name(t, i, &name))
		fail_msg("frame %u has no name, Lua says %s '%s' %s:%d", i, level->what, level->name, level->source,
		        level->line);
	if (!same_function(level, &name, &t->frames[i], by_lua))
		fail_msg("frame %u is '%s' (%s:%u), Lua says %s '%s' (%s:%d)", i, name.name, name.file, name.definition,
		        level->what, level->name, level->source, level->definition);
	if (with_line && level->line > 0 && (int)name.line != level->line)
		fail_msg("frame %u, '%s' (%s:%u), is at line %u, Lua says %d", i, name.name, name.file, name.definition,
		        name.line, level->line);
}

static u32 next_script(const struct target *t, u32 i)
{
	while (i < t->nframes && frame_kind(&t->frames[i]) != FRAME_SCRIPT)
		i++;
	return i;
}

static bool in_trace(const struct target *t)
{
	for (u32 i = 0; i < t->nframes; i++)
		if (frame_kind(&t->frames[i]) == FRAME_SCRIPT && t->frames[i].detail & LUAJIT_JIT)
			return true;
	return false;
}

/* Compares all levels; of the first `skip_lines` the line is not told. Returns how many levels there were. */
static u32 compare_stack(struct target *t, u32 skip_lines)
{
	struct level level;
	u32 i = 0, n;

	assert_int_equal(target_walk(t), STOP_ROOT);
	for (n = 0; read_level(t, &level); n++) {
		i = next_script(t, i);
		if (i == t->nframes)
			fail_msg("level %u is missing: %s '%s' %s:%d", n, level.what, level.name, level.source,
			        level.line);
		compare_level(t, i++, &level, n >= skip_lines);
	}
	assert_int_equal(next_script(t, i), t->nframes);
	return n;
}

static void check_script(const char *script, u32 checkpoints, u32 deepest)
{
	struct target *t = target_start(script, "");
	u32 n = 0, most = 0, levels;

	while (target_continue(t, 0)) {
		levels = compare_stack(t, 0);
		most = levels > most ? levels : most;
		n++;
	}
	assert_int_equal(n, checkpoints);
	assert_true(most >= deepest);
	target_end(t);
}

static void test_recursion(void **state)
{
	check_script("recursion.lua", 9, 12);
}

static void test_coroutines(void **state)
{
	check_script("coroutines.lua", 8, 14);
}

static void test_metamethods(void **state)
{
	check_script("metamethods.lua", 15, 4);
}

static void test_errors(void **state)
{
	check_script("errors.lua", 5, 8);
}

static void test_ffi_callback(void **state)
{
	check_script("ffi_callback.lua", 6, 8);
}

static void test_deep(void **state)
{
	check_script("deep_stack.lua", 3, 3000);
}

/* A trace's own frame is exact but for its line; C code that it calls, and what is above it, is exact. */
static void test_traces(void **state)
{
	struct target *t = target_start("traces.lua", "");
	u32 n = 0, compiled = 0;

	while (target_continue(t, 0)) {
		compare_stack(t, 1);
		compiled += in_trace(t);
		n++;
	}
	assert_int_equal(n, 4);
	assert_int_equal(compiled, 4);
	target_end(t);
}

/* --- at any instruction --- */

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
	        {"leaf", " mid tail  "}, /* the empty one: the body of a coroutine, which has no name */
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

	for (u32 i = next_script(t, 0); i < t->nframes; i = next_script(t, i + 1)) {
		if (!target_name(t, i, &caller))
			fail_msg("frame %u of %u has no name", i, t->nframes);
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
			fail_msg("at 0x%lx frame %u of %u returns to 0x%lx, which no call precedes", frame_addr(&t->frames[0]), i,
			        t->nframes, frame_addr(&t->frames[i]));
	}
	check_path(t);
}

/*
 * While the unwinder of exceptions lands in a handler, its own frames do not hold: libgcc's, or libunwind's, which comes in its
 * place where a program links it, and whatever it calls (with sanitizers, their interceptors).
 */
static bool is_landing(struct target *t)
{
	target_walk(t);
	for (u32 i = 0; i < t->nframes; i++) {
		u64 addr = frame_addr(&t->frames[i]);

		if (frame_kind(&t->frames[i]) == FRAME_NATIVE && (in_module(t, addr, "libgcc_s") || in_module(t, addr, "libunwind")))
			return true;
	}
	return false;
}

static void step_through(const char *jit)
{
	struct target *t = target_start("calls.lua", jit);
	u32 checked = 0, landing = 0;
	int status;

	target_continue(t, 100000);
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
	        cmocka_unit_test(test_recursion),
	        cmocka_unit_test(test_coroutines),
	        cmocka_unit_test(test_metamethods),
	        cmocka_unit_test(test_errors),
	        cmocka_unit_test(test_ffi_callback),
	        cmocka_unit_test(test_deep),
	        cmocka_unit_test(test_traces),
	        cmocka_unit_test(test_steps_interpreter),
	        cmocka_unit_test(test_steps_jit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
