/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers: what is before and behind a function's instructions, blocks, calls, and where the data lies. */
#include "bpf.h"

#include <stdlib.h>
#include <string.h>

#include "bpf_make.h"
#include "unwind/arch/x86_64/arch.h"
#include "unwind/grow.h"

#define STATE_MOST   (1u << 20)
#define SLOTS_END    32000u /* offsets of loads and stores have 16 bits */
#define INSNS_MOST   30000u /* so have jumps */
#define CALLS_MOST   32u
#define ITER_ROUNDS  (8 * 1024 * 1024)
#define CLOCK_ROUNDS 63    /* rounds between two looks at the clock, less one */
#define ZEROS        3072u /* a new aggregate is made of them */
#define ORIG_AX      120   /* in struct pt_regs: the number of the system call */

void bpf_refuse(struct bpf_make *m, const struct y_insn *i, const char *what, const char *hint)
{
	const struct y_place *place = &m->p->places[i->place ? i->place : m->place];

	if (!m->error)
		m->error = error_hint(error_new(ERROR_UNSUPPORTED, "%s:%u:%u: a probe cannot do this: %s", place->file,
		                              place->line, place->column, what),
		        "%s", hint);
}

void bpf_state_address(struct bpf_make *m, u8 reg, u32 off)
{
	bpf_op(&m->code, BPF_MOV, reg, R_STATE);
	if (off)
		bpf_op_imm(&m->code, BPF_ADD, reg, (s32)off);
}

void bpf_lookup(struct bpf_make *m, u32 map, s32 key)
{
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_FD, map, 0);
	bpf_op(&m->code, BPF_MOV, R2, R10);
	bpf_op_imm(&m->code, BPF_ADD, R2, key);
	bpf_call(&m->code, HELPER_MAP_LOOKUP);
}

/* Room in the state. */
static u32 bpf_room(struct bpf_make *m, u32 size)
{
	u32 at = m->used;

	m->used += (size + 7) & ~7u;
	return at;
}

void bpf_fail(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i, enum y_status status, int at)
{
	bpf_store_imm(&m->code, 4, R_STATE, offsetof(struct y_state, status), (s32)status);
	bpf_store_imm(&m->code, 4, R_STATE, offsetof(struct y_state, place), (s32)i->place);
	if (at < 0)
		bpf_store_imm(&m->code, 8, R_STATE, offsetof(struct y_state, at), 0);
	else
		bpf_store(&m->code, 8, R_STATE, offsetof(struct y_state, at), (u8)at);
	bpf_jump(&m->code, i->fail == Y_PROPAGATE ? c->fail : c->first_block + i->fail);
}

void bpf_count(struct bpf_make *m, u32 offset)
{
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_VALUE, Y_MAP_GLOBALS, offset);
	bpf_op_imm(&m->code, BPF_MOV, R2, 1);
	bpf_atomic(&m->code, 8, R1, 0, R2, BPF_ADD);
}

/* --- functions --- */

static void function(struct bpf_make *m, struct bpf_call *c);

/* Beyond the program's rounds, the kernel's own, or the time of a hit. */
static void round_begins(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 ok = bpf_label(&m->code), bad = bpf_label(&m->code);

	bpf_op(&m->code, BPF_MOV, R1, R10);
	bpf_op_imm(&m->code, BPF_ADD, R1, AT_ITER);
	bpf_kfunc(&m->code, Y_ITER_NEXT);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, bad);
	bpf_load(&m->code, 8, R1, R_STATE, offsetof(struct y_state, steps));
	bpf_op_imm(&m->code, BPF_ADD, R1, 1);
	bpf_store(&m->code, 8, R_STATE, offsetof(struct y_state, steps), R1);
	bpf_imm64(&m->code, R2, m->p->limits.steps);
	bpf_branch(&m->code, BPF_JGT, R1, R2, bad);
	bpf_op_imm(&m->code, BPF_AND, R1, CLOCK_ROUNDS);
	bpf_branch_imm(&m->code, BPF_JNE, R1, 0, ok);
	bpf_call(&m->code, HELPER_KTIME);
	bpf_load(&m->code, 8, R1, R_STATE, offsetof(struct y_state, until));
	bpf_branch(&m->code, BPF_JLE, R0, R1, ok);
	bpf_place(&m->code, bad);
	bpf_fail(m, c, i, Y_LIMIT, -1);
	bpf_place(&m->code, ok);
}

