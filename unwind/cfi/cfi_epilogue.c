/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_epilogue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "code/capstone_registers.h"
#include "code/disassembler.h"
#include "cfi_code_state.h"

#define WINDOW       (1u << 20) /* bytes of code that are read at once */
#define FUNCTION_MAX WINDOW
#define RET          0xc3
#define RUN_MAX      16 /* instructions of an epilogue: six pops, and what is between them */
#define MENDED_PART  8  /* where at least this part of functions lacked rows, all are looked at */

/* An instruction of an epilogue: what it adds to the stack pointer, or that it takes it from rbp. 0: it is another. */
struct step {
	u64 addr;
	s64 add;
	bool leaves;   /* rsp = rbp + add */
	bool pops_rbp; /* rbp is the caller's behind it */
};

struct cfi_epilogues {
	struct image *img;
	u8 *bytes;
	u64 start, end; /* of bytes */
	struct disassembler d;
	struct cfi_rows out;
	struct step run[RUN_MAX];
	u32 nrun;
	u32 nseen, nmended; /* functions */
};

struct cfi_epilogues *cfi_epilogues_create(struct image *img)
{
	struct cfi_epilogues *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->img = img;
	e->bytes = malloc(WINDOW);
	if (e->bytes && disassembler_open(&e->d))
		return e;
	cfi_epilogues_destroy(e);
	return NULL;
}

void cfi_epilogues_destroy(struct cfi_epilogues *e)
{
	if (!e)
		return;
	disassembler_close(&e->d);
	free(e->bytes);
	free(e->out.entry);
	free(e);
}

/* Makes bytes hold the function, and what follows it: functions come in order. */
static bool see(struct cfi_epilogues *e, const struct cfi_function *fn)
{
	u64 most = e->nseen < CFI_EPILOGUES_SURVEY ? fn->end - fn->start : WINDOW;

	if (fn->start >= e->start && fn->end <= e->end)
		return true;
	for (u32 i = 0; i < e->img->nsegments; i++) {
		const struct image_segment *seg = &e->img->segments[i];
		u64 at = fn->start - seg->vaddr;
		u64 size = fn->start >= seg->vaddr && at < seg->filesz ? MIN(seg->filesz - at, most) : 0;

		e->start = e->end = fn->start;
		if (size < fn->end - fn->start || !image_read(e->img, e->bytes, size, fn->start))
			continue;
		e->end = fn->start + size;
		return true;
	}
	return false;
}

static bool is_plain(const struct cfi_rule *rule)
{
	return rule->kind == CFI_REG && rule->cfa_reg == REG_SP && rule->cfa_off == 8;
}

/* A rule of a body that an epilogue could follow. */
static bool is_body(const struct cfi_rule *rule)
{
	return rule->kind == CFI_REG && !is_plain(rule) && rule->slot_reg == CFI_NO_REG && rule->ra_reg == CFI_NO_REG &&
	       (rule->cfa_reg == REG_SP || rule->cfa_reg == DWREG_RBP);
}

/* What `add $N, %rsp` or `lea N(%rsp), %rsp` before code adds, if that is what the bytes are; else 0. */
static s32 added(const u8 *code, size_t before)
{
	s32 n;

	if (before >= 4 && code[-4] == 0x48 && code[-3] == 0x83 && code[-2] == 0xc4)
		return (s8)code[-1];
	if (before >= 5 && code[-5] == 0x48 && code[-4] == 0x8d && code[-3] == 0x64 && code[-2] == 0x24)
		return (s8)code[-1];
	if (before < 7 || code[-7] != 0x48 || code[-6] != 0x81 || code[-5] != 0xc4)
		return 0;
	memcpy(&n, code - 4, sizeof(n));
	return n;
}

/* Could the bytes before it be an epilogue that takes all off the stack that the rule says is there? */
static bool may_restore(const struct cfi_rule *rule, const u8 *code, size_t before)
{
	s64 off = 8;

	if (before && code[-1] == 0xf3) { /* rep ret */
		code--;
		before--;
	}
	if (rule->cfa_reg == DWREG_RBP)
		return before && (code[-1] == 0x5d || code[-1] == 0xc9);
	for (u32 pops = 0; off < rule->cfa_off && pops < RUN_MAX; pops++) {
		if (off + added(code, before) == rule->cfa_off)
			return true;
		if (!before || (code[-1] & 0xf8) != 0x58)
			return false;
		code--;
		before--;
		off += 8;
		if (before && code[-1] == 0x41) { /* of r8 to r15 */
			code--;
			before--;
		}
	}
	return off == rule->cfa_off;
}

/*
 * Cheap, as nearly all files describe their epilogues: are there bytes before a return that the rows of a body should
 * not cover? Before jumps such bytes are frequent.
 */
