/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for the VM's code, by following it. vm_x64.dasc of LuaJIT is one piece of assembly under one FDE with a constant
 * CFA, which is wrong in prologues, epilogues, helpers and around traces.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "luajit_callers.h"
#include "luajit_code.h"
#include "luajit_image.h"
#include "luajit_layout.h"
#include "binary/elf_table.h"
#include "cfi/cfi.h"

/*
 * The frame of LuaJIT's VM at an instruction of its code, and how an instruction changes it: vm_x64.dasc and
 * vm_x86.dasc.
 */

#define LUAJIT_CFA 80 /* from rsp, nearly everywhere in the VM */

enum { SLOT_RBX, SLOT_RBP, SLOT_R12, SLOT_R13, SLOT_R14, SLOT_R15 };

/* What holds before an instruction. */
struct luajit_state {
	bool known;
	bool flipped; /* LEAVE, if the next branch is not taken */
	u8 part;      /* enum luajit_part */
	u8 cfa_reg;
	s16 cfa;               /* CFA - cfa_reg */
	s16 sp;                /* CFA - rsp, if cfa_reg is rbp */
	s16 slot[ARCH_NSAVED]; /* from the CFA; 0: not saved */
};

static const struct luajit_state luajit_state_standard = {.known = true,
        .part = LUAJIT_INTERP,
        .cfa_reg = DWREG_RSP,
        .cfa = LUAJIT_CFA,
        .slot = {[SLOT_RBP] = -16, [SLOT_RBX] = -24, [SLOT_R15] = -32, [SLOT_R14] = -40}};
static const struct luajit_state luajit_state_entry = {
        .known = true, .part = LUAJIT_GLUE, .cfa_reg = DWREG_RSP, .cfa = 8};

static void save(struct luajit_state *s, u8 reg, s16 where)
{
	u32 i = arch_saved_slot(reg);

	if (i < ARCH_NSAVED && !s->slot[i])
		s->slot[i] = where;
}

static void unsave(struct luajit_state *s, u8 reg, s16 where)
{
	u32 i = arch_saved_slot(reg);

	if (i < ARCH_NSAVED && s->slot[i] == where)
		s->slot[i] = 0;
}

static void move_sp(struct luajit_state *s, s16 by)
{
	if (s->cfa_reg == DWREG_RSP)
		s->cfa -= by;
	else
		s->sp -= by;
}

static s16 depth(const struct luajit_state *s)
{
	return s->cfa_reg == DWREG_RSP ? s->cfa : s->sp;
}

/* Is the link of the frame at rdx loaded into rbx, or stored? */
static bool luajit_is_link_at(const struct luajit_layout *layout, const struct code_ins *in)
{
	u8 size = luajit_gc64(layout) ? 8 : 4;

	return in->base == DWREG_RDX && in->value == -(s64)size && in->reg == DWREG_RBX && in->size == size;
}

static void apply_store(const struct luajit_layout *layout, const struct code_ins *in, struct luajit_state *s)
{
	bool saved = in->size == 8 && (in->reg == DWREG_R12 || in->reg == DWREG_R13);

	if (in->base == DWREG_RSP && saved)
		save(s, in->reg, (s16)in->value - depth(s));
	/* the cframe is linked here, or the outer one again */
	if (in->base == DWREG_RBP && in->value == layout->l_cframe.at && in->size == 8 && s->cfa == LUAJIT_CFA)
		s->part = s->part == LUAJIT_GLUE ? LUAJIT_ENTER : LUAJIT_GLUE;
	if (luajit_is_link_at(layout, in) && s->part == LUAJIT_ENTER)
		s->part = LUAJIT_INTERP;
}

/* Makes of the state before an instruction the one after it. */
static void luajit_state_apply(const struct luajit_layout *layout, const struct code_ins *in, struct luajit_state *s)
{
	switch (in->op) {
	case CODE_PUSH:
		move_sp(s, -8);
		if (in->reg != CODE_NO_REG)
			save(s, in->reg, -depth(s));
		break;
	case CODE_POP:
		if (in->reg != CODE_NO_REG)
			unsave(s, in->reg, -depth(s));
		move_sp(s, 8);
		break;
	case CODE_MOVE_SP:
		move_sp(s, (s16)in->value);
		break;
	case CODE_SET_SP:
		*s = luajit_state_standard;
		break;
	case CODE_SET_FP:
		s->sp = s->cfa;
		s->cfa_reg = DWREG_RBP;
		break;
	case CODE_LEAVE:
		unsave(s, DWREG_RBP, s->slot[SLOT_RBP]);
		s->cfa_reg = DWREG_RSP;
		s->cfa = 8;
		break;
	case CODE_LOAD:
		if (s->cfa_reg == DWREG_RBP && in->base == DWREG_RBP)
			unsave(s, in->reg, (s16)in->value - s->cfa);
		if (s->part == LUAJIT_ENTER && luajit_is_link_at(layout, in))
			s->part = LUAJIT_INTERP; /* vm_resume goes on with a frame that is there */
		break;
	case CODE_STORE:
		apply_store(layout, in, s);
		break;
	case CODE_FLIP: /* rbx, a link, is about to become the base of whoever called from C */
		if (in->reg == DWREG_RBX && in->value == 1 && (s->part == LUAJIT_INTERP || s->part == LUAJIT_ENTER))
			s->part = LUAJIT_LEAVE;
		s->flipped = s->part == LUAJIT_LEAVE;
		break;
	case CODE_CALL: /* of lj_ccallback_enter, which links the cframe of a callback */
		if (s->part == LUAJIT_GLUE && s->cfa_reg == DWREG_RSP && s->cfa == LUAJIT_CFA)
			s->part = LUAJIT_INTERP;
		break;
	}
}

