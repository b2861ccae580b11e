/* SPDX-License-Identifier: Apache-2.0 */
#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "capstone_registers.h"
#include "cfi_internal.h"
#include "process/elf_table.h"

#define CODE_MAX   (1u << 20)
#define LOST       INT32_MAX
#define FRAME_MAX  (1 << 20)   /* a stack pointer further from the CFA is none */
#define STEPS      4           /* instructions that are followed, for each byte of code */
#define TAIL       0xffffffffu /* in at[]: not the first byte of its instruction */
#define CASES_MAX  4096
#define JOBS_MAX   (1u << 20)
#define SIGCONTEXT 40 /* behind uc_flags, uc_link and uc_stack of struct ucontext */

enum kind { KNOWN, ROOT };

/* What holds before an instruction: CFA - rsp, CFA - rbp (LOST: not known), and where the caller's registers are. */
struct state {
	s32 sp, fp;
	s16 slot[ARCH_NSAVED];
	u32 kind;
};

/* What was seen on the way to a jump through a table of distances from itself (gcc and clang, -fPIC). */
struct seen {
	u64 address[ARCH_NREGS]; /* that a register was given; 0: none */
	u64 table;               /* of the last load; 0: of none */
	u64 cases;               /* the last constant that was compared with */
};

/* TOLD: by an FDE; SIGNAL: what a signal handler returns to; START: of a function; SWITCH: a jump to places not known. */
enum mark { TOLD = 1, SIGNAL = 2, START = 4, SWITCH = 8, NEVER_RETURNS = 16 };

struct job {
	u64 addr;
	u32 state;
	u32 age; /* counts the functions; 0: of none that is known to begin somewhere */
};

struct flow {
	struct image *img;
	struct cfi_code *ret;
	u64 start, end; /* of an executable segment */
	u8 *bytes, *marks;
	u32 *at;  /* number of the state at an instruction, from 1; 0: not reached */
	u32 *age; /* of the job that reached it: a later one is believed */
	struct state *states;
	struct job *jobs;
	u32 nstates, states_room, njobs, jobs_room, nfunctions;
	u64 steps;
	csh handle;
	cs_insn *in;
	bool no_memory;
};

static const struct state entry_state = {
        .sp = 8, .fp = LOST, .slot = {CFI_SAME, CFI_SAME, CFI_SAME, CFI_SAME, CFI_SAME, CFI_SAME}};

/* Nobody called the file's entry point. */
static const struct state root_state = {.sp = LOST, .fp = LOST, .kind = ROOT};

static u32 slot_number(u8 reg)
{
	switch (reg) {
#define NUMBER(i, r)                                                                                                   \
	case r:                                                                                                        \
		return i;
		ARCH_SAVED_REGS(NUMBER)
#undef NUMBER
	}
	return ARCH_NSAVED;
}

static u8 reg_of(const cs_x86_op *op)
{
	return op->type == X86_OP_REG ? capstone_register(op->reg) : CAPSTONE_NO_REG;
}

static s32 moved(s32 from, s64 by)
{
	s64 to = from + by;

	return from == LOST || to < 0 || to > FRAME_MAX ? LOST : (s32)to;
}

static void save(struct state *s, u8 reg, s32 below)
{
	u32 i = slot_number(reg);

	if (i < ARCH_NSAVED && s->slot[i] == CFI_SAME)
		s->slot[i] = below == LOST || below % 8 || below < 16 ? CFI_UNDEFINED : cfi_slot(-below, 0);
}

static void push(struct state *s, const cs_x86_op *op)
{
	s->sp = moved(s->sp, op && op->size == 2 ? 2 : 8);
	if (op)
		save(s, reg_of(op), s->sp);
}

