/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a trace is, at any of its instructions: the functions of inlined_loads.lua read arrays of their own, so the
 * address that an instruction reads shows which of them it belongs to, whatever snapshots say. Counted are inlined
 * frames: right, wrong, missing.
 */
#include "luajit_target.h"

#include <capstone/capstone.h>

#include "runtimes/luajit/luajit.h"

#define ARRAY_FIRST 0x30000000ull
#define ARRAY_SIZE  0x10000ull
#define ARRAYS      8
#define BURSTS      20
#define STEPS       1500
#define CODE_BYTES  16

/* Who calls whom, from the leaf down to the base of the trace. */
static const char *const chains[ARRAYS][8] = {
        {"a", "loop"},
        {"b", "a", "loop"},
        {"c", "b", "a", "loop"},
        {"d", "a", "loop"},
        {"e", "f", "a", "loop"},
        {"f", "a", "loop"},
        {"__index", "a", "loop"},
        {"h", "a", "loop"},
};
/* e is called by h too, by way of pcall: it has no name there. */
static const char *const other_e[] = {"", "pcall", "h", "a", "loop", NULL};

struct positions {
	struct target *target;
	csh disassembler;
	u32 stops, right, wrong, missing;
};

static u64 reg_value(x86_reg reg, const struct user_regs_struct *r, u64 next)
{
	switch (reg) {
	case X86_REG_RAX:
		return r->rax;
	case X86_REG_RBX:
		return r->rbx;
	case X86_REG_RCX:
		return r->rcx;
	case X86_REG_RDX:
		return r->rdx;
	case X86_REG_RSI:
		return r->rsi;
	case X86_REG_RDI:
		return r->rdi;
	case X86_REG_RBP:
		return r->rbp;
	case X86_REG_RSP:
		return r->rsp;
	case X86_REG_R8:
		return r->r8;
	case X86_REG_R9:
		return r->r9;
	case X86_REG_R10:
		return r->r10;
	case X86_REG_R11:
		return r->r11;
	case X86_REG_R12:
		return r->r12;
	case X86_REG_R13:
		return r->r13;
	case X86_REG_R14:
		return r->r14;
	case X86_REG_R15:
		return r->r15;
	case X86_REG_RIP:
		return next;
	default:
		return 0;
	}
}

/* The array that the instruction at the program counter reads; ARRAYS: none. */
static u32 array_read(struct positions *p)
{
	struct user_regs_struct r;
	cs_insn *insn;
	u8 code[CODE_BYTES];
	u32 ret = ARRAYS;

	assert_int_equal(ptrace(PTRACE_GETREGS, p->target->pid, 0, &r), 0);
	if (!memory_read(p->target->process->memory, code, sizeof(code), r.rip) ||
	        !cs_disasm(p->disassembler, code, sizeof(code), r.rip, 1, &insn))
		return ARRAYS;
	for (u32 i = 0; insn->id != X86_INS_LEA && i < insn->detail->x86.op_count; i++) {
		const cs_x86_op *op = &insn->detail->x86.operands[i];
		u64 addr, next = r.rip + insn->size;

		if (op->type != X86_OP_MEM)
			continue;
		addr = reg_value(op->mem.base, &r, next) + reg_value(op->mem.index, &r, next) * (u64)op->mem.scale +
		       (u64)op->mem.disp;
		if (addr >= ARRAY_FIRST && addr < ARRAY_FIRST + ARRAYS * ARRAY_SIZE)
			ret = (u32)((addr - ARRAY_FIRST) / ARRAY_SIZE);
	}
	cs_free(insn, 1);
	return ret;
}

static bool same_name(struct target *t, u32 i, const char *expected)
{
	struct frame_name name;

	return target_name(t, i, &name) && !strcmp(name.name, expected);
}

/* Frames [0, n) against a chain, from the base up. Returns how many are right. */
static u32 count_right(struct target *t, const u32 *shown, u32 n, const char *const *chain, u32 length)
{
	u32 right = 0;

	while (right < n && right < length && same_name(t, shown[n - 1 - right], chain[length - 1 - right]))
		right++;
	return right;
}

static u32 length_of(const char *const *chain)
{
	u32 n = 0;

	while (chain[n])
		n++;
	return n;
}

/* Frames of the trace: leaf first, the base last. */
static u32 trace_frames(const struct target *t, u32 *ret, u32 max)
{
	u32 n = 0;

	for (u32 i = 0; i < t->nframes && n < max; i++)
		if (frame_kind(&t->frames[i]) == FRAME_SCRIPT && frame_flags(&t->frames[i]) & FRAME_APPROX)
			ret[n++] = i;
	return n;
}

static void check_position(struct positions *p, u32 array)
{
	const char *const *chain = chains[array];
	struct target *t = p->target;
	u32 shown[32], n = trace_frames(t, shown, 32), length = length_of(chain), right = 0;

	if (!n || !same_name(t, shown[n - 1], "loop"))
		return; /* a side trace that was left to the interpreter and entered again elsewhere */
	right = count_right(t, shown, n, chain, length);
	if (array == 4 && count_right(t, shown, n, other_e, length_of(other_e)) > right) {
		length = length_of(other_e);
		right = count_right(t, shown, n, other_e, length);
	}
	p->stops++;
	p->right += right - 1;
	p->wrong += n - right;
	p->missing += length - right;
}

static bool on_trace(const struct target *t)
{
	return t->walked[0].detail & LUAJIT_JIT && frame_kind(&t->walked[0]) == FRAME_SCRIPT;
}

static void test_positions(void **state)
{
	struct positions p = {.target = target_start("inlined_loads.lua", "", NULL)};
	u32 array;
	int status;

	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &p.disassembler), CS_ERR_OK);
	cs_option(p.disassembler, CS_OPT_DETAIL, CS_OPT_ON);
	target_continue(p.target, 200000);
	for (u32 i = 0; i < BURSTS; i++) {
		target_continue(p.target, 1000 + i * 100);
		for (u32 k = 0; k < STEPS; k++) {
			array = array_read(&p);
			if (array < ARRAYS) {
				target_walk(p.target);
				if (on_trace(p.target))
					check_position(&p, array);
			}
			ptrace(PTRACE_SINGLESTEP, p.target->pid, 0, 0);
			waitpid(p.target->pid, &status, 0);
			assert_true(WIFSTOPPED(status));
		}
	}
	print_message("inlined: %u right, %u wrong, %u missing; %u stops\n", p.right, p.wrong, p.missing, p.stops);
	cs_close(&p.disassembler);
	target_end(p.target);
	assert_true(p.stops > 1000);
	assert_true(p.right > p.wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_positions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
