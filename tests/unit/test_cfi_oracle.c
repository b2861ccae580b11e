/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled rows against libdw, row by row, over real files. Both sides are evaluated with the same made-up
 * registers and memory, and must give the same CFA, return address and callee-saved registers.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/cfi/cfi.h"

#define STACK_MAX 32
#define LIBS      "/usr/lib/x86_64-linux-gnu/"

static u64 memory_word(u64 addr)
{
	return (addr ^ 0x5bd1e995) * 0x9e3779b97f4a7c15ull;
}

/* The made-up register file of the frame at pc. */
static u64 reg_value(u32 reg, u64 pc)
{
	return reg == REG_PC ? pc : memory_word(reg * 1000003ull + 17);
}

enum outcome {
	OUT_VALUE,
	OUT_SAME,
	OUT_UNDEFINED,
	OUT_UNKNOWN, /* no way to know: libdw fails, or we say so */
};

struct result {
	enum outcome outcome;
	u64 value;
	bool unsaved; /* given by libdw as a value or as another register, not as a place in memory */
};

struct frame_result {
	struct result cfa, sp, ra, saved[ARCH_NSAVED];
};

static const u32 saved_regs[ARCH_NSAVED] = {
#define REG(i, reg) [i] = reg,
        ARCH_SAVED_REGS(REG)
#undef REG
};

static u64 slot_value(const struct cfi_rule *rule, s16 slot, u64 cfa, u64 pc)
{
	u64 base = slot & 1 ? reg_value(rule->slot_reg, pc) : cfa;

	return memory_word(base + (s64)(slot >> 1) * 8);
}

static u64 rule_cfa(const struct cfi_rule *rule, u64 pc)
{
	u64 at = reg_value(rule->cfa_reg, pc) + (s64)rule->cfa_off;

	switch (rule->kind) {
	case CFI_PLT:
		return at + ((pc & 15) >= (u32)rule->cfa_add ? 8 : 0);
	case CFI_INDEXED:
		at += 8 * reg_value(rule->index_reg, pc);
		return memory_word(at) + (s64)rule->cfa_add;
	case CFI_DEREF_TWICE:
		at = memory_word(at) + (s64)rule->cfa_between; /* fall through */
	case CFI_DEREF:
		return memory_word(at) + (s64)rule->cfa_add;
	default:
		return at;
	}
}

/* Where in struct sigcontext the saved registers lie, and rsp and rip, in words from r8. */
static void eval_signal(const struct cfi_rule *rule, u64 pc, struct frame_result *ret)
{
	static const u32 word[ARCH_NSAVED] = {11, 10, 4, 5, 6, 7};
	u64 at = reg_value(REG_SP, pc) + (s64)rule->cfa_off;

	ret->cfa = (struct result){.outcome = OUT_VALUE, .value = memory_word(at + 15 * 8)};
	ret->sp = ret->cfa;
	ret->ra = (struct result){.outcome = OUT_VALUE, .value = memory_word(at + 16 * 8)};
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		ret->saved[i] = (struct result){.outcome = OUT_VALUE, .value = memory_word(at + word[i] * 8)};
}

static struct result eval_slot(const struct cfi_rule *rule, u32 i, u64 cfa, u64 pc)
{
	if (rule->slot[i] == CFI_SAME)
		return (struct result){.outcome = OUT_SAME};
	if (rule->slot[i] == CFI_UNDEFINED)
		return (struct result){.outcome = OUT_UNDEFINED};
	return (struct result){.outcome = OUT_VALUE, .value = slot_value(rule, rule->slot[i], cfa, pc)};
}

static void eval_rule(const struct cfi_rule *rule, u64 pc, struct frame_result *ret)
{
	u64 cfa;

	*ret = (struct frame_result){.cfa.outcome = OUT_UNKNOWN, .ra.outcome = OUT_UNKNOWN};
	if (rule->kind == CFI_SIGNAL)
		return eval_signal(rule, pc, ret);
	if (rule->kind == CFI_ROOT)
		ret->ra.outcome = OUT_UNDEFINED;
	if (rule->kind == CFI_ROOT || rule->kind == CFI_UNSUPPORTED || rule->kind == CFI_NONE)
		return;
	cfa = rule_cfa(rule, pc);
	ret->cfa = ret->sp = (struct result){.outcome = OUT_VALUE, .value = cfa};
	if (rule->ra_reg != CFI_NO_REG)
		ret->ra = (struct result){.outcome = OUT_VALUE, .value = reg_value(rule->ra_reg, pc)};
	else
		ret->ra = eval_slot(rule, ARCH_SLOT_RA, cfa, pc);
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		ret->saved[i] = eval_slot(rule, i, cfa, pc);
}

