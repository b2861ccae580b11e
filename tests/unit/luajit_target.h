/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stopped LuaJIT program as a target: a child of the test that runs a script of fixtures/lua with the libluajit of
 * the system. At checkpoints it writes what Lua itself says of its stack (lua_getinfo, as debug.traceback does) and
 * stops.
 */
#ifndef YRT_LUAJIT_TARGET_H
#define YRT_LUAJIT_TARGET_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "process.h"
#include "unwind.h"

#define TARGET_FRAMES 8192

/* The part of Lua 5.1's API that the host uses, found by dlsym so that no header of Lua is needed. */
typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *L);
struct lua_debug {
	int event;
	const char *name, *namewhat, *what, *source;
	int currentline, nups, linedefined, lastlinedefined;
	char short_src[60];
	int i_ci;
};
#define LUA_API_FUNCTIONS(X)                                                                                           \
	X(lua_State *, luaL_newstate, (void))                                                                          \
	X(void, luaL_openlibs, (lua_State *))                                                                          \
	X(int, luaL_loadfile, (lua_State *, const char *))                                                             \
	X(int, lua_pcall, (lua_State *, int, int, int))                                                                \
	X(const char *, lua_tolstring, (lua_State *, int, size_t *))                                                   \
	X(void, lua_pushcclosure, (lua_State *, lua_CFunction, int))                                                   \
	X(void, lua_pushstring, (lua_State *, const char *))                                                           \
	X(void, lua_pushlightuserdata, (lua_State *, void *))                                                          \
	X(int, lua_pushthread, (lua_State *))                                                                          \
	X(void, lua_createtable, (lua_State *, int, int))                                                              \
	X(void, lua_rawseti, (lua_State *, int, int))                                                                  \
	X(void, lua_setfield, (lua_State *, int, const char *))                                                        \
	X(int, lua_gettop, (lua_State *))                                                                              \
	X(lua_State *, lua_tothread, (lua_State *, int))                                                               \
	X(int, lua_getstack, (lua_State *, int, struct lua_debug *))                                                   \
	X(int, lua_getinfo, (lua_State *, const char *, struct lua_debug *))
#define X(ret, name, args) static ret(*name) args;
LUA_API_FUNCTIONS(X)
#undef X
#define LUA_GLOBALSINDEX (-10002)

static int expectation_fd;
static int beacons;

/* One line for each level: what, definition, current line, name, source; an empty line ends it. */
static void write_levels(FILE *out, lua_State *L, int level)
{
	struct lua_debug ar;

	for (; lua_getstack(L, level, &ar); level++) {
		lua_getinfo(L, "Snl", &ar);
		fprintf(out, "%s\t%d\t%d\t%s\t%s\n", ar.what, ar.linedefined, ar.currentline, ar.name ? ar.name : "",
		        ar.short_src);
	}
}

static void write_stack(lua_State *L, int level)
{
	FILE *out = fdopen(dup(expectation_fd), "w");

	write_levels(out, L, level);
	for (int i = 1; i <= lua_gettop(L); i++)
		if (lua_tothread(L, i))
			write_levels(out, lua_tothread(L, i), 0);
	fputs("\n", out);
	fclose(out);
}

static int host_checkpoint(lua_State *L)
{
	write_stack(L, 0);
	raise(SIGSTOP);
	return 0;
}

/* For traces: what runs above is noted now, and waited for in the beacon. */
static int host_expect(lua_State *L)
{
	write_stack(L, 1);
	beacons = 0;
	return 0;
}

static int host_main_thread(lua_State *L)
{
	lua_pushthread(L);
	return 1;
}

static int host_beacon(int i)
{
	if (++beacons == 200)
		raise(SIGSTOP);
	return i;
}

static int host_twice(int (*f)(int), int x)
{
	return f(f(x));
}

static void host_function(lua_State *L, const char *name, lua_CFunction f)
{
	lua_pushcclosure(L, f, 0);
	lua_setfield(L, LUA_GLOBALSINDEX, name);
}

