/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_facts.h"

#include <capstone/capstone.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <types.h>

#include "cleanup.h"
#include "code/disassembler.h"
#include "error.h"
#include "symbols/symbols.h"

/* Machine code reduced to its memory operands, which show where members of structures are. */

/* An instruction's operand in memory, or (base X86_REG_INVALID) a constant that is added to reg. */
struct luajit_access {
	s64 disp, imm;
	u16 ins;         /* x86_insn */
	u16 base, index; /* x86_reg */
	u16 reg;         /* the other operand; X86_REG_INVALID: none */
	u8 size;
	bool store, has_imm;
};

static u16 wide(u16 reg)
{
	static const u16 pairs[][2] = {{X86_REG_EAX, X86_REG_RAX}, {X86_REG_EBX, X86_REG_RBX},
	        {X86_REG_ECX, X86_REG_RCX}, {X86_REG_EDX, X86_REG_RDX}, {X86_REG_ESI, X86_REG_RSI},
	        {X86_REG_EDI, X86_REG_RDI}, {X86_REG_EBP, X86_REG_RBP}, {X86_REG_ESP, X86_REG_RSP},
	        {X86_REG_R8D, X86_REG_R8}, {X86_REG_R9D, X86_REG_R9}, {X86_REG_R10D, X86_REG_R10},
	        {X86_REG_R11D, X86_REG_R11}, {X86_REG_R12D, X86_REG_R12}, {X86_REG_R13D, X86_REG_R13},
	        {X86_REG_R14D, X86_REG_R14}, {X86_REG_R15D, X86_REG_R15}};

	for (u32 i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		if (pairs[i][0] == reg)
			return pairs[i][1];
	return reg;
}

static bool reduce(const cs_insn *in, struct luajit_access *ret)
{
	const cs_x86 *x = &in->detail->x86;
	bool found = false;

	*ret = (struct luajit_access){.ins = in->id};
	for (u32 i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];

		if (op->type == X86_OP_MEM) {
			ret->base = wide(op->mem.base);
			ret->index = op->mem.index;
			ret->disp = op->mem.disp;
			ret->size = op->size;
			ret->store = i == 0;
			found = true;
		} else if (op->type == X86_OP_REG) {
			ret->reg = wide(op->reg);
		} else if (op->type == X86_OP_IMM) {
			ret->imm = op->size == sizeof(s32) ? (s32)op->imm : op->imm;
			ret->has_imm = true;
		}
	}
	return found || (in->id == X86_INS_ADD && ret->has_imm);
}

struct accesses {
	struct luajit_access *all;
	u32 n;
};

static bool keep(void *ctx, const cs_insn *in)
{
	struct accesses *a = ctx;

	a->n += reduce(in, &a->all[a->n]);
	return true;
}

/* Disassembles bytes, up to the first one that is no instruction. ret: n of them; free() it, also after an error. */
static struct error *luajit_accesses_read(const u8 *bytes, size_t size, u64 addr, struct luajit_access **ret, u32 *n)
{
	struct accesses a = {.all = calloc(size + 1, sizeof(*a.all))};
	struct disassembler d;

	*ret = a.all;
	*n = 0;
	if (!a.all || !disassembler_open(&d))
		return &error_no_memory;
	disassemble(&d, bytes, size, addr, keep, &a);
	disassembler_close(&d);
	*n = a.n;
	return NULL;
}

#define VM_MAX       (256u << 10)
#define FUNCTION_MAX 512 /* bytes of an exported function that are looked at */
#define NEAR         16  /* accesses from the load of glref to where the dispatch table's address is made of it */
#define STATES       9   /* vmstates that the VM stores are ~0 to ~8 */

/* r14 = L->glref, then r14 += the distance, not always right behind. */
static void find_dispatch(struct luajit_facts *f)
{
	for (u32 i = 0; i < f->nvm; i++) {
		const struct luajit_access *a = &f->vm[i];

		if (a->ins != X86_INS_MOV || a->base != X86_REG_RBP || a->reg != X86_REG_R14 || a->store)
			continue;
		for (u32 k = i + 1; k < f->nvm && k < i + NEAR; k++) {
			const struct luajit_access *add = &f->vm[k];

			if (add->ins != X86_INS_ADD || add->base || add->reg != X86_REG_R14)
				continue;
			f->glref = (struct layout_member){a->disp, a->size};
			f->g2disp = add->imm;
			return;
		}
	}
}

