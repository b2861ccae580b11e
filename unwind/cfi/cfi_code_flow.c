/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_code_flow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "code/capstone_registers.h"
#include "cfi_code_plain.h"
#include "cfi_internal.h"

#define CASES_MAX   4096
#define JOBS_MAX    (1u << 20)
#define STATES_MAX  (1u << 20)
#define WAITERS_MAX (1u << 20)
#define STUB_INSNS  3

/* What was seen on the way to a jump through a table of distances from itself (gcc and clang, -fPIC). */
struct seen {
	u64 address[ARCH_NREGS]; /* that a register was given; 0: none */
	u64 table;               /* of the last load; 0: of none */
	u64 cases;               /* the last constant that was compared with */
};

struct error *cfi_reserve(void *array, u32 n, u32 *room, size_t size)
{
	u32 more = *room ? *room * 2 : 1024;
	void *grown;

	if (n < *room)
		return NULL;
	grown = reallocarray(*(void **)array, more, size);
	if (!grown)
		return &error_no_memory;
	*(void **)array = grown;
	*room = more;
	return NULL;
}

bool code_flow_reserve(struct code_flow *f, void *array, u32 n, u32 *room, size_t size)
{
	if (!cfi_reserve(array, n, room, size))
		return true;
	f->no_memory = true;
	return false;
}

u32 code_flow_number(struct code_flow *f, const struct code_state *s, u32 like)
{
	if (like && !memcmp(&f->states[like - 1], s, sizeof(*s)))
		return like;
	if (f->nstates == STATES_MAX)
		f->steps = 0;
	if (!f->steps || !code_flow_reserve(f, &f->states, f->nstates, &f->states_room, sizeof(*s)))
		return 1;
	f->states[f->nstates++] = *s;
	return f->nstates;
}

bool code_flow_follows(const struct code_flow *f, u64 addr)
{
	return addr >= f->start && addr < f->end && !(f->marks[addr - f->start] & (DESCRIBED | SIGNAL | DATA));
}

static bool same(const struct code_flow *f, u32 a, u32 b)
{
	return a == b || !memcmp(&f->states[a - 1], &f->states[b - 1], sizeof(*f->states));
}

static void enqueue(struct code_flow *f, struct code_job job)
{
	if (f->njobs < JOBS_MAX && code_flow_reserve(f, &f->jobs, f->njobs, &f->jobs_room, sizeof(*f->jobs)))
		f->jobs[f->njobs++] = job;
}

u32 code_flow_function(struct code_flow *f, u64 addr, u32 state, u32 age)
{
	u32 i = (u32)(addr - f->start);

	if (!code_flow_follows(f, addr))
		return 0;
	if (f->marks[i] & START)
		return f->owner[i];
	if (!code_flow_reserve(f, &f->functions, f->nfunctions, &f->functions_room, sizeof(*f->functions)))
		return 0;
	f->functions[f->nfunctions] = (struct code_function){.age = age};
	f->marks[i] |= START;
	f->owner[i] = f->nfunctions++;
	if (f->at[i] != CODE_TAIL)
		f->at[i] = 0;
	enqueue(f, (struct code_job){addr, state, f->owner[i]});
	return f->owner[i];
}

/* What is called begins there: what ran into it from before did so behind a call that does not return. */
u32 code_flow_called(struct code_flow *f, u64 addr)
{
	return code_flow_function(f, addr, CODE_ENTRY, f->nfunctions);
}

static void function_returns(struct code_flow *f, u32 function)
{
	struct code_function *fn = &f->functions[function];

	fn->returns = true;
	for (u32 i = fn->waiting; i; i = f->waiters[i - 1].next)
		enqueue(f, f->waiters[i - 1].job);
	fn->waiting = 0;
}

/* Are the stack and the registers those of the caller, as at a return? */
static bool is_whole(const struct code_flow *f, u32 state)
{
	const struct code_state *s = &f->states[state - 1];
	bool whole = s->below[REG_SP] == 8;

	for (u32 i = 0; i < ARCH_NSAVED; i++)
		whole = whole && s->slot[i] == CFI_SAME;
	return whole;
}

/* A way that does not end as a function's do: a proof has failed, and goes no further. */
static void add_loose(struct code_flow *f)
{
	f->loose = true;
	if (f->proves)
		f->steps = 0;
}

void code_flow_enqueue(struct code_flow *f, u64 addr, u32 state, u32 function)
{
	if (code_flow_follows(f, addr))
		return enqueue(f, (struct code_job){addr, state, function});
	if (!is_whole(f, state))
		add_loose(f);
	function_returns(f, function);
}