struct eval {
	u64 stack[STACK_MAX];
	u32 n;
	bool is_value; /* DW_OP_stack_value, or a register: what is on the stack is no address */
};

static void eval_binary(struct eval *e, u8 atom)
{
	u64 b = e->stack[--e->n], *a = &e->stack[e->n - 1];

	switch (atom) {
	case DW_OP_plus:
		*a += b;
		break;
	case DW_OP_minus:
		*a -= b;
		break;
	case DW_OP_mul:
		*a *= b;
		break;
	case DW_OP_and:
		*a &= b;
		break;
	case DW_OP_shl:
		*a <<= b;
		break;
	case DW_OP_ge:
		*a = (s64)*a >= (s64)b;
		break;
	default:
		fail_msg("operation 0x%x of libdw's expression is not known to this test", atom);
	}
}

static void eval_op(struct eval *e, const Dwarf_Op *op, u64 cfa, u64 pc)
{
	u8 atom = op->atom;

	assert_in_range(e->n, 0, STACK_MAX - 1);
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		e->stack[e->n++] = reg_value(atom - DW_OP_breg0, pc) + op->number;
	else if (atom == DW_OP_bregx)
		e->stack[e->n++] = reg_value((u32)op->number, pc) + op->number2;
	else if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31)
		e->stack[e->n++] = reg_value(atom - DW_OP_reg0, pc), e->is_value = true;
	else if (atom == DW_OP_regx)
		e->stack[e->n++] = reg_value((u32)op->number, pc), e->is_value = true;
	else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		e->stack[e->n++] = atom - DW_OP_lit0;
	else if (atom >= DW_OP_const1u && atom <= DW_OP_consts)
		e->stack[e->n++] = op->number;
	else if (atom == DW_OP_call_frame_cfa)
		e->stack[e->n++] = cfa;
	else if (atom == DW_OP_stack_value)
		e->is_value = true;
	else if (atom == DW_OP_deref)
		e->stack[e->n - 1] = memory_word(e->stack[e->n - 1]);
	else if (atom == DW_OP_plus_uconst)
		e->stack[e->n - 1] += op->number;
	else
		eval_binary(e, atom);
}

static struct eval eval_ops(const Dwarf_Op *ops, size_t n, u64 cfa, u64 pc)
{
	struct eval e = {0};

	for (size_t i = 0; i < n; i++)
		eval_op(&e, &ops[i], cfa, pc);
	assert_true(e.n > 0);
	return e;
}

static struct result libdw_reg(Dwarf_Frame *frame, u32 reg, u64 cfa, u64 pc)
{
	Dwarf_Op mem[3], *ops;
	struct eval e;
	size_t n;

	if (dwarf_frame_register(frame, (int)reg, mem, &ops, &n))
		return (struct result){.outcome = OUT_UNKNOWN};
	if (!n)
		return (struct result){.outcome = ops ? OUT_UNDEFINED : OUT_SAME};
	e = eval_ops(ops, n, cfa, pc);
	return (struct result){OUT_VALUE, e.is_value ? e.stack[e.n - 1] : memory_word(e.stack[e.n - 1]), e.is_value};
}

static void eval_libdw(Dwarf_Frame *frame, u64 pc, struct frame_result *ret)
{
	Dwarf_Op *ops;
	size_t n;
	u64 cfa = 0;

	*ret = (struct frame_result){.cfa.outcome = OUT_UNKNOWN};
	if (!dwarf_frame_cfa(frame, &ops, &n) && n) {
		struct eval e = eval_ops(ops, n, 0, pc);

		cfa = e.stack[e.n - 1];
		ret->cfa = (struct result){.outcome = OUT_VALUE, .value = cfa};
	}
	ret->sp = libdw_reg(frame, REG_SP, cfa, pc);
	ret->ra = libdw_reg(frame, (u32)dwarf_frame_info(frame, NULL, NULL, NULL), cfa, pc);
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		ret->saved[i] = libdw_reg(frame, saved_regs[i], cfa, pc);
}

struct tally {
	const char *path;
	struct image *img;
	u64 fdes, rows, compared;
	u64 lost;        /* explained: rows hold no values (val_offset) and no registers kept in another */
	u64 unsupported; /* explained: the caller's stack pointer is not the CFA (longjmp) */
	u64 rbx;         /* explained: libdw's table of the ABI has rax (0) for rbx (3); elfutils 0.188 x86_64_cfi.c */
	u64 mended;      /* explained: the file says that more than the return address is on the stack of a return */
	u64 landing;     /* explained: on libgcc's way to a landing pad (cfi_eh_return.c) */
	u64 expressions; /* rows with a CFA or a register by expression */
	u64 unexplained;
};

