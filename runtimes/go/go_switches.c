/* SPDX-License-Identifier: Apache-2.0 */
/* Where Go's runtime changes stacks, and which members of g and m it uses there, by its code. */
#include <capstone/capstone.h>
#include <string.h>

#include "go_code_read.h"

#define OFFSET_MAX 4096

enum wanted {
	SYSTEMSTACK,
	DUMMY,
	MCALL,
	MORESTACK,
	ASMCGOCALL,
	CALLBACK,
	CALLBACK_OLD,
	GOGO,
	GOGO_OLD,
	SCHEDULE,
	GOEXIT,
	WANTED,
};

/* Some names are also those of a wrapper that the compiler made: the one that writes the stack pointer is the one. */
static bool writes_stack_pointer(struct go_table *t, const struct go_function *fn)
{
	struct go_code *code = go_code_create();
	bool found = false;
	const cs_insn *in;

	if (code)
		go_code_start(code, t, fn);
	while (code && !found && (in = go_code_next(code)))
		found = in->id == X86_INS_MOV && in->detail->x86.operands[0].type == X86_OP_REG &&
		        in->detail->x86.operands[0].reg == X86_REG_RSP;
	go_code_destroy(code);
	return found;
}

/* The addresses behind the first instructions that load the stack pointer with something else. */
struct loads {
	u32 n;
	struct go_stretch at[4]; /* of each: its own, and the next instruction's */
};

static bool sets_stack_pointer(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	return in->id == X86_INS_MOV && x->op_count == 2 && x->operands[0].type == X86_OP_REG &&
	       x->operands[0].reg == X86_REG_RSP;
}

static void find_loads(struct go_code *code, struct go_table *t, const struct go_function *fn, struct loads *ret)
{
	const cs_insn *in;

	ret->n = 0;
	for (go_code_start(code, t, fn); ret->n < 4 && (in = go_code_next(code));)
		if (sets_stack_pointer(in))
			ret->at[ret->n++] = (struct go_stretch){in->address, in->address + in->size};
}

/* A load from the thread's own memory: the g that the thread runs. reg: that holds the offset; 0: it is disp. */
static bool is_tls(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.segment == X86_REG_FS;
}

/* What systemstack() reads, in its order: g of the thread, g.m, m.gsignal, m.g0, m.curg, and g0.sched.sp at last. */
struct reading {
	u32 g, m; /* registers */
	u32 seen;
	s64 offset; /* that a register holds for the thread pointer */
	u64 offset_at;
	bool tls, curg;
};

static void read_tls(struct reading *r, const cs_insn *in, struct go_switches *ret)
{
	const cs_x86 *x = &in->detail->x86;

	ret->tls = x->operands[1].mem.base == X86_REG_INVALID ? x->operands[1].mem.disp
	                                                      : r->offset + x->operands[1].mem.disp;
	ret->tls_at = x->operands[1].mem.base == X86_REG_INVALID ? 0 : r->offset_at;
	r->g = x->operands[0].reg;
	r->tls = true;
}

/* The offset of the thread's g, before it is used. */
static void read_offset(struct reading *r, const cs_insn *in)
{
	const cs_x86_op *from = &in->detail->x86.operands[1];

	r->offset = 0;
	r->offset_at = 0;
	if (from->type == X86_OP_IMM)
		r->offset = from->imm;
	else if (from->type == X86_OP_MEM && from->mem.base == X86_REG_RIP)
		r->offset_at = in->address + in->size + (u64)from->mem.disp;
}

static bool is_member(const cs_x86_op *op, u32 base)
{
	return op->type == X86_OP_MEM && op->mem.base == (x86_reg)base && op->mem.index == X86_REG_INVALID &&
	       op->mem.disp >= 0 && op->mem.disp < OFFSET_MAX && op->mem.segment == X86_REG_INVALID;
}

