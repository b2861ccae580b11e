/* SPDX-License-Identifier: Apache-2.0 */
#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "capstone_registers.h"
#include "cfi_code_state.h"
#include "cfi_internal.h"
#include "cleanup.h"
#include "grow.h"
#include "binary/elf_table.h"
#include "search.h"

#define CODE_MAX (1u << 20)
#define GAPS_MAX (32u << 20) /* bytes of code between FDEs that are followed in one file */
#define GAP_MIN  32          /* fewer are padding */
#define TOLD_PART                                                                                                      \
	16 /* at least this part of a large file's code is covered: libx265 a fifth, Go and Haskell a hundredth */
#define STARTS_MAX (1u << 22)
#define STEPS      4           /* instructions that are followed, for each byte of code */
#define TAIL       0xffffffffu /* in at[]: not the first byte of its instruction */
#define CASES_MAX  4096
#define JOBS_MAX   (1u << 20)
#define SIGCONTEXT 40 /* behind uc_flags, uc_link and uc_stack of struct ucontext */

/* What was seen on the way to a jump through a table of distances from itself (gcc and clang, -fPIC). */
struct seen {
	u64 address[ARCH_NREGS]; /* that a register was given; 0: none */
	u64 table;               /* of the last load; 0: of none */
	u64 cases;               /* the last constant that was compared with */
};

/* TOLD: by an FDE; SIGNAL: what a signal handler returns to; START: of a function; SWITCH: a jump to places not known.
 */
enum mark { TOLD = 1, SIGNAL = 2, START = 4, SWITCH = 8, NEVER_RETURNS = 16, NEWBORN = 32 };

/* Of functions, by symbols; sorted. */
struct start {
	u64 addr;
	bool never_returns;
};

struct starts {
	struct start *list;
	u32 n;
};

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
	struct code_state *states;
	struct job *jobs;
	u32 nstates, states_room, njobs, jobs_room, nfunctions;
	u64 steps;
	bool gap; /* between FDEs: of a file that describes most of its code */
	csh handle;
	cs_insn *in;
	bool no_memory;
};

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
static u32 number(struct flow *f, const struct code_state *s, u32 like)
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
	u32 vector;

	if (cs_disasm_iter(f->handle, &code, &size, &addr, f->in))
		return true;
	vector = code_vector_size(code, size);
	if (!vector)
		return false;
	memset(f->in->detail, 0, sizeof(*f->in->detail));
	memcpy(f->in->bytes, code, MIN(vector, sizeof(f->in->bytes)));
	f->in->id = X86_INS_INVALID;
	f->in->address = addr;
	f->in->size = (u16)vector;
	return true;
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
	u8 reg = x->op_count == 2 ? code_register(to) : CAPSTONE_NO_REG, base;

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
	else if (op->type != X86_OP_REG || !branch_cases(f, seen, behind, age) ||
	         f->gap) /* by hand: the constant may not be the number of cases */
		f->marks[in->address - f->start] |= SWITCH;
	return in->id != X86_INS_JMP;
}

/* No compiler makes it (addb %al, (%rax)): what was never written. */
static bool is_zero(const cs_insn *in)
{
	return in->bytes[0] == 0 && in->bytes[1] == 0;
}

/* By hand a function and what it calls agree on registers: one that the callee may change elsewhere keeps the stack
 * pointer here. */
static bool calls_near(const struct flow *f)
{
	const cs_x86_op *op = &f->in->detail->x86.operands[0];

	return f->in->id == X86_INS_CALL && op->type == X86_OP_IMM && follows(f, (u64)op->imm);
}