/* The job is done when the function is known to return, if ever. */
static void wait_for(struct code_flow *f, u32 function, struct code_job job)
{
	if (f->functions[function].returns) {
		enqueue(f, job);
	} else if (f->nwaiters == WAITERS_MAX) {
		f->steps = 0;
	} else if (code_flow_reserve(f, &f->waiters, f->nwaiters, &f->waiters_room, sizeof(*f->waiters))) {
		f->waiters[f->nwaiters++] = (struct code_waiter){job, f->functions[function].waiting};
		f->functions[function].waiting = f->nwaiters;
	}
}

/* One function jumps into another, or into code that both have. */
static void returns_with(struct code_flow *f, u32 function, u32 other)
{
	if (function != other && !f->functions[function].returns)
		wait_for(f, other, (struct code_job){.function = function});
}

bool code_flow_decode(struct code_flow *f, u64 addr)
{
	const u8 *code = f->bytes + (addr - f->start);
	size_t size = f->end - addr;
	u32 vector;

	if (code_plain_decode(code, size, addr, f->d.in))
		return true;
	if (cs_disasm_iter(f->d.handle, &code, &size, &addr, f->d.in))
		return true;
	vector = code_vector_size(code, size);
	if (!vector)
		return false;
	memset(f->d.in->detail, 0, sizeof(*f->d.in->detail));
	memcpy(f->d.in->bytes, code, MIN(vector, sizeof(f->d.in->bytes)));
	f->d.in->id = X86_INS_INVALID;
	f->d.in->address = addr;
	f->d.in->size = (u16)vector;
	return true;
}

static bool is_return(const cs_insn *in)
{
	return in->id == X86_INS_RET || in->id == X86_INS_RETF;
}

