/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows made from code between FDEs (assembly by hand), against the truth: a process is single-stepped, each call that
 * it makes is noted with all registers, and at each instruction that such a row covers the caller's stack pointer,
 * return address and registers by the row must be those that the call had. By default the process is libgmp and
 * libcrypto at work; any other one:
 *
 *	test_code_oracle COMMAND ARGS...        COMMAND stops itself (SIGSTOP) before what is to be stepped through
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/cfi/cfi.h"
#include "unwind/binary/image.h"

#define CALLS_MAX 4096
#define FILES_MAX 256
#define STEPS_MAX 120000

struct call {
	u64 sp; /* of the callee's first instruction */
	u64 ret;
	u64 saved[ARCH_NSAVED];
};

struct file {
	u64 start, end, bias;
	struct image *img;
	struct cfi *cfi;
	char path[256];
};

static struct {
	pid_t pid;
	struct call calls[CALLS_MAX];
	u32 ncalls;
	struct file files[FILES_MAX];
	u32 nfiles;
	u64 steps, covered, wrong_cfa, wrong_return, wrong_register, lost_register, unknown;
	char **command;
} t;

static u64 get(const struct user_regs_struct *r, u32 reg)
{
	const u64 regs[ARCH_NREGS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9,
	        r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};

	return reg < ARCH_NREGS ? regs[reg] : 0;
}

static u64 word(u64 addr)
{
	return (u64)ptrace(PTRACE_PEEKDATA, t.pid, addr, NULL);
}

static void saved_of(const struct user_regs_struct *r, u64 *ret)
{
#define PUT(i, reg) ret[i] = get(r, reg);
	ARCH_SAVED_REGS(PUT)
#undef PUT
}

static void add_file(u64 start, u64 end, u64 offset, const char *path)
{
	struct file *f = &t.files[t.nfiles];

	if (t.nfiles == FILES_MAX || image_open(open(path, O_RDONLY | O_CLOEXEC), path, &f->img))
		return;
	*f = (struct file){.start = start, .end = end, .img = f->img};
	snprintf(f->path, sizeof(f->path), "%s", path);
	for (u32 i = 0; i < f->img->nsegments; i++)
		if ((f->img->segments[i].offset & ~0xfffull) == offset)
			f->bias = start - (f->img->segments[i].vaddr & ~0xfffull);
	assert_null(cfi_load(f->img, NULL, &f->cfi));
	t.nfiles++;
}

static void read_maps(void)
{
	char path[64], line[512], name[256], flags[8];
	u64 start, end, offset;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", t.pid);
	maps = fopen(path, "r");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, flags, &offset, name) == 5 &&
		        flags[2] == 'x' && *name == '/')
			add_file(start, end, offset, name);
	fclose(maps);
}

static const struct file *file_at(u64 pc)
{
	for (u32 i = 0; i < t.nfiles; i++)
		if (pc >= t.files[i].start && pc < t.files[i].end)
			return &t.files[i];
	return NULL;
}

static void complain(const char *what, const struct file *f, u64 pc, u64 is, u64 should)
{
	static u32 said;

	if (said++ < 20)
		print_message("%s at %s+%#lx: %#lx, not %#lx\n", what, f->path, pc - f->bias, is, should);
}

static void check_registers(const struct user_regs_struct *r, const struct cfi_rule *rule, u64 cfa,
        const struct call *call, const struct file *f)
{
	static const u8 number[] = {
#define PUT(i, reg) [i] = reg,
	        ARCH_SAVED_REGS(PUT)
#undef PUT
	};

	for (u32 i = 0; i < ARCH_NSAVED; i++) {
		s16 slot = rule->slot[i];
		u64 value = slot == CFI_SAME ? get(r, number[i])
		                             : word((slot & 1 ? get(r, rule->slot_reg) : cfa) + (s64)(slot >> 1) * 8);

		if (slot == CFI_UNDEFINED) {
			t.lost_register++;
		} else if (value != call->saved[i]) {
			t.wrong_register++;
			complain("register", f, r->rip, value, call->saved[i]);
		}
	}
}

static void check(const struct user_regs_struct *r)
{
	const struct file *f = file_at(r->rip);
	const struct call *call;
	struct cfi_rule rule;
	u64 cfa;

	if (!f || !t.ncalls)
		return;
	call = &t.calls[t.ncalls - 1];
	if (!cfi_find(f->cfi, r->rip - f->bias, &rule)) {
		if (t.unknown++ < 10)
			print_message("unknown: %s+%#lx\n", f->path, (u64)r->rip - f->bias);
		return;
	}
	if (!(rule.flags & CFI_FROM_CODE))
		return;
	t.covered++;
	cfa = get(r, rule.cfa_reg) + (u64)(s64)rule.cfa_off;
	if (rule.kind == CFI_DEREF)
		cfa = word(cfa) + (u64)(s64)rule.cfa_add;
	if (cfa != call->sp + 8) {
		t.wrong_cfa++;
		complain("CFA", f, r->rip, cfa, call->sp + 8);
		return;
	}
	if (word(cfa - 8) != call->ret)
		t.wrong_return++;
	check_registers(r, &rule, cfa, call, f);
}

