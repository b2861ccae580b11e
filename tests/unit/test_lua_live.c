/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of live PUC-Lua programs walked at any instruction. A function in C stands around its own machine code only.
 * Whatever calls another function does so for some instructions at least: an edge that is only ever seen for fewer is
 * one that a half made call or return has shown.
 *
 * Bursts of steps begin at any place of the program, with what it has left in memory by then. YRT_SEED chooses where
 * within a loop; it is printed.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "look.h"

#include "cfi/cfi.h"
#include "profile/expand.h"
#include "runtimes/lua/lua.h"

#define FRAMES    4096
#define EDGES     4096
#define FUNCTIONS 256
#ifdef __SANITIZE_ADDRESS__
#define BURSTS 3
#define STEPS  5000
#else
#define BURSTS 4
#define STEPS  14000
#endif
#define BURSTS_MAX (5 * BURSTS) /* a burst may lie within the collector */
#define SKIP       4000         /* steps before a burst, at most */
#define SHORTEST   5            /* instructions that a call takes */
#define CUT_MAX    0.01         /* in longjmp() */
#define RUNS_MAX   100          /* waits for the program to get a CPU */

struct target {
	pid_t pid;
	struct arena *arena;
	struct modules *modules;
	struct process *process;
	struct frame walked[FRAMES], frames[FRAMES];
	u32 nframes;
};

struct edge {
	u64 outer, inner; /* outer: with its position */
	u32 run, longest, last;
	bool at_border; /* of a burst: it may have been there for longer */
	u64 leaf;
};

static struct edge edges[EDGES];
static u64 c_functions[FUNCTIONS];
static u32 nedges, nfunctions, nwrong;
static unsigned seed;

static struct target *start(const char *lua)
{
	const char *source = getenv("YRT_SOURCE");
	struct target *t = calloc(1, sizeof(*t));
	char path[4096];
	int status;

