/* SPDX-License-Identifier: Apache-2.0 */
/* BPF instructions, one by one, and jumps to labels. Facts: the kernel's Documentation/bpf/standardization. */
#ifndef YRT_YLANG_BPF_CODE_H
#define YRT_YLANG_BPF_CODE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <types.h>

enum bpf_reg { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 };

struct bpf_code {
	struct bpf_insn *insns;
	u32 n;
	u32 *labels; /* instruction; UINT32_MAX: not yet known */
	u32 nlabels;
	struct bpf_fixup {
		u32 insn, label;
	} * fixups;
	u32 nfixups;
	bool no_memory;
};

void bpf_code_free(struct bpf_code *c);
void bpf_emit(struct bpf_code *c, u8 code, u8 dst, u8 src, s16 off, s32 imm);
/* dst = a op b, in 64 bits. */
void bpf_op(struct bpf_code *c, u8 op, u8 dst, u8 src);
void bpf_op_imm(struct bpf_code *c, u8 op, u8 dst, s32 imm);
void bpf_imm64(struct bpf_code *c, u8 dst, u64 value);
/* dst = a map (pseudo: BPF_PSEUDO_MAP_FD), or the address off in the value of its only entry (…_VALUE). */
void bpf_map(struct bpf_code *c, u8 dst, u8 pseudo, u32 map, u32 off);
/* size: 1, 2, 4, 8 */
void bpf_load(struct bpf_code *c, u32 size, u8 dst, u8 base, s16 off);
void bpf_store(struct bpf_code *c, u32 size, u8 base, s16 off, u8 src);
void bpf_store_imm(struct bpf_code *c, u32 size, u8 base, s16 off, s32 imm);
/* Atomically: [base + off] += src; op: also BPF_ADD | BPF_FETCH, BPF_CMPXCHG. */
void bpf_atomic(struct bpf_code *c, u32 size, u8 base, s16 off, u8 src, s32 op);
void bpf_call(struct bpf_code *c, u32 helper);
void bpf_kfunc(struct bpf_code *c, u32 kfunc);

u32 bpf_label(struct bpf_code *c);
void bpf_place(struct bpf_code *c, u32 label);
void bpf_jump(struct bpf_code *c, u32 label);
/* op: BPF_JEQ … */
void bpf_branch(struct bpf_code *c, u8 op, u8 dst, u8 src, u32 label);
void bpf_branch_imm(struct bpf_code *c, u8 op, u8 dst, s32 imm, u32 label);
/* Puts distances into jumps. False: one is too far. */
bool bpf_resolve(struct bpf_code *c);

#endif
