/* SPDX-License-Identifier: Apache-2.0 */
#include "go_rows.h"

#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>

#include "code/capstone_registers.h"
#include "go_code.h"
#include "go_code_read.h"
#include "go_table.h"
#include "shared/cfi.h"
#include "symbols/symbols.h"

/*
 * Assembly that C calls through a row of call instructions, whose return address tells it which of them was used, such
 * as callbacks of purego (sys_amd64.s of 0.8 to 0.11). It drops that return address and loads its caller's, which is
 * above it. It then puts arguments in that place, and keeps the caller's return address in a register and later on the
 * stack.
 */

#define FRAME_MAX 4096
#define NO_SLOT   (-1)

/* Before an instruction. Distances are from where the stack pointer was at the first one. */
struct popping {
	s32 below;   /* of the stack pointer */
	u8 reg;      /* that the caller's return address was loaded to; CFI_NO_REG: not yet */
	s32 pushed;  /* it lies so far below; NO_SLOT: not there */
	bool popped; /* its own return address */
	s16 slot[ARCH_NSAVED];
};

static u8 register_of(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && op->size == 8 ? capstone_register(op->reg) : CAPSTONE_NO_REG;
}

static bool on_stack(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.base == X86_REG_RSP && op->mem.index == X86_REG_INVALID &&
	       op->mem.disp >= -FRAME_MAX && op->mem.disp <= FRAME_MAX;
}

/* The caller's stack begins two words above the first stack pointer. */
static s16 slot_at(s32 below)
{
	return cfi_slot(-below - 16, 0);
}

static void save(struct popping *s, u8 reg, s32 below)
{
	u32 i = arch_saved_slot(reg);

	if (i < ARCH_NSAVED && s->slot[i] == CFI_SAME && s->popped && below > 0 && below % 8 == 0)
		s->slot[i] = slot_at(below);
}

static void load(struct popping *s, u8 reg, s32 below)
{
	u32 i = arch_saved_slot(reg);

	if (s->reg == CFI_NO_REG && !s->popped && below == -8)
		s->reg = reg;
	else if (i < ARCH_NSAVED && s->slot[i] == slot_at(below))
		s->slot[i] = CFI_SAME;
}

/* False: that the stack pointer becomes something that is not followed. */
static bool step_stack(struct popping *s, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;
	u8 reg = register_of(&op[0]);

	switch (in->id) {
	case X86_INS_PUSH:
		s->below += 8;
		if (s->reg != CFI_NO_REG && reg == s->reg)
			s->pushed = s->below;
		save(s, reg, s->below);
		return true;
	case X86_INS_POP:
		if (reg == s->reg && s->pushed == s->below)
			s->pushed = NO_SLOT;
		load(s, reg, s->below);
		s->below -= 8;
		return reg != REG_SP;
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (op[1].type != X86_OP_IMM || op[1].imm < -FRAME_MAX || op[1].imm > FRAME_MAX)
			return false;
		s->below += (s32)(in->id == X86_INS_SUB ? op[1].imm : -op[1].imm);
		s->popped |= s->below == -8;
		return true;
	}
	return false;
}

static bool step(struct popping *s, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *op = x->operands;

	if (in->id == X86_INS_PUSH || in->id == X86_INS_POP ||
	        (x->op_count && register_of(&op[0]) == REG_SP && op[0].access & CS_AC_WRITE))
		return step_stack(s, in) && s->below >= -8 && s->below <= FRAME_MAX;
	if (in->id == X86_INS_MOV && x->op_count == 2 && on_stack(&op[0]))
		save(s, register_of(&op[1]), s->below - (s32)op[0].mem.disp);
	else if (in->id == X86_INS_MOV && x->op_count == 2 && on_stack(&op[1]))
		load(s, register_of(&op[0]), s->below - (s32)op[1].mem.disp);
	return true;
}

