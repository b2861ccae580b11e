/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real code whose epilogues the CFI does not describe, as gcc 4.1 left them out, or that has one FDE for the bodies of
 * all of its functions, as of Dart, against the same code with all of its CFI: the CFA must be the same at each byte.
 * And assembly whose FDEs do not say that the stack pointer moves.
 */
#include <capstone/capstone.h>
#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/cfi/cfi.h"
#include "shell.h"

#define LINE_MAX_SIZE 512

static char dir[] = "/tmp/yrt-epilogue-XXXXXX";

static bool is_any(const char *line, const char *const *words)
{
	for (; *words; words++)
		if (strstr(line, *words))
			return true;
	return false;
}

/* Leaves out what is said of the stack behind the instructions of an epilogue. Returns how much that was. */
static u32 leave_out(FILE *from, FILE *to)
{
	static const char *const restores[] = {"\tpopq\t", "\tleave", "\taddq\t$", NULL};
	static const char *const always[] = {".cfi_restore", ".cfi_remember_state", NULL};
	char line[LINE_MAX_SIZE];
	bool behind = false;
	u32 n = 0;

	while (fgets(line, sizeof(line), from)) {
		if (strstr(line, "\t.cfi_")) {
			if (is_any(line, always) || (behind && strstr(line, ".cfi_def_cfa"))) {
				n++;
				continue;
			}
		} else if (line[0] == '\t') {
			behind = is_any(line, restores) && (!strstr(line, "addq") || strstr(line, "%rsp"));
		}
		fputs(line, to);
	}
	return n;
}

/* One FDE describes all by the frame pointer. */
static u32 describe_bodies(FILE *from, FILE *to)
{
	char line[LINE_MAX_SIZE];
	u32 n = 0;

	fputs("\t.text\n\t.cfi_startproc simple\n\t.cfi_def_cfa 6, 16\n\t.cfi_offset 6, -16\n\t.cfi_offset 16, -8\n",
	        to);
	while (fgets(line, sizeof(line), from)) {
		n += !!strstr(line, "\t.cfi_");
		if (!strstr(line, "\t.cfi_"))
			fputs(line, to);
	}
	fputs("\t.text\n\t.cfi_endproc\n", to);
	return n;
}

static void build(const char *source, const char *flags, u32 (*change)(FILE *from, FILE *to))
{
	char path[128];
	FILE *from, *to;

	run("gcc -w -std=gnu17 -D_GNU_SOURCE -S -fPIC -fno-shrink-wrap %s -I" YRT_SOURCE_DIR " -I" YRT_SOURCE_DIR
	    "/unwind -I" YRT_SOURCE_DIR "/unwind/target/native -I" YRT_SOURCE_DIR
	    "/unwind/arch/x86_64 -o %s/whole.s " YRT_SOURCE_DIR "/%s",
	        flags, dir, source);
	snprintf(path, sizeof(path), "%s/whole.s", dir);
	from = fopen(path, "r");
	snprintf(path, sizeof(path), "%s/part.s", dir);
	to = fopen(path, "w");
	assert_non_null(from);
	assert_non_null(to);
	assert_true(change(from, to) > 10);
	fclose(from);
	fclose(to);
	run("cd %s && for i in whole part; do gcc -shared -nostartfiles -o $i.so $i.s || exit 1; done", dir);
}

static struct cfi *load(const char *name, struct image **img)
{
	char path[128];
	struct cfi *cfi;

	snprintf(path, sizeof(path), "%s/%s.so", dir, name);
	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, img));
	assert_null(cfi_load(*img, NULL, &cfi));
	return cfi;
}

static bool same_cfa(const struct cfi_rule *a, const struct cfi_rule *b)
{
	return a->kind == b->kind && a->cfa_reg == b->cfa_reg && a->cfa_off == b->cfa_off && a->cfa_add == b->cfa_add;
}

struct compared {
	const struct cfi *part, *whole;
	u64 n, wrong;
};

static void compare_at(struct compared *c, u64 addr)
{
	struct cfi_rule a = {0}, b = {0};

	cfi_find(c->part, addr, &a);
	cfi_find(c->whole, addr, &b);
	c->n++;
	if (same_cfa(&a, &b))
		return;
	c->wrong++;
	print_message("%#llx: CFA r%d%+d, not r%d%+d\n", (unsigned long long)addr, a.cfa_reg, a.cfa_off, b.cfa_reg,
	        b.cfa_off);
}

