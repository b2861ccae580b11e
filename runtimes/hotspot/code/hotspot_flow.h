/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows machine code that has no description of its frames, instruction by instruction: which registers and stack
 * slots hold values of the caller. The result is rows for native_step(). The code is HotSpot's own (stubs, adapters,
 * entries of the interpreter), made by its macro assembler. Where the state is not understood, the row has no rule.
 */
#ifndef YRT_HOTSPOT_FLOW_H
#define YRT_HOTSPOT_FLOW_H

#include <arch.h>

#include "cfi/cfi.h"
#include "error.h"

#define FLOW_REGS      16
#define FUNCTION_ALIGN 8 /* at least; of what begins with `push rbp; mov rbp, rsp` */

enum flow_kind {
	FLOW_LOST,
	FLOW_CFA,  /* the caller's stack pointer + offset */
	FLOW_BASE, /* some address + offset: where the instruction at `base` found rsp */
	FLOW_REG,  /* what register `offset` held in the caller */
	FLOW_RA,   /* the return address */
};

struct flow_value {
	u8 kind;
	u16 base; /* of FLOW_BASE: low bits of an instruction's address */
	s32 offset;
};

/* Before an instruction. */
struct flow_state {
	bool known, queued;
	u32 start;                            /* number of the function that it was reached from first */
	struct flow_value reg[FLOW_REGS];     /* DWARF numbers */
	struct flow_value ra;                 /* where the return address lies; FLOW_LOST: in a register only */
	s32 kept;                             /* where the return address was kept, from r15; 0: nowhere */
	struct flow_value cfa;                /* where the caller's stack pointer lies */
	struct flow_value saved[ARCH_NSAVED]; /* where the caller's registers lie; FLOW_LOST: nowhere */
};

/* At the entry of a function: everything is the caller's, the return address at rsp. */
struct flow_state flow_entry(void);
/* The same where the caller's stack pointer is passed to the callee in r13 (entries of the interpreter). */
struct flow_state flow_entry_r13(void);
/* In the frame of an interpreted method (frame_x86.hpp): rbp determines all. */
struct flow_state flow_framed(void);
/* Pushes what stands for the return address first: it is in a register (DWARF number), or FLOW_REGS: nowhere yet. */
struct flow_state flow_entry_unpushed(u32 reg);
/* In a frame that other code has made, of so many words: rbp points to where the caller's was saved. */
struct flow_state flow_entry_framed(u32 words);

enum flow_op {
	FLOW_OTHER,
	FLOW_PUSH,  /* src, FLOW_REGS if it is no register */
	FLOW_POP,   /* dst, likewise */
	FLOW_ADD,   /* dst += value */
	FLOW_MOVE,  /* dst = src */
	FLOW_LEA,   /* dst = src + value */
	FLOW_STORE, /* [dst + value] = src */
	FLOW_LOAD,  /* dst = [src + value] */
	FLOW_ALIGN, /* rsp &= value */
	FLOW_LEAVE,
	FLOW_UNWIND, /* rsp += some register: frames are gone */
	FLOW_CALL,   /* to target */
	FLOW_JUMP,   /* to target */
	FLOW_BRANCH, /* to target, or not */
	FLOW_END,    /* goes elsewhere */
};

struct flow_ins {
	u64 addr, target;
	s32 value;
	u16 written; /* registers, by bit */
	u8 op, dst, src;
	u8 size;
};

struct flow {
	struct flow_ins *ins;
	struct flow_state *state; /* of each */
	u32 *work;                /* still to be followed */
	u32 n, nwork, start;
	u32 ins_room, room; /* of ins; of the others */
};

/*
 * Disassembles; bytes that are no instruction (tables between functions) are left out. f: zeroed, or of other code,
 * whose memory is used again: new pages take as long as all else.
 */
struct error *flow_read(const u8 *bytes, u64 addr, size_t size, struct flow *f);
void flow_free(struct flow *f);
/* The number of the instruction at addr or the next one; f->n: none. */
u32 flow_find(const struct flow *f, u64 addr);
/* Follows the code from instruction i on, up to what is known already. */
void flow_follow(struct flow *f, u32 i, const struct flow_state *s);
/* One instruction. */
void flow_apply(const struct flow_ins *in, struct flow_state *s);
/*
 * Follows all that was not reached, as functions: first what begins as one, then what follows a jump, a return, or a
 * table.
 */
void flow_follow_rest(struct flow *f, const struct flow_state *s);
/* Rows for the instructions [from, to), as few as hold. *entries is malloc'ed. */
struct error *flow_rows(const struct flow *f, u32 from, u32 to, struct cfi_entry **entries, u32 *n);
/* The rule in a state. */
struct cfi_rule flow_rule(const struct flow_state *s);

#endif
