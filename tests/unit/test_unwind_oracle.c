/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native step against libunwind, frame by frame: real programs are stopped at random moments, and every frame of
 * yrt's walk must be libunwind's, with the same stack pointer rules behind it (a wrong CFA would show in the next
 * return address).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/process/process.h"
#include "unwind/unwind.h"

#undef UNW_LOCAL_ONLY
#include <libunwind-ptrace.h>

#define STOPS      150
#define FRAMES_MAX 512
#define USER_END   (1ull << 47)

struct tally {
	u32 stops, frames, equal, longer; /* longer: yrt went on to the root where libunwind gave up */
};

/* Until the child runs another program than this one. */
static void wait_for_exec(pid_t pid)
{
	char path[64], mine[256] = "", its[256];

	assert_true(readlink("/proc/self/exe", mine, sizeof(mine) - 1) > 0);
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	do {
		usleep(10000);
		memset(its, 0, sizeof(its));
		assert_true(readlink(path, its, sizeof(its) - 1) > 0);
	} while (!strcmp(mine, its));
}

/* Until it has computed for a while: all its libraries are there then, however cold the disk was. */
static void wait_for_work(pid_t pid)
{
	clockid_t clock;
	struct timespec used;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	do {
		usleep(10000);
		assert_int_equal(clock_gettime(clock, &used), 0);
	} while (used.tv_sec == 0 && used.tv_nsec < 200000000);
}

static pid_t start(const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	wait_for_exec(pid);
	wait_for_work(pid);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL), 0);
	return pid;
}

static void stop_thread(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
}

static void read_registers(pid_t pid, struct unwind_registers *ret)
{
	struct user_regs_struct r;

	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &r), 0);
	*ret = (struct unwind_registers){.thread_pointer = r.fs_base};
	ret->reg[DWREG_RAX] = r.rax, ret->reg[DWREG_RDX] = r.rdx, ret->reg[DWREG_RCX] = r.rcx,
	ret->reg[DWREG_RBX] = r.rbx;
	ret->reg[DWREG_RSI] = r.rsi, ret->reg[DWREG_RDI] = r.rdi, ret->reg[DWREG_RBP] = r.rbp,
	ret->reg[DWREG_RSP] = r.rsp;
	ret->reg[DWREG_R8] = r.r8, ret->reg[DWREG_R9] = r.r9, ret->reg[DWREG_R10] = r.r10, ret->reg[DWREG_R11] = r.r11;
	ret->reg[DWREG_R12] = r.r12, ret->reg[DWREG_R13] = r.r13, ret->reg[DWREG_R14] = r.r14,
	ret->reg[DWREG_R15] = r.r15;
	ret->reg[DWREG_RIP] = r.rip;
}

/* Where an FDE is wrong (bn_gather5() of OpenSSL 3.0), libunwind may come to what is no address of code. */
static u32 ask_libunwind(unw_addr_space_t space, void *upt, u64 *pcs)
{
	unw_cursor_t cursor;
	unw_word_t ip;
	u32 n = 0;

	if (unw_init_remote(&cursor, space, upt))
		return 0;
	do {
		if (unw_get_reg(&cursor, UNW_REG_IP, &ip) || !ip || ip >= USER_END)
			break;
		pcs[n++] = ip;
	} while (n < FRAMES_MAX && unw_step(&cursor) > 0);
	return n;
}

static void print_difference(
        const char *name, const struct frame *mine, u32 nmine, const u64 *theirs, u32 ntheirs, u32 stop)
{
	print_message("%s: stop %u\n", name, stop);
	for (u32 i = 0; i < nmine || i < ntheirs; i++)
		print_message(
		        "  %2u %12lx %12lx\n", i, i < nmine ? frame_addr(&mine[i]) : 0, i < ntheirs ? theirs[i] : 0);
}

/* libunwind does not know the frames of a runtime. */
static u32 native_only(struct frame *frames, u32 n)
{
	u32 kept = 0;

	for (u32 i = 0; i < n; i++)
		if (frame_kind(&frames[i]) == FRAME_NATIVE)
			frames[kept++] = frames[i];
	return kept;
}