static void move(struct bpf_make *m, enum y_type type, u32 to, u32 from)
{
	if (type == Y_STR) {
		bpf_copy_text(m, to, from);
		return;
	}
	bpf_load(&m->code, 8, R1, R_STATE, (s16)from);
	bpf_store(&m->code, 8, R_STATE, (s16)to, R1);
}

static void make_room(struct bpf_make *m, struct bpf_call *c)
{
	const struct y_function *f = c->f;

	c->slots = calloc(f->nslots + 1, sizeof(*c->slots));
	c->arrays = calloc(f->narrays + 1, sizeof(*c->arrays));
	if (!c->slots || !c->arrays) {
		m->code.no_memory = true;
		return;
	}
	for (u32 i = 0; i < f->nslots; i++)
		if (f->slots[i] != Y_STR)
			c->slots[i] = bpf_room(m, sizeof(u64));
	if (m->used > SLOTS_END && !m->error)
		m->error = error_hint(
		        error_new(ERROR_UNSUPPORTED, "%s: too many values for a probe", f->name), BPF_SMALLER);
}

/* Behind all slots of numbers, whose offsets are short. */
static void make_large_room(struct bpf_make *m, struct bpf_call *c)
{
	for (u32 i = 0; i < c->f->nslots; i++)
		if (c->f->slots[i] == Y_STR)
			c->slots[i] = bpf_room(m, sizeof(struct y_text));
	for (u32 i = 0; i < c->f->narrays; i++)
		c->arrays[i] = bpf_room(m, c->f->arrays[i].n * (u32)sizeof(u64));
	if (m->used > STATE_MOST && !m->error)
		m->error = error_hint(error_new(ERROR_UNSUPPORTED,
		                              "%s: arrays and strings that are too large for a probe", c->f->name),
		        "an array of the program, outside of the handler, or a map");
}

static void call(struct bpf_make *m, const struct bpf_call *outer, const struct y_insn *i)
{
	struct bpf_call c = {.f = &m->p->functions[i->imm], .to = bpf_label(&m->code), .fail = bpf_label(&m->code)};

	if (m->depth == CALLS_MOST || m->code.n > INSNS_MOST) {
		if (m->depth == CALLS_MOST)
			bpf_refuse(m, i, "functions that call themselves",
			        "a loop with an array as its stack (long todo[64]; in the handler), or _oneshot, "
			        "_timer and _end, where functions may");
		else
			bpf_refuse(m, i, "so large a program", BPF_SMALLER);
		return;
	}
	m->depth++;
	make_room(m, &c);
	c.returned = i->dst == Y_NONE ? Y_NONE : outer->slots[i->dst];
	if (!m->code.no_memory)
		make_large_room(m, &c);
	for (u32 k = 0; k < i->nargs && !m->code.no_memory; k++)
		move(m, c.f->slots[k], c.slots[k], outer->slots[outer->f->args[i->args + k]]);
	if (!m->code.no_memory && !m->error)
		function(m, &c);
	bpf_place(&m->code, c.fail); /* what failed, and where, is known already */
	bpf_jump(&m->code, i->fail == Y_PROPAGATE ? outer->fail : outer->first_block + i->fail);
	bpf_place(&m->code, c.to);
	free(c.slots);
	free(c.arrays);
	m->depth--;
}