/* J->trace, then an element of it, in bytecodes that go on as machine code: BC_JLOOP takes its mcode next. */
static const struct luajit_access *after_trace(const struct luajit_facts *f, const struct luajit_access *a)
{
	const struct luajit_access *end = f->vm + f->nvm;

	if (a->ins != X86_INS_MOV || a->base != X86_REG_R14 || a->index || a->store || a + 2 >= end)
		return NULL;
	if (a[1].ins != X86_INS_MOV || a[1].base != a->reg || !a[1].index || a[1].disp || a[1].store)
		return NULL;
	return a[2].base == a[1].reg && !a[2].index && !a[2].store && a[2].size == 8 ? &a[2] : NULL;
}

static void find_trace(struct luajit_facts *f)
{
	for (u32 i = 0; i < f->nvm && !f->trace; i++)
		if (after_trace(f, &f->vm[i]))
			f->trace = f->vm[i].disp;
}

struct error *luajit_facts_read(struct image *img, u64 start, u64 end, struct luajit_facts *ret)
{
	struct luajit_facts f = {.img = img};
	size_t size = end - start < VM_MAX ? end - start : VM_MAX;
	cleanup(free) u8 *bytes = malloc(size);
	struct error *err;

	*ret = f;
	if (!bytes)
		return &error_no_memory;
	if (!image_read(img, bytes, size, start))
		return error_new(ERROR_INPUT, "%s: the code of LuaJIT's VM at 0x%lx is not in it", img->path, start);
	err = luajit_accesses_read(bytes, size, start, &f.vm, &f.nvm);
	if (err) {
		luajit_facts_free(&f);
		return err;
	}
	find_dispatch(&f);
	find_trace(&f);
	*ret = f;
	return NULL;
}

void luajit_facts_free(struct luajit_facts *facts)
{
	free(facts->vm);
	facts->vm = NULL;
	facts->nvm = 0;
}

/* A search for instructions: what is 0 may be anything; but disp always counts. */
struct wanted {
	u16 ins, base, reg;
	s64 disp;
	u8 size;
	int store;    /* 1: store, -1: load, 0: either */
	bool any_reg; /* the other operand is a register */
	bool imm;     /* it is a constant between imm_min and imm_max */
	s64 imm_min, imm_max;
};

static bool matches(const struct luajit_access *a, const struct wanted *w)
{
	return (!w->ins || a->ins == w->ins) && a->base && (!w->base || a->base == w->base) && !a->index &&
	       (!w->reg || a->reg == w->reg) && (!w->any_reg || a->reg) && a->disp == w->disp &&
	       (!w->size || a->size == w->size) && (!w->store || a->store == (w->store > 0)) &&
	       (!w->imm || (a->has_imm && a->imm >= w->imm_min && a->imm <= w->imm_max));
}

static const struct luajit_access *find(const struct luajit_facts *f, const struct wanted *w)
{
	for (u32 i = 0; i < f->nvm; i++)
		if (matches(&f->vm[i], w))
			return &f->vm[i];
	return NULL;
}

static enum luajit_verdict verdict(bool agrees)
{
	return agrees ? LUAJIT_AGREES : LUAJIT_CONTRADICTS;
}

static enum luajit_verdict ask(const struct luajit_facts *f, struct wanted w)
{
	return verdict(find(f, &w));
}

/* A member of global_State, as the VM addresses it. */
static s64 of_g(const struct luajit_facts *f, struct layout_member m)
{
	return (s64)m.at - f->g2disp;
}

/* An exported function. Free *ret with free(). False: it is not there, or has no memory operands. */
static bool read_function(const struct luajit_facts *f, const char *name, struct luajit_access **ret, u32 *n)
{
	u8 bytes[FUNCTION_MAX];
	struct symbol s;
	struct error *err;
	size_t size;

	if (!symbols_lookup(f->img, name, &s) || s.end <= s.start)
		return false;
	size = s.end - s.start < FUNCTION_MAX ? s.end - s.start : FUNCTION_MAX;
	if (!image_read(f->img, bytes, size, s.start))
		return false;
	err = luajit_accesses_read(bytes, size, s.start, ret, n);
	if (!err && *n)
		return true;
	error_free(err);
	free(*ret);
	return false;
}

