/* SPDX-License-Identifier: Apache-2.0 */
#include <capstone/capstone.h>
#include <string.h>

#include "binary/image_calls.h"
#include "binary/image_scan.h"
#include "cfi/cfi.h"
#include "lua_image.h"
#include "lua_reference.h"
#include "lua_sweep.h"
#include "symbols/symbols.h"

struct search {
	csh handle;
	u64 start;
	u64 label;    /* the first that the function jumps to, or its first jump or call */
	u64 restores; /* where the instructions begin that restore registers, up to this one; 0: it does not */
	u32 n;
	struct lua_vm *vm;
};

static bool is_stack_pointer(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && op->reg == X86_REG_RSP;
}

static bool restores(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	switch (in->id) {
	case X86_INS_POP:
	case X86_INS_LEAVE:
	case X86_INS_VZEROUPPER:
		return true;
	case X86_INS_ADD:
	case X86_INS_LEA:
		return is_stack_pointer(&x->operands[0]);
	default:
		return false;
	}
}

static void see_label(struct search *s, const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	bool jumps = cs_insn_group(s->handle, in, CS_GRP_JUMP);

	if ((jumps || in->id == X86_INS_CALL) && in->address < s->label)
		s->label = in->address;
	if (jumps && op->type == X86_OP_IMM && (u64)op->imm > s->start && (u64)op->imm < s->label)
		s->label = (u64)op->imm;
}

static bool see(void *ctx, const cs_insn *in)
{
	struct search *s = ctx;
	u64 end = in->address + in->size - s->start;

	see_label(s, in);
	if (restores(in)) {
		s->restores = s->restores ? s->restores : in->address;
		return true;
	}
	if (in->id == X86_INS_RET && s->restores && s->n < LUA_ENDS && end <= UINT16_MAX) {
		s->vm->end[s->n].from = (u16)(s->restores - s->start);
		s->vm->end[s->n++].to = (u16)end;
	}
	s->restores = 0;
	return true;
}

/* Where luaV_execute() has its caller's registers: its begun and end. */
static void lua_ends_find(struct lua_sweep *sweep, u64 start, u64 end, struct lua_vm *ret)
{
	struct search s = {.handle = sweep->d.handle, .start = start, .label = end, .vm = ret};

	lua_sweep(sweep, start, end, see, &s);
	if (s.label - start <= UINT16_MAX)
		ret->begun = (u16)(s.label - start);
}

#define NEAR_BYTES  (512u << 10) /* all of Lua lies so near to lua_newstate() */
#define EXECUTE_MIN 3000         /* bytes of the smallest luaV_execute() by far */

/* What distinguishes luaV_execute() from other functions: it masks an opcode and jumps by a table. */
struct traits {
	u32 masks, jumps;
};

static bool see_trait(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct traits *t = ctx;

	if (in->id == X86_INS_AND && x->op_count == 2 && x->operands[1].type == X86_OP_IMM)
		t->masks += x->operands[1].imm == 0x3f || x->operands[1].imm == 0x7f;
	if (in->id == X86_INS_JMP && x->operands[0].type != X86_OP_IMM)
		t->jumps++;
	return true;
}

/* The largest function near lua_newstate(), or near another address if not 0, that dispatches opcodes. */
static const struct cfi_fde *find_by_code(struct lua_sweep *s, u64 addr)
{
	const struct cfi *cfi = s->img->cfi;
	const struct cfi_fde *best = NULL;
	struct symbol symbol;
	u64 near = symbols_lookup(s->img, "lua_newstate", &symbol) ? symbol.start : addr;

	for (u32 i = 0; cfi && i < cfi->nfdes; i++) {
		const struct cfi_fde *f = &cfi->fdes[i];
		struct traits t = {0};

		if (f->end - f->start < EXECUTE_MIN || (best && f->end - f->start <= best->end - best->start))
			continue;
		if (near && (f->start + NEAR_BYTES < near || f->start > near + NEAR_BYTES))
			continue;
		lua_sweep(s, f->start, f->end, see_trait, &t);
		if (t.masks && t.jumps)
			best = f;
	}
	return best;
}

struct parts {
	csh handle;
	const struct cfi *cfi;
	struct lua_image *image;
};