static void read_systemstack(struct reading *r, const cs_insn *in, struct go_switches *ret)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];

	if (in->detail->x86.op_count != 2)
		return;
	if (!r->tls && in->id == X86_INS_MOV && to->type == X86_OP_REG && is_tls(from))
		read_tls(r, in, ret);
	else if (!r->tls && in->id == X86_INS_MOV && to->type == X86_OP_REG)
		read_offset(r, in);
	else if (r->tls && !r->m && in->id == X86_INS_MOV && is_member(from, r->g)) {
		ret->g_m = (u32)from->mem.disp;
		r->m = to->reg;
	} else if (r->m && !r->curg && in->id == X86_INS_CMP && (is_member(from, r->m) || is_member(to, r->m))) {
		/* the first is m.gsignal, the second m.curg */
		ret->m_curg = (u32)(is_member(from, r->m) ? from : to)->mem.disp;
		r->curg = r->seen++;
	} else if (r->m && r->seen == 1 && in->id == X86_INS_MOV && is_member(from, r->m)) {
		ret->m_g0 = (u32)from->mem.disp;
	}
}

static bool offsets_of(struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_switches *ret)
{
	struct reading r = {0};
	const cs_insn *in, *last = NULL;

	for (go_code_start(code, t, fn); (in = go_code_next(code));) {
		const cs_x86_op *from = &in->detail->x86.operands[1];

		read_systemstack(&r, in, ret);
		if (r.curg && go_is_load(in, X86_REG_RSP)) {
			ret->g_sched = (u32)from->mem.disp;
			last = in;
		}
	}
	return last && ret->g_sched < OFFSET_MAX && ret->g_m && ret->g_sched > 16;
}

/* The first instruction behind sub $n, %rsp that follows at: there its other stretch begins, on g0's stack from the
 * first. */
static void narrow_g0(struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_switches *ret)
{
	const cs_insn *in;

	for (go_code_start(code, t, fn); (in = go_code_next(code));)
		if (in->address >= ret->asmcgocall_g0.start && in->id == X86_INS_SUB &&
		        in->detail->x86.operands[0].type == X86_OP_REG &&
		        in->detail->x86.operands[0].reg == X86_REG_RSP) {
			ret->asmcgocall_g0.start = in->address + in->size;
			return;
		}
}

/* Behind its call: mov g(%rsp), %r; mov stack.hi(%r), %q; sub depth(%rsp), %q */
static bool asmcgocall_of(
        struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_switches *ret)
{
	bool called = false, g = false;
	const cs_insn *in;
	struct loads l;

	find_loads(code, t, fn, &l);
	if (l.n < 3)
		return false;
	ret->asmcgocall_all = (struct go_stretch){fn->start, fn->end};
	ret->asmcgocall = (struct go_stretch){l.at[0].end, l.at[1].end};
	ret->asmcgocall_g0 = (struct go_stretch){l.at[1].end, l.at[2].end};
	for (go_code_start(code, t, fn); (in = go_code_next(code));) {
		const cs_x86_op *from = &in->detail->x86.operands[1];

		if (in->address < l.at[0].end)
			continue;
		called |= in->id == X86_INS_CALL;
		if (!called || in->detail->x86.op_count != 2 || !is_member(from, X86_REG_RSP))
			continue;
		if (in->id == X86_INS_MOV && !g) {
			ret->asm_g = (u32)from->mem.disp;
			g = true;
		} else if (in->id == X86_INS_SUB && g) {
			ret->asm_depth = (u32)from->mem.disp;
			narrow_g0(code, t, fn, ret);
			return true;
		}
	}
	return false;
}

/* Where the frame of systemstack_switch() is as large as it gets: behind its prologue. */
static u64 resume_at(struct go_table *t, const struct go_function *fn)
{
	u64 at = fn->start;
	struct go_pcs p;
	s32 most = 0;

	for (go_pcs_start(&p, t, fn, fn->pcsp); go_pcs_next(&p) && p.from < fn->end;)
		if (p.value > most) {
			most = p.value;
			at = p.from;
		}
	return at;
}

