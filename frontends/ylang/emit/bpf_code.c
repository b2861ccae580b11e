/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf_code.h"

#include <stdlib.h>

#include "unwind/grow.h"

void bpf_code_free(struct bpf_code *c)
{
	free(c->insns);
	free(c->labels);
	free(c->fixups);
	*c = (struct bpf_code){0};
}

void bpf_emit(struct bpf_code *c, u8 code, u8 dst, u8 src, s16 off, s32 imm)
{
	c->no_memory = c->no_memory || grow(&c->insns, c->n, sizeof(*c->insns)) != NULL;
	if (!c->no_memory)
		c->insns[c->n++] = (struct bpf_insn){
		        .code = code, .dst_reg = dst & 15, .src_reg = src & 15, .off = off, .imm = imm};
}

void bpf_op(struct bpf_code *c, u8 op, u8 dst, u8 src)
{
	bpf_emit(c, BPF_ALU64 | op | BPF_X, dst, src, 0, 0);
}

void bpf_op_imm(struct bpf_code *c, u8 op, u8 dst, s32 imm)
{
	bpf_emit(c, BPF_ALU64 | op | BPF_K, dst, 0, 0, imm);
}

void bpf_imm64(struct bpf_code *c, u8 dst, u64 value)
{
	if ((s64)value == (s32)value) {
		bpf_op_imm(c, BPF_MOV, dst, (s32)value);
		return;
	}
	bpf_emit(c, BPF_LD | BPF_IMM | BPF_DW, dst, 0, 0, (s32)value);
	bpf_emit(c, 0, 0, 0, 0, (s32)(value >> 32));
}

void bpf_map(struct bpf_code *c, u8 dst, u8 pseudo, u32 map, u32 off)
{
	bpf_emit(c, BPF_LD | BPF_IMM | BPF_DW, dst, pseudo, 0, (s32)map);
	bpf_emit(c, 0, 0, 0, 0, (s32)off);
}

static u8 width(u32 size)
{
	return size == 1 ? BPF_B : size == 2 ? BPF_H : size == 4 ? BPF_W : BPF_DW;
}

void bpf_load(struct bpf_code *c, u32 size, u8 dst, u8 base, s16 off)
{
	bpf_emit(c, BPF_LDX | BPF_MEM | width(size), dst, base, off, 0);
}

void bpf_store(struct bpf_code *c, u32 size, u8 base, s16 off, u8 src)
{
	bpf_emit(c, BPF_STX | BPF_MEM | width(size), base, src, off, 0);
}

void bpf_store_imm(struct bpf_code *c, u32 size, u8 base, s16 off, s32 imm)
{
	bpf_emit(c, BPF_ST | BPF_MEM | width(size), base, 0, off, imm);
}

void bpf_atomic(struct bpf_code *c, u32 size, u8 base, s16 off, u8 src, s32 op)
{
	bpf_emit(c, BPF_STX | BPF_ATOMIC | width(size), base, src, off, op);
}

void bpf_call(struct bpf_code *c, u32 helper)
{
	bpf_emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, (s32)helper);
}

void bpf_kfunc(struct bpf_code *c, u32 kfunc)
{
	bpf_emit(c, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, (s32)kfunc);
}

u32 bpf_label(struct bpf_code *c)
{
	c->no_memory = c->no_memory || grow(&c->labels, c->nlabels, sizeof(*c->labels)) != NULL;
	if (c->no_memory)
		return 0;
	c->labels[c->nlabels] = UINT32_MAX;
	return c->nlabels++;
}

void bpf_place(struct bpf_code *c, u32 label)
{
	if (!c->no_memory)
		c->labels[label] = c->n;
}

static void fix_later(struct bpf_code *c, u32 label)
{
	c->no_memory = c->no_memory || grow(&c->fixups, c->nfixups, sizeof(*c->fixups)) != NULL;
	if (!c->no_memory)
		c->fixups[c->nfixups++] = (struct bpf_fixup){c->n, label};
}

void bpf_jump(struct bpf_code *c, u32 label)
{
	fix_later(c, label);
	bpf_emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

void bpf_branch(struct bpf_code *c, u8 op, u8 dst, u8 src, u32 label)
{
	fix_later(c, label);
	bpf_emit(c, BPF_JMP | op | BPF_X, dst, src, 0, 0);
}

void bpf_branch_imm(struct bpf_code *c, u8 op, u8 dst, s32 imm, u32 label)
{
	fix_later(c, label);
	bpf_emit(c, BPF_JMP | op | BPF_K, dst, 0, 0, imm);
}

/* What an instruction leads to: the next one, and where it jumps. */
static void follow(const struct bpf_code *c, const u32 *jumps, u32 at, u8 *reached, u32 *todo, u32 *n)
{
	const struct bpf_insn *i = &c->insns[at];
	bool is_jump = BPF_CLASS(i->code) == BPF_JMP && BPF_OP(i->code) != BPF_CALL && BPF_OP(i->code) != BPF_EXIT;
	u32 wide = i->code == (BPF_LD | BPF_IMM | BPF_DW), next[2] = {UINT32_MAX, UINT32_MAX};

	if (wide)
		reached[at + 1] = 1;
	if (i->code != (BPF_JMP | BPF_EXIT) && i->code != (BPF_JMP | BPF_JA))
		next[0] = at + 1 + wide;
	if (is_jump)
		next[1] = c->labels[jumps[at]];
	for (u32 k = 0; k < 2; k++)
		if (next[k] < c->n && !reached[next[k]]) {
			reached[next[k]] = 1;
			todo[(*n)++] = next[k];
		}
}

/* The verifier refuses code that nothing leads to. */
static bool drop_unreached(struct bpf_code *c)
{
	u8 *reached = calloc(c->n + 1, 1);
	u32 *todo = calloc(3 * (size_t)c->n + 3, sizeof(*todo)), *jumps = todo + c->n + 1, *places = jumps + c->n + 1;
	u32 n = 0, kept = 0, fixups = 0;

	if (!reached || !todo) {
		free(reached);
		free(todo);
		return false;
	}
	for (u32 i = 0; i < c->nfixups; i++)
		jumps[c->fixups[i].insn] = c->fixups[i].label;
	reached[0] = 1;
	todo[n++] = 0;
	while (n) {
		u32 at = todo[--n];

		follow(c, jumps, at, reached, todo, &n);
	}
	for (u32 i = 0; i < c->n; i++) {
		places[i] = kept;
		if (reached[i])
			c->insns[kept++] = c->insns[i];
	}
	for (u32 i = 0; i < c->nfixups; i++)
		if (reached[c->fixups[i].insn])
			c->fixups[fixups++] = (struct bpf_fixup){places[c->fixups[i].insn], c->fixups[i].label};
	for (u32 i = 0; i < c->nlabels; i++)
		if (c->labels[i] < c->n)
			c->labels[i] = places[c->labels[i]];
	c->n = kept;
	c->nfixups = fixups;
	free(reached);
	free(todo);
	return true;
}

bool bpf_resolve(struct bpf_code *c)
{
	if (!drop_unreached(c))
		c->no_memory = true;
	for (u32 i = 0; i < c->nfixups; i++) {
		s64 distance = (s64)c->labels[c->fixups[i].label] - (s64)c->fixups[i].insn - 1;

		if (distance != (s16)distance)
			return false;
		c->insns[c->fixups[i].insn].off = (s16)distance;
	}
	return true;
}
