/* SPDX-License-Identifier: Apache-2.0 */
#include "pools_birth.h"

#include <stdlib.h>

#include "probes/uprobe_cost.h"
#include "unwind/code/capstone_group.h"
#include "unwind/code/disassembler.h"
#include "unwind/cleanup.h"

#define CODE_MOST 2048

enum state { BEFORE, CALLED, TESTED };

static bool tests_rax(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	return insn->id == X86_INS_TEST && x->op_count == 2 && x->operands[0].type == X86_OP_REG &&
	       x->operands[1].type == X86_OP_REG && x->operands[0].reg == X86_REG_RAX &&
	       x->operands[1].reg == X86_REG_RAX;
}

/* Does it leave rax as the call left it? */
static bool keeps_rax(const struct disassembler *d)
{
	cs_regs read, write;
	u8 nread, nwrite;

	if (cs_regs_access(d->handle, d->in, read, &nread, write, &nwrite))
		return false;
	for (u8 i = 0; i < nwrite; i++)
		if (write[i] == X86_REG_RAX || write[i] == X86_REG_EAX || write[i] == X86_REG_AX ||
		        write[i] == X86_REG_AL)
			return false;
	return true;
}

static enum state next(const struct disassembler *d, enum state state)
{
	if (capstone_in_group(d->in, CS_GRP_CALL))
		return CALLED;
	if (capstone_in_group(d->in, CS_GRP_JUMP) || capstone_in_group(d->in, CS_GRP_RET))
		return BEFORE;
	if (state == CALLED && tests_rax(d->in))
		return TESTED;
	return keeps_rax(d) ? state : BEFORE;
}

static bool search(struct disassembler *d, const u8 *code, size_t size, u64 addr, u64 *ret)
{
	size_t left = size - UPROBE_CODE;
	enum state state = BEFORE;
	const u8 *at = code;

	while (left) {
		if (state == TESTED && uprobe_is_emulated(at)) {
			*ret = addr;
			return true;
		}
		if (!cs_disasm_iter(d->handle, &at, &left, &addr, d->in))
			return false;
		state = next(d, state);
	}
	return false;
}

bool pools_birth(struct image *img, u64 start, u64 end, u64 *ret)
{
	size_t n = end - start > CODE_MOST ? CODE_MOST : end - start;
	cleanup(free) u8 *code = calloc(1, n + UPROBE_CODE);
	struct disassembler d;
	bool found;

	if (!code || end <= start || !image_read(img, code, n, start) || !disassembler_open(&d))
		return false;
	found = search(&d, code, n + UPROBE_CODE, start, ret);
	disassembler_close(&d);
	return found;
}