static struct cfi_rule luajit_state_rule(const struct luajit_state *s)
{
	struct cfi_rule rule = {.kind = CFI_REG,
	        .cfa_reg = s->cfa_reg,
	        .cfa_off = s->cfa,
	        .slot_reg = CFI_NO_REG,
	        .ra_reg = CFI_NO_REG};

	if (s->part == LUAJIT_EXIT)
		rule.kind = CFI_UNSUPPORTED;
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = s->slot[i] ? cfi_slot(s->slot[i], 0) : CFI_SAME;
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}

#define LOOK_AHEAD 120 /* instructions from the start of the exit handler to where it sets rsp */

struct analysis {
	const struct luajit_layout *layout;
	struct code code;
	struct luajit_state *state; /* of each instruction */
	u32 *work;
	u32 nwork;
	bool *queued;
};

/* --- following the code --- */

/* Of two ways to an instruction, the one that has to be looked at with more care. */
static int care(u8 part)
{
	static const u8 order[] = {
	        [LUAJIT_GLUE] = 0, [LUAJIT_INTERP] = 1, [LUAJIT_ENTER] = 2, [LUAJIT_LEAVE] = 3, [LUAJIT_EXIT] = 4};

	return order[part];
}

static void reach(struct analysis *a, u32 i, const struct luajit_state *s)
{
	struct luajit_state *old;

	if (i >= a->code.n)
		return;
	old = &a->state[i];
	if (old->known && care(old->part) >= care(s->part))
		return;
	if (old->known) {
		old->part = s->part;
		old->flipped = s->flipped;
	} else {
		*old = *s;
	}
	if (!a->queued[i]) {
		a->queued[i] = true;
		a->work[a->nwork++] = i;
	}
}

static void follow(struct analysis *a)
{
	while (a->nwork) {
		u32 i = a->work[--a->nwork];
		const struct code_ins *in = &a->code.ins[i];
		struct luajit_state s = a->state[i];

		a->queued[i] = false;
		luajit_state_apply(a->layout, in, &s);
		if (in->op == CODE_JUMP || in->op == CODE_BRANCH) {
			struct luajit_state taken = s;

			if (in->op == CODE_BRANCH && s.flipped)
				taken.part = LUAJIT_INTERP;
			s.flipped = taken.flipped = false;
			reach(a, code_find(&a->code, in->target), &taken);
		}
		if (in->op != CODE_JUMP && in->op != CODE_END)
			reach(a, i + 1, &s);
	}
}

static void start_at(struct analysis *a, u32 i, const struct luajit_state *s)
{
	reach(a, i, s);
	follow(a);
}

/* Can code run into instruction i from above? Behind a call it may be there for the return address only. */
static bool follows_end(const struct analysis *a, u32 i)
{
	u8 op = i ? a->code.ins[i - 1].op : CODE_END;

	return op == CODE_END || op == CODE_JUMP || op == CODE_CALL;
}

static void start_function(struct analysis *a, u64 target)
{
	u32 i = code_find(&a->code, target);
	struct luajit_state s = luajit_state_standard;

	/* offsets into the VM are counted from its first instruction (lj_vm_asm_begin), which is no function */
	if (!i || i == a->code.n || !follows_end(a, i) || a->state[i].known)
		return;
	if (a->code.ins[i].op != CODE_POP) {
		start_at(a, i, &luajit_state_entry);
		return;
	}
	/* fff_gcstep takes its return address off the stack and works in the frame of its caller */
	s.cfa += 8;
	start_at(a, i, &s);
}

static void see_called(void *ctx, u64 target)
{
	start_function(ctx, target);
}

static void start_called(struct analysis *a, struct image *img, u64 start, u64 end)
{
	luajit_callers(img, start, end, see_called, a);
	for (u32 i = 0; i < a->code.n; i++)
		if (a->code.ins[i].op == CODE_CALL)
			start_function(a, a->code.ins[i].target);
}