static void instruction(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	m->place = i->place ? i->place : m->place;
	switch (i->op) {
	case Y_OP_JUMP:
		bpf_jump(&m->code, c->first_block + i->b);
		return;
	case Y_OP_BRANCH:
		bpf_load(&m->code, 8, R1, R_STATE, (s16)c->slots[i->a]);
		bpf_branch_imm(&m->code, BPF_JNE, R1, 0, c->first_block + i->b);
		bpf_jump(&m->code, c->first_block + i->c);
		return;
	case Y_OP_RETURN:
		if (i->a != Y_NONE && c->returned != Y_NONE)
			move(m, c->f->slots[i->a], c->returned, c->slots[i->a]);
		bpf_jump(&m->code, c->to);
		return;
	case Y_OP_LOOP:
		round_begins(m, c, i);
		return;
	case Y_OP_CALL:
		call(m, c, i);
		return;
	case Y_OP_PRINT:
	case Y_OP_PRINT_MAP:
	case Y_OP_WARN:
	case Y_OP_ERROR:
	case Y_OP_EXIT:
		bpf_print(m, c, i);
		return;
	case Y_OP_EACH_BEGIN:
	case Y_OP_EACH_NEXT:
		bpf_refuse(m, i, "_foreach", "_foreach in _timer(1s) or _end, which see the maps that probes fill");
		return;
	case Y_OP_MATCH:
		bpf_refuse(m, i, "regular expressions",
		        "count by the string, n[_str(p)]++, and match the keys in _timer or _end; here == and s[i] "
		        "take it");
		return;
	case Y_OP_SYMBOL:
		bpf_refuse(m, i, i->imm ? "_syscall" : "_sym",
		        i->imm ? "count by the number, n[$id]++, and take _syscall of the keys in _timer or _end"
		               : "count by the address, n[p]++, and take _sym of the keys in _timer or _end");
		return;
	case Y_OP_STACK:
		return; /* what it is a key of waits for it */
	default:
		if (i->op >= Y_OP_MAP_GET && i->op <= Y_OP_AGG_GET)
			bpf_table(m, c, i);
		else if (i->type == Y_STR && i->op != Y_OP_EQ && i->op != Y_OP_NE && i->op != Y_OP_LT &&
		         i->op != Y_OP_LE)
			bpf_text(m, c, i);
		else if (i->op >= Y_OP_STR_READ && i->op <= Y_OP_STR_CAT)
			bpf_text(m, c, i);
		else
			bpf_value(m, c, i);
	}
}

static void clear_arrays(struct bpf_make *m, const struct bpf_call *c)
{
	for (u32 a = 0; a < c->f->narrays; a++)
		for (u32 at = 0, size = c->f->arrays[a].n * 8; at < size; at += ZEROS) {
			bpf_state_address(m, R1, c->arrays[a] + at);
			bpf_op_imm(&m->code, BPF_MOV, R2, (s32)(size - at < ZEROS ? size - at : ZEROS));
			bpf_map(&m->code, R3, BPF_PSEUDO_MAP_VALUE, Y_MAP_LITERALS, 0);
			bpf_call(&m->code, HELPER_READ_KERNEL);
		}
}

static void function(struct bpf_make *m, struct bpf_call *c)
{
	const struct y_function *f = c->f;

	c->first_block = m->code.nlabels;
	for (u32 b = 0; b < f->nblocks; b++)
		bpf_label(&m->code);
	clear_arrays(m, c);
	if (f->nblocks && f->blocks[0].start)
		bpf_jump(&m->code, c->first_block);
	/* in the order of their instructions */
	for (u32 k = 0; k < f->ninsns && !m->error && !m->code.no_memory; k++)
		for (u32 b = 0; b < f->nblocks; b++) {
			if (f->blocks[b].start != k)
				continue;
			bpf_place(&m->code, c->first_block + b);
			for (u32 n = 0; n < f->blocks[b].n && !m->error && !m->code.no_memory; n++)
				instruction(m, c, &f->insns[k + n]);
		}
}

/* --- handlers --- */

static enum y_kind kind_of(const struct y_handler *h)
{
	switch (h->point) {
	case Y_CALL:
		return Y_OF_CALL;
	case Y_PROBE:
		return Y_OF_CODE;
	case Y_PROFILE:
		return Y_OF_CLOCK;
	default:
		return Y_OF_KERNEL;
	}
}