static struct cfi_rule rule_of(const struct popping *s)
{
	struct cfi_rule rule = {.kind = CFI_REG, .cfa_reg = REG_SP, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	memcpy(rule.slot, s->slot, sizeof(s->slot));
	rule.cfa_off = s->below + (s->popped ? 16 : 8);
	rule.slot[ARCH_SLOT_RA] = s->pushed == NO_SLOT ? cfi_slot(-8, 0) : slot_at(s->pushed);
	if (s->popped && s->pushed == NO_SLOT)
		rule.ra_reg = s->reg;
	return rule;
}

/* add NULL: only says whether it has this form. */
static bool follow(struct go_code *code, struct go_table *t, const struct go_function *fn,
        bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule), void *ctx)
{
	struct popping s = {.reg = CFI_NO_REG, .pushed = NO_SLOT};
	struct cfi_rule rule, last = {0};
	bool pushed = false;
	const cs_insn *in;

	for (u32 i = 0; i < ARCH_NSAVED; i++)
		s.slot[i] = CFI_SAME;
	for (go_code_start(code, t, fn); (in = go_code_next(code));) {
		rule = rule_of(&s);
		if (add && memcmp(&rule, &last, sizeof(rule)) && !add(ctx, in->address, &rule))
			return false;
		last = rule;
		pushed |= s.popped && s.pushed != NO_SLOT;
		if (in->id == X86_INS_RET)
			return pushed && s.below == -8;
		if ((in->id != X86_INS_CALL && cs_insn_group(code->d.handle, in, CS_GRP_JUMP)) || !step(&s, in) ||
		        (s.popped && s.reg == CFI_NO_REG))
			return false;
	}
	return false;
}

/* Has it this form, without a jump? */
static bool go_is_popping(struct go_code *code, struct go_table *t, const struct go_function *fn)
{
	return follow(code, t, fn, NULL, NULL);
}

/* Rows that lead to the caller of the row of calls. */
static bool go_popping_rows(struct go_code *code, struct go_table *t, const struct go_function *fn,
        bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule), void *ctx)
{
	return follow(code, t, fn, add, ctx);
}

#define FRAME_SIZE_MAX (INT32_MAX - 8)
#define UCONTEXT_REGS  40 /* of struct ucontext, <asm/ucontext.h>: its struct sigcontext */

enum special {
	ORDINARY,
	ROOT,   /* nothing called it */
	EXACT,  /* entered as if the interrupted instruction had called it */
	SIGNAL, /* the kernel's signal frame lies above */
	KEEPER, /* keeps the stack pointer in a register while it runs on another stack */
	SAVER,  /* C called it: it saves the registers that Go does not preserve */
	SWITCH, /* to another stack, which the walker follows: it has the sizes that pcsp gives */
};

static const struct {
	const char *name;
	enum special special;
} specials[] = {
        {"_rt0_amd64", ROOT},
        {"_rt0_amd64_linux", ROOT},
        {"runtime.rt0_go", ROOT},
        {"runtime.goexit", ROOT},
        {"runtime.mstart", ROOT},
        {"runtime.clone", ROOT},
        {"runtime.asyncPreempt", EXACT},
        {"runtime.sigpanic", EXACT},
        {"runtime.sigpanic0", EXACT},
        {"runtime.debugCallV1", EXACT},
        {"runtime.debugCallV2", EXACT},
        {"runtime.sigreturn", SIGNAL},
        {"runtime.sigreturn__sigaction", SIGNAL},
        {"crosscall2", SAVER},
        {"_rt0_amd64_lib", SAVER},
        {"_rt0_amd64_linux_lib", SAVER},
        {"runtime.sigtramp", SAVER},
        {"runtime.systemstack", SWITCH},
        {"runtime.mcall", SWITCH},
        {"runtime.morestack", SWITCH},
        {"runtime.asmcgocall", SWITCH},
        {"runtime.cgocallback", SWITCH},
        {"runtime.cgocallback_gofunc", SWITCH},
        {"runtime.gogo", SWITCH},
        {"gogo", SWITCH},
};

const char *const go_keepers[] = {"runtime.nanotime", "runtime.nanotime1", "runtime.walltime", "runtime.walltime1",
        "time.now", "runtime.callCgoMmap", "runtime.callCgoMunmap", "runtime.callCgoSigaction", "runtime.sigfwd",
        "racecall", "racecalladdr", "runtime.libfuzzerCall4", "msancall", "asancall", NULL};

