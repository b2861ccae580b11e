/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_flow_known.h"

#include <string.h>
#include <xxhash.h>

#include "code/insn.h"

#define KNOWN_BITS 12

struct known {
	u8 bytes[INSN_MAX];
	struct flow_ins ins; /* as if it were at 0, and led to 1; without a size: unused */
};

/* By a hash of the bytes. */
static struct known known[1u << KNOWN_BITS];

static struct known *known_at(const u8 *bytes, size_t size)
{
	return &known[XXH3_64bits(bytes, size) >> (64 - KNOWN_BITS)];
}

/* mov constant, register */
static bool is_constant_move(const u8 *bytes)
{
	u8 op = (bytes[0] & 0xf0) == 0x40 ? bytes[1] : bytes[0];

	return (op & 0xf8) == 0xb8;
}

static bool leads_by_constant(const struct insn *in)
{
	return in->kind == INSN_CALL || in->kind == INSN_JUMP || in->kind == INSN_JUMP_IF;
}

/* Its bytes, without what does not matter: where something lies, how far a jump leads, which constant is loaded. */
static void take_bytes(const u8 *bytes, const struct insn *in, u8 ret[INSN_MAX])
{
	memcpy(ret, bytes, in->size);
	if (in->relative)
		memset(ret + in->disp_at, 0, sizeof(s32));
	if (in->imm_at && (leads_by_constant(in) || is_constant_move(bytes)))
		memset(ret + in->imm_at, 0, in->size - in->imm_at);
}

bool flow_known_find(const u8 *bytes, size_t size, u64 addr, struct flow_ins *ret)
{
	struct insn in = insn_decode(bytes, size);
	const struct known *k;
	u8 own[INSN_MAX];

	if (in.kind == INSN_BAD)
		return false;
	take_bytes(bytes, &in, own);
	k = known_at(own, in.size);
	if (k->ins.size != in.size || memcmp(k->bytes, own, in.size))
		return false;
	*ret = k->ins;
	ret->addr = addr;
	if (ret->target)
		ret->target = addr + in.size + (u64)in.imm;
	return true;
}

void flow_known_keep(const u8 *bytes, const struct flow_ins *ins)
{
	struct insn in = insn_decode(bytes, ins->size);
	struct known *k;
	u8 own[INSN_MAX];

	if (in.kind == INSN_BAD || in.size != ins->size || (ins->target && !leads_by_constant(&in)))
		return;
	take_bytes(bytes, &in, own);
	k = known_at(own, in.size);
	memcpy(k->bytes, own, in.size);
	k->ins = *ins;
	k->ins.addr = 0;
	k->ins.target = ins->target != 0;
}