static void pop(struct state *s, const cs_x86_op *op)
{
	u8 reg = op ? reg_of(op) : CAPSTONE_NO_REG;
	u32 i = slot_number(reg);

	if (i < ARCH_NSAVED)
		s->slot[i] = s->sp != LOST && s->slot[i] == cfi_slot(-s->sp, 0) ? CFI_SAME : CFI_UNDEFINED;
	if (reg == REG_FP)
		s->fp = LOST;
	s->sp = reg == REG_SP ? LOST : moved(s->sp, op && op->size == 2 ? -2 : -8);
}

static void leave(struct state *s)
{
	s->sp = moved(s->fp, -8);
	s->slot[slot_number(REG_FP)] = CFI_SAME;
	s->fp = LOST;
}

/* Where an address that is told by the stack or the frame pointer lies below the CFA. */
static s32 below(const struct state *s, const cs_x86_op *op)
{
	if (op->mem.index != X86_REG_INVALID || op->mem.segment != X86_REG_INVALID)
		return LOST;
	if (op->mem.base == X86_REG_RSP)
		return moved(s->sp, -op->mem.disp);
	return op->mem.base == X86_REG_RBP ? moved(s->fp, -op->mem.disp) : LOST;
}

static void set(struct state *s, u8 reg, s32 value)
{
	if (reg == REG_SP)
		s->sp = value;
	if (reg == REG_FP)
		s->fp = value;
}

static s32 value_of(const struct state *s, u8 reg)
{
	if (reg == REG_SP)
		return s->sp;
	return reg == REG_FP ? s->fp : LOST;
}

static void two_operands(struct state *s, const cs_insn *in, const cs_x86_op *to, const cs_x86_op *from)
{
	u8 reg = reg_of(to);

	if (in->id == X86_INS_MOV && to->type == X86_OP_MEM && from->type == X86_OP_REG && from->size == 8) {
		if (below(s, to) != LOST)
			save(s, reg_of(from), below(s, to));
	} else if (!(to->access & CS_AC_WRITE)) {
		return;
	} else if (in->id == X86_INS_MOV) {
		set(s, reg, value_of(s, reg_of(from)));
	} else if (in->id == X86_INS_LEA) {
		set(s, reg, below(s, from));
	} else if (in->id == X86_INS_ADD && from->type == X86_OP_IMM) {
		set(s, reg, moved(value_of(s, reg), -from->imm));
	} else if (in->id == X86_INS_SUB && from->type == X86_OP_IMM) {
		set(s, reg, moved(value_of(s, reg), from->imm));
	} else if (in->id == X86_INS_XOR && reg == REG_FP && reg_of(from) == REG_FP &&
	           s->slot[slot_number(REG_FP)] == CFI_SAME) {
		s->kind = ROOT; /* the ABI's mark of the outermost frame */
	} else {
		set(s, reg, LOST);
	}
}

static void other(struct state *s, const cs_x86 *x)
{
	for (u32 i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG && x->operands[i].access & CS_AC_WRITE)
			set(s, reg_of(&x->operands[i]), LOST);
}

/* The state behind an instruction. */
static void step(struct state *s, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	switch (in->id) {
	case X86_INS_PUSH:
		return push(s, &x->operands[0]);
	case X86_INS_PUSHFQ:
		return push(s, NULL);
	case X86_INS_POP:
		return pop(s, &x->operands[0]);
	case X86_INS_POPFQ:
		return pop(s, NULL);
	case X86_INS_LEAVE:
		return leave(s);
	case X86_INS_ENTER:
		s->sp = s->fp = LOST;
		return;
	case X86_INS_CALL:
		if (x->operands[0].type == X86_OP_IMM && (u64)x->operands[0].imm == in->address + in->size)
			push(s, NULL);
		return;
	}
	if (x->op_count == 2 && in->id != X86_INS_XCHG)
		two_operands(s, in, &x->operands[0], &x->operands[1]);
	else
		other(s, x);
}