static void host_run(const char *script, const char *argument)
{
	void *lib = dlopen("libluajit-5.1.so.2", RTLD_NOW | RTLD_GLOBAL);
	lua_State *L;

	if (!lib)
		_exit(99);
#define X(ret, name, args) *(void **)&name = dlsym(lib, #name);
	LUA_API_FUNCTIONS(X)
#undef X
	L = luaL_newstate();
	luaL_openlibs(L);
	host_function(L, "checkpoint", host_checkpoint);
	host_function(L, "checkpoint_main", host_main_thread);
	host_function(L, "expect", host_expect);
	lua_pushlightuserdata(L, (void *)host_beacon);
	lua_setfield(L, LUA_GLOBALSINDEX, "beacon_address");
	lua_pushlightuserdata(L, (void *)host_twice);
	lua_setfield(L, LUA_GLOBALSINDEX, "twice_address");
	lua_createtable(L, 0, 0);
	lua_pushstring(L, argument);
	lua_rawseti(L, -2, 1);
	lua_setfield(L, LUA_GLOBALSINDEX, "arg");
	if (luaL_loadfile(L, script) || lua_pcall(L, 0, 0, 0)) {
		fprintf(stderr, "%s: %s\n", script, lua_tolstring(L, -1, NULL));
		_exit(98);
	}
	_exit(0);
}

struct target {
	pid_t pid;
	FILE *expectation;
	struct arena *arena;
	struct modules *modules;
	struct process *process;
	struct frame frames[TARGET_FRAMES];
	u32 nframes;
};

static void target_complain(void *ctx, struct error *err)
{
	(void)ctx;
	print_error("%s\n", err->message);
	error_free(err);
}

static void must(struct error *err)
{
	if (err)
		fail_msg("%s", err->message);
}

/* Starts the script; the target is stopped at once. */
static struct target *target_start(const char *script, const char *argument)
{
	const char *source = getenv("YRT_SOURCE");
	struct target *t = calloc(1, sizeof(*t));
	char path[4096];
	int pipes[2], status;

	assert_non_null(t);
	snprintf(path, sizeof(path), "%s/fixtures/lua/%s", source ? source : YRT_SOURCE_DIR, script);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
	t->pid = fork();
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		expectation_fd = pipes[1];
		raise(SIGSTOP);
		host_run(path, argument);
	}
	close(pipes[1]);
	t->expectation = fdopen(pipes[0], "r");
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	must(arena_create(NULL, &t->arena));
	must(modules_create(t->arena, NULL, &t->modules));
	t->modules->complain = target_complain;
	return t;
}

static void target_end(struct target *t)
{
	int status;

	kill(t->pid, SIGKILL);
	waitpid(t->pid, &status, 0);
	process_destroy(t->process);
	modules_destroy(t->modules);
	arena_destroy(t->arena);
	fclose(t->expectation);
	free(t);
}

/* Goes on until the target stops itself, or after usec if that is not 0. False: it ended, as it should. */
static bool target_continue(struct target *t, useconds_t usec)
{
	int status;
	bool changed;

	assert_int_equal(ptrace(PTRACE_CONT, t->pid, 0, 0), 0);
	if (usec) {
		usleep(usec);
		kill(t->pid, SIGSTOP);
	}
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return false;
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
		fail_msg("the target ended with status 0x%x", status);
	if (t->process)
		must(process_rescan(t->process, &changed));
	else
		must(process_create(t->modules, t->pid, 1, &t->process));
	return true;
}

static void target_registers(struct target *t, struct unwind_registers *ret)
{
	struct user_regs_struct r;

	assert_int_equal(ptrace(PTRACE_GETREGS, t->pid, 0, &r), 0);
	*ret = (struct unwind_registers){.reg = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
	                                         r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
	        .thread_pointer = r.fs_base};
}

/* Walks the stack. Returns why it ended. */
static int target_walk(struct target *t)
{
	struct unwind_registers regs;

	target_registers(t, &regs);
	return unwind_stack(t->process, &regs, t->frames, TARGET_FRAMES, &t->nframes);
}

static bool target_name(struct target *t, u32 i, struct frame_name *ret)
{
	struct runtime_process view = process_view(t->process);

	for (u32 k = 0; k < t->process->ninstances; k++) {
		struct instance *instance = &t->process->instances[k];

		if (instance->data && instance->ops->name_frame(instance->data, &view, t->frames, i, t->nframes, ret))
			return true;
	}
	return false;
}

#endif