static bool is_suspect(const struct cfi_epilogues *e, const struct cfi_function *fn, const struct cfi_rows *rows)
{
	const u8 *code = e->bytes + (fn->start - e->start);

	for (size_t i = 0; i < rows->n; i++) {
		const struct cfi_entry *row = &rows->entry[i];
		u64 end = i + 1 < rows->n ? MIN(row[1].addr, fn->end) : fn->end;

		if (!is_body(&row->rule) || row->addr < fn->start || row->addr >= end)
			continue;
		for (const u8 *at = code + (row->addr - fn->start), *stop = code + (end - fn->start);
		        (at = memchr(at, RET, (size_t)(stop - at))); at++)
			if (may_restore(&row->rule, at, (size_t)(at - code)))
				return true;
	}
	return false;
}

enum described {
	NOTHING_TO_DESCRIBE, /* nothing is on the stack */
	NOT_DESCRIBED,
	DESCRIBED
};

/* Does the file say of a return that only the return address is left? Cheap: most of a survey needs no more. */
static enum described is_described(
        const struct cfi_epilogues *e, const struct cfi_function *fn, const struct cfi_rows *rows)
{
	enum described ret = NOTHING_TO_DESCRIBE;

	for (size_t i = 0; i < rows->n; i++) {
		const struct cfi_entry *row = &rows->entry[i];

		if (is_body(&row->rule))
			ret = NOT_DESCRIBED;
		else if (ret && is_plain(&row->rule) && row->addr > fn->start && row->addr < fn->end &&
		         e->bytes[row->addr - e->start] == RET)
			return DESCRIBED;
	}
	return ret;
}

static const struct cfi_rule *rule_at(const struct cfi_rows *rows, u64 addr, size_t *hint)
{
	while (*hint + 1 < rows->n && rows->entry[*hint + 1].addr <= addr)
		++*hint;
	while (*hint && rows->entry[*hint].addr > addr)
		--*hint;
	return &rows->entry[*hint].rule;
}

static bool put(struct cfi_epilogues *e, u64 addr, const struct cfi_rule *rule)
{
	struct cfi_rows *out = &e->out;

	if (out->n && out->entry[out->n - 1].addr >= addr) { /* what a file says is untrusted */
		out->entry[out->n - 1].rule = *rule;
		return true;
	}
	return cfi_rows_add(out, addr, rule);
}

static bool is_frame(u8 reg)
{
	return reg == REG_SP || reg == DWREG_RBP;
}

/* What compilers put between the instructions of an epilogue: it sets the result, or an argument. */
static bool is_neutral(const cs_insn *in)
{
	const cs_detail *d = in->detail;

	for (u32 i = 0; i < d->groups_count; i++)
		if (d->groups[i] == X86_GRP_JUMP || d->groups[i] == X86_GRP_CALL || d->groups[i] == X86_GRP_RET ||
		        d->groups[i] == X86_GRP_INT)
			return false;
	for (u32 i = 0; i < d->regs_write_count; i++)
		if (is_frame(capstone_register(d->regs_write[i])))
			return false;
	for (u32 i = 0; i < d->x86.op_count; i++)
		if (d->x86.operands[i].access & CS_AC_WRITE && is_frame(code_register(&d->x86.operands[i])))
			return false;
	return true;
}

/* Is the instruction one of an epilogue? */
static bool take_step(const cs_insn *in, struct step *ret)
{
	const cs_x86_op *op = in->detail->x86.operands;

	*ret = (struct step){.addr = in->address, .add = 8};
	switch (in->id) {
	case X86_INS_POP:
		ret->pops_rbp = code_register(op) == DWREG_RBP;
		return op->type == X86_OP_REG && op->size == 8 && code_register(op) != REG_SP;
	case X86_INS_LEAVE:
		return ret->leaves = ret->pops_rbp = true;
	case X86_INS_ADD:
		ret->add = op[1].imm;
		return code_register(op) == REG_SP && op[1].type == X86_OP_IMM;
	case X86_INS_LEA:
		if (code_register(op) != REG_SP)
			break;
		ret->add = op[1].mem.disp;
		return op->size == 8 && op[1].mem.base == X86_REG_RSP && op[1].mem.index == X86_REG_INVALID;
	}
	ret->add = 0;
	return is_neutral(in);
}

static bool is_way_out(const cs_insn *in, const struct cfi_function *fn)
{
	const cs_x86_op *op = in->detail->x86.operands;

	if (in->id == X86_INS_RET)
		return true;
	return in->id == X86_INS_JMP &&
	       (op->type != X86_OP_IMM || (u64)op->imm <= fn->start || (u64)op->imm >= fn->end);
}

/*
 * Does the file say of the stack before the step what follows from the end of the function? off: how far the CFA is
 * above the stack pointer there; behind it: after the step.
 */
