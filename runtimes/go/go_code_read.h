/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction by instruction through a function. */
#ifndef YRT_GO_CODE_READ_H
#define YRT_GO_CODE_READ_H

#include "code/disassembler.h"
#include "go_code.h"

#define GO_CODE_MAX 2048 /* bytes of a function that are looked at */

struct go_code {
	struct disassembler d;
	const u8 *next;
	size_t left;
	u64 addr;
	u8 bytes[GO_CODE_MAX];
};

bool go_code_start(struct go_code *code, struct go_table *t, const struct go_function *fn);
/* Valid until the next call. NULL: the end, or no instruction. */
const cs_insn *go_code_next(struct go_code *code);
/* mov of memory to a register (x86_reg) */
bool go_is_load(const cs_insn *in, u32 to);

#endif
