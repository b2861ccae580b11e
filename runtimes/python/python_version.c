/* SPDX-License-Identifier: Apache-2.0 */
#include <capstone/capstone.h>
#include <stdio.h>

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

/* Up to 3.10 only Py_GetVersion() gives it; it puts its text together from constants, of which PY_VERSION is one. */
static u32 by_code(struct image *img)
{
	struct symbol function;
	u8 code[BYTES_MAX];
	const u8 *at = code;
	size_t size = sizeof(code);
	u32 version = 0;
	csh handle;
	cs_insn *in;

	if (!symbols_lookup(img, "Py_GetVersion", &function) || !image_read(img, code, size, function.start) ||
	        cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return 0;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	in = cs_malloc(handle);
	while (in && !version && cs_disasm_iter(handle, &at, &size, &function.start, in) && in->id != X86_INS_RET)
		version = parse(img, address(in));
	if (in)
		cs_free(in, 1);
	cs_close(&handle);
	return version;
}

u32 python_version(struct image *img)
{
	struct symbol s;
	u32 version;

	if (symbols_lookup(img, "Py_Version", &s) && image_read(img, &version, sizeof(version), s.start))
		return version;
	return by_code(img);
}