static bool agrees(const struct cfi_rule *rule, const struct step *step, s64 off, s64 behind)
{
	if (rule->kind != CFI_REG)
		return false;
	if (rule->cfa_reg == REG_SP)
		return !step->leaves && rule->cfa_off == off;
	return rule->cfa_reg == DWREG_RBP && step->pops_rbp && rule->cfa_off == (step->leaves ? behind + 8 : off);
}

/* The number of steps at the end of the run that the file does not know of; 0: none, or it cannot be told. */
static u32 unknown_steps(const struct cfi_epilogues *e, const struct cfi_rows *rows, u64 out, size_t *hint)
{
	s64 behind = 8;

	if (!is_body(rule_at(rows, out, hint)))
		return 0;
	for (u32 n = 1; n <= e->nrun; n++) {
		const struct step *step = &e->run[e->nrun - n];
		s64 off = behind + step->add;

		if (agrees(rule_at(rows, step->addr, hint), step, off, behind))
			return n;
		if (step->leaves || step->add < 0)
			return 0;
		behind = off;
	}
	return 0;
}

/* Replaces the rows of the last n steps, but the first, and of the way out; behind: those of the file again. */
static bool mend_run(struct cfi_epilogues *e, const struct cfi_rows *rows, u32 n, u64 end, size_t *hint)
{
	struct cfi_rule rule = *rule_at(rows, e->d.in->address, hint);
	s64 off = 8;

	rule.cfa_reg = REG_SP;
	for (u32 i = 1; i < n; i++)
		off += e->run[e->nrun - i].add;
	while (e->out.n && e->out.entry[e->out.n - 1].addr > e->run[e->nrun - n].addr)
		e->out.n--;
	for (u32 i = n - 1; i; i--) {
		const struct step *step = &e->run[e->nrun - i];

		rule.cfa_off = (s32)off;
		if (!put(e, step->addr, &rule))
			return false;
		off -= step->add;
	}
	rule.cfa_off = 8;
	return put(e, e->d.in->address, &rule) &&
	       (e->d.in->address + e->d.in->size >= end ||
	               put(e, e->d.in->address + e->d.in->size, rule_at(rows, e->d.in->address + e->d.in->size, hint)));
}

/* Copies the rows up to addr. */
static bool copy_rows(struct cfi_epilogues *e, const struct cfi_rows *rows, u64 addr, size_t *next)
{
	for (; *next < rows->n && rows->entry[*next].addr <= addr; ++*next)
		if (!put(e, rows->entry[*next].addr, &rows->entry[*next].rule))
			return false;
	return true;
}

static bool decode(struct cfi_epilogues *e, u64 addr, u64 end)
{
	const u8 *code = e->bytes + (addr - e->start);
	size_t size = end - addr;

	return cs_disasm_iter(e->d.handle, &code, &size, &addr, e->d.in);
}

static bool follow(struct cfi_epilogues *e, const struct cfi_function *fn, const struct cfi_rows *rows)
{
	size_t next = 0, hint = 0;
	bool mended = false;
	u32 size;

	e->nrun = 0;
	for (u64 addr = fn->start; addr < fn->end; addr += size) {
		struct step step;

		if (!decode(e, addr, fn->end)) {
			size = MAX(code_vector_size(e->bytes + (addr - e->start), fn->end - addr), 1u);
			e->nrun = 0;
			continue;
		}
		size = e->d.in->size;
		if (!copy_rows(e, rows, addr, &next))
			return false;
		if (take_step(e->d.in, &step)) {
			if (e->nrun == RUN_MAX)
				memmove(e->run, e->run + 1, --e->nrun * sizeof(*e->run));
			e->run[e->nrun++] = step;
			continue;
		}
		if (e->nrun && is_way_out(e->d.in, fn)) {
			u32 n = unknown_steps(e, rows, addr, &hint);

			mended |= n;
			if (n && !mend_run(e, rows, n, fn->end, &hint))
				return false;
		}
		e->nrun = 0;
	}
	e->nmended += mended;
	return copy_rows(e, rows, UINT64_MAX, &next);
}

bool cfi_epilogues_mend(struct cfi_epilogues *e, const struct cfi_function *fn, struct cfi_rows *rows)
{
	bool surveys = e->nseen < CFI_EPILOGUES_SURVEY && fn->end - fn->start <= CFI_EPILOGUES_SHORT;
	enum described described;
	struct cfi_rows swap;

	if (!rows->n || fn->end - fn->start > FUNCTION_MAX || !see(e, fn))
		return true;
	described = surveys ? is_described(e, fn, rows) : NOT_DESCRIBED;
	if (!described)
		return true;
	e->nseen += surveys || e->nseen >= CFI_EPILOGUES_SURVEY;
	surveys &= described == NOT_DESCRIBED;
	if (!surveys && e->nmended * MENDED_PART <= e->nseen && !is_suspect(e, fn, rows))
		return true;
	e->out.n = 0;
	if (!follow(e, fn, rows))
		return false;
	swap = *rows;
	*rows = e->out;
	e->out = swap;
	return true;
}