static void run(struct flow *f, struct job job)
{
	struct seen seen = {0};
	u64 addr = job.addr;
	u32 state = job.state;

	while (follows(f, addr) && f->steps && !f->no_memory) {
		u32 *at = &f->at[addr - f->start], *age = &f->age[addr - f->start];
		struct code_state s;

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
		code_state_step(&s, f->in);
		if (f->gap)
			code_state_is_no_root(&s);
		if (f->gap && calls_near(f) && code_state_rule(&s, true).kind == CFI_NONE)
			s = f->states[state - 1];
		state = number(f, &s, state);
		if (f->in->id == X86_INS_CALL &&
		        (u64)f->in->detail->x86.operands[0].imm != f->in->address + f->in->size)
			*at = state; /* a return address is looked up here: what the callee may change is lost */
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
static bool never_returns(struct image *img, const struct elf_table *table, const Elf64_Sym *sym)
{
	static const char *const names[] = {
	        "abort", "exit", "_exit", "_Exit", "longjmp", "__assert_fail", "__stack_chk_fail", "pthread_exit"};
	char name[20] = "";

	if (sym->st_name >= table->strings.size ||
	        !elf_read(img, name, MIN(sizeof(name) - 1, table->strings.size - sym->st_name),
	                table->strings.offset + sym->st_name))
		return false;
	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static struct error *add_symbol(
        struct starts *starts, struct image *img, const struct elf_table *table, const Elf64_Sym *sym)
{
	struct error *err;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF)
		return NULL;
	err = grow(&starts->list, starts->n, sizeof(*starts->list));
	if (!err)
		starts->list[starts->n++] = (struct start){sym->st_value, never_returns(img, table, sym)};
	return err;
}

static struct error *add_symbols(struct starts *starts, struct image *img, u32 type)
{
	cleanup(free) struct elf_records *records = malloc(sizeof(*records));
	struct error *err = records ? NULL : &error_no_memory;
	struct elf_table table;
	const Elf64_Sym *sym;

	if (err || !elf_table_find(img, type, &table))
		return err;
	elf_records_start(records, img, &table.symbols);
	while (!err && starts->n < STARTS_MAX && (sym = elf_records_next(records)))
		err = add_symbol(starts, img, &table, sym);
	return err;
}

static int compare_starts(const void *a, const void *b)
{
	const struct start *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static struct error *find_starts(struct starts *starts, struct image *img)
{
	struct error *err = add_symbols(starts, img, SHT_SYMTAB);

	if (!err)
		err = add_symbols(starts, img, SHT_DYNSYM);
	if (!err && starts->n)
		qsort(starts->list, starts->n, sizeof(*starts->list), compare_starts);
	return err;
}

static u32 first_start(const struct starts *starts, u64 addr)
{
	u32 at = SEARCH(starts->n, k, starts->list[k].addr < addr);

	return at;
}

static void seed_starts(struct flow *f, const struct starts *starts)
{
	for (u32 i = first_start(starts, f->start); i < starts->n && starts->list[i].addr < f->end; i++) {
		const struct start *s = &starts->list[i];

		enqueue_function(f, s->addr);
		if (s->never_returns && follows(f, s->addr))
			f->marks[s->addr - f->start] |= NEVER_RETURNS;
	}
}

static bool is_padding(const cs_insn *in)
{
	return in->id == X86_INS_NOP || in->id == X86_INS_INT3 || is_zero(in);
}

static bool looks_like_start(const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];

	return (in->id == X86_INS_PUSH && code_saved_register(code_register(op)) < ARCH_NSAVED) ||
	       in->id == X86_INS_ENDBR64;
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

/* A nop before a signal handler's return is its own, too. */
static void mark_system_calls(struct flow *f)
{
	for (u64 addr = f->start; addr < f->end; addr++) {
		u32 i = (u32)(addr - f->start), size;

		if (!follows(f, addr))
			continue;
		size = code_sigreturn_size(f->bytes + i, f->end - addr);
		memset(f->marks + i, SIGNAL, size);
		if (size && i && f->bytes[i - 1] == 0x90)
			f->marks[i - 1] = SIGNAL;
		size = code_newborn_size(f->bytes + i, i, f->end - addr);
		for (u32 k = 2; k < size; k++)
			f->marks[i + k] |= NEWBORN;
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
		*rule = code_state_rule(&f->states[state - 1], f->gap);
	if (f->marks[addr - f->start] & NEWBORN && rule->kind == CFI_REG)
		rule->kind = CFI_NEWBORN;
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

static void follow(struct flow *f, const struct cfi_parsed *p, const struct starts *starts)
{
	struct code_state state;

	mark_told(f, p);
	mark_system_calls(f);
	state = code_state_entry();
	number(f, &state, 0);
	state = code_state_root();
	number(f, &state, 0);
	seed_starts(f, starts);
	if (!f->gap)
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

/* Follows [start, start + size), of one segment. */
static struct error *stretch(struct image *img, u64 start, u64 size, bool gap, const struct cfi_parsed *p,
        const struct starts *starts, struct cfi_code *ret)
{
	struct flow f = {.img = img,
	        .ret = ret,
	        .gap = gap,
	        .start = start,
	        .end = start + size,
	        .bytes = malloc(size),
	        .marks = calloc(size, 1),
	        .at = calloc(size, sizeof(*f.at)),
	        .age = calloc(size, sizeof(*f.age)),
	        .steps = size * STEPS};

	f.no_memory = !f.bytes || !f.marks || !f.at || !f.age || !disassembler(&f);
	if (!f.no_memory && image_read(img, f.bytes, size, f.start))
		follow(&f, p, starts);
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

bool cfi_code_whole(const struct image *img, u64 told)
{
	return code_size(img) <= CODE_MAX && cfi_tells_little(img, told);
}

bool cfi_code_wanted(const struct image *img, u64 told)
{
	return img->machine == EM_X86_64 && (code_size(img) <= CODE_MAX || told >= code_size(img) / TOLD_PART);
}

struct error *cfi_code_find(struct image *img, const struct cfi_parsed *p, struct cfi_code *ret)
{
	struct starts starts = {0};
	struct error *err = find_starts(&starts, img);

	for (u32 i = 0; !err && i < img->nsegments; i++)
		if (is_code(&img->segments[i]))
			err = stretch(img, img->segments[i].vaddr, img->segments[i].filesz, false, p, &starts, ret);
	free(starts.list);
	return err;
}

struct error *cfi_code_find_gaps(struct image *img, const struct cfi_parsed *p, struct cfi_code *ret)
{
	struct starts starts = {0};
	u64 at, end, size, left = GAPS_MAX;
	struct error *err = NULL;

	if (!image_section_range(img, ".text", &at, &size) || at + size < at)
		return NULL;
	end = at + size;
	for (size_t i = 0; !err && i <= p->nfunctions && at < end; i++) {
		u64 next = i < p->nfunctions ? MIN(p->functions[i].start, end) : end;

		if (next > at && next - at > GAP_MIN && next - at <= left) {
			left -= next - at;
			if (!starts.list)
				err = find_starts(&starts, img);
			if (!err)
				err = stretch(img, at, next - at, true, p, &starts, ret);
		}
		if (i < p->nfunctions)
			at = MAX(at, p->functions[i].end);
	}
	free(starts.list);
	return err;
}

void cfi_code_free(struct cfi_code *code)
{
	free(code->rows);
	free(code->runs);
	*code = (struct cfi_code){0};
}