static void compare_once(const char *name, const struct process *p, unw_addr_space_t space, void *upt, struct tally *t)
{
	struct unwind_registers regs;
	struct frame mine[FRAMES_MAX];
	u64 theirs[FRAMES_MAX];
	u32 n, ntheirs, i;
	enum stop_reason stop;

	read_registers(p->pid, &regs);
	stop = unwind_stack(p, &regs, mine, FRAMES_MAX, &n);
	n = native_only(mine, n);
	ntheirs = ask_libunwind(space, upt, theirs);
	for (i = 0; i < n && i < ntheirs && frame_addr(&mine[i]) == theirs[i]; i++)
		;
	t->stops++;
	t->frames += ntheirs;
	if (i == ntheirs && (n == ntheirs || stop_is_complete(stop))) {
		t->equal++;
		t->longer += n > ntheirs;
	} else {
		print_difference(name, mine, n, theirs, ntheirs, stop);
	}
}

static void compare(const char *name, const char *const *argv, struct tally *t)
{
	struct arena *arena;
	struct modules *modules;
	struct process *p;
	pid_t pid = start(argv);
	unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
	void *upt = _UPT_create(pid);

	assert_null(arena_create(NULL, &arena));
	assert_null(modules_create(arena, NULL, &modules));
	stop_thread(pid);
	assert_null(process_create(modules, pid, 1, &p));
	for (u32 i = 0; i < STOPS; i++) {
		compare_once(name, p, space, upt, t);
		assert_int_equal(ptrace(PTRACE_CONT, pid, 0, 0), 0);
		usleep(500 + random() % 2000);
		stop_thread(pid);
	}
	_UPT_destroy(upt);
	unw_destroy_addr_space(space);
	process_destroy(p);
	modules_destroy(modules);
	arena_destroy(arena);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void check(const char *name, const char *const *argv)
{
	struct tally t = {0};

	compare(name, argv, &t);
	print_message("%s: %u stops, %u frames, %u equal (%u longer)\n", name, t.stops, t.frames, t.equal, t.longer);
	assert_int_equal(t.stops, STOPS);
	assert_true(t.frames > STOPS);
	assert_int_equal(t.equal, t.stops);
}

static void test_perl(void **state)
{
	check("perl", (const char *const[]){"/usr/bin/perl", "-e",
	                      "sub f { my $n = shift; return $n < 2 ? $n : f($n-1) + f($n-2) } while (1) { f(15); my "
	                      "@a = sort { $a <=> $b } map { rand } "
	                      "1..500; my $s = join ',', @a; $s =~ s/(\\d)(\\d)/$2$1/g }",
	                      NULL});
}

static void test_python(void **state)
{
	check("python", (const char *const[]){"/usr/bin/python3", "-c",
	                        "import json,re,zlib\nwhile True:\n json.dumps([{'a':list(range(50))}]*20); "
	                        "re.sub('[ab]+','x','abc'*300); "
	                        "zlib.compress(b'abcdef'*2000); sorted(range(2000),key=lambda x:-x)",
	                        NULL});
}

static void check_cipher(const char *name)
{
	check(name, (const char *const[]){"/usr/bin/openssl", "speed", "-seconds", "20", "-evp", name, NULL});
}

/* Assembly by hand, with CFA expressions. */
static void test_openssl(void **state)
{
	check_cipher("sha256");
	check_cipher("aes-128-gcm");
	check_cipher("aes-256-cbc");
	check_cipher("chacha20-poly1305");
}

static void test_rsa(void **state)
{
	check("rsa", (const char *const[]){"/usr/bin/openssl", "speed", "-seconds", "10", "rsa2048", NULL});
}

static void test_sqlite(void **state)
{
	check("sqlite", (const char *const[]){"/usr/bin/sqlite3", ":memory:",
	                        "with recursive c(x) as (select 1 union all select x+1 from c limit 100000000) select "
	                        "sum(x*x%7), group_concat(x%3) from c;",
	                        NULL});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_perl),
	        cmocka_unit_test(test_python),
	        cmocka_unit_test(test_openssl),
	        cmocka_unit_test(test_rsa),
	        cmocka_unit_test(test_sqlite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
