/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of a live JVM walked at any instruction: fixtures/java/stacks.java, single steps of its main thread, in each
 * mode of execution. Each stack is whole, and who may call whom is fixed.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "look.h"

#include "profile/expand.h"

#include "runtimes/hotspot/walk/hotspot.h"

#define FRAMES        4096
#define BURSTS        10
#define STEPS         1500
#define GUESSED_MAX   8    /* a burst may be in a loop of assembly that has no unwind information: one in so many */
#define TRUNCATED_MAX 1000 /* one of so many: what is promised is 99.9 % */

struct target {
	pid_t pid, tid;
	struct arena *arena;
	struct modules *modules;
	struct process *process;
	struct frame walked[FRAMES], frames[FRAMES];
	u32 nwalked, nframes;
	u64 pc; /* of the leaf */
	u32 stops, truncated, illegal, guessed;
};

/* The words that run Java: of another JDK if YRT_JAVA has them. */
static const char *java(void)
{
	const char *words = getenv("YRT_JAVA");

	return words ? words : "java";
}

static void run_java(int out, const char *classes, const char *options)
{
	char words[8192], *rest = words, *word;
	const char *argv[24];
	u32 n = 0;

	snprintf(words, sizeof(words), "%s -cp %s %s stacks", java(), classes, options);
	while ((word = strsep(&rest, " ")) && n < 23)
		if (*word)
			argv[n++] = word;
	argv[n] = NULL;
	dup2(out, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

/* The thread that has used most of the processor. */
static pid_t busiest(pid_t pid)
{
	char path[64], line[1024];
	unsigned long best = 0, user;
	pid_t ret = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", pid, e->d_name);
		f = atoi(e->d_name) ? fopen(path, "r") : NULL;
		if (f && fgets(line, sizeof(line), f) && strrchr(line, ')') && strstr(line, "(java)") &&
		        sscanf(strrchr(line, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", &user) == 1 &&
		        user > best) {
			best = user;
			ret = atoi(e->d_name);
		}
		if (f)
			fclose(f);
	}
	closedir(dir);
	return ret;
}

static struct target *start(const char *options)
{
	struct target *t = calloc(1, sizeof(*t));
	const char *build = getenv("YRT_BUILD");
	char classes[4096];
	int pipes[2];
	char c;

	assert_non_null(t);
	assert_non_null(build);
	snprintf(classes, sizeof(classes), "%s/fixtures/java", build);
	assert_int_equal(pipe(pipes), 0);
	t->pid = fork();
	if (!t->pid)
		run_java(pipes[1], classes, options);
	close(pipes[1]);
	if (read(pipes[0], &c, 1) != 1)
		fail_msg("%s %s did not start", java(), options);
	close(pipes[0]);
	usleep(1000000);
	t->tid = busiest(t->pid);
	assert_true(t->tid > 0);
	look_begin(&t->arena, &t->modules);
	look_at(t->modules, t->pid, &t->process);
	assert_int_equal(ptrace(PTRACE_SEIZE, t->tid, 0, 0), 0);
	return t;
}

static void end(struct target *t)
{
	int status;

	kill(t->pid, SIGKILL);
	while (waitpid(t->tid, &status, __WALL) == t->tid && WIFSTOPPED(status)) /* the traced thread goes first */
		;
	waitpid(t->pid, NULL, __WALL);
	look_end(t->arena, t->modules, t->process);
	free(t);
}

/* Lets the thread run a while. */
static void go(struct target *t, useconds_t usec)
{
	int status;

	usleep(usec);
	ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	for (;;) {
		assert_int_equal(waitpid(t->tid, &status, __WALL), t->tid);
		if (!WIFSTOPPED(status))
			fail_msg("the thread ended with status 0x%x", status);
		if (status >> 16 == PTRACE_EVENT_STOP)
			break;
		ptrace(PTRACE_CONT, t->tid, 0, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
	}
	look_at(t->modules, t->pid, &t->process);
}

/* The signals of the JVM's own (polls, implicit null checks) are passed on. */
static void step(struct target *t)
{
	int status, sig = 0;

	for (;;) {
		ptrace(PTRACE_SINGLESTEP, t->tid, 0, sig);
		assert_int_equal(waitpid(t->tid, &status, __WALL), t->tid);
		if (!WIFSTOPPED(status))
			fail_msg("at 0x%lx the thread ended with status 0x%x", t->pc, status);
		if (WSTOPSIG(status) == SIGTRAP)
			return;
		sig = WSTOPSIG(status);
	}
}

static int walk(struct target *t)
{
	struct unwind_registers regs;
	int stop;

	look_registers(t->tid, &regs);
	t->pc = regs.reg[DWREG_RIP];
	stop = unwind_stack(t->process, &regs, t->walked, FRAMES, &t->nwalked);
	t->nframes = expand_stack(t->process, t->walked, t->nwalked, 0, t->frames, FRAMES);
	return stop;
}

static bool name_of(struct target *t, u32 i, struct frame_name *ret)
{
	struct runtime_process view = process_view(t->process);

	for (u32 k = 0; k < t->process->ninstances; k++) {
		struct instance *instance = &t->process->instances[k];

		if (instance->data && frame_runtime(&t->frames[i]) == instance->ops->id &&
		        instance->ops->name_frame(instance->data, &view, t->frames, i, t->nframes, ret))
			return true;
	}
	return false;
}

static void show(struct target *t, const char *why, int stop)
{
	struct frame_name name;

	u8 code[40] = {0};

	memory_read(t->process->memory, code, sizeof(code), t->pc - 16);
	print_error("%s at 0x%lx, stop %d, %u frames; code", why, t->pc, stop, t->nframes);
	for (u32 i = 0; i < sizeof(code); i++)
		print_error("%s%02x", i == 16 ? " | " : " ", code[i]);
	print_error("\n");
	for (u32 i = 0; i < t->nframes && i < 30; i++) {
		name = (struct frame_name){.name = "-"};
		if (frame_kind(&t->frames[i]) == FRAME_SCRIPT)
			name_of(t, i, &name);
		print_error("\t%2u kind %d rt %d flags %2x %lx detail %lx %s:%u\n", i, frame_kind(&t->frames[i]),
		        frame_runtime(&t->frames[i]), frame_flags(&t->frames[i]), frame_addr(&t->frames[i]),
		        t->frames[i].detail, name.name, name.line);
	}
}

/* Who may call the methods of stacks.java, "" being what is not of it. */
static bool may_call(const char *caller, const char *callee)
{
	static const struct {
		const char *callee, *callers;
	} allowed[] = {
	        {"leaf", " recurse area locked thrower catcher many loops lambda callback lambda$lambda$0 "},
	        {"recurse", " recurse round "},
	        {"dispatch", " round "},
	        {"area", " dispatch "},
	        {"locked", " round "},
	        {"thrower", " catcher "},
	        {"catcher", " round "},
	        {"many", " round "},
	        {"loops", " round "},
	        {"intrinsics", " round "},
	        {"natives", " round "},
	        {"allocates", " round "},
	        {"lambda", " round "},
	        {"texts", " round "},
	        {"through", " round "},
	        {"round", " main "},
	};
	char key[NAME_MAX_BYTES + 2];

	snprintf(key, sizeof(key), " %s ", caller);
	for (u32 i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		if (!strcmp(allowed[i].callee, callee))
			return strstr(allowed[i].callers, key);
	return true;
}

/* The method's name if it is one of stacks.java, else "". */
static const char *own(struct target *t, u32 i, struct frame_name *name)
{
	const char *dot;

	if (frame_kind(&t->frames[i]) != FRAME_SCRIPT || hotspot_kind(&t->frames[i]) != HOTSPOT_METHOD)
		return NULL;
	if (!name_of(t, i, name))
		return "?";
	dot = strrchr(name->name, '.');
	return !strncmp(name->name, "stacks", 6) && dot ? dot + 1 : "";
}

static void check(struct target *t)
{
	struct frame_name caller, callee;
	const char *below, *above = NULL;
	int stop = walk(t);
	bool main = false;

	t->stops++;
	for (u32 i = 0; i < t->nwalked; i++)
		if (frame_flags(&t->walked[i]) & FRAME_GUESS) {
			t->guessed++;
			break;
		}
	if (stop != STOP_ROOT) {
		if (t->truncated++ < 8)
			show(t, "truncated", stop);
		return;
	}
	for (u32 i = 0; i < t->nframes; i++) {
		below = own(t, i, &caller);
		if (!below)
			continue;
		if (*below == '?' || (above && !may_call(below, above))) {
			if (t->illegal++ < 8)
				show(t, above ? above : "no name", stop);
			return;
		}
		main = main || !strcmp(below, "main");
		callee = caller;
		above = *below ? strrchr(callee.name, '.') + 1 : "";
	}
	if (!main && t->illegal++ < 8)
		show(t, "no main", stop);
}

static void step_through(const char *options)
{
	struct target *t = start(options);

	for (u32 i = 0; i < BURSTS; i++) {
		go(t, 100000 + i * 10000);
		for (u32 k = 0; k < STEPS; k++) {
			check(t);
			step(t);
		}
		ptrace(PTRACE_CONT, t->tid, 0, 0);
	}
	print_message("%s %s: %u stops, %u truncated, %u illegal, %u guessed\n", java(), options, t->stops,
	        t->truncated, t->illegal, t->guessed);
	/* guessed: C2 has moved the stack pointer for a moment, libjvm's own assembly does not describe its frames */
	if (t->truncated * TRUNCATED_MAX > t->stops || t->illegal || t->guessed * GUESSED_MAX > t->stops)
		fail_msg("%u of %u stacks are not what they should be", t->truncated + t->illegal + t->guessed,
		        t->stops);
	end(t);
}

static void test_interpreted(void **state)
{
	step_through("-Xint");
}

static void test_c1(void **state)
{
	step_through("-XX:TieredStopAtLevel=1");
}

static void test_tiered(void **state)
{
	step_through("-XX:+UseSerialGC");
}

static void test_compiled(void **state)
{
	step_through("-Xcomp");
}

/* Safepoints as often as it goes: polls trap, and what follows until a collection or so might begin is walked. */
static void test_polls(void **state)
{
	step_through(
	        "-XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:+IgnoreUnrecognizedVMOptions -XX:+SafepointALot "
	        "-XX:GuaranteedSafepointInterval=1");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_interpreted),
	        cmocka_unit_test(test_c1),
	        cmocka_unit_test(test_tiered),
	        cmocka_unit_test(test_compiled),
	        cmocka_unit_test(test_polls),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