struct known {
	struct go_table *table; /* NULL: libgo */
	struct symbol kickoff;  /* libgo's */
	struct go_code *code;
	u8 *special; /* enum special of each function */
};

static enum special special_of(const char *name)
{
	for (u32 i = 0; i < sizeof(specials) / sizeof(*specials); i++)
		if (!strcmp(name, specials[i].name))
			return specials[i].special;
	for (u32 i = 0; go_keepers[i]; i++)
		if (!strcmp(name, go_keepers[i]))
			return KEEPER;
	return ORDINARY;
}

static void find_specials(struct known *known)
{
	struct go_function fn;
	char name[GO_SPECIAL_MAX];

	for (u32 i = 0; i < known->table->nfunctions; i++)
		if (go_special_name(known->table, i, &fn, name))
			known->special[i] = (u8)special_of(name);
}

static void close_functions(void *functions)
{
	struct known *known = functions;

	go_code_destroy(known->code);
	go_table_close(known->table);
	free(known->special);
	free(known);
}

/*
 * gccgo's code is ordinary native code, but libgo begins a goroutine's stack with a return address of 0
 * (libgo/runtime/go-context.S, __go_makecontext, of GCC 12), which the CFI of its first function does not say.
 */
static struct error *open_libgo(struct image *img, void **ret, u32 *n)
{
	struct symbol kickoff;
	struct known *known;

	if (!image_section(img, ".go_export", NULL) || !symbols_lookup(img, "runtime.kickoff", &kickoff) ||
	        kickoff.end <= kickoff.start)
		return NULL;
	known = calloc(1, sizeof(*known));
	if (!known)
		return &error_no_memory;
	known->kickoff = kickoff;
	*n = 1;
	*ret = known;
	return NULL;
}

static struct error *open_functions(struct image *img, void **ret, u32 *n)
{
	struct go_table *table;
	struct known *known;
	struct error *err = go_table_open(img, &table);

	*ret = NULL;
	if (err && err != &error_no_memory) {
		error_free(err); /* the probe says so */
		return NULL;
	}
	if (err || !table)
		return err ? err : open_libgo(img, ret, n);
	known = calloc(1, sizeof(*known));
	if (!known) {
		go_table_close(table);
		return &error_no_memory;
	}
	known->table = table;
	known->code = go_code_create();
	known->special = calloc(table->nfunctions, 1);
	if (!known->code || !known->special) {
		close_functions(known);
		return &error_no_memory;
	}
	find_specials(known);
	*n = table->nfunctions;
	*ret = known;
	return NULL;
}

/* The kernel returns to the first byte of its function: the address is looked up one byte back. */
static bool extent(void *functions, u32 i, u64 *start, u64 *end)
{
	struct known *known = functions;
	struct go_function fn;

	*start = known->kickoff.start;
	*end = known->kickoff.end;
	if (!known->table)
		return true;
	if (!go_function_at(known->table, i, &fn) || go_function_is_c(&fn))
		return false;
	*start = fn.start;
	*end = fn.end;
	*start -= known->special[i] == SIGNAL;
	*end -= i + 1 < known->table->nfunctions && known->special[i + 1] == SIGNAL;
	return true;
}

static struct cfi_rule plain_rule(u8 kind)
{
	struct cfi_rule rule = {.kind = kind, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	if (kind != CFI_REG)
		return rule;
	rule.cfa_reg = REG_SP;
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = CFI_UNDEFINED; /* Go's functions preserve no register */
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}

struct adding {
	bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule);
	void *ctx;
};

/* What C's registers are once they were saved; before that they are as they were. */
static void keep(struct cfi_rule *rule, const struct go_kept *kept, bool saved)
{
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule->slot[i] = saved ? kept->slot[i] : CFI_SAME;
}

