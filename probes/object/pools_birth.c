/* SPDX-License-Identifier: Apache-2.0 */
#include "pools_birth.h"

#include <capstone.h>
#include <stdlib.h>

#include "probes/uprobe_cost.h"
#include "unwind/code/capstone_group.h"
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
static bool keeps_rax(csh cs, const cs_insn *insn)
{
	cs_regs read, write;
	u8 nread, nwrite;

	if (cs_regs_access(cs, insn, read, &nread, write, &nwrite))
		return false;
	for (u8 i = 0; i < nwrite; i++)
		if (write[i] == X86_REG_RAX || write[i] == X86_REG_EAX || write[i] == X86_REG_AX ||
		        write[i] == X86_REG_AL)
			return false;
	return true;
}

static enum state next(csh cs, const cs_insn *insn, enum state state)
{
	if (capstone_in_group(insn, CS_GRP_CALL))
		return CALLED;
	if (capstone_in_group(insn, CS_GRP_JUMP) || capstone_in_group(insn, CS_GRP_RET))
		return BEFORE;
	if (state == CALLED && tests_rax(insn))
		return TESTED;
	return keeps_rax(cs, insn) ? state : BEFORE;
}

static bool search(csh cs, cs_insn *insn, const u8 *code, size_t size, u64 addr, u64 *ret)
{
	size_t left = size - UPROBE_CODE;
	enum state state = BEFORE;
	const u8 *at = code;

	while (left) {
		if (state == TESTED && uprobe_is_emulated(at)) {
			*ret = addr;
			return true;
		}
		if (!cs_disasm_iter(cs, &at, &left, &addr, insn))
			return false;
		state = next(cs, insn, state);
	}
	return false;
}

bool pools_birth(struct image *img, u64 start, u64 end, u64 *ret)
{
	size_t n = end - start > CODE_MOST ? CODE_MOST : end - start;
	cleanup(free) u8 *code = calloc(1, n + UPROBE_CODE);
	cs_insn *insn;
	bool found;
	csh cs;

	if (!code || end <= start || !image_read(img, code, n, start) || cs_open(CS_ARCH_X86, CS_MODE_64, &cs))
		return false;
	cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(cs);
	found = insn && search(cs, insn, code, n + UPROBE_CODE, start, ret);
	if (insn)
		cs_free(insn, 1);
	cs_close(&cs);
	return found;
}
