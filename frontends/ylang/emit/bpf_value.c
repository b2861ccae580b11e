/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers: arithmetic as C has it, globals, arrays, registers and what is read of the target. */
#include "bpf_make.h"
#include "probes/hit/hit_usdt.h"
#include "unwind/arch/x86_64/arch.h"

static void bpf_wrap(struct bpf_make *m, u8 reg, enum y_type type)
{
	s32 bits = 64 - 8 * (s32)y_type_size(type);

	if (type == Y_U32) {
		bpf_emit(&m->code, BPF_ALU | BPF_MOV | BPF_X, reg, reg, 0, 0);
	} else if (bits && bits < 64 && !y_type_is_float(type)) {
		bpf_op_imm(&m->code, BPF_LSH, reg, bits);
		bpf_op_imm(&m->code, y_type_is_signed(type) ? BPF_ARSH : BPF_RSH, reg, bits);
	}
}

static void get(struct bpf_make *m, u8 reg, const struct bpf_call *c, u32 slot)
{
	bpf_load(&m->code, 8, reg, R_STATE, (s16)c->slots[slot]);
}

static void put(struct bpf_make *m, const struct bpf_call *c, u32 slot, u8 reg)
{
	bpf_store(&m->code, 8, R_STATE, (s16)c->slots[slot], reg);
}

static void constant(struct bpf_make *m, const struct bpf_call *c, u32 slot, u64 value)
{
	if ((s64)value == (s32)value) {
		bpf_store_imm(&m->code, 8, R_STATE, (s16)c->slots[slot], (s32)value);
		return;
	}
	bpf_imm64(&m->code, R1, value);
	put(m, c, slot, R1);
}

/* BPF divides without signs: by amounts, then the sign. */
static void divide(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 ok = bpf_label(&m->code), skip;
	bool is_signed = y_type_is_signed(i->type);
	const u8 of_sign = i->op == Y_OP_DIV ? R4 : R3;

	get(m, R1, c, i->a);
	get(m, R2, c, i->b);
	bpf_branch_imm(&m->code, BPF_JNE, R2, 0, ok);
	bpf_fail(m, c, i, Y_DIV, -1);
	bpf_place(&m->code, ok);
	if (is_signed) {
		bpf_op(&m->code, BPF_MOV, R3, R1);
		bpf_op_imm(&m->code, BPF_ARSH, R3, 63);
		bpf_op(&m->code, BPF_MOV, R4, R2);
		bpf_op_imm(&m->code, BPF_ARSH, R4, 63);
		for (u8 reg = R1; reg <= R2; reg++) { /* (x ^ sign) - sign */
			bpf_op(&m->code, BPF_XOR, reg, reg + 2);
			bpf_op(&m->code, BPF_SUB, reg, reg + 2);
		}
		bpf_op(&m->code, BPF_XOR, R4, R3);
	}
	bpf_op(&m->code, i->op == Y_OP_DIV ? BPF_DIV : BPF_MOD, R1, R2);
	if (is_signed) {
		skip = bpf_label(&m->code);
		bpf_branch_imm(&m->code, BPF_JEQ, of_sign, 0, skip);
		bpf_emit(&m->code, BPF_ALU64 | BPF_NEG, R1, 0, 0, 0);
		bpf_place(&m->code, skip);
	}
	bpf_wrap(m, R1, i->type);
	put(m, c, i->dst, R1);
}

static void compare(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	bool is_signed = y_type_is_signed(i->type);
	u32 yes = bpf_label(&m->code);
	u8 op;

	if (i->type == Y_STR) {
		bpf_text_compare(m, c, i);
		return;
	}
	switch (i->op) {
	case Y_OP_EQ:
		op = BPF_JEQ;
		break;
	case Y_OP_NE:
		op = BPF_JNE;
		break;
	case Y_OP_LT:
		op = is_signed ? BPF_JSLT : BPF_JLT;
		break;
	default:
		op = is_signed ? BPF_JSLE : BPF_JLE;
	}
	get(m, R1, c, i->a);
	get(m, R2, c, i->b);
	bpf_op_imm(&m->code, BPF_MOV, R3, 1);
	bpf_branch(&m->code, op, R1, R2, yes);
	bpf_op_imm(&m->code, BPF_MOV, R3, 0);
	bpf_place(&m->code, yes);
	put(m, c, i->dst, R3);
}