static void add_range(struct lua_image *image, u64 start, u64 end, enum lua_part part)
{
	for (u32 i = 0; i < image->nranges; i++)
		if (start >= image->ranges[i].start && start < image->ranges[i].end)
			return;
	if (image->nranges < LUA_RANGES_MAX)
		image->ranges[image->nranges++] = (struct lua_range){start, end, part};
}

/* A jump into the middle of another function, or by a condition, leads to a part that the compiler moved away. */
static bool see_part(void *ctx, const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	struct parts *p = ctx;
	const struct cfi_fde *fde;

	if (!cs_insn_group(p->handle, in, CS_GRP_JUMP) || in->detail->x86.op_count != 1 || op->type != X86_OP_IMM)
		return true;
	fde = cfi_fde_at(p->cfi, (u64)op->imm);
	if (fde && !(in->id == X86_INS_JMP && (u64)op->imm == fde->start))
		add_range(p->image, fde->start, fde->end, LUA_EXECUTE_COLD);
	return true;
}

struct caller {
	u64 callee;
	bool calls;
};

static bool see_call(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct caller *c = ctx;

	c->calls = in->id == X86_INS_CALL && x->operands[0].type == X86_OP_IMM && (u64)x->operands[0].imm == c->callee;
	return !c->calls;
}

static bool see_target(void *ctx, u64 target)
{
	struct caller *c = ctx;

	c->calls = target == c->callee;
	return !c->calls;
}

static void find_callers(struct lua_sweep *s, u64 callee, struct lua_image *ret)
{
	const struct cfi *cfi = s->img->cfi;

	for (u32 i = 0; i < cfi->nfdes; i++) {
		const struct cfi_fde *f = &cfi->fdes[i];
		struct caller c = {.callee = callee}, may = c;

		if (f->start + NEAR_BYTES < callee || f->start > callee + NEAR_BYTES)
			continue;
		image_calls(s->img, f->start, f->end, see_target, &may);
		if (may.calls)
			lua_sweep(s, f->start, f->end, see_call, &c);
		if (c.calls)
			add_range(ret, f->start, f->end, LUA_CALLS);
	}
}

/* What lua_pcallk() and its like hand to luaD_pcall() or luaD_rawrunprotected() to run: a function whose address they
 * take. */
struct handed {
	struct lua_sweep *s;
	struct lua_callees *ret;
	bool handed;
};

static bool see_handed(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	const struct cfi *cfi;
	struct handed *h = ctx;
	const struct cfi_fde *fde;
	u64 addr = 0;

	cfi = h->s->img->cfi;
	if (in->id == X86_INS_LEA && x->operands[1].mem.base == X86_REG_RIP)
		addr = in->address + in->size + (u64)x->operands[1].mem.disp;
	else if (in->id == X86_INS_MOV && x->op_count == 2 && x->operands[1].type == X86_OP_IMM)
		addr = (u64)x->operands[1].imm;
	else if (in->id == X86_INS_CALL && h->handed && x->operands[0].type == X86_OP_IMM)
		addr = (u64)x->operands[0].imm;
	fde = addr ? cfi_fde_at(cfi, addr) : NULL;
	if (!fde || fde->start != addr)
		return true;
	lua_callees_add(h->ret, addr);
	h->handed = in->id != X86_INS_CALL;
	return true;
}

/* luaD_precall() and its like, which both luaV_execute() and luaD_call() call. */
static void find_precall(struct lua_sweep *s, const struct lua_image *image, struct lua_callees *glue)
{
	struct lua_callees execute = {.n = 0}, others = {.n = 0};

	lua_callees(s, image->ranges[0].start, 1, &execute);
	for (u32 i = 0; i < image->nranges; i++)
		if (image->ranges[i].part == LUA_CALLS)
			lua_callees(s, image->ranges[i].start, 1, &others);
	for (u32 i = 0; i < others.n; i++)
		if (lua_callees_has(&execute, others.start[i]))
			lua_callees_add(glue, others.start[i]);
}

/*
 * lua_resume(), also in a file without its name: it refers to this text, or what it hands to luaD_rawrunprotected()
 * does (5.2, 5.3.0 to 5.3.3). Nothing else has that function's address.
 */
