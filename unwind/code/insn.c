/* SPDX-License-Identifier: Apache-2.0 */
#include "insn.h"

#define SP 4
#define FP 5

enum {
	REX_B = 1,
	REX_X = 2,
	REX_R = 4,
	REX_W = 8,
};

enum map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_OTHER };

struct decoder {
	const u8 *code;
	size_t size, at;
	bool cut;
	bool wide16; /* prefix 66 */
	bool addr32; /* prefix 67 */
	u8 repeat;   /* f2, f3 or 0; of VEX and EVEX what stands for them */
	u8 rex;
	bool has_rex, vector;
	u8 vector_reg; /* the register that only VEX has */
	u8 map, op, modrm;
	bool has_modrm;
	struct insn in;
};

static u8 next(struct decoder *d)
{
	if (d->at >= d->size || d->at >= INSN_MAX) {
		d->cut = true;
		return 0;
	}
	return d->code[d->at++];
}

static s64 next_number(struct decoder *d, u32 bytes)
{
	u64 value = 0;

	for (u32 i = 0; i < bytes; i++)
		value |= (u64)next(d) << 8 * i;
	return (s64)(value << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

static bool is_legacy_prefix(struct decoder *d, u8 byte)
{
	switch (byte) {
	case 0x66:
		return d->wide16 = true;
	case 0x67:
		return d->addr32 = true;
	case 0xf2:
	case 0xf3:
		d->repeat = byte;
		return true;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0xf0:
		return true;
	default:
		return false;
	}
}

static void read_vex(struct decoder *d, u8 byte)
{
	u8 a = next(d), b = a, p;

	d->vector = true;
	d->map = MAP_0F;
	d->rex = a & 0x80 ? 0 : REX_R;
	if (byte != 0xc5) {
		d->rex |= (a & 0x40 ? 0 : REX_X) | (a & 0x20 ? 0 : REX_B);
		p = a & (byte == 0x62 ? 7 : 31);
		d->map = p >= MAP_0F && p <= MAP_0F3A ? p : MAP_OTHER;
		b = next(d);
		d->rex |= b & 0x80 ? REX_W : 0;
	}
	if (byte == 0x62)
		next(d);
	p = b & 3;
	d->vector_reg = (u8)(~b >> 3 & 15);
	d->wide16 = p == 1;
	d->repeat = p == 2 ? 0xf3 : p == 3 ? 0xf2 : 0;
}

static void read_opcode(struct decoder *d)
{
	u8 byte = next(d);

	while (!d->cut && is_legacy_prefix(d, byte))
		byte = next(d);
	if ((byte & 0xf0) == 0x40) {
		d->has_rex = true;
		d->rex = byte & 15;
		byte = next(d);
	}
	if (!d->has_rex && (byte == 0xc4 || byte == 0xc5 || byte == 0x62)) {
		read_vex(d, byte);
		byte = next(d);
	} else if (byte == 0x0f) {
		byte = next(d);
		d->map = byte == 0x38 ? MAP_0F38 : byte == 0x3a ? MAP_0F3A : MAP_0F;
		if (d->map != MAP_0F)
			byte = next(d);
	}
	d->op = byte;
}

static u8 modrm_mod(const struct decoder *d)
{
	return d->modrm >> 6;
}

/* The opcode's extension, or the register without its upper bit. */
static u8 modrm_reg(const struct decoder *d)
{
	return d->modrm >> 3 & 7;
}

static void read_modrm(struct decoder *d)
{
	u8 rm, base;

	d->has_modrm = true;
	d->modrm = next(d);
	rm = d->modrm & 7;
	if (modrm_mod(d) == 3)
		return;
	base = rm == 4 ? next(d) & 7 : rm;
	if (modrm_mod(d) == 0 && base != 5)
		return;
	d->in.disp_at = (u8)d->at;
	if (modrm_mod(d) == 1) {
		d->in.disp = (s32)next_number(d, 1);
	} else {
		d->in.disp = (s32)next_number(d, 4);
		d->in.relative = modrm_mod(d) == 0 && rm == 5;
	}
}

/* Of the opcodes with one byte: in the order of bits, from 0 on. */
static bool bit(const u32 *bits, u8 op)
{
	return bits[op >> 5] >> (op & 31) & 1;
}

#define BAD  0xff /* in place of a size */
#define IMMZ 0xfe /* 4 bytes, 2 with prefix 66 */

static const u32 one_modrm[8] = {0x0f0f0f0f, 0x0f0f0f0f, 0, 0x00000a08, 0x0000ffff, 0, 0xff0f00c3, 0xc0c00000};

/* The size of the constant of an opcode with one byte. */
static u8 one_constant(const struct decoder *d)
{
	u8 op = d->op;

	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? IMMZ : (op & 7) > 5 ? BAD : 0;
	if ((op >= 0x70 && op < 0x80) || (op >= 0xb0 && op < 0xb8) || (op >= 0xe0 && op < 0xe8))
		return 1;
	if (op >= 0xb8 && op < 0xc0)
		return d->rex & REX_W ? 8 : IMMZ;
	if (op >= 0xa0 && op < 0xa4)
		return d->addr32 ? 4 : 8;
	switch (op) {
	case 0x6a:
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xa8:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xcd:
	case 0xeb:
		return 1;
	case 0xc2:
	case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0x68:
	case 0x69:
	case 0x81:
	case 0xa9:
	case 0xc7:
		return IMMZ;
	case 0xe8:
	case 0xe9:
		return d->wide16 ? BAD : 4;
	case 0xf6:
		return modrm_reg(d) < 2 ? 1 : 0;
	case 0xf7:
		return modrm_reg(d) < 2 ? IMMZ : 0;
	case 0x60:
	case 0x61:
	case 0x62:
	case 0x82:
	case 0x9a:
	case 0xc4:
	case 0xc5:
	case 0xce:
	case 0xd4:
	case 0xd5:
	case 0xd6:
	case 0xea:
		return BAD;
	default:
		return 0;
	}
}

static const u32 two_no_modrm[8] = {0x00004b60, 0x00ff0000, 0, 0x00800000, 0x0000ffff, 0x00000707, 0x0000ff00, 0};

/* The same of those behind 0f. */
static u8 two_constant(const struct decoder *d)
{
	u8 op = d->op;

	if (op >= 0x80 && op < 0x90)
		return d->vector ? 0 : d->wide16 ? BAD : 4;
	switch (op) {
	case 0x0f:
	case 0x70:
	case 0x71:
	case 0x72:
	case 0x73:
	case 0xa4:
	case 0xac:
	case 0xba:
	case 0xc2:
	case 0xc4:
	case 0xc5:
	case 0xc6:
		return 1;
	case 0x04:
	case 0x0a:
	case 0x0c:
		return BAD;
	default:
		return 0;
	}
}

static bool needs_modrm(const struct decoder *d)
{
	if (d->map == MAP_ONE)
		return bit(one_modrm, d->op);
	if (d->map == MAP_0F)
		return d->vector ? d->op != 0x77 : !bit(two_no_modrm, d->op);
	return true;
}

static void read_operands(struct decoder *d)
{
	u8 size;

	if (needs_modrm(d))
		read_modrm(d);
	size = d->map == MAP_ONE ? one_constant(d) : d->map == MAP_0F ? two_constant(d) : d->map == MAP_0F3A;
	if (size == BAD)
		d->cut = true;
	if (d->cut || !size)
		return;
	d->in.imm_at = (u8)d->at;
	d->in.imm = next_number(d, size == IMMZ ? d->wide16 && !(d->rex & REX_W) ? 2 : 4 : size);
}

static void writes(struct decoder *d, u8 reg)
{
	d->in.writes_fp |= reg == FP;
	d->in.writes_sp |= reg == SP;
}

static void writes_reg(struct decoder *d)
{
	writes(d, modrm_reg(d) | (d->rex & REX_R ? 8 : 0));
}

static void writes_rm(struct decoder *d)
{
	if (modrm_mod(d) == 3)
		writes(d, (d->modrm & 7) | (d->rex & REX_B ? 8 : 0));
}

/* The register that the opcode has in itself. */
static void writes_own(struct decoder *d)
{
	writes(d, (d->op & 7) | (d->rex & REX_B ? 8 : 0));
}

static bool is_move(const struct decoder *d)
{
	return (d->rex & (REX_W | REX_R | REX_B)) == REX_W &&
	       ((d->op == 0x89 && d->modrm == 0xe5) || (d->op == 0x8b && d->modrm == 0xec));
}

static enum insn_kind one_group(struct decoder *d)
{
	u8 reg = modrm_reg(d);

	if (d->op == 0xff && (reg == 2 || reg == 3))
		return INSN_CALL_INDIRECT;
	if (d->op == 0xff && (reg == 4 || reg == 5))
		return INSN_JUMP_INDIRECT;
	if (d->op == 0xff && reg == 6)
		return INSN_PUSH;
	if ((d->op == 0xff || d->op == 0xfe) && reg < 2)
		writes_rm(d);
	if ((d->op == 0xf6 || d->op == 0xf7) && (reg == 2 || reg == 3))
		writes_rm(d);
	if (d->op >= 0x80 && d->op < 0x84 && reg == 7)
		d->in.compares = modrm_mod(d) == 3;
	else if (d->op >= 0x80 && d->op < 0x84)
		writes_rm(d);
	return INSN_OTHER;
}

static enum insn_kind one_arithmetic(struct decoder *d)
{
	bool compare = d->op >= 0x38;

	if ((d->op & 7) < 2 && !compare)
		writes_rm(d);
	else if ((d->op & 7) < 4 && !compare)
		writes_reg(d);
	d->in.compares = compare && (d->op & 7) > 3;
	return INSN_OTHER;
}

/* One-byte opcodes that write to the operand that ModRM names. False: this is not one of them. */
static bool one_writes(struct decoder *d)
{
	switch (d->op) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8a:
	case 0x8b:
	case 0x8d:
		writes_reg(d);
		return true;
	case 0x86:
	case 0x87:
		writes_reg(d);
		writes_rm(d);
		return true;
	case 0x88:
	case 0x89:
	case 0x8c:
	case 0x8f:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		writes_rm(d);
		return true;
	default:
		return false;
	}
}

/* What is left: mostly where code goes on. */
static enum insn_kind one_flow(struct decoder *d)
{
	switch (d->op) {
	case 0x68:
	case 0x6a:
	case 0x9c:
		return INSN_PUSH;
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcf:
		return INSN_RETURN;
	case 0xc8:
		d->in.writes_fp = true;
		return INSN_OTHER;
	case 0xc9:
		return INSN_POP_FP;
	case 0xcc:
	case 0xf1:
	case 0xf4:
		return INSN_TRAP;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
		return INSN_JUMP_IF;
	case 0xe8:
		return INSN_CALL;
	case 0xe9:
	case 0xeb:
		return INSN_JUMP;
	default:
		return one_group(d);
	}
}

static enum insn_kind one_kind(struct decoder *d)
{
	u8 op = d->op;

	if (op < 0x40)
		return one_arithmetic(d);
	if (op >= 0x50 && op < 0x58)
		return op == 0x50 + FP && !(d->rex & REX_B) ? INSN_PUSH_FP : INSN_PUSH;
	if (op == 0x58 + FP && !(d->rex & REX_B))
		return INSN_POP_FP;
	if (op == 0x58 + SP && !(d->rex & REX_B))
		d->in.writes_sp = true;
	if (op >= 0x70 && op < 0x80)
		return INSN_JUMP_IF;
	if ((op > 0x90 && op < 0x98) || (op >= 0xb0 && op < 0xc0)) {
		writes_own(d);
		return INSN_OTHER;
	}
	if (is_move(d))
		return INSN_SET_FP;
	return one_writes(d) ? INSN_OTHER : one_flow(d);
}

static enum insn_kind two_kind(struct decoder *d)
{
	u8 op = d->op;

	if (op >= 0x80 && op < 0x90 && !d->vector)
		return INSN_JUMP_IF;
	if (!d->vector && (op == 0x0b || op == 0xb9 || op == 0xff))
		return INSN_TRAP;
	if (op == 0x2c || op == 0x2d || op == 0x50 || op == 0xc5 || op == 0xd7 || op == 0x78 || op == 0x79 ||
	        op == 0x93)
		writes_reg(d);
	if (op == 0x7e && d->repeat != 0xf3)
		writes_rm(d);
	if (d->vector)
		return INSN_OTHER;
	if (op >= 0xc8 && op < 0xd0)
		writes_own(d);
	else if ((op >= 0x40 && op < 0x50) || op == 0xaf || (op >= 0xb2 && op <= 0xb8) || (op >= 0xbc && op < 0xc0) ||
	         op == 0x02 || op == 0x03)
		writes_reg(d);
	if ((op >= 0x90 && op < 0xa0) || (op >= 0xa3 && op <= 0xae && op != 0xa8 && op != 0xa9 && op != 0xaa) ||
	        op == 0xb0 || op == 0xb1 || op == 0xb3 || op == 0xba || op == 0xbb || op == 0xc0 || op == 0xc1 ||
	        op == 0xc7 || op == 0x00 || op == 0x01 || op == 0x20 || op == 0x21 || op == 0x1e)
		writes_rm(d);
	if (op == 0xc0 || op == 0xc1)
		writes_reg(d);
	return INSN_OTHER;
}

/* Few of these write general registers. */
static enum insn_kind other_kind(struct decoder *d)
{
	bool any = d->map == MAP_0F38 ? d->op >= 0xf0
	                              : d->map == MAP_OTHER || (d->op >= 0x14 && d->op < 0x18) || d->op >= 0xf0;

	if (any) {
		writes_reg(d);
		writes_rm(d);
		if (d->vector)
			writes(d, d->vector_reg);
	}
	return INSN_OTHER;
}

struct insn insn_decode(const u8 *code, size_t size)
{
	struct decoder d = {.code = code, .size = size};

	read_opcode(&d);
	read_operands(&d);
	if (d.cut)
		return (struct insn){.kind = INSN_BAD};
	d.in.size = (u8)d.at;
	d.in.kind = (u8)(d.map == MAP_ONE ? one_kind(&d) : d.map == MAP_0F ? two_kind(&d) : other_kind(&d));
	return d.in;
}