static void compute(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	static const u8 ops[] = {[Y_OP_ADD] = BPF_ADD,
	        [Y_OP_SUB] = BPF_SUB,
	        [Y_OP_MUL] = BPF_MUL,
	        [Y_OP_AND] = BPF_AND,
	        [Y_OP_OR] = BPF_OR,
	        [Y_OP_XOR] = BPF_XOR,
	        [Y_OP_SHL] = BPF_LSH,
	        [Y_OP_SHR] = BPF_RSH};
	u8 op = i->op < sizeof(ops) ? ops[i->op] : 0;

	get(m, R1, c, i->a);
	if (i->op == Y_OP_NEG) {
		bpf_emit(&m->code, BPF_ALU64 | BPF_NEG, R1, 0, 0, 0);
	} else if (i->op == Y_OP_NOT) {
		bpf_op_imm(&m->code, BPF_XOR, R1, -1);
	} else {
		get(m, R2, c, i->b);
		if (i->op == Y_OP_SHL || i->op == Y_OP_SHR)
			bpf_op_imm(&m->code, BPF_AND, R2, 8 * (s32)y_type_size(i->type) - 1);
		if (i->op == Y_OP_SHR && y_type_is_signed(i->type))
			op = BPF_ARSH;
		bpf_op(&m->code, op, R1, R2);
	}
	bpf_wrap(m, R1, i->type);
	put(m, c, i->dst, R1);
}

static void convert(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	if ((y_type_is_float(i->type) || y_type_is_float((enum y_type)i->imm)) && i->type != i->imm) {
		bpf_refuse(m, i, "conversions of floating-point numbers", BPF_FLOATS);
		return;
	}
	get(m, R1, c, i->a);
	bpf_wrap(m, R1, i->type);
	put(m, c, i->dst, R1);
}

void bpf_read(struct bpf_make *m, bool kernel, bool text)
{
	u32 user = bpf_label(&m->code), done = bpf_label(&m->code);

	if (kernel) {
		bpf_branch_imm(&m->code, BPF_JSGE, R8, 0, user);
		bpf_call(&m->code, text ? HELPER_READ_KERNEL_STR : HELPER_READ_KERNEL);
		bpf_jump(&m->code, done);
	}
	bpf_place(&m->code, user);
	bpf_call(&m->code, text ? HELPER_READ_USER_STR : m->sleepable ? HELPER_COPY_USER : HELPER_READ_USER);
	bpf_place(&m->code, done);
}

void bpf_fail_read(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 user = bpf_label(&m->code);

	if (i->c == Y_KERNEL) {
		bpf_branch_imm(&m->code, BPF_JSGE, R8, 0, user);
		bpf_fail(m, c, i, Y_FAULT, R8);
	}
	bpf_place(&m->code, user);
	bpf_fail(m, c, i, m->sleepable ? Y_FAULT : Y_ABSENT, R8);
}

static void load(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 ok = bpf_label(&m->code), size = y_type_size(i->type);

	get(m, R8, c, i->a);
	if ((s64)i->imm == (s32)i->imm) {
		bpf_op_imm(&m->code, BPF_ADD, R8, (s32)i->imm);
	} else {
		bpf_imm64(&m->code, R1, i->imm);
		bpf_op(&m->code, BPF_ADD, R8, R1);
	}
	bpf_op(&m->code, BPF_MOV, R1, R10);
	bpf_op_imm(&m->code, BPF_ADD, R1, AT_WORD);
	bpf_op_imm(&m->code, BPF_MOV, R2, (s32)size);
	bpf_op(&m->code, BPF_MOV, R3, R8);
	bpf_read(m, i->c == Y_KERNEL, false);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, ok);
	bpf_fail_read(m, c, i);
	bpf_place(&m->code, ok);
	bpf_load(&m->code, size, R1, R10, AT_WORD);
	if (y_type_is_signed(i->type))
		bpf_wrap(m, R1, i->type);
	put(m, c, i->dst, R1);
}

/* Of struct pt_regs, by DWARF's numbers. */
s16 bpf_register_offset(u64 number)
{
	static const u8 words[ARCH_NREGS] = {[DWREG_RAX] = 10,
	        [DWREG_RDX] = 12,
	        [DWREG_RCX] = 11,
	        [DWREG_RBX] = 5,
	        [DWREG_RSI] = 13,
	        [DWREG_RDI] = 14,
	        [DWREG_RBP] = 4,
	        [DWREG_RSP] = 19,
	        [DWREG_R8] = 9,
	        [DWREG_R9] = 8,
	        [DWREG_R10] = 7,
	        [DWREG_R11] = 6,
	        [DWREG_R12] = 3,
	        [DWREG_R13] = 2,
	        [DWREG_R14] = 1,
	        [DWREG_R15] = 0,
	        [DWREG_RIP] = 16};

	return number < ARCH_NREGS ? 8 * words[number] : 0;
}