static bool reserve(struct flow *f, void *array, u32 n, u32 *room, size_t size)
{
	u32 more = *room ? *room * 2 : 1024;
	void *grown;

	if (n < *room)
		return true;
	grown = reallocarray(*(void **)array, more, size);
	if (!grown) {
		f->no_memory = true;
		return false;
	}
	*(void **)array = grown;
	*room = more;
	return true;
}

/* The number of a state; like: that of one that it is often equal to, or 0. */
static u32 number(struct flow *f, const struct state *s, u32 like)
{
	if (like && !memcmp(&f->states[like - 1], s, sizeof(*s)))
		return like;
	if (!reserve(f, &f->states, f->nstates, &f->states_room, sizeof(*s)))
		return 1;
	f->states[f->nstates++] = *s;
	return f->nstates;
}

static bool follows(const struct flow *f, u64 addr)
{
	return addr >= f->start && addr < f->end && !(f->marks[addr - f->start] & (TOLD | SIGNAL));
}

static bool same(const struct flow *f, u32 a, u32 b)
{
	return a == b || !memcmp(&f->states[a - 1], &f->states[b - 1], sizeof(*f->states));
}

static void enqueue(struct flow *f, u64 addr, u32 state, u32 age)
{
	if (f->njobs < JOBS_MAX && follows(f, addr) && reserve(f, &f->jobs, f->njobs, &f->jobs_room, sizeof(*f->jobs)))
		f->jobs[f->njobs++] = (struct job){addr, state, age};
}

/* What is called begins there, whatever ran into it from before: that call did not return. */
static void enqueue_function(struct flow *f, u64 addr)
{
	if (!follows(f, addr) || f->marks[addr - f->start] & START)
		return;
	f->marks[addr - f->start] |= START;
	enqueue(f, addr, 1, ++f->nfunctions);
}

static bool decode(struct flow *f, u64 addr)
{
	const u8 *code = f->bytes + (addr - f->start);
	size_t size = f->end - addr;

	return cs_disasm_iter(f->handle, &code, &size, &addr, f->in);
}

static bool ends(const cs_insn *in)
{
	return in->id == X86_INS_RET || in->id == X86_INS_RETF || in->id == X86_INS_HLT || in->id == X86_INS_UD2 ||
	       in->id == X86_INS_INT3;
}

static void see(struct seen *seen, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *to = &x->operands[0], *from = &x->operands[1];
	u8 reg = x->op_count == 2 ? reg_of(to) : CAPSTONE_NO_REG, base;

	if (in->id == X86_INS_CMP && from->type == X86_OP_IMM)
		seen->cases = (u64)from->imm + 1;
	if (reg >= ARCH_NREGS || !(to->access & CS_AC_WRITE))
		return;
	if (in->id == X86_INS_MOVSXD && from->type == X86_OP_MEM && from->mem.scale == 4 && !from->mem.disp) {
		base = capstone_register(from->mem.base);
		seen->table = base < ARCH_NREGS ? seen->address[base] : 0;
	}
	seen->address[reg] = in->id == X86_INS_LEA && from->mem.base == X86_REG_RIP
	                             ? in->address + in->size + (u64)from->mem.disp
	                             : 0;
}

/* Queues the cases of a jump through a table. False: they are not understood. */
static bool branch_cases(struct flow *f, const struct seen *seen, u32 behind, u32 age)
{
	s32 distance;

	if (!seen->table || !seen->cases || seen->cases > CASES_MAX || f->steps < seen->cases)
		return false;
	f->steps -= seen->cases;
	for (u64 i = 0; i < seen->cases; i++) {
		if (!image_read(f->img, &distance, sizeof(distance), seen->table + 4 * i) ||
		        !follows(f, seen->table + (u64)(s64)distance))
			return false;
		enqueue(f, seen->table + (u64)(s64)distance, behind, age);
	}
	return true;
}

