/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are made from code alone, against what .eh_frame says of the same code: files that have both, and musl's,
 * which has none. Where the code's row has another base register than .eh_frame's the two are not compared.
 */
#include <capstone/capstone.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include "tests/unit/eh_frame.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cfi/cfi_internal.h"

#define LIBS "/usr/lib/x86_64-linux-gnu/"

struct counts {
	u64 all, known, compared, wrong, slots_wrong;
};

static bool slots_agree(const struct cfi_rule *code, const struct cfi_rule *told)
{
	for (u32 i = 0; i < ARCH_NSAVED; i++) /* popped registers stay where they were, to .eh_frame */
		if (code->slot[i] != told->slot[i] && code->slot[i] != CFI_SAME && told->slot[i] != CFI_SAME)
			return false;
	return true;
}

static void compare(struct counts *n, u64 addr, u64 end, const struct cfi_rule *code, const struct cfi *cfi)
{
	struct cfi_rule told;

	for (; addr < end; addr++) {
		if (!cfi_find(cfi, addr, &told) || told.kind != CFI_REG)
			continue;
		n->all++;
		if (code->kind == CFI_NONE)
			continue;
		n->known++;
		if (code->kind == CFI_REG && code->cfa_reg != told.cfa_reg)
			continue;
		n->compared++;
		n->wrong += code->kind != CFI_REG || code->cfa_off != told.cfa_off;
		n->slots_wrong += code->kind == CFI_REG && code->cfa_off == told.cfa_off && !slots_agree(code, &told);
	}
}

/* The same rows that a file without FDEs would get. */
static void test_against_fdes(void **state)
{
	const char *path = *state;
	struct cfi_parsed nothing = {0};
	struct cfi_code code = {0};
	struct counts n = {0};
	struct image *img;
	struct cfi *cfi;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(cfi_load(img, NULL, &cfi));
	assert_null(cfi_code_find(img, &nothing, &code));
	for (u32 i = 0; i < code.nruns; i++) {
		for (u32 row = code.runs[i].code_size; row < code.nrows && code.rows[row].addr < code.runs[i].end;
		        row++) {
			u64 next = row + 1 < code.nrows ? code.rows[row + 1].addr : UINT64_MAX;

			assert_true(code.rows[row].addr >= code.runs[i].start);
			compare(&n, code.rows[row].addr, next < code.runs[i].end ? next : code.runs[i].end,
			        &code.rows[row].rule, cfi);
		}
	}
	print_message("%s: %lu bytes, %.2f %% known, %.2f %% compared, %.3f %% wrong, %.3f %% with a wrong register\n",
	        path, n.all, 100.0 * (double)n.known / (double)n.all, 100.0 * (double)n.compared / (double)n.all,
	        100.0 * (double)n.wrong / (double)n.compared, 100.0 * (double)n.slots_wrong / (double)n.compared);
	assert_true(n.all > 1000);
	assert_true(n.known > n.all * 95 / 100);
	assert_true(n.wrong < n.compared / 100);
	assert_true(n.slots_wrong < n.compared / 1000);
	cfi_code_free(&code);
	cfi_destroy(cfi);
	image_put(img);
}

/*
 * One segment for code and data, whose bytes are calls into the middle of a function; a function of its own with the
 * name of one that never returns in libc; and a longjmp() that leaves by a jump, with another function behind its call.
 */
static const char shapes[] =
        "#define TEN(x) x x x x x x x x x x\n"
        "extern volatile int seen; volatile int seen;\n"
        "__attribute__((noinline)) int err(int a) { return seen + a; }\n"
        "__attribute__((noinline)) int big(int a, int b, int c) { char room[72]; int r = 0; __asm__(\"\" : : "
        "\"r\"(room) : \"memory\");\n"
        "TEN(TEN(r += err(a) * b + c; if (r == seen) r ^= b;)) return r; }\n"
        "void longjmp(void *, int) __attribute__((noreturn));\n"
        "__attribute__((noinline)) void leave(void *p, int v) { char room[40]; __asm__(\"\" : : \"r\"(room) : "
        "\"memory\"); longjmp(p, v); }\n"
        "__asm__(\".text; .globl longjmp; .type longjmp, @function; longjmp: mov %esi, %eax; mov (%rdi), %rbx; "
        "mov 48(%rdi), %rsp; jmp *56(%rdi); .size longjmp, . - longjmp\");\n"
        "__attribute__((noinline)) int behind(int a) { char room[104]; __asm__(\"\" : : \"r\"(room) : "
        "\"memory\"); TEN(a += err(a);) return a; }\n"
        "__asm__(\".section .rodata; junk: .rept 64; push %rbp; call big + 33; call big + 100; ret; .endr; "
        ".text\");\n"
        "int main(int c, char **v) { if (c > 9) leave(v, c); return big(c, c, c) + behind(c); }\n";