/* Code that takes up a cframe again from wherever rsp is: the handler of trace exits. */
static bool sets_sp(const struct analysis *a, u32 i)
{
	for (u32 n = 0; n < LOOK_AHEAD && i < a->code.n; n++) {
		const struct code_ins *in = &a->code.ins[i];

		if (in->op == CODE_SET_SP || a->state[i].part == LUAJIT_EXIT)
			return true;
		if (in->op == CODE_END || a->state[i].known)
			return false;
		i = in->op == CODE_JUMP ? code_find(&a->code, in->target) : i + 1;
	}
	return false;
}

/*
 * Tables of functions that machine code calls: RELATIVE relocations. Others are of places that machine code jumps to,
 * with a stack pointer of its own (vm_exit_interp, since 2026).
 */
static void start_relocated(struct analysis *a, struct image *img, u64 start, u64 end)
{
	struct elf_records records;
	struct elf_place place;
	const Elf64_Rela *rela;

	if (!elf_place_find(img, ".rela.dyn", &place))
		return;
	elf_records_start(&records, img, &place);
	while ((rela = elf_records_next(&records)))
		if (ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE && (u64)rela->r_addend - start < end - start &&
		        !sets_sp(a, code_find(&a->code, (u64)rela->r_addend)))
			start_function(a, (u64)rela->r_addend);
}

/* The state before a prologue of which only a part is here: the stub that jumps to vm_ffi_callback has pushed rbp. */
static struct luajit_state before_prologue(const struct analysis *a, u32 i)
{
	struct luajit_state s = luajit_state_standard;

	for (; i < a->code.n && a->code.ins[i].op == CODE_PUSH; i++) {
		u32 slot = arch_saved_slot(a->code.ins[i].reg);

		s.cfa -= 8;
		if (slot < ARCH_NSAVED)
			s.slot[slot] = 0;
	}
	if (i < a->code.n && a->code.ins[i].op == CODE_MOVE_SP)
		s.cfa += (s16)a->code.ins[i].value;
	s.part = LUAJIT_GLUE;
	return s;
}

/* The state where a trace has left by a jump: above the words in which r12 and r13 were saved. */
static struct luajit_state after_trace(const struct analysis *a, u32 i)
{
	struct luajit_state s = luajit_state_standard;

	s.cfa += (s16)a->code.ins[i].value;
	s.slot[SLOT_R12] = -LUAJIT_CFA;
	s.slot[SLOT_R13] = -LUAJIT_CFA + luajit_vm_of(a->layout).cf_r13;
	return s;
}

/* What is reached only through the dispatch table, or as a continuation. */
static void start_dispatched(struct analysis *a)
{
	for (u32 i = 0; i < a->code.n; i++) {
		struct luajit_state s = luajit_state_standard;

		if (a->state[i].known)
			continue;
		if (sets_sp(a, i))
			s.part = LUAJIT_EXIT;
		else if (a->code.ins[i].op == CODE_PUSH)
			s = before_prologue(a, i);
		else if (a->code.ins[i].op == CODE_MOVE_SP && a->code.ins[i].value > 0)
			s = after_trace(a, i);
		start_at(a, i, &s);
	}
}

/* --- results --- */

static bool is_call_link(const struct analysis *a, const struct code_ins *in)
{
	return in->op == CODE_STORE && luajit_is_link_at(a->layout, in);
}

static enum luajit_part part_of(const struct analysis *a, const struct code_ins *in, const struct luajit_state *s)
{
	if (s->part == LUAJIT_EXIT || s->part == LUAJIT_GLUE)
		return s->part;
	if (s->cfa_reg != DWREG_RSP)
		return LUAJIT_GLUE;
	if (s->cfa == LUAJIT_CFA)
		return is_call_link(a, in) ? LUAJIT_CALL : (enum luajit_part)s->part;
	if (s->part == LUAJIT_INTERP && s->cfa == LUAJIT_CFA + 8)
		return LUAJIT_INTERP_8;
	if (s->part == LUAJIT_INTERP && s->cfa == LUAJIT_CFA + 16)
		return LUAJIT_INTERP_16;
	return LUAJIT_GLUE;
}

static void add_stretch(struct luajit_blob *blob, u64 start, u64 end, enum luajit_part part)
{
	struct luajit_stretch *last = blob->nstretches ? &blob->stretches[blob->nstretches - 1] : NULL;

	if (part == LUAJIT_INTERP)
		return;
	if (last && last->end == start && last->part == part)
		last->end = end;
	else
		blob->stretches[blob->nstretches++] = (struct luajit_stretch){start, end, part};
}