/* Where system calls have their arguments: rdi, rsi, rdx, r10, r8, r9. */
static s16 syscall_offset(u64 number)
{
	static const u8 registers[] = {DWREG_RDI, DWREG_RSI, DWREG_RDX, DWREG_R10, DWREG_R8, DWREG_R9};

	return number < sizeof(registers) ? bpf_register_offset(registers[number]) : 0;
}

/* A raw tracepoint's context is its arguments; those of system calls have the registers as their first. */
/* R1 = argument number of a tracepoint, system call, or Y_RETURNED. */
static void bpf_argument(struct bpf_make *m, u64 number)
{
	if (m->handler->point != Y_SYSCALL || number == Y_RETURNED) {
		bpf_load(&m->code, 8, R1, R_CTX, number == Y_RETURNED ? 8 : (s16)(8 * number));
		return;
	}
	bpf_load(&m->code, 8, R3, R_CTX, 0);
	bpf_op_imm(&m->code, BPF_ADD, R3, syscall_offset(number));
	bpf_op(&m->code, BPF_MOV, R1, R10);
	bpf_op_imm(&m->code, BPF_ADD, R1, AT_WORD);
	bpf_op_imm(&m->code, BPF_MOV, R2, 8);
	bpf_store_imm(&m->code, 8, R10, AT_WORD, 0);
	bpf_call(&m->code, HELPER_READ_KERNEL);
	bpf_load(&m->code, 8, R1, R10, AT_WORD);
}

static void global(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_VALUE, Y_MAP_GLOBALS, m->ret->global_offsets[i->imm]);
	if (i->op == Y_OP_GLOBAL_SET) {
		get(m, R2, c, i->a);
		bpf_store(&m->code, 8, R1, 0, R2);
		return;
	}
	if (i->op == Y_OP_GLOBAL_ADD) {
		get(m, R3, c, i->a);
		bpf_op(&m->code, BPF_MOV, R2, R3);
		bpf_atomic(&m->code, 8, R1, 0, R2, BPF_ADD | BPF_FETCH);
		bpf_op(&m->code, BPF_ADD, R2, R3);
	} else {
		bpf_load(&m->code, 8, R2, R1, 0);
	}
	bpf_wrap(m, R2, i->type);
	put(m, c, i->dst, R2);
}

static void array(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	bool is_global = i->imm >= Y_GLOBAL_ARRAY;
	u64 number = is_global ? i->imm - Y_GLOBAL_ARRAY : i->imm;
	u32 n = is_global ? m->p->globals[number].n : c->f->arrays[number].n, ok = bpf_label(&m->code);

	get(m, R1, c, i->a);
	bpf_branch_imm(&m->code, BPF_JLT, R1, (s32)n, ok);
	bpf_fail(m, c, i, Y_LIMIT, -1);
	bpf_place(&m->code, ok);
	bpf_op_imm(&m->code, BPF_LSH, R1, 3);
	if (is_global)
		bpf_map(&m->code, R2, BPF_PSEUDO_MAP_VALUE, Y_MAP_GLOBALS, m->ret->global_offsets[number]);
	else
		bpf_state_address(m, R2, c->arrays[number]);
	bpf_op(&m->code, BPF_ADD, R2, R1);
	if (i->op == Y_OP_ARRAY_SET) {
		get(m, R3, c, i->b);
		bpf_store(&m->code, 8, R2, 0, R3);
		return;
	}
	if (i->op == Y_OP_ARRAY_ADD) {
		get(m, R1, c, i->b);
		bpf_op(&m->code, BPF_MOV, R3, R1);
		bpf_atomic(&m->code, 8, R2, 0, R3, BPF_ADD | BPF_FETCH);
		bpf_op(&m->code, BPF_ADD, R3, R1);
	} else {
		bpf_load(&m->code, 8, R3, R2, 0);
	}
	bpf_wrap(m, R3, i->type); /* what was added may be beyond the type */
	put(m, c, i->dst, R3);
}

