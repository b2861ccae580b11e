/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_sweep.h"

#include "cfi/cfi.h"
#include "symbols/symbols.h"

void lua_sweep_close(struct lua_sweep *s)
{
	disassembler_close(&s->d);
}

struct error *lua_sweep_open(struct image *img, struct lua_sweep *ret)
{
	ret->img = img;
	return disassembler_open(&ret->d) ? NULL : &error_no_memory;
}

void lua_sweep(struct lua_sweep *s, u64 start, u64 end, code_look *look, void *ctx)
{
	disassemble_file(&s->d, s->img, start, end, look, ctx);
}

bool lua_callees_has(const struct lua_callees *c, u64 start)
{
	for (u32 i = 0; i < c->n; i++)
		if (c->start[i] == start)
			return true;
	return false;
}

void lua_callees_add(struct lua_callees *c, u64 start)
{
	if (c->n < LUA_CALLEES_MAX && !lua_callees_has(c, start))
		c->start[c->n++] = start;
}

struct calls {
	struct lua_sweep *s;
	struct lua_callees *ret;
};

static bool see_callee(void *ctx, const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	const struct cfi_fde *fde;
	struct calls *c = ctx;

	if ((in->id != X86_INS_CALL && in->id != X86_INS_JMP) || op->type != X86_OP_IMM)
		return true;
	fde = cfi_fde_at(c->s->img->cfi, (u64)op->imm);
	if (fde && fde->start == (u64)op->imm)
		lua_callees_add(c->ret, fde->start);
	return true;
}

void lua_callees(struct lua_sweep *s, u64 start, u32 depth, struct lua_callees *ret)
{
	const struct cfi_fde *fde = cfi_fde_at(s->img->cfi, start);
	struct calls c = {s, ret};
	u32 first = ret->n, end;

	if (fde && fde->start == start)
		lua_sweep(s, fde->start, fde->end, see_callee, &c);
	for (end = ret->n; depth > 1 && first < end; first++)
		lua_callees(s, ret->start[first], depth - 1, ret);
}

bool lua_callees_of(struct lua_sweep *s, const char *name, u32 depth, struct lua_callees *ret)
{
	struct symbol symbol;

	ret->n = 0;
	if (!symbols_lookup(s->img, name, &symbol) || !symbol.start)
		return false;
	lua_callees(s, symbol.start, depth, ret);
	return true;
}