/* At each instruction, but padding. */
static void compare(struct compared *c, struct image *img)
{
	csh handle;

	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &handle), CS_ERR_OK);
	for (u32 i = 0; i < c->whole->nfdes; i++) {
		const struct cfi_fde *fde = &c->whole->fdes[i];
		u8 *code = malloc(fde->end - fde->start);
		cs_insn *in;
		size_t n;

		assert_true(image_read(img, code, fde->end - fde->start, fde->start));
		n = cs_disasm(handle, code, fde->end - fde->start, fde->start, 0, &in);
		for (size_t k = 0; k < n; k++)
			if (in[k].id != X86_INS_NOP)
				compare_at(c, in[k].address);
		cs_free(in, n);
		free(code);
	}
	cs_close(&handle);
}

static void compare_builds(const char *source, const char *flags, u32 (*change)(FILE *from, FILE *to))
{
	struct image *part_image, *whole_image;
	struct compared c = {0};
	struct cfi *part, *whole;

	build(source, flags, change);
	c.part = part = load("part", &part_image);
	c.whole = whole = load("whole", &whole_image);
	print_message("%s %s\n", source, flags);
	compare(&c, whole_image);
	assert_int_equal(c.wrong, 0);
	assert_true(c.n > 300);
	cfi_destroy(part);
	cfi_destroy(whole);
	image_put(part_image);
	image_put(whole_image);
}

static void test_left_out(void **state)
{
	static const char *const sources[] = {"unwind/cfi/cfi_exec.c", "unwind/cfi/cfi_layout.c",
	        "unwind/binary/image.c", "frontends/format/filter.c"};
	static const char *const flags[] = {
	        "-O1 -fno-omit-frame-pointer", "-O2", "-Os", "-O3 -mno-red-zone", "-O2 -fno-omit-frame-pointer", "-O0"};

	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		for (size_t k = 0; k < sizeof(flags) / sizeof(*flags); k++)
			compare_builds(sources[i], flags[k], leave_out);
}

static void test_bodies(void **state)
{
	static const char *const sources[] = {"unwind/cfi/cfi_exec.c", "unwind/cfi/cfi_layout.c",
	        "unwind/binary/image.c", "frontends/format/filter.c"};
	static const char *const flags[] = {"-O1 -fno-omit-frame-pointer", "-O0",
	        ("-O2 -fno-omit-frame-pointer -momit-leaf-frame-pointer -fno-reorder-functions "
	         "-fno-reorder-blocks-and-partition")};

	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		for (size_t k = 0; k < sizeof(flags) / sizeof(*flags); k++)
			compare_builds(sources[i], flags[k], describe_bodies);
}

/*
 * Where an exception's unwinder goes to a landing pad, which may be the first byte of its piece of code: each row leads
 * there, with the registers of the function that catches.
 */
static void test_eh_return(void **state)
{
	static const u8 way_out[] = {0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1};
	struct cfi_rule rule;
	struct image *img;
	struct cfi *cfi;
	u8 code[4096] = {0};
	u64 at, size;

	run("echo 'void leave(long by, void *to) { __builtin_unwind_init(); __builtin_eh_return(by, to); }' | "
	    "gcc -O2 -fPIC -fcf-protection=full -mshstk -shared -nostartfiles -x c -o %s/leave.so -",
	        dir);
	cfi = load("leave", &img);
	assert_true(image_section_range(img, ".text", &at, &size) && size <= sizeof(code));
	assert_true(image_read(img, code, size, at));
	for (u64 end = at + size; at < end && memcmp(code + size - (end - at), way_out, sizeof(way_out));)
		at++;
	for (u32 i = 0; i < 5; i++) {
		assert_true(cfi_find(cfi, at + i, &rule));
		assert_int_equal(rule.flags, CFI_SIGNAL_FRAME);
		assert_int_equal(rule.cfa_reg, i < 3 ? DWREG_RCX : REG_SP);
		assert_int_equal(rule.cfa_off, i < 4 ? 8 : 0);
		assert_int_equal(rule.ra_reg, i < 4 ? CFI_NO_REG : DWREG_RCX);
		for (u32 k = 0; k < ARCH_NSAVED; k++)
			assert_int_equal(rule.slot[k], CFI_SAME);
	}
	cfi_destroy(cfi);
	image_put(img);
}

/* As bn_gather5() and sincos of libmvec are; a jump to where nobody knows, and data, leave an FDE alone. */
static const char silent[] =
        ".macro function name\n.balign 16\n\\name: .cfi_startproc\n.endm\n"
        ".macro done\n.cfi_endproc\n.endm\n"
        ".globl gather, align, jump, data, leaf\n"
        "function gather\nlea (%rsp), %r10\nsub $0x108, %rsp\nand $-16, %rsp\n0: movdqa %xmm0, (%rsp)\n"
        "sub $1, %esi\njnz 0b\nlea (%r10), %rsp\nret\ndone\n"
        "function align\npush %rbp\nmov %rsp, %rbp\nand $-32, %rsp\nsub $160, %rsp\ncall leaf\n"
        "mov %rbp, %rsp\npop %rbp\nret\ndone\n"
        "function jump\nsub $0x108, %rsp\njmp *%rax\ndone\n"
        "function data\nmov $0xecec8148, %eax\nadd $8, %eax\nret\ndone\n"
        "function leaf\nret\ndone\n";

