/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: struct y_text in the state. What is behind their bytes is zero, so they are copied and compared whole. */
#include "bpf_make.h"

#define TEXT_SIZE ((s32)sizeof(struct y_text))
#define TEXT_MOST ((s32)Y_STR_MOST_PROBE)
#define BYTES     ((u32)offsetof(struct y_text, bytes))

static u32 most_of(const struct y_insn *i)
{
	return i->imm < Y_STR_MOST_PROBE ? (u32)i->imm : Y_STR_MOST_PROBE;
}

/* R1 = r1 and R2 = the size are set; R3 is where from. */
static void copy(struct bpf_make *m)
{
	bpf_op_imm(&m->code, BPF_MOV, R2, TEXT_SIZE);
	bpf_call(&m->code, HELPER_READ_KERNEL);
}

void bpf_copy_text(struct bpf_make *m, u32 to, u32 from)
{
	bpf_state_address(m, R1, to);
	bpf_state_address(m, R3, from);
	copy(m);
}

static void literal(struct bpf_make *m, u32 to, u32 offset)
{
	bpf_state_address(m, R1, to);
	bpf_map(&m->code, R3, BPF_PSEUDO_MAP_VALUE, Y_MAP_LITERALS, offset);
	copy(m);
}

static void global(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u8 own = i->op == Y_OP_GLOBAL_GET ? R1 : R3;

	bpf_state_address(m, own, c->slots[i->op == Y_OP_GLOBAL_GET ? i->dst : i->a]);
	bpf_map(&m->code, own == R1 ? R3 : R1, BPF_PSEUDO_MAP_VALUE, Y_MAP_GLOBALS, m->ret->global_offsets[i->imm]);
	copy(m);
}

/* Where there are no pages yet the helper fails: they are fetched, and it tries again. */
static void read_user_text(struct bpf_make *m, u32 dst, u32 most, bool kernel)
{
	bpf_state_address(m, R1, dst + BYTES);
	bpf_op_imm(&m->code, BPF_MOV, R2, (s32)most + 2);
	bpf_op(&m->code, BPF_MOV, R3, R8);
	bpf_read(m, kernel, true);
}

/* Fetches the page of the address in R8; R0: not 0: it cannot be read. */
static void touch(struct bpf_make *m)
{
	bpf_op(&m->code, BPF_MOV, R1, R10);
	bpf_op_imm(&m->code, BPF_ADD, R1, AT_WORD);
	bpf_op_imm(&m->code, BPF_MOV, R2, 1);
	bpf_op(&m->code, BPF_MOV, R3, R8);
	bpf_call(&m->code, HELPER_COPY_USER);
}

static void read_text(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 ok = bpf_label(&m->code), bad = bpf_label(&m->code), done = bpf_label(&m->code), most = most_of(i),
	    dst = c->slots[i->dst];
	bool kernel = i->c == Y_KERNEL;

	literal(m, dst, 0);
	bpf_load(&m->code, 8, R8, R_STATE, (s16)c->slots[i->a]);
	read_user_text(m, dst, most, kernel);
	bpf_branch_imm(&m->code, BPF_JSGT, R0, 0, ok);
	if (m->sleepable && !kernel) {
		bpf_op(&m->code, BPF_MOV, R9, R8);
		touch(m);
		bpf_branch_imm(&m->code, BPF_JNE, R0, 0, bad);
		bpf_op_imm(&m->code, BPF_OR, R8, 4095);
		bpf_op_imm(&m->code, BPF_ADD, R8, 1); /* the next page */
		touch(m);
		bpf_branch_imm(&m->code, BPF_JNE, R0, 0, bad);
		bpf_op(&m->code, BPF_MOV, R8, R9);
		read_user_text(m, dst, most, kernel);
		bpf_branch_imm(&m->code, BPF_JSGT, R0, 0, ok);
	}
	bpf_place(&m->code, bad);
	bpf_fail_read(m, c, i);
	bpf_place(&m->code, ok);
	bpf_op_imm(&m->code, BPF_SUB, R0, 1);
	bpf_state_address(m, R1, dst);
	bpf_store(&m->code, 4, R1, offsetof(struct y_text, len), R0);
	bpf_branch_imm(&m->code, BPF_JLE, R0, (s32)most, done);
	bpf_store_imm(&m->code, 4, R1, offsetof(struct y_text, len), (s32)most);
	bpf_store_imm(&m->code, 4, R1, offsetof(struct y_text, cut), 1);
	bpf_store_imm(&m->code, 1, R1, (s16)(BYTES + most), 0);
	bpf_place(&m->code, done);
}