/* Queues where an instruction may lead to. True: also to the next one. */
static bool branch(struct flow *f, const struct seen *seen, u32 behind, u32 age)
{
	const cs_insn *in = f->in;
	const cs_x86_op *op = &in->detail->x86.operands[0];

	if (ends(in))
		return false;
	if (in->id == X86_INS_CALL && op->type == X86_OP_IMM && (u64)op->imm != in->address + in->size) {
		enqueue_function(f, (u64)op->imm);
		if (follows(f, (u64)op->imm) && f->marks[(u64)op->imm - f->start] & NEVER_RETURNS)
			return false;
	}
	if (in->id == X86_INS_CALL || !cs_insn_group(f->handle, in, X86_GRP_JUMP))
		return true;
	if (op->type == X86_OP_IMM)
		enqueue(f, (u64)op->imm, behind, age);
	else if (op->type != X86_OP_REG || !branch_cases(f, seen, behind, age))
		f->marks[in->address - f->start] |= SWITCH;
	return in->id != X86_INS_JMP;
}

/* No compiler makes it (addb %al, (%rax)): what was never written. */
static bool is_zero(const cs_insn *in)
{
	return in->bytes[0] == 0 && in->bytes[1] == 0;
}

static void run(struct flow *f, struct job job)
{
	struct seen seen = {0};
	u64 addr = job.addr;
	u32 state = job.state;

	while (follows(f, addr) && f->steps && !f->no_memory) {
		u32 *at = &f->at[addr - f->start], *age = &f->age[addr - f->start];
		struct state s;

		if (*at == TAIL || (*at && (job.age <= *age || same(f, *at, state))))
			return;
		if (f->marks[addr - f->start] & START && !same(f, state, 1)) /* behind a call that does not return */
			return;
		f->steps--;
		if (!decode(f, addr) || is_zero(f->in))
			return;
		*at = state;
		*age = job.age;
		for (u32 i = 1; i < f->in->size; i++)
			at[i] = TAIL;
		s = f->states[state - 1];
		step(&s, f->in);
		state = number(f, &s, state);
		see(&seen, f->in);
		if (!branch(f, &seen, state, job.age))
			return;
		addr += f->in->size;
	}
}

static void run_all(struct flow *f)
{
	while (f->njobs)
		run(f, f->jobs[--f->njobs]);
}

/* Functions of a C library that are called at others' ends. */
static bool never_returns(struct flow *f, const struct elf_table *table, const Elf64_Sym *sym)
{
	static const char *const names[] = {
	        "abort", "exit", "_exit", "_Exit", "longjmp", "__assert_fail", "__stack_chk_fail", "pthread_exit"};
	char name[20] = "";

	if (sym->st_name >= table->strings.size ||
	        !elf_read(f->img, name, MIN(sizeof(name) - 1, table->strings.size - sym->st_name),
	                table->strings.offset + sym->st_name))
		return false;
	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void seed_symbol(struct flow *f, const struct elf_table *table, const Elf64_Sym *sym)
{
	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF || !follows(f, sym->st_value))
		return;
	enqueue_function(f, sym->st_value);
	if (never_returns(f, table, sym))
		f->marks[sym->st_value - f->start] |= NEVER_RETURNS;
}

static void seed_symbols(struct flow *f, u32 type)
{
	struct elf_records *records;
	struct elf_table table;
	const Elf64_Sym *sym;

	if (!elf_table_find(f->img, type, &table))
		return;
	records = malloc(sizeof(*records));
	if (!records) {
		f->no_memory = true;
		return;
	}
	elf_records_start(records, f->img, &table.symbols);
	while ((sym = elf_records_next(records)))
		seed_symbol(f, &table, sym);
	free(records);
}

static bool is_padding(const cs_insn *in)
{
	return in->id == X86_INS_NOP || in->id == X86_INS_INT3 || is_zero(in);
}

static bool looks_like_start(const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];

	return (in->id == X86_INS_PUSH && slot_number(reg_of(op)) < ARCH_NSAVED) || in->id == X86_INS_ENDBR64;
}