/* Is instruction i behind a call, both in this part? */
static bool is_behind_call(const struct analysis *a, u32 i, enum luajit_part part)
{
	const struct code_ins *in = i ? &a->code.ins[i - 1] : NULL;

	return in && in->op == CODE_CALL && part_of(a, in, &a->state[i - 1]) == part &&
	       part_of(a, &a->code.ins[i], &a->state[i]) == part;
}

static struct error *fill_blob(const struct analysis *a, struct luajit_blob *blob)
{
	blob->entries = calloc(a->code.n + 1, sizeof(*blob->entries));
	blob->stretches = calloc(a->code.n + 1, sizeof(*blob->stretches));
	if (!blob->entries || !blob->stretches)
		return &error_no_memory;
	for (u32 i = 0; i < a->code.n; i++) {
		u64 end = i + 1 < a->code.n ? a->code.ins[i + 1].addr : blob->end;
		struct cfi_rule rule = luajit_state_rule(&a->state[i]);

		if (!blob->nentries || memcmp(&blob->entries[blob->nentries - 1].rule, &rule, sizeof(rule)))
			blob->entries[blob->nentries++] = (struct cfi_entry){a->code.ins[i].addr, rule};
		add_stretch(blob, a->code.ins[i].addr, end, part_of(a, &a->code.ins[i], &a->state[i]));
		if (!blob->behind_call && is_behind_call(a, i, LUAJIT_INTERP) && !a->code.ins[i - 1].target)
			blob->behind_call = a->code.ins[i].addr;
		if (!blob->behind_exit && is_behind_call(a, i, LUAJIT_EXIT))
			blob->behind_exit = a->code.ins[i].addr;
	}
	return NULL;
}

/* The C frame is as the walker has it: its own build, or a fork, may have another (luajit_facts.c checks all else). */
static struct error *check_cframe(const struct code *code, const struct luajit_layout *l)
{
	const struct luajit_vm vm = luajit_vm_of(l);
	const u8 ref = l->l_glref.size;
	const struct code_ins wanted[] = {
	        {.op = CODE_STORE, .base = DWREG_RSP, .value = vm.cf_l, .reg = DWREG_RDI, .size = ref},
	        {.op = CODE_STORE, .base = DWREG_RSP, .value = vm.cf_pc, .reg = DWREG_RBX, .size = ref},
	        {.op = CODE_LOAD, .base = DWREG_RSP, .value = vm.cf_prev, .reg = DWREG_RCX, .size = 8},
	};

	for (u32 k = 0; k < sizeof(wanted) / sizeof(*wanted); k++) {
		bool found = false;

		for (u32 i = 0; i < code->n && !found; i++)
			found = code->ins[i].op == wanted[k].op && code->ins[i].base == wanted[k].base &&
			        code->ins[i].value == wanted[k].value && code->ins[i].reg == wanted[k].reg &&
			        code->ins[i].size == wanted[k].size;
		if (!found)
			return error_hint(error_new(ERROR_UNSUPPORTED,
			                          "LuaJIT's VM does not use its C frame at %ld as known builds do",
			                          (long)wanted[k].value),
			        "its Lua frames are left out");
	}
	return NULL;
}

static struct error *read_code(struct image *img, u64 start, u64 end, struct code *ret)
{
	cleanup(free) u8 *bytes = malloc(end - start);

	if (!bytes)
		return &error_no_memory;
	if (!image_read(img, bytes, end - start, start))
		return error_new(ERROR_INPUT, "%s: the code of LuaJIT's VM can not be read", img->path);
	return code_read(bytes, start, end - start, ret);
}

static struct error *analyse(struct analysis *a, struct image *img, struct luajit_blob *blob)
{
	struct error *err = read_code(img, blob->start, blob->end, &a->code);

	if (!err)
		err = check_cframe(&a->code, a->layout);
	if (err)
		return err;
	a->state = calloc(a->code.n, sizeof(*a->state));
	a->work = calloc(a->code.n, sizeof(*a->work));
	a->queued = calloc(a->code.n, sizeof(*a->queued));
	if (!a->state || !a->work || !a->queued)
		return &error_no_memory;
	start_called(a, img, blob->start, blob->end);
	start_relocated(a, img, blob->start, blob->end);
	start_dispatched(a);
	return fill_blob(a, blob);
}

struct error *luajit_blob_analyse(
        struct image *img, u64 start, u64 end, const struct luajit_layout *layout, struct luajit_blob *ret)
{
	struct analysis a = {.layout = layout};
	struct luajit_blob blob = {.start = start, .end = end};
	struct error *err = analyse(&a, img, &blob);

	code_free(&a.code);
	free(a.state);
	free(a.work);
	free(a.queued);
	if (err) {
		luajit_blob_free(&blob);
		return err;
	}
	*ret = blob;
	return NULL;
}

void luajit_blob_free(struct luajit_blob *blob)
{
	free(blob->entries);
	free(blob->stretches);
	*blob = (struct luajit_blob){0};
}