/* Rows by the sizes that pcsp gives; what it does not cover has none. */
static bool sized_rows(struct known *known, const struct go_function *fn, u16 flags, const struct go_kept *kept,
        const struct adding *to)
{
	struct cfi_rule none = plain_rule(CFI_NONE), rule = plain_rule(CFI_REG);
	struct go_pcs p;

	go_pcs_start(&p, known->table, fn, fn->pcsp);
	rule.flags = flags;
	while (go_pcs_next(&p) && p.from < fn->end) {
		if (p.value < 0 || p.value > FRAME_SIZE_MAX ||
		        p.value % 8) { /* it popped its return address, for one */
			if (!to->add(to->ctx, p.from, &none))
				return false;
			continue;
		}
		rule.cfa_off = p.value + 8;
		if (kept)
			keep(&rule, kept, p.from >= kept->after);
		if (!to->add(to->ctx, p.from, &rule))
			return false;
		if (!kept || kept->after <= p.from || kept->after >= p.pc)
			continue;
		keep(&rule, kept, true);
		if (!to->add(to->ctx, kept->after, &rule))
			return false;
	}
	return p.pc >= fn->end || to->add(to->ctx, p.pc, &none);
}

/* Where the stack pointer is kept the frame is as large as it was then, whatever pcsp says. */
static bool keeper_rows(struct known *known, const struct go_function *fn, const struct adding *to)
{
	struct cfi_rule rule = plain_rule(CFI_REG);
	struct go_keeping keeping;
	u64 at = fn->start;
	struct go_pcs p;
	u32 i = 0;

	if (!go_code_keeping(known->code, known->table, fn, &keeping))
		return sized_rows(known, fn, 0, NULL, to);
	go_pcs_start(&p, known->table, fn, fn->pcsp);
	while (at < fn->end) {
		const struct go_stretch *s = i < keeping.n ? &keeping.stretch[i] : NULL;
		bool kept = s && at >= s->start;

		while (!kept && p.pc <= at)
			if (!go_pcs_next(&p))
				return true;
		rule.cfa_off = (kept ? keeping.size : p.value) + 8;
		if (rule.cfa_off < 8 || rule.cfa_off % 8 || !to->add(to->ctx, at, &rule))
			return false;
		at = kept ? s->end : s && s->start < p.pc ? s->start : p.pc;
		i += kept;
	}
	return true;
}

/*
 * Assembly that aligns its stack, or makes room on it by arithmetic (calls of C without cgo, runtime.vgetrandom1):
 * sizes do not say where its caller is.
 */
static bool writes_stack_pointer(const struct known *known, u32 i, const struct go_function *fn)
{
	return known->special[i] == ORDINARY && fn->flags & GO_WRITES_SP;
}

static bool rows(void *functions, u32 i, bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule), void *ctx)
{
	struct known *known = functions;
	const struct adding to = {add, ctx};
	struct cfi_rule rule;
	struct go_function fn;
	struct go_kept kept;

	rule = plain_rule(CFI_ROOT);
	if (!known->table)
		return add(ctx, known->kickoff.start, &rule);
	if (!go_function_at(known->table, i, &fn))
		return false;
	switch (known->special[i]) {
	case ROOT:
		return add(ctx, fn.start, &rule);
	case SIGNAL:
		rule = plain_rule(CFI_SIGNAL);
		rule.cfa_off = UCONTEXT_REGS;
		return add(ctx, fn.start - 1, &rule);
	case EXACT:
		return sized_rows(known, &fn, CFI_SIGNAL_FRAME, NULL, &to);
	case KEEPER:
		return keeper_rows(known, &fn, &to);
	case SAVER:
		return sized_rows(
		        known, &fn, 0, go_code_saved(known->code, known->table, &fn, &kept) ? &kept : NULL, &to);
	default:
		if (!writes_stack_pointer(known, i, &fn))
			return sized_rows(known, &fn, 0, NULL, &to);
		return go_is_popping(known->code, known->table, &fn)
		               ? go_popping_rows(known->code, known->table, &fn, add, ctx)
		               : cfi_code_rows(known->table->file.img, fn.start, fn.end, add, ctx);
	}
}

const struct cfi_provider go_provider = {open_functions, close_functions, extent, rows};