/* Exported functions that must use a member of their first argument, or of what they load from it. */
static enum luajit_verdict ask_function(const struct luajit_facts *f, const char *name, struct layout_member m)
{
	enum luajit_verdict answer = LUAJIT_CONTRADICTS;
	struct luajit_access *accesses;
	u32 n;

	if (!read_function(f, name, &accesses, &n))
		return LUAJIT_SILENT;
	for (u32 i = 0; i < n; i++)
		if (accesses[i].base && accesses[i].disp == m.at && accesses[i].size == m.size)
			answer = LUAJIT_AGREES;
	free(accesses);
	return answer;
}

/* lua_gettop() takes the base from the top. */
static enum luajit_verdict ask_gettop(const struct luajit_facts *f, const struct luajit_layout *l)
{
	struct luajit_access *accesses = NULL;
	const struct luajit_access *found[2];
	u32 n, nfound = 0;

	if (!read_function(f, "lua_gettop", &accesses, &n))
		return LUAJIT_SILENT;
	for (u32 i = 0; i < n && nfound < 2; i++)
		if (accesses[i].base && accesses[i].base != X86_REG_RSP && accesses[i].base != X86_REG_RBP)
			found[nfound++] = &accesses[i];
	if (nfound == 2 && (found[0]->disp != l->l_top.at || found[1]->disp != l->l_base.at))
		nfound = 3;
	free(accesses);
	return nfound < 2 ? LUAJIT_SILENT : verdict(nfound == 2);
}

/* gc.total is loaded and compared with the threshold right behind. */
static bool is_gc_check(const struct luajit_facts *f, s64 disp, u8 size)
{
	for (u32 i = 0; i + 1 < f->nvm; i++) {
		const struct luajit_access *a = &f->vm[i];

		if (a->ins == X86_INS_MOV && a->base == X86_REG_R14 && !a->store && a->disp == disp &&
		        a->size == size && a[1].ins == X86_INS_CMP && a[1].base == X86_REG_R14 && a[1].reg == a->reg)
			return true;
	}
	return false;
}

/* Calls from C load the old base, then the top, to count arguments. */
static bool is_base(const struct luajit_facts *f, const struct luajit_layout *l)
{
	const u8 size = l->l_glref.size;
	const struct wanted base = {.ins = X86_INS_MOV,
	                            .base = X86_REG_RBP,
	                            .reg = X86_REG_RDX,
	                            .disp = l->l_base.at,
	                            .size = size,
	                            .store = -1},
	                    top = {.ins = X86_INS_MOV,
	                            .base = X86_REG_RBP,
	                            .any_reg = true,
	                            .disp = l->l_top.at,
	                            .size = size,
	                            .store = -1};

	for (u32 i = 0; i + 1 < f->nvm; i++)
		if (matches(&f->vm[i], &base) && matches(&f->vm[i + 1], &top))
			return true;
	return false;
}

/* vm_cpcall computes L->stack - L->top. */
static bool is_stack_depth(const struct luajit_facts *f, const struct luajit_layout *l, bool of_top)
{
	for (u32 i = 0; i + 1 < f->nvm; i++) {
		const struct luajit_access *a = &f->vm[i];

		if (a->ins == X86_INS_MOV && a->base == X86_REG_RBP && a->reg == X86_REG_R15 && !a->store &&
		        a[1].ins == X86_INS_SUB && a[1].base == X86_REG_RBP && a[1].reg == X86_REG_R15 &&
		        (of_top ? a[1].disp == l->l_top.at : a->disp == l->l_stack.at))
			return true;
	}
	return false;
}

/* Calls load a function's bytecode, then its first instruction. */
static bool is_bytecode(const struct luajit_facts *f, const struct layout_member *pc, u8 size)
{
	const struct wanted load = {.ins = X86_INS_MOV,
	                            .base = X86_REG_RBP,
	                            .reg = X86_REG_RBX,
	                            .disp = pc->at,
	                            .size = size,
	                            .store = -1},
	                    first = {.ins = X86_INS_MOV, .base = X86_REG_RBX, .size = 4, .store = -1};

	for (u32 i = 0; i + 1 < f->nvm; i++)
		if (matches(&f->vm[i], &load) && matches(&f->vm[i + 1], &first))
			return true;
	return false;
}