/*
 * What nothing leads to is a case of the switch before it in its function, with the stack as it is there, or a function
 * that only pointers lead to.
 */
static void sweep(struct flow *f)
{
	u32 cases = 0;

	for (u64 addr = f->start; addr < f->end && f->steps && !f->no_memory; addr++) {
		u32 i = (u32)(addr - f->start);

		if (f->marks[i] & START)
			cases = 0;
		if (f->marks[i] & SWITCH && f->at[i] != TAIL) /* code that overlaps */
			cases = f->at[i];
		if (f->at[i] || !follows(f, addr) || !decode(f, addr))
			continue;
		if (is_padding(f->in)) {
			addr += f->in->size - 1u;
			continue;
		}
		if (cases && !looks_like_start(f->in)) {
			enqueue(f, addr, cases, 0);
		} else {
			cases = 0;
			f->marks[i] |= START;
			enqueue(f, addr, 1, 0);
		}
		run_all(f);
	}
}

static struct cfi_rule rule_of(const struct state *s)
{
	struct cfi_rule rule = {.kind = CFI_NONE, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	if (s->kind == ROOT)
		rule.kind = CFI_ROOT;
	if (s->kind == ROOT || (s->sp == LOST && s->fp == LOST))
		return rule;
	rule.kind = CFI_REG;
	rule.cfa_reg = s->sp != LOST ? REG_SP : REG_FP;
	rule.cfa_off = s->sp != LOST ? s->sp : s->fp;
	memcpy(rule.slot, s->slot, sizeof(s->slot));
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}

static void add_row(struct flow *f, u64 addr, const struct cfi_rule *rule)
{
	struct cfi_code *c = f->ret;

	if (reserve(f, &c->rows, c->nrows, &c->rows_room, sizeof(*c->rows)))
		c->rows[c->nrows++] = (struct cfi_entry){addr, *rule};
}

static void add_run(struct flow *f, u64 start, u64 end, u32 row)
{
	struct cfi_code *c = f->ret;

	if (end > start && reserve(f, &c->runs, c->nruns, &c->runs_room, sizeof(*c->runs)))
		c->runs[c->nruns++] =
		        (struct cfi_function){.start = start, .end = end, .code_size = row, .cie = CFI_CIE_CODE};
}

/* mov $15, %rax (or %eax); syscall: rt_sigreturn(), to which a signal handler returns; a nop before it is its own, too.
 */
static u32 sigreturn_size(const struct flow *f, u64 addr)
{
	static const u8 wide[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05},
	                narrow[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
	const u8 *code = f->bytes + (addr - f->start);

	if (f->end - addr >= sizeof(wide) && !memcmp(code, wide, sizeof(wide)))
		return sizeof(wide);
	return f->end - addr >= sizeof(narrow) && !memcmp(code, narrow, sizeof(narrow)) ? sizeof(narrow) : 0;
}

static void mark_signals(struct flow *f)
{
	for (u64 addr = f->start; addr < f->end; addr++) {
		u32 i = (u32)(addr - f->start), size = follows(f, addr) ? sigreturn_size(f, addr) : 0;

		memset(f->marks + i, SIGNAL, size);
		if (size && i && f->bytes[i - 1] == 0x90)
			f->marks[i - 1] = SIGNAL;
	}
}

static void mark_told(struct flow *f, const struct cfi_parsed *p)
{
	for (size_t i = 0; i < p->nfunctions; i++) {
		u64 start = MAX(p->functions[i].start, f->start), end = MIN(p->functions[i].end, f->end);

		if (start < end)
			memset(f->marks + (start - f->start), TOLD, end - start);
	}
}

/* The rule at an address; false: nothing is known. */
static bool rule_at(const struct flow *f, u64 addr, struct cfi_rule *rule)
{
	u32 state = f->at[addr - f->start];

	if (f->marks[addr - f->start] & SIGNAL)
		*rule = (struct cfi_rule){.kind = CFI_SIGNAL,
		        .cfa_reg = REG_SP,
		        .cfa_off = SIGCONTEXT,
		        .slot_reg = CFI_NO_REG,
		        .ra_reg = CFI_NO_REG,
		        .flags = CFI_SIGNAL_FRAME};
	else if (state && state != TAIL)
		*rule = rule_of(&f->states[state - 1]);
	return f->marks[addr - f->start] & SIGNAL || state; /* within an instruction that of its first byte holds */
}

static void emit(struct flow *f)
{
	struct cfi_rule rule, last;
	u64 start = f->start;
	u32 row = f->ret->nrows;

	for (u64 addr = f->start; addr < f->end; addr++) {
		if (!rule_at(f, addr, &rule)) {
			add_run(f, start, addr, row);
			start = addr + 1;
			row = f->ret->nrows;
		} else if (addr == start || memcmp(&rule, &last, sizeof(rule))) {
			add_row(f, addr, &rule);
			last = rule;
		}
	}
	add_run(f, start, f->end, row);
}

static void follow(struct flow *f, const struct cfi_parsed *p)
{
	mark_told(f, p);
	mark_signals(f);
	number(f, &entry_state, 0);
	number(f, &root_state, 0);
	seed_symbols(f, SHT_SYMTAB);
	seed_symbols(f, SHT_DYNSYM);
	enqueue(f, f->img->entry, 2, 0);
	run_all(f);
	sweep(f);
	if (f->steps && !f->no_memory)
		emit(f);
}

static bool disassembler(struct flow *f)
{
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &f->handle) != CS_ERR_OK)
		return false;
	cs_option(f->handle, CS_OPT_DETAIL, CS_OPT_ON);
	f->in = cs_malloc(f->handle);
	return f->in;
}