static void context(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	switch (i->imm) {
	case Y_PID:
		if (m->o->pid) {
			constant(m, c, i->dst, m->o->pid);
			return;
		}
		bpf_load(&m->code, 4, R0, R_STATE, offsetof(struct y_state, thread) + 4);
		break;
	case Y_TID:
		bpf_load(&m->code, 4, R0, R_STATE, offsetof(struct y_state, thread));
		break;
	case Y_CPU:
		bpf_call(&m->code, HELPER_CPU);
		break;
	case Y_UID:
	case Y_GID:
		bpf_call(&m->code, HELPER_UID_GID);
		if (i->imm == Y_GID)
			bpf_op_imm(&m->code, BPF_RSH, R0, 32);
		bpf_wrap(m, R0, Y_U32);
		break;
	case Y_CGROUP:
		bpf_call(&m->code, HELPER_CGROUP);
		break;
	case Y_THREAD_POINTER: /* no failure: a task is there; what could not be read would be 0 */
		bpf_call(&m->code, HELPER_TASK);
		bpf_op(&m->code, BPF_MOV, R3, R0);
		bpf_op_imm(&m->code, BPF_ADD, R3, (s32)i->a);
		bpf_op_imm(&m->code, BPF_MOV, R2, 8);
		bpf_op(&m->code, BPF_MOV, R1, R10);
		bpf_op_imm(&m->code, BPF_ADD, R1, AT_WORD);
		bpf_call(&m->code, HELPER_READ_KERNEL);
		bpf_load(&m->code, 8, R0, R10, AT_WORD);
		break;
	default:
		bpf_call(&m->code, HELPER_KTIME);
		if (i->imm == Y_WALL) {
			bpf_imm64(&m->code, R1, m->o->wall_ns);
			bpf_op(&m->code, BPF_ADD, R0, R1);
		}
	}
	put(m, c, i->dst, R0);
}

/* R1 = an argument of this form; a failure of the read leads to bad, R8 being its address. */
static void usdt_variant(struct bpf_make *m, const struct hit_usdt_argument *a, u32 bad)
{
	if (a->kind == HIT_USDT_CONSTANT) {
		bpf_imm64(&m->code, R1, (u64)a->value);
		return;
	}
	bpf_load(&m->code, 8, R1, R_CTX, bpf_register_offset(a->base));
	if (a->kind == HIT_USDT_REGISTER)
		return;
	bpf_op(&m->code, BPF_MOV, R8, R1);
	if (a->index != HIT_USDT_NONE) {
		bpf_load(&m->code, 8, R1, R_CTX, bpf_register_offset(a->index));
		bpf_op_imm(&m->code, BPF_MUL, R1, a->scale);
		bpf_op(&m->code, BPF_ADD, R8, R1);
	}
	bpf_imm64(&m->code, R1, (u64)a->value);
	bpf_op(&m->code, BPF_ADD, R8, R1);
	bpf_store_imm(&m->code, 8, R10, AT_WORD, 0);
	bpf_op(&m->code, BPF_MOV, R1, R10);
	bpf_op_imm(&m->code, BPF_ADD, R1, AT_WORD);
	bpf_op_imm(&m->code, BPF_MOV, R2, a->size);
	bpf_op(&m->code, BPF_MOV, R3, R8);
	bpf_call(&m->code, m->sleepable ? HELPER_COPY_USER : HELPER_READ_USER);
	bpf_branch_imm(&m->code, BPF_JNE, R0, 0, bad);
	bpf_load(&m->code, 8, R1, R10, AT_WORD);
}

/* The cookie says which form the place has. */
static void usdt_argument(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 done = bpf_label(&m->code), bad = bpf_label(&m->code);

	bpf_op(&m->code, BPF_MOV, R1, R_CTX);
	bpf_call(&m->code, HELPER_COOKIE);
	bpf_op(&m->code, BPF_MOV, R9, R0);
	for (u32 v = 0; v < m->handler->nvariants; v++) {
		struct hit_usdt_argument all[HIT_USDT_ARGUMENTS], *a = &all[i->imm];
		u32 next = bpf_label(&m->code);
		s32 bits;

		if (hit_usdt_parse(m->handler->variants[v], all) <= i->imm || a->kind == HIT_USDT_UNKNOWN)
			continue; /* such programs are refused before */
		bits = 64 - 8 * a->size;
		bpf_branch_imm(&m->code, BPF_JNE, R9, (s32)v, next);
		usdt_variant(m, a, bad);
		if (bits) {
			bpf_op_imm(&m->code, BPF_LSH, R1, bits);
			bpf_op_imm(&m->code, a->is_signed ? BPF_ARSH : BPF_RSH, R1, bits);
		}
		bpf_jump(&m->code, done);
		bpf_place(&m->code, next);
	}
	bpf_op_imm(&m->code, BPF_MOV, R8, 0);
	bpf_place(&m->code, bad);
	bpf_fail(m, c, i, m->sleepable ? Y_FAULT : Y_ABSENT, R8);
	bpf_place(&m->code, done);
}