static bool is_trap(const cs_insn *in)
{
	return in->id == X86_INS_HLT || in->id == X86_INS_UD2 || in->id == X86_INS_INT3;
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
static bool branch_cases(struct code_flow *f, const struct seen *seen, u32 behind, u32 function)
{
	s32 distance;

	if (!seen->table || !seen->cases || seen->cases > CASES_MAX || f->steps < seen->cases)
		return false;
	f->steps -= seen->cases;
	for (u64 i = 0; i < seen->cases; i++) {
		if (!image_read(f->img, &distance, sizeof(distance), seen->table + 4 * i) ||
		        !code_flow_follows(f, seen->table + (u64)(s64)distance))
			return false;
		code_flow_enqueue(f, seen->table + (u64)(s64)distance, behind, function);
	}
	return true;
}

static bool through_word(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP;
}

/* Through a word of the GOT: a function that never returns. */
static bool through_end(const struct code_flow *f)
{
	const cs_x86_op *op = &f->d.in->detail->x86.operands[0];

	return through_word(op) && code_starts_ends(f->starts, f->d.in->address + f->d.in->size + (u64)op->mem.disp);
}

/* Is at addr the PLT's way to a function that never returns? It has an FDE where no other function has one. */
static bool leads_to_end(struct code_flow *f, u64 addr)
{
	for (u32 n = 0; n < STUB_INSNS && addr >= f->start && addr < f->end && code_flow_decode(f, addr); n++) {
		if (f->d.in->id == X86_INS_JMP)
			return through_end(f);
		addr += f->d.in->size;
	}
	return false;
}

/* True: the next instruction follows. What is behind a callee that is not known to return waits for that. */
static bool call(struct code_flow *f, u32 behind, u32 function)
{
	const cs_x86_op *op = &f->d.in->detail->x86.operands[0];
	u64 next = f->d.in->address + f->d.in->size, to = (u64)op->imm;
	u32 callee;

	if (op->type != X86_OP_IMM)
		return !through_end(f);
	callee = to == next ? 0 : code_flow_called(f, to);
	if (!callee)
		return !leads_to_end(f, to);
	if (f->marks[to - f->start] & NEVER_RETURNS)
		return false;
	if (!f->functions[callee].returns)
		wait_for(f, callee, (struct code_job){next, behind, function});
	return f->functions[callee].returns;
}

static void jump(struct code_flow *f, const struct seen *seen, u32 behind, u32 function)
{
	const cs_insn *in = f->d.in;
	const cs_x86_op *op = &in->detail->x86.operands[0];
	bool cases;

	if (op->type == X86_OP_IMM) {
		code_flow_enqueue(f, (u64)op->imm, behind, function);
		return;
	}
	cases = op->type == X86_OP_REG && branch_cases(f, seen, behind, function);
	if (!cases && !is_whole(f, behind))
		f->open = behind;
	if (!cases || f->gap) { /* by hand: the constant may not be the number of cases */
		f->marks[in->address - f->start] |= SWITCH;
		f->nstrays += !through_word(op);
		if (!through_end(f))
			function_returns(f, function);
	}
}

static void leave(struct code_flow *f, u32 function)
{
	bool whole = is_whole(f, f->at[f->d.in->address - f->start]);

	f->nreturns += whole;
	f->nstrays += !whole;
	if (!whole)
		add_loose(f);
	function_returns(f, function);
}

/* Queues where an instruction may lead to. True: also to the next one. */
static bool branch(struct code_flow *f, const struct seen *seen, u32 behind, u32 function)
{
	const cs_insn *in = f->d.in;

	if (is_return(in))
		leave(f, function);
	if (is_return(in) || is_trap(in))
		return false;
	if (in->id == X86_INS_CALL)
		return call(f, behind, function);
	if (!cs_insn_group(f->d.handle, in, X86_GRP_JUMP))
		return true;
	jump(f, seen, behind, function);
	return in->id != X86_INS_JMP;
}

bool code_is_zero(const cs_insn *in)
{
	return in->bytes[0] == 0 && in->bytes[1] == 0;
}

/* By hand a function and what it calls agree on registers: one that the callee may change elsewhere keeps the stack
 * pointer here. */
static bool calls_near(const struct code_flow *f)
{
	const cs_x86_op *op = &f->d.in->detail->x86.operands[0];

	return f->d.in->id == X86_INS_CALL && op->type == X86_OP_IMM && code_flow_follows(f, (u64)op->imm);
}

/* main(), callbacks: of code that is written by hand it may be any place. */
static void mark_pointed(struct code_flow *f)
{
	const cs_x86 *x = &f->d.in->detail->x86;
	const cs_x86_op *op = &x->operands[1];
	u64 to = 0;

	if (f->gap || x->op_count != 2 || x->operands[0].type != X86_OP_REG)
		return;
	if (f->d.in->id == X86_INS_LEA && op->mem.base == X86_REG_RIP && op->mem.index == X86_REG_INVALID)
		to = f->d.in->address + f->d.in->size + (u64)op->mem.disp;
	else if (f->img->type == ET_EXEC && f->d.in->id == X86_INS_MOV && op->type == X86_OP_IMM)
		to = (u64)op->imm;
	if (to >= f->start && to < f->end)
		f->marks[to - f->start] |= POINTED;
}

/* Does a job end where it comes to? */
static bool arrives(struct code_flow *f, struct code_job job, u64 addr, u32 state)
{
	u32 i = (u32)(addr - f->start), at = f->at[i], owner = f->owner[i];
	bool begins = f->marks[i] & START;

	if (begins ? owner == job.function && !at : !at)
		return false;
	if (at == CODE_TAIL) {
		add_loose(f);
		function_returns(f, job.function);
		return true;
	}
	if (at && f->states[at - 1].below[REG_SP] != f->states[state - 1].below[REG_SP])
		add_loose(f);
	if (begins || f->functions[job.function].age <= f->functions[owner].age || same(f, at, state)) {
		returns_with(f, job.function, owner);
		return true;
	}
	return false;
}

/* The first instruction of clone()'s child: behind the jump, or behind its caller's return. */
static bool begins_child(const struct code_flow *f)
{
	u64 i = f->d.in->address - f->start;

	i -= i && f->bytes[i - 1] == 0xc3;
	return i && f->marks[i - 1] & NEWBORN;
}

/* The state behind the instruction. */
static u32 step(struct code_flow *f, u32 state)
{
	struct code_state s = f->states[state - 1];
	bool was_root = s.root;

	code_state_step(&s, f->d.in);
	if (f->gap && !was_root && !begins_child(f))
		code_state_is_no_root(&s);
	if (f->gap && calls_near(f) && code_state_rule(&s, true).kind == CFI_NONE)
		s = f->states[state - 1];
	return code_flow_number(f, &s, state);
}

static void run(struct code_flow *f, struct code_job job)
{
	struct seen seen = {0};
	u64 addr = job.addr;
	u32 state = job.state;

	while (code_flow_follows(f, addr) && f->steps && !f->no_memory) {
		u32 i = (u32)(addr - f->start), size;

		if (arrives(f, job, addr, state))
			return;
		f->steps--;
		if (!code_flow_decode(f, addr) || code_is_zero(f->d.in))
			break;
		size = f->d.in->size;
		f->at[i] = state;
		f->owner[i] = job.function;
		for (u32 k = 1; k < size; k++)
			f->at[i + k] = CODE_TAIL;
		state = step(f, state);
		if (f->d.in->id == X86_INS_CALL &&
		        (u64)f->d.in->detail->x86.operands[0].imm != f->d.in->address + f->d.in->size)
			f->at[i] = state; /* a return address is looked up here: what the callee may change is lost */
		see(&seen, f->d.in);
		mark_pointed(f);
		if (!branch(f, &seen, state, job.function))
			return;
		addr += size;
	}
	add_loose(f);
	function_returns(f, job.function);
}

void code_flow_run(struct code_flow *f)
{
	while (f->njobs) {
		struct code_job job = f->jobs[--f->njobs];

		if (job.addr)
			run(f, job);
		else
			function_returns(f, job.function);
	}
}
