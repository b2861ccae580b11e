/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "code/disassembler.h"
#include "python_image.h"
#include "symbols/symbols.h"

#define BYTES_MAX 128

/* "3.9.2", in a string of the file. */
static u32 parse(struct image *img, u64 addr)
{
	char text[16] = "";
	unsigned minor, micro;

	if (!image_read(img, text, sizeof(text) - 1, addr) || sscanf(text, "3.%2u.%3u", &minor, &micro) != 2)
		return 0;
	return 3u << 24 | (minor & 0xff) << 16 | (micro & 0xff) << 8;
}

/* An address that an instruction puts into a register. */
static u64 address(const cs_insn *in)
{
	const cs_x86_op *from = &in->detail->x86.operands[1];

	if (in->detail->x86.op_count != 2 || in->detail->x86.operands[0].type != X86_OP_REG)
		return 0;
	if (in->id == X86_INS_LEA && from->mem.base == X86_REG_RIP)
		return in->address + in->size + (u64)from->mem.disp;
	return in->id == X86_INS_MOV && from->type == X86_OP_IMM ? (u64)from->imm : 0;
}

struct search {
	struct image *img;
	u32 version;
};

static bool look(void *ctx, const cs_insn *in)
{
	struct search *s = ctx;

	s->version = parse(s->img, address(in));
	return !s->version && in->id != X86_INS_RET;
}

/* Up to 3.10 only Py_GetVersion() gives it; it puts its text together from constants, of which PY_VERSION is one. */
static u32 by_code(struct image *img)
{
	struct search s = {.img = img};
	struct symbol function;

	if (symbols_lookup(img, "Py_GetVersion", &function))
		code_each(img, function.start, function.start + BYTES_MAX, look, &s);
	return s.version;
}

u32 python_version(struct image *img)
{
	struct symbol s;
	u32 version;

	if (symbols_lookup(img, "Py_Version", &s) && image_read(img, &version, sizeof(version), s.start))
		return version;
	return by_code(img);
}