static void read_bytes(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 fits = bpf_label(&m->code), ok = bpf_label(&m->code), dst = c->slots[i->dst];

	literal(m, dst, 0);
	bpf_load(&m->code, 8, R8, R_STATE, (s16)c->slots[i->a]);
	bpf_load(&m->code, 8, R9, R_STATE, (s16)c->slots[i->b]);
	bpf_branch_imm(&m->code, BPF_JLE, R9, (s32)most_of(i), fits);
	bpf_fail(m, c, i, Y_LIMIT, -1);
	bpf_place(&m->code, fits);
	bpf_state_address(m, R1, dst + BYTES);
	bpf_op(&m->code, BPF_MOV, R2, R9);
	bpf_op(&m->code, BPF_MOV, R3, R8);
	bpf_read(m, i->c == Y_KERNEL, false);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, ok);
	bpf_fail_read(m, c, i);
	bpf_place(&m->code, ok);
	bpf_state_address(m, R1, dst);
	bpf_store(&m->code, 4, R1, offsetof(struct y_text, len), R9);
}

static void at(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 ok = bpf_label(&m->code), bad = bpf_label(&m->code);

	bpf_state_address(m, R3, c->slots[i->a]);
	bpf_load(&m->code, 4, R2, R3, offsetof(struct y_text, len));
	bpf_load(&m->code, 8, R1, R_STATE, (s16)c->slots[i->b]);
	bpf_branch(&m->code, BPF_JGE, R1, R2, bad);
	bpf_branch_imm(&m->code, BPF_JLE, R1, TEXT_MOST, ok);
	bpf_place(&m->code, bad);
	bpf_fail(m, c, i, Y_LIMIT, -1);
	bpf_place(&m->code, ok);
	bpf_op(&m->code, BPF_ADD, R3, R1);
	bpf_load(&m->code, 1, R1, R3, (s16)BYTES);
	bpf_store(&m->code, 8, R_STATE, (s16)c->slots[i->dst], R1);
}

static void concatenate(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 bad = bpf_label(&m->code), ok = bpf_label(&m->code), dst = c->slots[i->dst];

	bpf_copy_text(m, dst, c->slots[i->a]);
	bpf_state_address(m, R1, dst);
	bpf_state_address(m, R3, c->slots[i->b]);
	bpf_load(&m->code, 4, R4, R1, offsetof(struct y_text, len));
	bpf_load(&m->code, 4, R2, R3, offsetof(struct y_text, len));
	bpf_branch_imm(&m->code, BPF_JGT, R4, TEXT_MOST, bad);
	bpf_branch_imm(&m->code, BPF_JGT, R2, TEXT_MOST, bad);
	bpf_op(&m->code, BPF_MOV, R5, R4);
	bpf_op(&m->code, BPF_ADD, R5, R2);
	bpf_branch_imm(&m->code, BPF_JLE, R5, TEXT_MOST, ok);
	bpf_place(&m->code, bad);
	bpf_fail(m, c, i, Y_LIMIT, -1);
	bpf_place(&m->code, ok);
	bpf_store(&m->code, 4, R1, offsetof(struct y_text, len), R5);
	bpf_store_imm(&m->code, 4, R1, offsetof(struct y_text, cut), 0);
	bpf_op(&m->code, BPF_ADD, R1, R4);
	bpf_op_imm(&m->code, BPF_ADD, R1, (s32)BYTES);
	bpf_op_imm(&m->code, BPF_ADD, R3, (s32)BYTES);
	bpf_call(&m->code, HELPER_READ_KERNEL);
}