static void report(struct tally *t, const char *what, u64 pc, const struct cfi_rule *rule)
{
	if (t->unexplained++ < 10)
		print_error("%s: %#llx: %s differs (kind %u cfa_reg %u cfa_off %d ra %d)\n", t->path,
		        (unsigned long long)pc, what, rule->kind, rule->cfa_reg, rule->cfa_off,
		        rule->slot[ARCH_SLOT_RA]);
}

static bool same(const struct result *a, const struct result *b)
{
	return a->outcome == b->outcome && (a->outcome != OUT_VALUE || a->value == b->value);
}

static bool is_return(const struct tally *t, u64 pc, const struct cfi_rule *rule)
{
	u8 code;

	return rule->kind == CFI_REG && rule->cfa_reg == REG_SP && rule->cfa_off == 8 &&
	       image_read(t->img, &code, 1, pc) && code == 0xc3;
}

static void compare(struct tally *t, const struct cfi *cfi, Dwarf_Frame *frame, u64 pc)
{
	struct cfi_rule rule = {0};
	struct frame_result ours, theirs;
	bool signal;

	t->compared++;
	if (!cfi_find(cfi, pc, &rule))
		return report(t, "existence", pc, &rule);
	t->expressions += rule.kind == CFI_DEREF || rule.slot_reg != CFI_NO_REG;
	eval_rule(&rule, pc, &ours);
	eval_libdw(frame, pc, &theirs);
	if (rule.kind == CFI_UNSUPPORTED) {
		t->unsupported++;
		if (same(&theirs.sp, &theirs.cfa))
			report(t, "support", pc, &rule);
		return;
	}
	dwarf_frame_info(frame, NULL, NULL, &signal);
	if (!signal && rule.flags & CFI_SIGNAL_FRAME)
		return (void)t->landing++;
	if (!same(&ours.cfa, &theirs.cfa) && is_return(t, pc, &rule))
		return (void)t->mended++;
	if (!same(&ours.ra, &theirs.ra))
		report(t, "return address", pc, &rule);
	if (rule.kind == CFI_ROOT)
		return;
	if (same(&theirs.sp, &theirs.cfa) && !same(&ours.cfa, &theirs.cfa)) /* a row's CFA is the stack pointer */
		report(t, "CFA", pc, &rule);
	if (!same(&ours.sp, &theirs.sp))
		report(t, "stack pointer", pc, &rule);
	if (signal != !!(rule.flags & CFI_SIGNAL_FRAME))
		report(t, "signal", pc, &rule);
	for (u32 i = 0; i < ARCH_NSAVED; i++) {
		if (same(&ours.saved[i], &theirs.saved[i]))
			continue;
		if (ours.saved[i].outcome == OUT_UNDEFINED && theirs.saved[i].unsaved)
			t->lost++;
		else if (saved_regs[i] == DWREG_RBX && ours.saved[i].outcome == OUT_SAME &&
		         theirs.saved[i].outcome == OUT_UNDEFINED)
			t->rbx++;
		else
			report(t, "saved register", pc, &rule);
	}
}

/* Every row that libdw has in [start, end); its last byte too. PLT expressions depend on the address: all of them. */
static void compare_function(struct tally *t, const struct cfi *cfi, Dwarf_CFI *dw, u64 start, u64 end)
{
	u64 pc = start;

	t->fdes++;
	while (pc < end) {
		Dwarf_Frame *frame;
		Dwarf_Addr row_start, row_end;
		struct cfi_rule rule = {0};

		if (dwarf_cfi_addrframe(dw, pc, &frame)) {
			report(t, dwarf_errmsg(-1), pc, &rule);
			return;
		}
		dwarf_frame_info(frame, &row_start, &row_end, NULL);
		compare(t, cfi, frame, pc);
		compare(t, cfi, frame, row_end - 1);
		if (cfi_find(cfi, pc, &rule) && rule.kind == CFI_PLT)
			for (u64 at = pc; at < row_end && at < pc + 64; at++)
				compare(t, cfi, frame, at);
		t->rows++;
		assert_true(row_end > pc);
		pc = row_end;
		free(frame);
	}
}

static Elf_Data *eh_frame(Elf *elf, u64 *addr)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn))) {
		assert_non_null(gelf_getshdr(scn, &sh));
		if (!strcmp(elf_strptr(elf, names, sh.sh_name), ".eh_frame")) {
			*addr = sh.sh_addr;
			return elf_rawdata(scn, NULL);
		}
	}
	fail_msg("no .eh_frame");
	return NULL;
}