/* A C function's code is loaded as L->stack is, but nothing is taken from it. */
static bool is_c_code(const struct luajit_facts *f, const struct layout_member *code)
{
	const struct wanted load = {
	        .ins = X86_INS_MOV, .base = X86_REG_RBP, .reg = X86_REG_R15, .disp = code->at, .size = 8, .store = -1};

	for (u32 i = 0; i + 1 < f->nvm; i++)
		if (matches(&f->vm[i], &load) && f->vm[i + 1].ins != X86_INS_SUB)
			return true;
	return false;
}

static bool is_trace_code(const struct luajit_facts *f, const struct luajit_layout *l)
{
	for (u32 i = 0; i < f->nvm; i++) {
		const struct luajit_access *mcode = after_trace(f, &f->vm[i]);

		if (mcode && mcode->disp == l->trace_mcode.at)
			return true;
	}
	return false;
}

static enum luajit_verdict ask_gg(const struct luajit_facts *f, const struct luajit_layout *l, bool of_j)
{
	s32 g2disp = l->gg_dispatch.at - l->gg_g.at, trace = l->gg_j.at + l->j_trace.at - l->gg_dispatch.at;

	if (of_j)
		return f->trace ? verdict(trace == f->trace) : LUAJIT_SILENT;
	return f->g2disp ? verdict(g2disp == f->g2disp) : LUAJIT_SILENT;
}

/* Of global_State: the VM must be known to reach it. */
static enum luajit_verdict ask_g(
        const struct luajit_facts *f, const struct luajit_layout *l, const struct layout_member *m)
{
	const struct wanted at = {.base = X86_REG_R14, .disp = of_g(f, *m), .size = m->size};
	struct wanted a = at, b = at;

	if (!f->g2disp)
		return LUAJIT_SILENT;
	if (m == &l->g_gc_total)
		return verdict(is_gc_check(f, at.disp, m->size));
	if (m == &l->g_hookmask) {
		a.ins = X86_INS_MOVZX;
		return ask(f, a);
	}
	a.ins = b.ins = X86_INS_MOV;
	a.store = 1;
	if (m == &l->g_vmstate) {
		a.imm = true;
		a.imm_min = -STATES;
		a.imm_max = -1;
		return ask(f, a);
	}
	if (m == &l->g_cur_l) {
		a.reg = b.reg = X86_REG_RBP;
		b.store = -1;
	} else {
		a.reg = X86_REG_RDX;
		b.store = 1;
		b.imm = true;
	}
	return verdict(find(f, &a) && find(f, &b));
}

static enum luajit_verdict ask_l(
        const struct luajit_facts *f, const struct luajit_layout *l, const struct layout_member *m)
{
	struct wanted w = {.base = X86_REG_RBP, .disp = m->at, .size = l->l_glref.size};

	if (m == &l->l_glref)
		return f->glref.size ? verdict(!memcmp(&f->glref, m, sizeof(*m))) : LUAJIT_SILENT;
	if (m == &l->l_status && ask_function(f, "lua_status", *m) == LUAJIT_CONTRADICTS)
		return LUAJIT_CONTRADICTS;
	if ((m == &l->l_base || m == &l->l_top) && ask_gettop(f, l) == LUAJIT_CONTRADICTS)
		return LUAJIT_CONTRADICTS;
	if (m == &l->l_base)
		return verdict(is_base(f, l));
	if (m == &l->l_stack || m == &l->l_top)
		return verdict(is_stack_depth(f, l, m == &l->l_top));
	if (m == &l->l_cframe) {
		w.reg = X86_REG_RSP;
		w.size = m->size;
	} else if (m == &l->l_maxstack) {
		w.ins = X86_INS_CMP;
	} else { /* status: vm_resume stores what it returns */
		w.size = 1;
		w.ins = X86_INS_MOV;
		w.store = 1;
		w.any_reg = true;
	}
	return ask(f, w);
}

