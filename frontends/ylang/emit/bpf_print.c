/* SPDX-License-Identifier: Apache-2.0 */
/* Output: a handler gathers records of values, which are sent as one and become text in user space. */
#include "bpf_make.h"

#define RECORD_MOST 4096u

void bpf_flush(struct bpf_make *m)
{
	const s16 used = offsetof(struct y_state, out_used);
	u32 done = bpf_label(&m->code), lost = bpf_label(&m->code);

	bpf_load(&m->code, 4, R3, R_STATE, used);
	bpf_branch_imm(&m->code, BPF_JEQ, R3, 0, done);
	bpf_branch_imm(&m->code, BPF_JGT, R3, Y_OUT_SIZE, lost);
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_FD, Y_MAP_RING, 0);
	bpf_state_address(m, R2, offsetof(struct y_state, out));
	bpf_op_imm(&m->code, BPF_MOV, R4, 0);
	bpf_call(&m->code, HELPER_RING_OUTPUT);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, done);
	bpf_place(&m->code, lost);
	bpf_count(m, offsetof(struct y_control, lost_records));
	bpf_place(&m->code, done);
	bpf_store_imm(&m->code, 4, R_STATE, used, 0);
}

/* R8: where a record of this size goes; its head is written. */
static void begin(struct bpf_make *m, u32 kind, u32 size, u32 number)
{
	const s16 used = offsetof(struct y_state, out_used);
	u32 fits = bpf_label(&m->code);

	bpf_load(&m->code, 4, R1, R_STATE, used);
	bpf_branch_imm(&m->code, BPF_JLE, R1, (s32)(Y_OUT_SIZE - size), fits);
	bpf_flush(m);
	bpf_op_imm(&m->code, BPF_MOV, R1, 0);
	bpf_place(&m->code, fits);
	bpf_state_address(m, R8, offsetof(struct y_state, out));
	bpf_op(&m->code, BPF_ADD, R8, R1);
	bpf_op_imm(&m->code, BPF_ADD, R1, (s32)size);
	bpf_store(&m->code, 4, R_STATE, used, R1);
	bpf_store_imm(&m->code, 2, R8, offsetof(struct y_record, kind), (s32)kind);
	bpf_store_imm(&m->code, 2, R8, offsetof(struct y_record, size), (s32)size);
	bpf_store_imm(&m->code, 4, R8, offsetof(struct y_record, number), (s32)number);
}

static void put_text(struct bpf_make *m, u32 at, u32 from)
{
	bpf_op(&m->code, BPF_MOV, R1, R8);
	bpf_op_imm(&m->code, BPF_ADD, R1, (s32)at);
	bpf_op_imm(&m->code, BPF_MOV, R2, (s32)sizeof(struct y_text));
	bpf_state_address(m, R3, from);
	bpf_call(&m->code, HELPER_READ_KERNEL);
}

static u32 size_of(const struct bpf_call *c, u32 slot)
{
	return sizeof(struct y_printed_value) + (c->f->slots[slot] == Y_STR ? sizeof(struct y_text) : 0);
}

static void print(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	const u32 *args = i->nargs ? &c->f->args[i->args] : NULL;
	u32 size = sizeof(struct y_record), at = size;

	for (u32 k = 0; k < i->nargs; k += 3) {
		if (c->f->slots[args[k]] == Y_STACK) {
			bpf_refuse(m, i, "printing a stack",
			        "_map long n[_stack]; and n[_stack]++ here: the map is printed at the end, or by "
			        "_print(n) in _timer or _end");
			return;
		}
		size += size_of(c, args[k]);
	}
	if (size > RECORD_MOST) {
		bpf_refuse(m, i, "too many values in one printf()", "use several");
		return;
	}
	begin(m, Y_RECORD_PRINT, size, (u32)i->imm);
	for (u32 k = 0; k < i->nargs; k += 3) {
		bool text = c->f->slots[args[k]] == Y_STR;

		for (u32 word = text; word < 3; word++) {
			bpf_load(&m->code, 8, R1, R_STATE, (s16)c->slots[args[k + word]]);
			bpf_store(&m->code, 8, R8, (s16)(at + 8 * word), R1);
		}
		if (text) {
			bpf_store_imm(&m->code, 8, R8, (s16)at, 0);
			put_text(m, at + sizeof(struct y_printed_value), c->slots[args[k]]);
		}
		at += size_of(c, args[k]);
	}
}

static void say(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 kind = i->op == Y_OP_WARN ? Y_RECORD_WARN : Y_RECORD_ERROR;

	begin(m, kind, sizeof(struct y_record) + sizeof(struct y_text), i->place);
	put_text(m, sizeof(struct y_record), c->slots[i->a]);
}

/* No handler runs after it. */
static void stop(struct bpf_make *m)
{
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_VALUE, Y_MAP_GLOBALS, offsetof(struct y_control, running));
	bpf_store_imm(&m->code, 8, R1, 0, 0);
	bpf_jump(&m->code, m->end);
}

void bpf_print(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	switch (i->op) {
	case Y_OP_PRINT:
		print(m, c, i);
		break;
	case Y_OP_PRINT_MAP:
		begin(m, Y_RECORD_MAP, sizeof(struct y_record), (u32)i->imm | (i->a == Y_HIST ? 1u << 31 : 0));
		break;
	case Y_OP_WARN:
		say(m, c, i);
		break;
	case Y_OP_ERROR:
		say(m, c, i);
		stop(m);
		break;
	default:
		begin(m, Y_RECORD_EXIT, sizeof(struct y_record), 0);
		stop(m);
	}
}