static void look_through(struct bpf_make *m, u32 function)
{
	bool *seen = calloc(m->p->nfunctions + 1, sizeof(*seen));

	m->loops = m->stacks = m->threads = m->registers = false;
	m->code.no_memory |= !seen;
	if (seen)
		y_see_calls(m->p, function, seen);
	for (u32 k = 0; seen && k < m->p->nfunctions; k++)
		for (u32 n = 0; seen[k] && n < m->p->functions[k].ninsns; n++) {
			const struct y_insn *i = &m->p->functions[k].insns[n];

			m->loops |= i->op == Y_OP_LOOP;
			m->stacks |= i->op == Y_OP_STACK;
			m->threads |= i->op == Y_OP_CONTEXT && (i->imm == Y_TID || (i->imm == Y_PID && !m->o->pid));
			m->registers |= i->op == Y_OP_REGISTER;
		}
	m->ret->object.loops |= m->loops;
	if (m->stacks)
		m->ret->object.stacks |= 1u << kind_of(m->handler);
	free(seen);
}

/* R0: whether it is numbered there. Threads of other namespaces have the kernel's own numbers. */
static void anyone(struct bpf_make *m, u32 leave)
{
	u32 other = bpf_label(&m->code), known = bpf_label(&m->code);

	bpf_branch_imm(&m->code, BPF_JNE, R0, 0, other);
	bpf_load(&m->code, 8, R8, R10, AT_PID);
	bpf_load(&m->code, 4, R1, R10, AT_PID + 4);
	bpf_branch_imm(&m->code, BPF_JEQ, R1, (s32)m->o->own, leave);
	bpf_jump(&m->code, known);
	bpf_place(&m->code, other);
	bpf_call(&m->code, HELPER_PID_TGID);
	bpf_op(&m->code, BPF_MOV, R8, R0);
	bpf_place(&m->code, known);
}

/* R8: struct y_state's thread; others than the target's leave. */
static void who(struct bpf_make *m, u32 leave)
{
	bpf_imm64(&m->code, R1, m->o->pid_namespace[0]);
	bpf_imm64(&m->code, R2, m->o->pid_namespace[1]);
	bpf_op(&m->code, BPF_MOV, R3, R10);
	bpf_op_imm(&m->code, BPF_ADD, R3, AT_PID);
	bpf_op_imm(&m->code, BPF_MOV, R4, 8);
	bpf_call(&m->code, HELPER_NS_PID);
	if (!m->o->pid) {
		anyone(m, leave);
		return;
	}
	bpf_branch_imm(&m->code, BPF_JNE, R0, 0, leave);
	bpf_load(&m->code, 8, R8, R10, AT_PID);
	bpf_load(&m->code, 4, R1, R10, AT_PID + 4);
	bpf_branch_imm(&m->code, BPF_JNE, R1, (s32)m->o->pid, leave);
}

static void left_key(struct bpf_make *m)
{
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_FD, Y_MAP_LEFT, 0);
	bpf_op(&m->code, BPF_MOV, R2, R10);
	bpf_op_imm(&m->code, BPF_ADD, R2, AT_LEFT);
}

/* Where a function is left: jumps are only noted; the returns of others count where they were jumped to. */
static void returns(struct bpf_make *m, u32 number, u32 leave)
{
	u32 run = bpf_label(&m->code), jump = bpf_label(&m->code);

	bpf_op(&m->code, BPF_MOV, R1, R_CTX);
	bpf_call(&m->code, HELPER_COOKIE);
	bpf_op(&m->code, BPF_MOV, R9, R0);
	bpf_load(&m->code, 8, R1, R_CTX, bpf_register_offset(DWREG_RSP));
	bpf_store(&m->code, 8, R10, AT_LEFT, R1);
	bpf_store_imm(&m->code, 8, R10, AT_LEFT + 8, (s32)number);
	bpf_branch_imm(&m->code, BPF_JSET, R9, Y_COOKIE_JUMP, jump);
	left_key(m);
	bpf_call(&m->code, HELPER_MAP_DELETE);
	bpf_branch_imm(&m->code, BPF_JEQ, R9, 0, run);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, run);
	bpf_jump(&m->code, leave);
	bpf_place(&m->code, jump);
	bpf_branch_imm(&m->code, BPF_JSET, R9, Y_COOKIE_BORROWED, leave); /* marked, or not, it stays */
	left_key(m);
	bpf_op(&m->code, BPF_MOV, R3, R2);
	bpf_op_imm(&m->code, BPF_MOV, R4, 0);
	bpf_call(&m->code, HELPER_MAP_UPDATE);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, leave);
	bpf_count(m, offsetof(struct y_control, lost_updates));
	bpf_jump(&m->code, leave);
	bpf_place(&m->code, run);
}