void bpf_text_compare(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 differ = bpf_label(&m->code), done = bpf_label(&m->code);

	if (i->op != Y_OP_EQ && i->op != Y_OP_NE) {
		bpf_refuse(m, i, "the order of strings",
		        "== and != take strings here, and s[i] is a number; maps are printed in order");
		return;
	}
	bpf_state_address(m, R1, c->slots[i->a]);
	bpf_state_address(m, R2, c->slots[i->b]);
	bpf_load(&m->code, 4, R3, R1, offsetof(struct y_text, len));
	bpf_load(&m->code, 4, R4, R2, offsetof(struct y_text, len));
	bpf_branch(&m->code, BPF_JNE, R3, R4, differ);
	for (s16 at = (s16)BYTES; at < (s16)BYTES + 256; at += 8) {
		bpf_load(&m->code, 8, R3, R1, at);
		bpf_load(&m->code, 8, R4, R2, at);
		bpf_branch(&m->code, BPF_JNE, R3, R4, differ);
	}
	bpf_store_imm(&m->code, 8, R_STATE, (s16)c->slots[i->dst], i->op == Y_OP_EQ);
	bpf_jump(&m->code, done);
	bpf_place(&m->code, differ);
	bpf_store_imm(&m->code, 8, R_STATE, (s16)c->slots[i->dst], i->op == Y_OP_NE);
	bpf_place(&m->code, done);
}

/* The kernel pads it with zeros. */
static void comm(struct bpf_make *m, u32 dst)
{
	u32 done = bpf_label(&m->code);

	literal(m, dst, 0);
	bpf_state_address(m, R1, dst + BYTES);
	bpf_op_imm(&m->code, BPF_MOV, R2, 16);
	bpf_call(&m->code, HELPER_COMM);
	bpf_state_address(m, R1, dst);
	for (s16 n = 0; n < 16; n++) {
		bpf_store_imm(&m->code, 4, R1, offsetof(struct y_text, len), n);
		bpf_load(&m->code, 1, R2, R1, (s16)BYTES + n);
		bpf_branch_imm(&m->code, BPF_JEQ, R2, 0, done);
	}
	bpf_place(&m->code, done);
}

void bpf_text(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	switch (i->op) {
	case Y_OP_LITERAL:
		literal(m, c->slots[i->dst], m->literal_offsets[i->imm]);
		break;
	case Y_OP_MOVE:
		bpf_copy_text(m, c->slots[i->dst], c->slots[i->a]);
		break;
	case Y_OP_GLOBAL_GET:
	case Y_OP_GLOBAL_SET:
		global(m, c, i);
		break;
	case Y_OP_ARGUMENT:
		bpf_call_argument(m, c, i);
		break;
	case Y_OP_STR_READ:
		read_text(m, c, i);
		break;
	case Y_OP_STR_READ_N:
		read_bytes(m, c, i);
		break;
	case Y_OP_STR_LEN:
	case Y_OP_STR_CUT:
		bpf_state_address(m, R1, c->slots[i->a]);
		bpf_load(&m->code, 4, R1, R1,
		        i->op == Y_OP_STR_LEN ? offsetof(struct y_text, len) : offsetof(struct y_text, cut));
		bpf_store(&m->code, 8, R_STATE, (s16)c->slots[i->dst], R1);
		break;
	case Y_OP_STR_AT:
		at(m, c, i);
		break;
	case Y_OP_STR_CAT:
		concatenate(m, c, i);
		break;
	case Y_OP_CONTEXT:
		if (i->imm == Y_COMM)
			comm(m, c->slots[i->dst]);
		else
			literal(m, c->slots[i->dst], m->literal_offsets[m->p->nliterals]);
		break;
	case Y_OP_ARRAY_GET:
	case Y_OP_ARRAY_SET:
		bpf_refuse(m, i, "arrays of strings", "_map _str m[int]; has strings by their number");
		break;
	default:
		bpf_refuse(m, i, y_op_name(i->op), "_timer, _begin and _end can: they see the same maps");
	}
}