static void test_shapes(void **state)
{
	char dir[] = "/tmp/yrt-code-XXXXXX", path[64], command[256];
	void *program = path;
	FILE *file;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/shapes.c", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(shapes, file);
	fclose(file);
	snprintf(command, sizeof(command), "gcc -w -O1 -fno-builtin -Wl,-z,noseparate-code -o %s/shapes %s", dir, path);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/shapes", dir);
	test_against_fdes(&program);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* CPU time, in units of clock(), of the rows of a library with n functions and a gap behind each. */
static clock_t time_of_gaps(u32 n)
{
	char dir[] = "/tmp/yrt-gaps-XXXXXX", path[64], command[512];
	struct cfi_rule rule;
	struct image *img;
	struct cfi *cfi;
	clock_t start;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/gaps.so", dir);
	snprintf(command, sizeof(command),
	        "printf '.rept %u\\n.cfi_startproc\\nret\\n.cfi_endproc\\n.fill 40, 1, 0x90\\nret\\n.endr\\n' | "
	        "gcc -shared -nostdlib -o %s -x assembler -",
	        n, path);
	assert_int_equal(system(command), 0);
	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	start = clock();
	assert_null(cfi_load(img, NULL, &cfi));
	start = clock() - start;
	assert_true(cfi_find(cfi, img->segments[1].vaddr + 41, &rule));
	assert_int_equal(rule.kind, CFI_REG);
	cfi_destroy(cfi);
	image_put(img);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	return start;
}

/* Sixteen times the functions and gaps take sixteen times as long, not 256 times. */
static void test_many_gaps(void **state)
{
	clock_t few = time_of_gaps(5000), many = time_of_gaps(80000);

	print_message("5,000 and 80,000 gaps: %ld and %ld ms\n", few / 1000, many / 1000);
	assert_true(many < 48 * few);
}

/* Where a function of musl returns, the return address is on top of the stack. */
static void test_musl(void **state)
{
	static const char path[] = "/lib/ld-musl-x86_64.so.1";
	u64 addr, size, returns = 0, signals = 0, newborn = 0;
	struct cfi_rule rule;
	struct image *img;
	struct cfi *cfi;
	const u8 *at;
	size_t left;
	u8 *code;
	cs_insn *in;
	csh handle;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(cfi_load(img, NULL, &cfi));
	assert_true(cfi_is_sparse(img, cfi));
	assert_true(image_section_range(img, ".text", &addr, &size));
	at = code = malloc(size);
	left = size;
	assert_true(code && image_read(img, code, size, addr));
	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
	in = cs_malloc(handle);
	while (cs_disasm_iter(handle, &at, &left, &addr, in)) {
		bool known = cfi_find(cfi, in->address, &rule);

		signals += known && rule.kind == CFI_SIGNAL;
		newborn += known && rule.kind == CFI_NEWBORN;
		if (in->id != X86_INS_RET)
			continue;
		returns++;
		if (!known || rule.kind != CFI_REG || rule.cfa_reg != REG_SP || rule.cfa_off != 8)
			fail_msg("at %#lx: kind %u, %d", in->address, known ? rule.kind : CFI_NONE, rule.cfa_off);
	}
	assert_int_equal(left, 0);
	assert_true(returns > 1000);
	assert_true(signals >= 2);    /* mov and syscall, and a nop before */
	assert_int_equal(newborn, 2); /* clone(): test and jne */
	cs_free(in, 1);
	cs_close(&handle);
	free(code);
	cfi_destroy(cfi);
	image_put(img);
}

/* glibc's clone() and clone3(): from behind the system call to where the child has an FDE of its own. */
static void test_glibc_clone(void **state)
{
	static const char path[] = LIBS "libc.so.6";
	u64 addr, size, newborn = 0;
	struct cfi_rule rule;
	struct image *img;
	struct cfi *cfi;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	assert_null(cfi_load(img, NULL, &cfi));
	assert_true(image_section_range(img, ".text", &addr, &size));
	for (u64 at = addr; at < addr + size; at++)
		newborn += cfi_find(cfi, at, &rule) && rule.kind == CFI_NEWBORN;
	assert_in_range(newborn, 8, 16);
	cfi_destroy(cfi);
	image_put(img);
}

/* Code that is none: each is followed as far as it goes. */
static void test_hostile(void **state)
{
	static const char path[] = "/lib/ld-musl-x86_64.so.1";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	struct image *img;
	struct cfi *cfi;
	u8 *copy;

	assert_true(size > 100000);
	srand(1);
	for (u32 round = 0; round < 8; round++) {
		copy = malloc((size_t)size);
		assert_true(copy && pread(fd, copy, (size_t)size, 0) == size);
		for (u32 i = 0; i < 3000; i++)
			copy[0x15000 + rand() % 0x60000] = (u8)rand();
		assert_null(image_from_memory(copy, (size_t)size, path, &img));
		assert_null(cfi_load(img, NULL, &cfi));
		assert_true(cfi->npieces);
		cfi_destroy(cfi);
		image_put(img);
	}
	close(fd);
}

int main(int argc, char **argv)
{
#define FILE_TEST(path)                                                                                                \
	{                                                                                                              \
		.name = path, .test_func = test_against_fdes, .initial_state = (void *)(path)                          \
	}
	const struct CMUnitTest tests[] = {
	        FILE_TEST(LIBS "libc.so.6"),
	        FILE_TEST(LIBS "libz.so.1"),
	        /* main() is the first function, behind others that end in exit() */
	        FILE_TEST("/usr/bin/true"),
	        FILE_TEST("/usr/bin/split"),
	        FILE_TEST("/usr/bin/dpkg-deb"),
	        cmocka_unit_test(test_shapes),
	        cmocka_unit_test(test_many_gaps),
	        cmocka_unit_test(test_musl),
	        cmocka_unit_test(test_glibc_clone),
	        cmocka_unit_test(test_hostile),
	};

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++) {
		void *state = argv[i];

		test_against_fdes(&state);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