/* R7: a state that is free. */
static void take_state(struct bpf_make *m, u32 leave)
{
	u32 got = bpf_label(&m->code), none = bpf_label(&m->code);

	bpf_call(&m->code, HELPER_CPU);
	bpf_op(&m->code, BPF_MOV, R9, R0);
	bpf_op_imm(&m->code, BPF_MUL, R9, Y_STATES_PER_CPU);
	for (u32 i = 0; i < Y_STATES_PER_CPU; i++) {
		bpf_store(&m->code, 4, R10, AT_KEY, R9);
		bpf_lookup(m, Y_MAP_STATES, AT_KEY);
		bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, none);
		bpf_op(&m->code, BPF_MOV, R_STATE, R0);
		bpf_op_imm(&m->code, BPF_MOV, R0, 0);
		bpf_op_imm(&m->code, BPF_MOV, R1, 1);
		bpf_atomic(&m->code, 4, R_STATE, offsetof(struct y_state, busy), R1, BPF_CMPXCHG);
		bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, got);
		bpf_op_imm(&m->code, BPF_ADD, R9, 1);
	}
	bpf_place(&m->code, none);
	bpf_count(m, offsetof(struct y_control, not_run));
	bpf_jump(&m->code, leave);
	bpf_place(&m->code, got);
}

/* All system calls come by. */
static void is_call(struct bpf_make *m, u32 leave)
{
	if (m->handler->returns) {
		bpf_load(&m->code, 8, R3, R_CTX, 0);
		bpf_op_imm(&m->code, BPF_ADD, R3, ORIG_AX);
		bpf_op(&m->code, BPF_MOV, R1, R10);
		bpf_op_imm(&m->code, BPF_ADD, R1, AT_WORD);
		bpf_op_imm(&m->code, BPF_MOV, R2, 8);
		bpf_store_imm(&m->code, 8, R10, AT_WORD, -1);
		bpf_call(&m->code, HELPER_READ_KERNEL);
		bpf_load(&m->code, 8, R1, R10, AT_WORD);
	} else {
		bpf_load(&m->code, 8, R1, R_CTX, 8);
	}
	bpf_branch_imm(&m->code, BPF_JNE, R1, (s32)m->handler->syscall, leave);
}

static void begin(struct bpf_make *m, const struct y_handler *h, u32 leave)
{
	bpf_op(&m->code, BPF_MOV, R_CTX, R1);
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_VALUE, Y_MAP_GLOBALS, offsetof(struct y_control, running));
	bpf_load(&m->code, 8, R1, R1, 0);
	bpf_branch_imm(&m->code, BPF_JEQ, R1, 0, leave);
	bpf_op_imm(&m->code, BPF_MOV, R8, 0);
	if (h->point == Y_SYSCALL)
		is_call(m, leave);
	if (m->threads || m->o->check_pid || h->point != Y_PROBE)
		who(m, leave);
	if (h->returns && h->point == Y_PROBE)
		returns(m, m->ret->object.nhandlers - 1, leave);
	take_state(m, leave);
	bpf_store(&m->code, 8, R_STATE, offsetof(struct y_state, thread), R8);
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_VALUE, Y_MAP_GLOBALS, offsetof(struct y_control, generation));
	bpf_load(&m->code, 8, R1, R1, 0);
	bpf_store(&m->code, 8, R_STATE, offsetof(struct y_state, generation), R1);
	bpf_store_imm(&m->code, 4, R_STATE, offsetof(struct y_state, out_used), 0);
	bpf_store_imm(&m->code, 8, R_STATE, offsetof(struct y_state, pends), 0);
	bpf_count(m, offsetof(struct y_control, handlers));
	if (!m->loops)
		return;
	bpf_store_imm(&m->code, 8, R_STATE, offsetof(struct y_state, steps), 0);
	bpf_call(&m->code, HELPER_KTIME);
	bpf_imm64(&m->code, R1, m->p->limits.hit_ns);
	bpf_op(&m->code, BPF_ADD, R0, R1);
	bpf_store(&m->code, 8, R_STATE, offsetof(struct y_state, until), R0);
	bpf_op(&m->code, BPF_MOV, R1, R10);
	bpf_op_imm(&m->code, BPF_ADD, R1, AT_ITER);
	bpf_op_imm(&m->code, BPF_MOV, R2, 0);
	bpf_op_imm(&m->code, BPF_MOV, R3, ITER_ROUNDS);
	bpf_kfunc(&m->code, Y_ITER_NEW);
}