	assert_non_null(t);
	snprintf(path, sizeof(path), "%s/fixtures/lua/plain_calls.lua", source ? source : YRT_SOURCE_DIR);
	t->pid = fork();
	if (!t->pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execlp(lua, lua, path, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (!WIFSTOPPED(status))
		fail_msg("%s did not start: status 0x%x", lua, status);
	ptrace(PTRACE_SETOPTIONS, t->pid, 0, PTRACE_O_EXITKILL);
	look_begin(&t->arena, &t->modules);
	return t;
}

static void end(struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	look_end(t->arena, t->modules, t->process);
	free(t);
}

static s64 cpu_ns(const struct target *t)
{
	struct timespec time;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(t->pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &time), 0);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/* Lets it run for so long on a CPU: it may get none at once on a busy machine. */
static void run_for(struct target *t, useconds_t usec)
{
	s64 end = cpu_ns(t) + usec * 1000;
	int status;

	assert_int_equal(ptrace(PTRACE_CONT, t->pid, 0, 0), 0);
	for (u32 i = 0; i < RUNS_MAX && cpu_ns(t) < end; i++)
		usleep(usec);
	kill(t->pid, SIGSTOP);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_true(WIFSTOPPED(status));
	look_at(t->modules, t->pid, &t->process);
}

static int walk(struct target *t)
{
	struct unwind_registers regs;
	int stop;
	u32 n;

	look_registers(t->pid, &regs);
	stop = unwind_stack(t->process, &regs, t->walked, FRAMES, &n);
	t->nframes = expand_stack(t->process, t->walked, n, 0, t->frames, FRAMES);
	return stop;
}

static bool is_function(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && !(f->detail & (LUA_COLLECTS | LUA_STATE));
}

static bool is_c_function(u64 addr)
{
	for (u32 i = 0; i < nfunctions; i++)
		if (c_functions[i] == addr)
			return true;
	return false;
}

/* The start of the C function that a native frame is in; 0 if Lua has not called that function so far. */
static u64 c_function_of(struct target *t, const struct frame *f)
{
	u64 pc = frame_addr(f) - (frame_flags(f) & FRAME_RETADDR ? ARCH_CALL_BACK : 0);
	const struct mapping *m = process_mapping(t->process, pc);
	const struct cfi_fde *fde = m && m->image ? cfi_fde_at(m->image->cfi, pc - m->bias) : NULL;

	return fde && is_c_function(fde->start + m->bias) ? fde->start + m->bias : 0;
}

static void check_around(struct target *t, u32 i)
{
	const struct frame *f = &t->frames[i], *inside;
	u64 own = f->detail & LUA_C_FUNCTION ? frame_addr(f) : 0, code;

	if (own && !is_c_function(own) && nfunctions < FUNCTIONS)
		c_functions[nfunctions++] = own;
	while (i && frame_kind(&t->frames[i - 1]) == FRAME_NATIVE && frame_flags(&t->frames[i - 1]) & FRAME_VM)
		i--;
	if (!i || frame_kind(&t->frames[i - 1]) != FRAME_NATIVE)
		return;
	inside = &t->frames[i - 1];
	code = c_function_of(t, inside);
	if (!code || code == own)
		return;
	nwrong++;
	print_message("at 0x%lx frame %u of %u with detail 0x%lx stands around 0x%lx\n", frame_addr(&t->frames[0]), i,
	        t->nframes, f->detail, code);
}

static void see_edge(struct target *t, u32 step, u64 outer, u64 inner)
{
	struct edge *e = edges;

	while (e < edges + nedges && (e->outer != outer || e->inner != inner))
		e++;
	if (e == edges + EDGES)
		return;
	if (e == edges + nedges) {
		nedges++;
		*e = (struct edge){.outer = outer, .inner = inner, .leaf = frame_addr(&t->frames[0])};
	}
	if (e->last == step)
		return;
	e->run = e->last + 1 == step && step % STEPS ? e->run + 1 : 1;
	e->last = step;
	e->longest = e->run > e->longest ? e->run : e->longest;
	e->at_border |= step % STEPS < SHORTEST || step % STEPS >= STEPS - SHORTEST;
}

static void check_stack(struct target *t, u32 step)
{
	u64 inner = 0;

	for (u32 i = 0; i < t->nframes; i++) {
		const struct frame *f = &t->frames[i];

		if (!is_function(f))
			continue;
		check_around(t, i);
		if (inner)
			see_edge(t, step, frame_addr(f) << 12 | (f->detail & 0xfff), inner);
		inner = frame_addr(f) | (f->detail & LUA_TAIL_CALLED ? 1 : 0);
	}
}

/* Debian's 5.1 has lua_State in another register while it makes a closure. */
static bool is_lost(int stop)
{
	return stop == STOP_VM_ABSENT || stop == STOP_VM_BROKEN;
}

static void step(struct target *t)
{
	int status;

	ptrace(PTRACE_SINGLESTEP, t->pid, 0, 0);
	waitpid(t->pid, &status, 0);
	assert_true(WIFSTOPPED(status));
}

/* Has it seen of each what the program has? */
static bool has_seen_enough(void)
{
	return nedges > 6 && nfunctions > 2;
}

static void step_through(const char *lua)
{
	struct target *t = start(lua);
	u32 at = STEPS, cut = 0;
	int stop;

	nedges = nfunctions = nwrong = 0;
	run_for(t, 200000);
	for (u32 i = 0; i < BURSTS || (i < BURSTS_MAX && !has_seen_enough()); i++) {
		run_for(t, 500);
		for (int k = rand_r(&seed) % SKIP; k; k--)
			step(t);
		for (u32 k = 0; k < STEPS; k++, at++) {
			stop = walk(t);
			if (is_lost(stop) && strcmp(lua, "lua5.1"))
				fail_msg("at 0x%lx the walk loses functions: %d", frame_addr(&t->frames[0]), stop);
			cut += stop != STOP_ROOT;
			check_stack(t, at);
			step(t);
		}
	}
	for (const struct edge *e = edges; e < edges + nedges; e++)
		if (e->longest < SHORTEST && !e->at_border)
			fail_msg("at 0x%lx 0x%lx calls 0x%lx for %u instructions", e->leaf, e->outer >> 12, e->inner,
			        e->longest);
	at -= STEPS;
	print_message("%s: %u edges, %u functions in C, of %u stacks %u cut, %u wrong\n", lua, nedges, nfunctions, at,
	        cut, nwrong);
	assert_int_equal(nwrong, 0);
	assert_true(has_seen_enough() && nedges < EDGES && nfunctions < FUNCTIONS);
	assert_true(cut <= at * CUT_MAX);
	end(t);
}

static void test_steps_51(void **state)
{
	step_through("lua5.1");
}

static void test_steps_52(void **state)
{
	step_through("lua5.2");
}

static void test_steps_53(void **state)
{
	step_through("lua5.3");
}

static void test_steps_54(void **state)
{
	step_through("lua5.4");
}

int main(void)
{
	const char *given = getenv("YRT_SEED");
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_steps_51),
	        cmocka_unit_test(test_steps_52),
	        cmocka_unit_test(test_steps_53),
	        cmocka_unit_test(test_steps_54),
	};

	seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)getpid();
	print_message("YRT_SEED=%u\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