static const struct cfi_fde *find_resume(struct lua_sweep *s, u64 near)
{
	static const char text[] = "cannot resume non-suspended coroutine";
	const struct cfi_fde *fde;
	struct symbol symbol;
	u64 at;

	if (symbols_lookup(s->img, "lua_resume", &symbol))
		return cfi_fde_at(s->img->cfi, symbol.start);
	at = image_scan_find(s->img, ".rodata", text, sizeof(text));
	at = at ? lua_reference_find(s->img, at) : 0;
	fde = at ? cfi_fde_at(s->img->cfi, at) : NULL;
	at = fde ? lua_reference_find(s->img, fde->start) : 0;
	fde = at ? cfi_fde_at(s->img->cfi, at) : fde;
	return fde && fde->start - near + NEAR_BYTES <= 2 * NEAR_BYTES ? fde : NULL;
}

/* By the API, whose names stripped files keep: luaD_call(), luaD_pcall(), luaD_rawrunprotected() (of lua_resume()), and
 * what those are handed. */
static void find_glue(struct lua_sweep *s, const struct cfi_fde *resume, struct lua_image *ret)
{
	static const char *const calls[] = {"lua_callk", "lua_call"}, *const protected[] = {
	                                                                      "lua_pcallk", "lua_pcall", "lua_cpcall"};
	struct lua_callees glue = {.n = 0}, found;
	struct handed resumed = {s, &glue, false};
	struct symbol symbol;

	for (u32 i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (lua_callees_of(s, calls[i], 1, &found))
			for (u32 k = 0; k < found.n; k++)
				lua_callees_add(&glue, found.start[k]);
	for (u32 i = 0; i < sizeof(protected) / sizeof(*protected); i++) {
		struct handed h = {s, &glue, false};

		if (symbols_lookup(s->img, protected[i], &symbol))
			lua_sweep(s, symbol.start, symbol.end, see_handed, &h);
	}
	if (resume)
		lua_sweep(s, resume->start, resume->end, see_handed, &resumed);
	find_precall(s, ret, &glue);
	for (u32 i = 0; i < glue.n; i++) {
		const struct cfi_fde *fde = cfi_fde_at(s->img->cfi, glue.start[i]);

		if (fde)
			add_range(ret, fde->start, fde->end, LUA_GLUE);
	}
}

static struct error *no_execute(struct image *img, const char *release, const char *what)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "%s holds \"%s\", but %s", img->path, release, what),
	        "its Lua frames are left out; install its debug package");
}

static struct error *find_parts(struct lua_sweep *s, struct lua_image *ret)
{
	struct parts parts = {s->d.handle, s->img->cfi, ret};
	const struct cfi_fde *fde;
	struct symbol symbol;

	ret->found_by = "symbol";
	fde = symbols_lookup(s->img, "luaV_execute", &symbol) ? cfi_fde_at(s->img->cfi, symbol.start) : NULL;
	if (!fde) {
		ret->found_by = "code";
		fde = find_by_code(s, ret->near);
	}
	if (!fde)
		return ret->near || (symbols_lookup(s->img, "lua_newstate", &symbol) && symbol.start)
		               ? no_execute(s->img, ret->release, "luaV_execute() was not found in it")
		               : NULL;
	if (!lua_state_find(s, fde->start, fde->end, &ret->vm))
		return no_execute(s->img, ret->release, "its luaV_execute() keeps its lua_State in no known place");
	lua_ends_find(s, fde->start, fde->end, &ret->vm);
	add_range(ret, fde->start, fde->end, LUA_EXECUTE);
	for (u32 i = 0; i < ret->nranges; i++)
		lua_sweep(s, ret->ranges[i].start, ret->ranges[i].end, see_part, &parts);
	fde = find_resume(s, ret->ranges[0].start);
	if (fde)
		add_range(ret, fde->start, fde->end, LUA_RESUME);
	find_callers(s, ret->ranges[0].start, ret);
	find_glue(s, fde, ret);
	return NULL;
}

struct error *lua_code_find(struct image *img, struct lua_image *ret)
{
	struct lua_sweep s;
	struct error *err;

	if (lua_code_load(img, ret))
		return NULL;
	err = lua_sweep_open(img, &s);
	if (!err)
		err = find_parts(&s, ret);
	lua_sweep_close(&s);
	if (!err && ret->nranges)
		err = lua_gc_find(img, ret->ranges[0].start, &ret->gc);
	if (!err && ret->gc.n) /* with a debug file more may be found */
		lua_code_store(img, ret);
	return err;
}