/* The FDEs as libdw iterates them. Their encoding is pc-relative, 4 bytes, in all files of this test. */
static void compare_file(struct tally *t, const struct cfi *cfi, Elf *elf)
{
	Dwarf_CFI *dw = dwarf_getcfi_elf(elf);
	Dwarf_CFI_Entry entry;
	Dwarf_Off off = 0, next;
	Elf_Data *data;
	u64 addr = 0;

	assert_non_null(dw);
	data = eh_frame(elf, &addr);
	for (; dwarf_next_cfi((const unsigned char *)elf_getident(elf, NULL), data, true, off, &next, &entry) == 0;
	        off = next) {
		s32 start;
		u32 size;
		u64 at;

		if (dwarf_cfi_cie_p(&entry)) {
			const char *r = strchr(entry.cie.augmentation, 'R');

			assert_non_null(r);
			assert_int_equal(
			        entry.cie.augmentation_data[entry.cie.augmentation[1] == 'P' ? 5 + (r[-1] == 'L') : 0],
			        DW_EH_PE_pcrel | DW_EH_PE_sdata4);
			continue;
		}
		memcpy(&start, entry.fde.start, sizeof(start));
		memcpy(&size, entry.fde.start + 4, sizeof(size));
		at = addr + (u64)(entry.fde.start - (const uint8_t *)data->d_buf) + (u64)(s64)start;
		compare_function(t, cfi, dw, at, at + size);
	}
	dwarf_cfi_end(dw);
}

static void compare_image(const char *name, struct image *img, Elf *elf, struct tally *ret)
{
	struct tally t = {.path = name, .img = img};
	struct cfi *cfi;

	assert_non_null(elf);
	assert_null(cfi_load(img, NULL, &cfi));
	compare_file(&t, cfi, elf);
	print_message("%s: %lu FDEs, %lu rows, %lu compared: %lu lost, %lu unsupported, %lu rbx, %lu unexplained\n",
	        name, t.fdes, t.rows, t.compared, t.lost, t.unsupported, t.rbx, t.unexplained);
	assert_true(t.fdes > 0 && t.rows >= t.fdes);
	assert_int_equal(cfi->ncorrupt, 0);
	assert_int_equal(t.unexplained, 0);
	assert_true(!t.landing || (strstr(name, "libgcc") && t.landing < 64));
	cfi_destroy(cfi);
	*ret = t;
}

static struct tally compare_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image *img;
	struct tally t;
	Elf *elf;

	assert_null(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	elf = elf_begin(fd, ELF_C_READ, NULL);
	compare_image(path, img, elf, &t);
	elf_end(elf);
	close(fd);
	image_put(img);
	return t;
}

static void test_oracle(void **state)
{
	compare_path(*state);
}

/* GCC describes a frame that it realigns by expressions, clang does not. */
static __attribute__((noinline, noclone, force_align_arg_pointer)) u64 realigned(u64 n)
{
	volatile u64 *room = __builtin_alloca(n * sizeof(*room));
	_Alignas(64) volatile u64 aligned[8] = {n};

	for (u64 i = 0; i < n; i++)
		room[i] = memory_word(i) + aligned[i & 7];
	return room[n - 1] + ((uintptr_t)aligned & 63);
}

static void test_self(void **state)
{
	struct tally t = compare_path("/proc/self/exe");

	assert_int_equal(realigned(3), memory_word(2));
#ifdef __clang__
	(void)t;
#else
	assert_true(t.expressions > 0);
#endif
}

/* As a target's vDSO comes: bytes without a file. */
static void test_vdso(void **state)
{
	const u8 *vdso = (const u8 *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)vdso;
	size_t size;
	struct image *img;
	struct tally t;
	Elf *elf;
	u8 *copy;

	assert_non_null(vdso);
	size = eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
	copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, vdso, size);
	assert_null(image_from_memory(copy, size, "[vdso]", &img));
	elf = elf_memory((char *)vdso, size);
	compare_image("[vdso]", img, elf, &t);
	elf_end(elf);
	image_put(img);
}

#define FILE_TEST(path)                                                                                                \
	{                                                                                                              \
		path, test_oracle, NULL, NULL, (void *)(path)                                                          \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        FILE_TEST(LIBS "libc.so.6"),
	        FILE_TEST(LIBS "ld-linux-x86-64.so.2"),
	        FILE_TEST(LIBS "libcrypto.so.3"),
	        FILE_TEST(LIBS "libgcc_s.so.1"),
	        FILE_TEST(LIBS "libluajit-5.1.so.2"),
	        FILE_TEST(LIBS "libstdc++.so.6"),
	        FILE_TEST("/usr/bin/perl"),
	        FILE_TEST("/usr/bin/python3"),
	        cmocka_unit_test(test_self),
	        cmocka_unit_test(test_vdso),
	};

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		compare_path(argv[i]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