static struct error *segment(
        struct image *img, const struct image_segment *seg, const struct cfi_parsed *p, struct cfi_code *ret)
{
	u64 size = seg->filesz;
	struct flow f = {.img = img,
	        .ret = ret,
	        .start = seg->vaddr,
	        .end = seg->vaddr + size,
	        .bytes = malloc(size),
	        .marks = calloc(size, 1),
	        .at = calloc(size, sizeof(*f.at)),
	        .age = calloc(size, sizeof(*f.age)),
	        .steps = size * STEPS};

	f.no_memory = !f.bytes || !f.marks || !f.at || !f.age || !disassembler(&f);
	if (!f.no_memory && image_read(img, f.bytes, size, f.start))
		follow(&f, p);
	if (f.in)
		cs_free(f.in, 1);
	if (f.handle)
		cs_close(&f.handle);
	free(f.bytes);
	free(f.marks);
	free(f.at);
	free(f.age);
	free(f.states);
	free(f.jobs);
	return f.no_memory ? &error_no_memory : NULL;
}

static bool is_code(const struct image_segment *seg)
{
	return seg->flags & PF_X && seg->filesz && seg->vaddr + seg->filesz > seg->vaddr;
}

static u64 code_size(const struct image *img)
{
	u64 size = 0;

	for (u32 i = 0; i < img->nsegments; i++)
		if (is_code(&img->segments[i]))
			size += img->segments[i].filesz;
	return size;
}

bool cfi_tells_little(const struct image *img, u64 told)
{
	return told < code_size(img) / 2;
}

bool cfi_code_wanted(const struct image *img, u64 told)
{
	return img->machine == EM_X86_64 && code_size(img) <= CODE_MAX && cfi_tells_little(img, told);
}

struct error *cfi_code_find(struct image *img, const struct cfi_parsed *p, struct cfi_code *ret)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < img->nsegments; i++)
		if (is_code(&img->segments[i]))
			err = segment(img, &img->segments[i], p, ret);
	return err;
}

void cfi_code_free(struct cfi_code *code)
{
	free(code->rows);
	free(code->runs);
	*code = (struct cfi_code){0};
}
