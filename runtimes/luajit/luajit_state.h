/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of LuaJIT's VM at an instruction of its code, and how an instruction changes it: vm_x64.dasc and
 * vm_x86.dasc.
 */
#ifndef YRT_LUAJIT_STATE_H
#define YRT_LUAJIT_STATE_H

#include "cfi/cfi.h"
#include "luajit_code.h"
#include "luajit_layout.h"

#define LUAJIT_CFA 80 /* from rsp, nearly everywhere in the VM */

enum { SLOT_RBX, SLOT_RBP, SLOT_R12, SLOT_R13, SLOT_R14, SLOT_R15 };

/* What holds before an instruction. */
struct luajit_state {
	bool known;
	bool flipped; /* LEAVE, if the next branch is not taken */
	u8 part;      /* enum luajit_part */
	u8 cfa_reg;
	s16 cfa;               /* CFA - cfa_reg */
	s16 sp;                /* CFA - rsp, if cfa_reg is rbp */
	s16 slot[ARCH_NSAVED]; /* from the CFA; 0: not saved */
};

extern const struct luajit_state luajit_state_standard; /* in the VM's frame */
extern const struct luajit_state luajit_state_entry;    /* of a function that C calls */

/* Is the link of the frame at rdx loaded into rbx, or stored? */
bool luajit_is_link_at(const struct luajit_layout *layout, const struct code_ins *in);
/* Makes of the state before an instruction the one after it. */
void luajit_state_apply(const struct luajit_layout *layout, const struct code_ins *in, struct luajit_state *s);
struct cfi_rule luajit_state_rule(const struct luajit_state *s);

#endif