/* To the goroutine's stack, and back to g0's. */
static bool callback_of(struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_switches *ret)
{
	struct loads l;

	find_loads(code, t, fn, &l);
	if (l.n < 2)
		return false;
	ret->callback_all = (struct go_stretch){fn->start, fn->end};
	ret->callback = (struct go_stretch){l.at[0].end, l.at[1].end};
	return true;
}

static struct go_stretch whole(const struct go_wanted *w)
{
	return w->found ? (struct go_stretch){w->fn.start, w->fn.end} : (struct go_stretch){0};
}

static bool to_end(struct go_code *code, struct go_table *t, const struct go_wanted *w, struct go_stretch *ret)
{
	struct loads l = {0};

	if (w->found)
		find_loads(code, t, &w->fn, &l);
	*ret = (struct go_stretch){l.n ? l.at[0].end : 0, w->fn.end};
	return l.n;
}

static const char *read_switches(
        struct go_code *code, struct go_table *t, const struct go_wanted *w, struct go_switches *ret)
{
	const struct go_wanted *callback = w[CALLBACK].found ? &w[CALLBACK] : &w[CALLBACK_OLD];
	struct loads l;

	if (!w[SYSTEMSTACK].found)
		return "";
	if (!offsets_of(code, t, &w[SYSTEMSTACK].fn, ret))
		return "systemstack";
	find_loads(code, t, &w[SYSTEMSTACK].fn, &l);
	if (l.n < 2)
		return "systemstack";
	ret->systemstack = (struct go_stretch){l.at[0].end, l.at[1].end};
	if (!w[DUMMY].found)
		return "systemstack_switch";
	ret->dummy = whole(&w[DUMMY]);
	ret->resume = resume_at(t, &w[DUMMY].fn);
	if (!to_end(code, t, &w[MCALL], &ret->mcall))
		return "mcall";
	if (!to_end(code, t, &w[MORESTACK], &ret->morestack))
		return "morestack";
	if (!to_end(code, t, w[GOGO].found ? &w[GOGO] : &w[GOGO_OLD], &ret->gogo))
		return "gogo";
	if (w[ASMCGOCALL].found && !asmcgocall_of(code, t, &w[ASMCGOCALL].fn, ret))
		return "asmcgocall";
	if (callback->found && !callback_of(code, t, &callback->fn, ret))
		return "cgocallback";
	ret->schedule = whole(&w[SCHEDULE]);
	ret->goexit = whole(&w[GOEXIT]);
	return w[SCHEDULE].found ? NULL : "schedule";
}

const char *go_code_switches(struct go_code *code, struct go_table *t, struct go_switches *ret)
{
	struct go_wanted wanted[WANTED] = {
	        [SYSTEMSTACK] = {.name = "runtime.systemstack", .accept = writes_stack_pointer},
	        [DUMMY] = {.name = "runtime.systemstack_switch"},
	        [MCALL] = {.name = "runtime.mcall", .accept = writes_stack_pointer},
	        [MORESTACK] = {.name = "runtime.morestack", .accept = writes_stack_pointer},
	        [ASMCGOCALL] = {.name = "runtime.asmcgocall", .accept = writes_stack_pointer},
	        [CALLBACK] = {.name = "runtime.cgocallback", .accept = writes_stack_pointer},
	        [CALLBACK_OLD] = {.name = "runtime.cgocallback_gofunc", .accept = writes_stack_pointer},
	        [GOGO] = {.name = "gogo", .accept = writes_stack_pointer},
	        [GOGO_OLD] = {.name = "runtime.gogo", .accept = writes_stack_pointer},
	        [SCHEDULE] = {.name = "runtime.schedule"},
	        [GOEXIT] = {.name = "runtime.goexit"},
	};

	*ret = (struct go_switches){0};
	go_functions_named(t, wanted, WANTED);
	return read_switches(code, t, wanted, ret);
}
