/* SPDX-License-Identifier: Apache-2.0 */
#include "go_rows.h"

#include <stdlib.h>
#include <string.h>

#include "go_code.h"
#include "go_popping.h"
#include "go_table.h"
#include "symbols/symbols.h"

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