/* Bytecode follows its prototype; the VM has passed one instruction. */
static s64 of_pc(const struct luajit_layout *l, struct layout_member m)
{
	return (s64)m.at - l->proto_size.at - 4;
}

static enum luajit_verdict ask_function_object(
        const struct luajit_facts *f, const struct luajit_layout *l, const struct layout_member *m)
{
	const u8 ref = l->l_glref.size;

	if (m == &l->fn_pc)
		return verdict(is_bytecode(f, m, ref));
	if (m == &l->fn_f)
		return verdict(is_c_code(f, m));
	if (m == &l->fn_ffid)
		return ask(f, (struct wanted){.ins = X86_INS_CMP, .base = X86_REG_RBP, .disp = m->at, .size = 1});
	if (m == &l->proto_k || m == &l->proto_size)
		return ask(
		        f, (struct wanted){
		                   .base = X86_REG_RBX, .reg = X86_REG_R15, .disp = of_pc(l, l->proto_k), .size = ref});
	return ask(f, (struct wanted){.ins = X86_INS_MOVZX, .base = X86_REG_RBX, .disp = of_pc(l, *m), .size = 1});
}

enum luajit_verdict luajit_facts_ask(const struct luajit_facts *f, const struct luajit_layout *l, u32 field)
{
	const struct layout_member *m = (const void *)((const char *)l + luajit_layout_schema.fields[field].slot);

	if (luajit_layout_schema.fields[field].list)
		return LUAJIT_SILENT;
	if (m == &l->gg_g || m == &l->gg_dispatch)
		return ask_gg(f, l, false);
	if (m == &l->gg_j || m == &l->j_trace)
		return ask_gg(f, l, true);
	if (m == &l->g_mainthref)
		return ask_function(f, "lua_pushthread", *m);
	if (m == &l->l_exdata2)
		return m->size ? ask_function(f, "lua_getexdata2", *m) : LUAJIT_SILENT;
	if (m == &l->g_vmstate || m == &l->g_hookmask || m == &l->g_gc_total || m == &l->g_cur_l || m == &l->g_jit_base)
		return ask_g(f, l, m);
	if (m == &l->l_status || m == &l->l_glref || m == &l->l_base || m == &l->l_top || m == &l->l_maxstack ||
	        m == &l->l_stack || m == &l->l_cframe)
		return ask_l(f, l, m);
	if (m == &l->fn_ffid || m == &l->fn_pc || m == &l->fn_f || m == &l->proto_size || m == &l->proto_k ||
	        m == &l->proto_framesize)
		return ask_function_object(f, l, m);
	return m == &l->trace_mcode ? verdict(is_trace_code(f, l)) : LUAJIT_SILENT;
}

struct error *luajit_facts_check(const struct luajit_facts *f, const struct layout *l, const char *what)
{
	char names[256] = "";
	size_t len = 0;

	for (u32 i = 0; i < l->schema->n; i++)
		if (luajit_facts_ask(f, l->values, i) == LUAJIT_CONTRADICTS && len < sizeof(names))
			len += snprintf(
			        names + len, sizeof(names) - len, "%s%s", len ? ", " : "", l->schema->fields[i].name);
	if (!len)
		return NULL;
	return error_new(ERROR_UNSUPPORTED,
	        "%s: its code does not have these members where the layout of %s has them: %s", f->img->path, what,
	        names);
}

bool luajit_facts_place(const struct luajit_facts *f, struct layout *l)
{
	struct luajit_layout *v = l->values;
	s64 dispatch = (s64)v->gg_g.at + f->g2disp, j = dispatch + f->trace - v->j_trace.at;

	if (!f->g2disp || !f->trace || dispatch < 0 || dispatch > UINT16_MAX || j < 0 || j > UINT16_MAX)
		return false;
	v->gg_dispatch.at = dispatch;
	v->gg_j.at = j;
	for (u32 i = 0; i < l->schema->n; i++) {
		u16 slot = l->schema->fields[i].slot;

		if (slot == offsetof(struct luajit_layout, gg_dispatch) || slot == offsetof(struct luajit_layout, gg_j))
			l->fills[i] = (struct layout_fill){.source = LAYOUT_CODE};
	}
	return true;
}