static void expect_cfa(const struct cfi *cfi, u64 addr, u8 reg, s32 offset)
{
	struct cfi_rule rule;

	assert_true(cfi_find(cfi, addr, &rule));
	assert_int_equal(rule.kind, CFI_REG);
	assert_int_equal(rule.cfa_reg, reg);
	assert_int_equal(rule.cfa_off, offset);
}

/* A library of this assembly, linked with these flags. *at: where its code is. */
static struct cfi *assemble(const char *name, const char *text, const char *flags, struct image **img, u64 *at)
{
	char path[128];
	FILE *source;
	struct cfi *cfi;
	u64 size;

	snprintf(path, sizeof(path), "%s/%s.s", dir, name);
	source = fopen(path, "w");
	assert_true(source && fputs(text, source) >= 0 && !fclose(source));
	run("cd %s && gcc -shared -nostartfiles %s -o %s.so %s.s", dir, flags, name, name);
	cfi = load(name, img);
	assert_true(image_section_range(*img, ".text", at, &size));
	return cfi;
}

static void test_silent(void **state)
{
	struct image *img;
	struct cfi *cfi;
	u64 at;

	cfi = assemble("silent", silent, "", &img, &at);
	expect_cfa(cfi, at, REG_SP, 8);
	expect_cfa(cfi, at + 11, REG_SP, 0x110);
	for (u64 i = 15; i < 28; i++)
		expect_cfa(cfi, at + i, DWREG_R10, 8);
	expect_cfa(cfi, at + 28, REG_SP, 8);
	expect_cfa(cfi, at + 32, REG_SP, 8);
	expect_cfa(cfi, at + 33, REG_SP, 16);
	expect_cfa(cfi, at + 52, REG_FP, 16); /* behind the call */
	expect_cfa(cfi, at + 56, REG_SP, 8);
	expect_cfa(cfi, at + 71, REG_SP, 8); /* of jump: as its FDE says */
	assert_int_equal(cfi->nfdes, 6);     /* with that of the PLT */
	cfi_destroy(cfi);
	image_put(img);
}

/*
 * A CFA in rax, which callees may change: at calls of functions that leave it alone, and only there, the rows say so.
 */
static const char kept[] = ".macro function name\n.balign 16\n.globl \\name\n\\name:\n.endm\n"
                           "function caller\n.cfi_startproc\nmov %rsp, %rax\n.cfi_def_cfa_register %rax\n"
                           "sub $64, %rsp\nand $-64, %rsp\ncall quiet\ncall outer\ncall byte\ncall number\n"
                           "call tail\ncall wild\ncall deep\nmov %rax, %rsp\n.cfi_def_cfa_register %rsp\nret\n"
                           ".cfi_endproc\n"
                           "function quiet\n1: mov 8(%rax), %ecx\nmov %rcx, (%rax,%rcx)\njnz 1b\nret\n"
                           "function outer\npush %rbx\ncall quiet\npop %rbx\nret\n"
                           "function byte\nmov $1, %cl\nje 1f\nret\n1: mov $1, %al\nret\n"
                           "function number\nmov $39, %edi\nsyscall\nret\n"
                           "function tail\njmp byte\n"
                           "function wild\njmp *%rdx\n"
                           "function deep\nmul %ecx\nret\n";

static void test_kept(void **state)
{
	static const bool keeps[] = {true, true, false, false, false, false, false};
	struct cfi_rule rule;
	struct image *img;
	struct cfi *cfi;
	u64 at;

	cfi = assemble("kept", kept, "-Wl,-Bsymbolic", &img, &at);
	at += 3 + 4 + 4; /* mov, sub, and */
	for (u32 i = 0; i < sizeof(keeps); i++, at += 5) {
		expect_cfa(cfi, at + 4, DWREG_RAX, 8);
		assert_true(cfi_find(cfi, at + 4, &rule));
		assert_int_equal(rule.flags, keeps[i] ? CFI_KEPT : 0);
	}
	expect_cfa(cfi, at, DWREG_RAX, 8);
	expect_cfa(cfi, at + 3, REG_SP, 8);
	cfi_destroy(cfi);
	image_put(img);
}

static int make_dir(void **state)
{
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	run("rm -r %s", dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_left_out), cmocka_unit_test(test_bodies),
	        cmocka_unit_test(test_eh_return), cmocka_unit_test(test_silent), cmocka_unit_test(test_kept)};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