/* A failure that nobody caught is counted by place and cause. */
static void count_failure(struct bpf_make *m)
{
	u32 full = bpf_label(&m->code);

	bpf_load(&m->code, 4, R1, R_STATE, offsetof(struct y_state, place));
	bpf_op_imm(&m->code, BPF_MUL, R1, Y_STATUSES);
	bpf_load(&m->code, 4, R2, R_STATE, offsetof(struct y_state, status));
	bpf_op(&m->code, BPF_ADD, R1, R2);
	bpf_store(&m->code, 4, R10, AT_KEY, R1);
	bpf_lookup(m, Y_MAP_FAILURES, AT_KEY);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, full);
	bpf_op_imm(&m->code, BPF_MOV, R1, 1);
	bpf_atomic(&m->code, 8, R0, offsetof(struct y_counted, count), R1, BPF_ADD);
	bpf_load(&m->code, 8, R1, R_STATE, offsetof(struct y_state, at));
	bpf_store(&m->code, 8, R0, offsetof(struct y_counted, at), R1);
	bpf_place(&m->code, full);
}

/* Leaves what is pending to on_y(), which does not come back. */
static void take_stack(struct bpf_make *m, u32 leave)
{
	u32 nothing = bpf_label(&m->code);
	enum y_kind kind = kind_of(m->handler);

	bpf_load(&m->code, 8, R1, R_STATE, offsetof(struct y_state, pends));
	bpf_branch_imm(&m->code, BPF_JEQ, R1, 0, nothing);
	bpf_call(&m->code, HELPER_PID_TGID);
	bpf_op_imm(&m->code, BPF_LSH, R0, 32);
	bpf_op_imm(&m->code, BPF_RSH, R0, 32);
	bpf_op_imm(&m->code, BPF_OR, R0, (s32)Y_PENDING_KEY(0, kind));
	bpf_store(&m->code, 4, R10, AT_KEY, R0);
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_FD, Y_MAP_PENDING, 0);
	bpf_op(&m->code, BPF_MOV, R2, R10);
	bpf_op_imm(&m->code, BPF_ADD, R2, AT_KEY);
	bpf_state_address(m, R3, offsetof(struct y_state, pending));
	bpf_op_imm(&m->code, BPF_MOV, R4, 0);
	bpf_call(&m->code, HELPER_MAP_UPDATE);
	bpf_store_imm(&m->code, 4, R_STATE, offsetof(struct y_state, busy), 0);
	bpf_op(&m->code, BPF_MOV, R1, R_CTX);
	bpf_map(&m->code, R2, BPF_PSEUDO_MAP_FD, Y_MAP_ON_Y + kind, 0);
	bpf_op_imm(&m->code, BPF_MOV, R3, 0);
	bpf_call(&m->code, HELPER_TAIL_CALL);
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_FD, Y_MAP_PENDING, 0);
	bpf_op(&m->code, BPF_MOV, R2, R10);
	bpf_op_imm(&m->code, BPF_ADD, R2, AT_KEY);
	bpf_call(&m->code, HELPER_MAP_DELETE);
	bpf_count(m, offsetof(struct y_control, lost_updates));
	bpf_jump(&m->code, leave);
	bpf_place(&m->code, nothing);
}