/* Does the instruction at pc call? *next: the one behind it. */
static bool is_call(u64 pc, u64 *next)
{
	u64 code = word(pc);
	u8 byte[8], i = 0;

	memcpy(byte, &code, sizeof(byte));
	while (byte[i] == 0xf2 || byte[i] == 0x3e || byte[i] == 0x66 || byte[i] == 0x67 || (byte[i] & 0xf0) == 0x40)
		if (++i == 3)
			break;
	*next = pc + i + 5;
	return byte[i] == 0xe8 || (byte[i] == 0xff && (byte[i + 1] & 0x38) == 0x10);
}

static bool step(struct user_regs_struct *r)
{
	bool called;
	u64 next, sp = r->rsp;
	int status;

	called = is_call(r->rip, &next);
	if (ptrace(PTRACE_SINGLESTEP, t.pid, NULL, NULL) || waitpid(t.pid, &status, 0) != t.pid ||
	        !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		return false;
	assert_int_equal(ptrace(PTRACE_GETREGS, t.pid, NULL, r), 0);
	while (t.ncalls && r->rsp > t.calls[t.ncalls - 1].sp)
		t.ncalls--;
	if (called && r->rsp == sp - 8 && t.ncalls < CALLS_MAX) {
		t.calls[t.ncalls] = (struct call){.sp = r->rsp, .ret = word(r->rsp)};
		saved_of(r, t.calls[t.ncalls++].saved);
	}
	return true;
}

/* What is stepped through by default. libgmp's types: mpz_t is 16 bytes. */
static void work(void)
{
	void *gmp = dlopen("libgmp.so.10", RTLD_NOW), *crypto = dlopen("libcrypto.so.3", RTLD_NOW);
	u64 x[2] = {0}, y[2] = {0}, z[2] = {0};
	static u8 data[1000];
	u8 digest[64];
	void (*init)(void *) = dlsym(gmp, "__gmpz_init");
	void (*power)(void *, u64, u64) = dlsym(gmp, "__gmpz_ui_pow_ui");
	void (*three[])(void *, const void *, const void *) = {dlsym(gmp, "__gmpz_mul"), dlsym(gmp, "__gmpz_tdiv_q"),
	        dlsym(gmp, "__gmpz_gcd"), dlsym(gmp, "__gmpz_sub"), dlsym(gmp, "__gmpz_add"), dlsym(gmp, "__gmpz_mod")};
	void (*root)(void *, const void *) = dlsym(gmp, "__gmpz_sqrt");
	char *(*text)(char *, int, const void *) = dlsym(gmp, "__gmpz_get_str");
	u8 *(*sums[])(const u8 *, size_t, u8 *) = {
	        dlsym(crypto, "SHA1"), dlsym(crypto, "SHA256"), dlsym(crypto, "SHA512")};

	init(x);
	init(y);
	init(z);
	raise(SIGSTOP);
	for (u32 n = 3; n < 60; n = n * 2 + 1) {
		power(x, 3, 40 * n);
		power(y, 7, 9 * n);
		for (u32 i = 0; i < sizeof(three) / sizeof(*three); i++)
			three[i](z, x, y);
		root(z, x);
		free(text(NULL, 10, y));
	}
	for (u32 i = 0; i < sizeof(sums) / sizeof(*sums); i++)
		sums[i](data, sizeof(data), digest);
	_exit(0);
}

static void start(void)
{
	int status;

	t.pid = fork();
	if (!t.pid) {
		if (t.command) {
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			execvp(t.command[0], t.command);
			_exit(127);
		}
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		work();
	}
	do { /* exec stops it, too */
		assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
		assert_true(WIFSTOPPED(status));
		if (WSTOPSIG(status) != SIGSTOP)
			ptrace(PTRACE_CONT, t.pid, NULL, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
	} while (WSTOPSIG(status) != SIGSTOP);
}

static void test_steps(void **state)
{
	struct user_regs_struct r;

	start();
	read_maps();
	assert_int_equal(ptrace(PTRACE_GETREGS, t.pid, NULL, &r), 0);
	while (t.steps < STEPS_MAX && step(&r)) {
		t.steps++;
		check(&r);
	}
	kill(t.pid, SIGKILL);
	waitpid(t.pid, NULL, 0);
	print_message("%lu steps, %lu by rows from code: %lu wrong CFAs, %lu wrong return addresses, %lu wrong "
	              "registers, %lu registers known to be lost; %lu without a row\n",
	        t.steps, t.covered, t.wrong_cfa, t.wrong_return, t.wrong_register, t.lost_register, t.unknown);
	for (u32 i = 0; i < t.nfiles; i++) {
		cfi_destroy(t.files[i].cfi);
		image_put(t.files[i].img);
	}
	assert_true(t.covered > 10000);
	assert_int_equal(t.wrong_cfa + t.wrong_return + t.wrong_register, 0);
	assert_true(t.unknown < t.covered / 1000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};

	t.command = argc > 1 ? argv + 1 : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