void bpf_call_argument(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	s16 at = (s16)(i->imm * sizeof(struct y_argument));
	u32 none = bpf_label(&m->code), other = bpf_label(&m->code), beyond = bpf_label(&m->code),
	    done = bpf_label(&m->code);
	bool text = i->type == Y_STR;

	bpf_store_imm(&m->code, 4, R10, AT_WORD, 0);
	bpf_lookup(m, Y_MAP_ARGUMENTS, AT_WORD);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, none);
	bpf_load(&m->code, 4, R1, R0, at + (s16)offsetof(struct y_argument, absent));
	bpf_branch_imm(&m->code, BPF_JNE, R1, 0, none);
	bpf_load(&m->code, 4, R1, R0,
	        at + (s16)(text ? offsetof(struct y_argument, is_text) : offsetof(struct y_argument, is_number)));
	bpf_branch_imm(&m->code, BPF_JEQ, R1, 0, other);
	if (text) {
		bpf_op(&m->code, BPF_MOV, R3, R0);
		bpf_op_imm(&m->code, BPF_ADD, R3, at + (s32)offsetof(struct y_argument, text));
		bpf_state_address(m, R1, c->slots[i->dst]);
		bpf_op_imm(&m->code, BPF_MOV, R2, sizeof(struct y_text));
		bpf_call(&m->code, HELPER_READ_KERNEL);
	} else {
		bpf_load(&m->code, 4, R1, R0, at + (s16)offsetof(struct y_argument, beyond));
		bpf_branch_imm(&m->code, BPF_JGT, R1, i->type == Y_F64 ? Y_BEYOND_LONG : 0, beyond);
		bpf_load(&m->code, 8, R1, R0,
		        at + (s16)(i->type == Y_F64 ? offsetof(struct y_argument, real)
		                                    : offsetof(struct y_argument, number)));
		put(m, c, i->dst, R1);
	}
	bpf_jump(&m->code, done);
	bpf_place(&m->code, none);
	bpf_fail(m, c, i, Y_OPTIMIZED_OUT, -1);
	bpf_place(&m->code, other);
	bpf_fail(m, c, i, Y_KIND, -1);
	bpf_place(&m->code, beyond);
	bpf_fail(m, c, i, Y_LIMIT, -1);
	bpf_place(&m->code, done);
}

static void at_place(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	if (m->handler->point == Y_CALL) {
		bpf_call_argument(m, c, i);
		return;
	}
	if (i->op == Y_OP_REGISTER)
		bpf_load(&m->code, 8, R1, R_CTX, bpf_register_offset(i->imm));
	else if (m->handler->nvariants)
		usdt_argument(m, c, i);
	else
		bpf_argument(m, i->imm);
	put(m, c, i->dst, R1);
}

void bpf_value(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	if (y_type_is_float(i->type) && i->op >= Y_OP_ADD && i->op <= Y_OP_LE) {
		bpf_refuse(m, i, "arithmetic with floating-point numbers", BPF_FLOATS);
		return;
	}
	switch (i->op) {
	case Y_OP_CONST:
		constant(m, c, i->dst, i->imm);
		break;
	case Y_OP_MOVE:
		get(m, R1, c, i->a);
		put(m, c, i->dst, R1);
		break;
	case Y_OP_CONVERT:
		convert(m, c, i);
		break;
	case Y_OP_DIV:
	case Y_OP_MOD:
		divide(m, c, i);
		break;
	case Y_OP_EQ:
	case Y_OP_NE:
	case Y_OP_LT:
	case Y_OP_LE:
		compare(m, c, i);
		break;
	case Y_OP_ADDRESS:
		constant(m, c, i->dst, m->p->modules[i->a].bias + i->imm);
		break;
	case Y_OP_LOAD:
		load(m, c, i);
		break;
	case Y_OP_REGISTER:
	case Y_OP_ARGUMENT:
		at_place(m, c, i);
		break;
	case Y_OP_GLOBAL_GET:
	case Y_OP_GLOBAL_SET:
	case Y_OP_GLOBAL_ADD:
		global(m, c, i);
		break;
	case Y_OP_ARRAY_GET:
	case Y_OP_ARRAY_SET:
	case Y_OP_ARRAY_ADD:
		array(m, c, i);
		break;
	case Y_OP_STATUS:
	case Y_OP_AT:
		bpf_load(&m->code, i->op == Y_OP_AT ? 8 : 4, R1, R_STATE,
		        i->op == Y_OP_AT ? offsetof(struct y_state, at) : offsetof(struct y_state, status));
		put(m, c, i->dst, R1);
		break;
	case Y_OP_CONTEXT:
		context(m, c, i);
		break;
	default:
		compute(m, c, i);
	}
}