static void end(struct bpf_make *m, u32 leave)
{
	bpf_place(&m->code, m->end);
	bpf_flush(m);
	if (m->loops) {
		bpf_op(&m->code, BPF_MOV, R1, R10);
		bpf_op_imm(&m->code, BPF_ADD, R1, AT_ITER);
		bpf_kfunc(&m->code, Y_ITER_DESTROY);
	}
	if (m->stacks)
		take_stack(m, leave);
	bpf_store_imm(&m->code, 4, R_STATE, offsetof(struct y_state, busy), 0);
	bpf_place(&m->code, leave);
	bpf_op_imm(&m->code, BPF_MOV, R0, 0);
	bpf_emit(&m->code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static struct error *handler(struct bpf_make *m, const struct y_handler *h, struct y_object_handler *ret)
{
	struct bpf_call c = {.f = &m->p->functions[h->function], .returned = Y_NONE};
	u32 leave;

	m->code = (struct bpf_code){0};
	m->handler = h;
	m->place = c.f->place;
	m->used = sizeof(struct y_state);
	m->keys = bpf_room(m, m->keys_size);
	look_through(m, h->function);
	m->sleepable = m->o->sleepable && h->point == Y_PROBE && !m->stacks; /* it could not call on_y() */
	m->end = bpf_label(&m->code);
	m->failed = bpf_label(&m->code);
	leave = bpf_label(&m->code);
	c.to = m->end;
	c.fail = m->failed;
	make_room(m, &c);
	if (!m->code.no_memory)
		make_large_room(m, &c);
	begin(m, h, leave);
	if (!m->code.no_memory && !m->error)
		function(m, &c);
	bpf_place(&m->code, m->failed);
	count_failure(m);
	end(m, leave);
	free(c.slots);
	free(c.arrays);
	if (!m->error && !m->code.no_memory && !bpf_resolve(&m->code))
		m->error = error_new(ERROR_UNSUPPORTED, "_probe %s: its code is too large for a probe", h->spec);
	if (!m->error && m->code.no_memory)
		m->error = &error_no_memory;
	*ret = (struct y_object_handler){.kind = kind_of(h),
	        .spec = h->spec,
	        .file = m->p->places[c.f->place].file,
	        .line = m->p->places[c.f->place].line,
	        .column = m->p->places[c.f->place].column,
	        .returns = h->returns,
	        .registers = m->registers,
	        .wanted = h->wanted,
	        .nwanted = h->nwanted,
	        .sleepable = m->sleepable,
	        .period_ns = h->period_ns,
	        .variants = h->variants,
	        .nvariants = h->nvariants,
	        .ninsns = m->code.n};
	if (h->point == Y_SYSCALL)
		ret->spec = h->returns ? "sys_exit" : "sys_enter";
	ret->insns = m->code.insns;
	m->code.insns = NULL;
	bpf_code_free(&m->code);
	return m->error;
}

/* --- the whole --- */

static void put_text(void *at, const char *bytes, u32 len)
{
	struct y_text *t = at;

	t->len = len < Y_STR_MOST_PROBE ? len : Y_STR_MOST_PROBE;
	memcpy(t->bytes, bytes, t->len);
}

/* Zeros, then the program's strings and its target's name. */
static bool make_literals(struct bpf_make *m)
{
	const struct y_program *p = m->p;
	u32 at = ZEROS;
	u8 *data = calloc(1, ZEROS + (p->nliterals + 1) * sizeof(struct y_text));

	m->literal_offsets = calloc(p->nliterals + 1, sizeof(*m->literal_offsets));
	m->ret->object.literals = data;
	if (!data || !m->literal_offsets)
		return false;
	for (u32 i = 0; i <= p->nliterals; i++, at += sizeof(struct y_text)) {
		m->literal_offsets[i] = at;
		if (i < p->nliterals)
			put_text(data + at, p->literals[i].bytes, p->literals[i].len);
		else
			put_text(data + at, m->o->program, (u32)strlen(m->o->program));
	}
	m->ret->object.maps[Y_MAP_LITERALS] = (struct y_object_map){BPF_MAP_TYPE_ARRAY, sizeof(u32), at, 1};
	return true;
}

static bool make_globals(struct bpf_make *m)
{
	const struct y_program *p = m->p;
	u32 at = sizeof(struct y_control);
	u8 *data;

	m->ret->global_offsets = calloc(p->nglobals + 1, sizeof(u32));
	if (!m->ret->global_offsets)
		return false;
	for (u32 i = 0; i < p->nglobals; i++) {
		const struct y_global *g = &p->globals[i];

		m->ret->global_offsets[i] = at;
		at += g->n ? g->n * (u32)sizeof(u64) : g->type == Y_STR ? sizeof(struct y_text) : sizeof(u64);
	}
	m->ret->globals_size = at;
	data = calloc(1, at);
	m->ret->object.globals = data;
	if (!data)
		return false;
	for (u32 i = 0; i < p->nglobals; i++) {
		const struct y_global *g = &p->globals[i];

		if (g->type == Y_STR && !g->n)
			put_text(data + m->ret->global_offsets[i], p->literals[g->value].bytes,
			        p->literals[g->value].len);
		else if (!g->n)
			memcpy(data + m->ret->global_offsets[i], &g->value, sizeof(u64));
	}
	m->ret->object.maps[Y_MAP_GLOBALS] = (struct y_object_map){BPF_MAP_TYPE_ARRAY, sizeof(u32), at, 1};
	return true;
}

static bool make_maps(struct bpf_make *m)
{
	struct y_object *o = &m->ret->object;

	o->nmaps = Y_OWN_MAPS + m->p->nmaps;
	o->maps = calloc(o->nmaps, sizeof(*o->maps));
	o->edits = calloc(m->p->nmaps + 1, sizeof(*o->edits));
	if (!o->maps || !o->edits || !make_literals(m) || !make_globals(m) || !bpf_table_look(m))
		return false;
	bpf_table_describe(m);
	for (u32 i = 0; i < m->p->nmaps; i++)
		if (m->keys_size < bpf_key_size(m, i))
			m->keys_size = bpf_key_size(m, i);
	o->maps[Y_MAP_EDIT] = (struct y_object_map){
	        BPF_MAP_TYPE_ARRAY, sizeof(u32), sizeof(struct y_edit) + m->keys_size + sizeof(u64), 1};
	o->maps[Y_MAP_RING] = (struct y_object_map){.type = BPF_MAP_TYPE_RINGBUF, .most = 1u << 20};
	o->maps[Y_MAP_LEFT] =
	        (struct y_object_map){BPF_MAP_TYPE_HASH, sizeof(struct y_left_key), sizeof(u64), Y_LEFT_MOST};
	o->maps[Y_MAP_FAILURES] = (struct y_object_map){
	        BPF_MAP_TYPE_ARRAY, sizeof(u32), sizeof(struct y_counted), m->p->nplaces * Y_STATUSES};
	return true;
}

struct error *y_bpf_make(const struct y_program *p, const struct y_bpf_options *o, struct y_bpf **ret)
{
	struct y_bpf *b = calloc(1, sizeof(*b));
	struct bpf_make m = {.p = p, .o = o, .ret = b};
	u32 state = 0;

	*ret = NULL;
	if (!b)
		return &error_no_memory;
	b->object.handlers = calloc(p->nhandlers + 1, sizeof(*b->object.handlers));
	if (!b->object.handlers || !make_maps(&m))
		m.error = &error_no_memory;
	for (u32 i = 0; !m.error && i < p->nhandlers; i++) {
		if (!y_in_kernel(p->handlers[i].point))
			continue;
		m.error = handler(&m, &p->handlers[i], &b->object.handlers[b->object.nhandlers++]);
		state = m.used > state ? m.used : state;
	}
	if (!m.error)
		bpf_table_edits(&m);
	if (b->object.maps) /* 512: what the verifier thinks that strings may reach beyond their own */
		b->object.maps[Y_MAP_STATES] = (struct y_object_map){
		        BPF_MAP_TYPE_ARRAY, sizeof(u32), state + 1024, o->cpus * Y_STATES_PER_CPU};
	free(m.literal_offsets);
	if (m.error) {
		y_bpf_free(b);
		return m.error;
	}
	*ret = b;
	return NULL;
}

void y_bpf_free(struct y_bpf *b)
{
	if (!b)
		return;
	for (u32 i = 0; i < b->object.nhandlers; i++)
		free(b->object.handlers[i].insns);
	free(b->object.handlers);
	for (u32 i = 0; b->object.edits && i < b->object.nmaps - Y_OWN_MAPS; i++)
		free(b->object.edits[i].insns);
	free(b->object.edits);
	free(b->object.maps);
	free(b->gathered);
	free(b->set);
	free(b->object.globals);
	free(b->object.literals);
	free(b->global_offsets);
	free(b);
}
