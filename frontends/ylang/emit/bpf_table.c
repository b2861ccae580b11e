/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and aggregates. A map is a hash table of the kernel; an aggregate one of each CPU, which user space adds up. A
 * thread may be preempted by another one of the same CPU, so all updates are atomic.
 */
#include <stdlib.h>

#include "bpf_make.h"
#include "unwind/cleanup.h"

#define RETRIES 4 /* of an extreme that another thread changes meanwhile */
#define NOEXIST 1

static bool has_stack(const struct y_map *map)
{
	for (u32 k = 0; k < map->nkeys; k++)
		if (map->keys[k] == Y_STACK)
			return true;
	return false;
}

/* Handlers of the kernel, or timers: the functions that they may call. NULL: no memory. */
static bool *functions_of(const struct y_program *p, bool in_kernel)
{
	bool *seen = calloc(p->nfunctions + 1, sizeof(*seen));

	for (u32 i = 0; seen && i < p->nhandlers; i++)
		if (in_kernel ? y_in_kernel(p->handlers[i].point) : p->handlers[i].point == Y_TIMER)
			y_see_calls(p, p->handlers[i].function, seen);
	return seen;
}

bool bpf_table_look(struct bpf_make *m)
{
	const struct y_program *p = m->p;
	struct y_bpf *b = m->ret;
	cleanup(free) bool *seen = functions_of(p, true);

	b->gathered = calloc(p->nmaps + 1, sizeof(*b->gathered));
	b->set = calloc(p->nmaps + 1, sizeof(*b->set));
	if (!seen || !b->gathered || !b->set)
		return false;
	for (u32 i = 0; i < p->nmaps; i++)
		b->gathered[i] = true;
	for (u32 k = 0; k < p->nfunctions; k++)
		for (u32 n = 0; seen[k] && n < p->functions[k].ninsns; n++) {
			const struct y_insn *i = &p->functions[k].insns[n];

			if (i->op < Y_OP_MAP_GET || i->op > Y_OP_AGG_ADD || i->op == Y_OP_AGG_ADD)
				continue;
			if (i->op != Y_OP_MAP_ADD || y_slot_matters(&p->functions[k], i->dst))
				b->gathered[i->imm] = has_stack(&p->maps[i->imm]);
			b->set[i->imm] |= i->op == Y_OP_MAP_SET;
		}
	return true;
}

u32 bpf_key_size(const struct bpf_make *m, u32 number)
{
	const struct y_map *map = &m->p->maps[number];
	u32 size = m->ret->gathered[number] ? sizeof(u64) : 0;

	for (u32 i = 0; i < map->nkeys; i++)
		size += map->keys[i] == Y_STR ? sizeof(struct y_text) : sizeof(u64);
	return size ? size : sizeof(u64);
}

/* Are maps taken before the end? */
static bool takes_often(const struct y_program *p)
{
	return y_has_point(p, Y_TIMER) || y_prints_map(p);
}

void bpf_table_describe(struct bpf_make *m)
{
	for (u32 i = 0; i < m->p->nmaps; i++) {
		const struct y_map *map = &m->p->maps[i];
		struct y_object_map *own = &m->ret->object.maps[Y_OWN_MAPS + i];

		*own = (struct y_object_map){.type = map->is_agg ? BPF_MAP_TYPE_PERCPU_HASH : BPF_MAP_TYPE_HASH,
		        .key_size = bpf_key_size(m, i),
		        .value_size = sizeof(u64),
		        .most = !map->nkeys                  ? 1
		                : map->most == Y_MAP_ENTRIES ? Y_MAP_ENTRIES_PROBE
		                                             : map->most};
		if (m->ret->gathered[i] && takes_often(m->p))
			own->most *= 2; /* a generation that is being taken, and the next */
		if (map->is_agg)
			own->value_size = (u32)Y_TOTAL_SIZE +
			                  (y_prints_histogram(m->p, i) ? y_buckets(map) * (u32)sizeof(u64) : 0);
		else if (map->value == Y_STR)
			own->value_size = sizeof(struct y_text);
	}
}

static void make_key(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	const struct y_map *map = &m->p->maps[i->imm];
	u32 at = m->keys;

	if (!i->nargs)
		bpf_store_imm(&m->code, 8, R_STATE, (s16)at, 0);
	if (m->ret->gathered[i->imm]) {
		bpf_load(&m->code, 8, R1, R_STATE, offsetof(struct y_state, generation));
		bpf_state_address(m, R2, at);
		bpf_store(&m->code, 8, R2, 0, R1);
		at += sizeof(u64);
	}
	for (u32 k = 0; k < i->nargs; k++) {
		u32 slot = c->slots[c->f->args[i->args + k]];

		if (map->keys[k] == Y_STR) {
			bpf_copy_text(m, at, slot);
			bpf_state_address(m, R1, at);
			bpf_store_imm(&m->code, 4, R1, offsetof(struct y_text, cut), 0);
			at += sizeof(struct y_text);
		} else {
			bpf_load(&m->code, 8, R1, R_STATE, (s16)slot);
			bpf_state_address(m, R2, at);
			bpf_store(&m->code, 8, R2, 0, R1);
			at += sizeof(u64);
		}
	}
}

static void map_and_key(struct bpf_make *m, const struct y_insn *i)
{
	bpf_map(&m->code, R1, BPF_PSEUDO_MAP_FD, Y_OWN_MAPS + (u32)i->imm, 0);
	bpf_state_address(m, R2, m->keys);
}

static void lookup(struct bpf_make *m, const struct y_insn *i)
{
	map_and_key(m, i);
	bpf_call(&m->code, HELPER_MAP_LOOKUP);
}

/* R3 is set: the value. */
static void update(struct bpf_make *m, const struct y_insn *i, u32 flags)
{
	map_and_key(m, i);
	bpf_op_imm(&m->code, BPF_MOV, R4, (s32)flags);
	bpf_call(&m->code, HELPER_MAP_UPDATE);
}

static void lost(struct bpf_make *m)
{
	bpf_count(m, offsetof(struct y_control, lost_updates));
}

static void get(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 missing = bpf_label(&m->code), done = bpf_label(&m->code);
	bool text = m->p->maps[i->imm].value == Y_STR;

	lookup(m, i);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, missing);
	if (text) {
		bpf_state_address(m, R1, c->slots[i->dst]);
		bpf_op_imm(&m->code, BPF_MOV, R2, (s32)sizeof(struct y_text));
		bpf_op(&m->code, BPF_MOV, R3, R0);
		bpf_call(&m->code, HELPER_READ_KERNEL);
	} else {
		bpf_load(&m->code, 8, R1, R0, 0);
		bpf_store(&m->code, 8, R_STATE, (s16)c->slots[i->dst], R1);
	}
	bpf_jump(&m->code, done);
	bpf_place(&m->code, missing);
	if (text) {
		bpf_state_address(m, R1, c->slots[i->dst]);
		bpf_map(&m->code, R3, BPF_PSEUDO_MAP_VALUE, Y_MAP_LITERALS, 0);
		bpf_op_imm(&m->code, BPF_MOV, R2, (s32)sizeof(struct y_text));
		bpf_call(&m->code, HELPER_READ_KERNEL);
	} else {
		bpf_store_imm(&m->code, 8, R_STATE, (s16)c->slots[i->dst], 0);
	}
	bpf_place(&m->code, done);
}

static void set(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 done = bpf_label(&m->code);

	bpf_state_address(m, R3, c->slots[i->a]);
	update(m, i, 0);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, done);
	lost(m);
	bpf_place(&m->code, done);
}

static void add(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 have = bpf_label(&m->code), done = bpf_label(&m->code), fresh = bpf_label(&m->code);

	lookup(m, i);
	bpf_branch_imm(&m->code, BPF_JNE, R0, 0, have);
	bpf_state_address(m, R3, c->slots[i->a]);
	update(m, i, NOEXIST);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, fresh);
	lookup(m, i);
	bpf_branch_imm(&m->code, BPF_JNE, R0, 0, have);
	lost(m);
	bpf_place(&m->code, fresh);
	bpf_load(&m->code, 8, R2, R_STATE, (s16)c->slots[i->a]);
	bpf_store(&m->code, 8, R_STATE, (s16)c->slots[i->dst], R2);
	bpf_jump(&m->code, done);
	bpf_place(&m->code, have);
	bpf_load(&m->code, 8, R1, R_STATE, (s16)c->slots[i->a]);
	bpf_op(&m->code, BPF_MOV, R2, R1);
	bpf_atomic(&m->code, 8, R0, 0, R2, BPF_ADD | BPF_FETCH);
	bpf_op(&m->code, BPF_ADD, R2, R1);
	bpf_store(&m->code, 8, R_STATE, (s16)c->slots[i->dst], R2);
	bpf_place(&m->code, done);
}

/* [R8 + offset] = the larger of it and R2 */
static void raise(struct bpf_make *m, s16 offset)
{
	u32 done = bpf_label(&m->code);

	for (u32 i = 0; i < RETRIES; i++) {
		bpf_load(&m->code, 8, R0, R8, offset);
		bpf_branch(&m->code, BPF_JGE, R0, R2, done);
		bpf_atomic(&m->code, 8, R8, offset, R2, BPF_CMPXCHG);
	}
	bpf_place(&m->code, done);
}

/* scratch = the bucket of R1, y_bucket(). */
static void step_of(struct bpf_make *m, const struct y_map *map)
{
	u32 done = bpf_label(&m->code);

	bpf_op_imm(&m->code, BPF_MOV, R3, 0);
	bpf_imm64(&m->code, R2, (u64)map->low);
	bpf_branch(&m->code, BPF_JSLT, R1, R2, done);
	bpf_op(&m->code, BPF_SUB, R1, R2);
	bpf_imm64(&m->code, R2, map->step);
	bpf_op(&m->code, BPF_DIV, R1, R2);
	bpf_op_imm(&m->code, BPF_MOV, R3, (s32)map->steps + 1);
	bpf_branch_imm(&m->code, BPF_JGE, R1, (s32)map->steps, done);
	bpf_op(&m->code, BPF_MOV, R3, R1);
	bpf_op_imm(&m->code, BPF_ADD, R3, 1);
	bpf_place(&m->code, done);
	bpf_store(&m->code, 8, R_STATE, offsetof(struct y_state, scratch), R3);
}

static void power_of(struct bpf_make *m)
{
	const s16 scratch = offsetof(struct y_state, scratch);
	u32 found = bpf_label(&m->code);

	bpf_store_imm(&m->code, 8, R_STATE, scratch, 0);
	bpf_branch_imm(&m->code, BPF_JSLT, R1, 0, found);
	bpf_store_imm(&m->code, 8, R_STATE, scratch, 1);
	bpf_branch_imm(&m->code, BPF_JEQ, R1, 0, found);
	bpf_store_imm(&m->code, 8, R_STATE, scratch, 2);
	for (s32 bits = 32; bits; bits /= 2) {
		u32 less = bpf_label(&m->code);

		bpf_op(&m->code, BPF_MOV, R2, R1);
		bpf_op_imm(&m->code, BPF_RSH, R2, bits);
		bpf_branch_imm(&m->code, BPF_JEQ, R2, 0, less);
		bpf_op(&m->code, BPF_MOV, R1, R2);
		bpf_load(&m->code, 8, R3, R_STATE, scratch);
		bpf_op_imm(&m->code, BPF_ADD, R3, bits);
		bpf_store(&m->code, 8, R_STATE, scratch, R3);
		bpf_place(&m->code, less);
	}
	bpf_place(&m->code, found);
}

/* The bucket is kept in memory, as the verifier would follow each of its values. */
static void count_bucket(struct bpf_make *m, const struct y_map *map)
{
	u32 found = bpf_label(&m->code);

	if (map->steps)
		step_of(m, map);
	else
		power_of(m);
	bpf_load(&m->code, 8, R1, R_STATE, offsetof(struct y_state, scratch));
	/* never, which the verifier does not see */
	bpf_branch_imm(&m->code, BPF_JGE, R1, (s32)y_buckets(map), found);
	bpf_op_imm(&m->code, BPF_LSH, R1, 3);
	bpf_op(&m->code, BPF_ADD, R8, R1);
	bpf_op_imm(&m->code, BPF_MOV, R1, 1);
	bpf_atomic(&m->code, 8, R8, (s16)Y_TOTAL_SIZE, R1, BPF_ADD);
	bpf_place(&m->code, found);
}

static void aggregate(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	u32 have = bpf_label(&m->code), done = bpf_label(&m->code);

	lookup(m, i);
	bpf_branch_imm(&m->code, BPF_JNE, R0, 0, have);
	bpf_map(&m->code, R3, BPF_PSEUDO_MAP_VALUE, Y_MAP_LITERALS, 0);
	update(m, i, NOEXIST);
	lookup(m, i);
	bpf_branch_imm(&m->code, BPF_JNE, R0, 0, have);
	lost(m);
	bpf_jump(&m->code, done);
	bpf_place(&m->code, have);
	bpf_op(&m->code, BPF_MOV, R8, R0);
	bpf_load(&m->code, 8, R1, R_STATE, (s16)c->slots[i->a]);
	bpf_atomic(&m->code, 8, R8, offsetof(struct y_total, sum), R1, BPF_ADD);
	bpf_imm64(&m->code, R2, 1ull << 63);
	bpf_op(&m->code, BPF_XOR, R2, R1);
	raise(m, offsetof(struct y_total, most));
	bpf_op_imm(&m->code, BPF_XOR, R2, -1);
	raise(m, offsetof(struct y_total, least));
	bpf_op_imm(&m->code, BPF_MOV, R2, 1);
	bpf_atomic(&m->code, 8, R8, offsetof(struct y_total, count), R2, BPF_ADD);
	if (y_prints_histogram(m->p, (u32)i->imm))
		count_bucket(m, &m->p->maps[i->imm]);
	bpf_place(&m->code, done);
}

/* Of a key beside a stack. */
static u32 words_of(enum y_type key)
{
	return key == Y_STACK ? 0 : key == Y_STR ? Y_STRING_WORDS : 1;
}

/* What is counted by stack waits for it. A second such update of a hit is lost, and one by a longer string. */
static void pend(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	const struct y_map *map = &m->p->maps[i->imm];
	const s16 at = offsetof(struct y_state, pending);
	const u32 keys = (u32)at + offsetof(struct y_pending, keys);
	u32 done = bpf_label(&m->code), taken = bpf_label(&m->code), n = 0, stacks = 0;

	for (u32 k = 0; k < i->nargs; k++) {
		n += words_of(map->keys[k]);
		stacks += map->keys[k] == Y_STACK;
	}
	if (n > Y_STACK_WORDS || stacks > 1) {
		bpf_refuse(m, i, "such keys beside a stack: at most one string and three numbers",
		        "a number in place of a string (a pointer, a status), or a second map by the string");
		return;
	}
	if ((i->op != Y_OP_AGG_ADD && i->op != Y_OP_MAP_ADD) || y_prints_histogram(m->p, (u32)i->imm)) {
		bpf_refuse(m, i, "a map by stack: only ++, += and <<<, without _hist",
		        "n[_stack]++ counts, n[_stack] += x and a[_stack] <<< x sum up; _hist takes a second "
		        "aggregate, without the stack");
		return;
	}
	bpf_load(&m->code, 8, R1, R_STATE, offsetof(struct y_state, pends));
	bpf_branch_imm(&m->code, BPF_JNE, R1, 0, taken);
	for (u32 k = 0; k < i->nargs; k++)
		if (map->keys[k] == Y_STR) {
			bpf_load(&m->code, 4, R1, R_STATE,
			        (s16)(c->slots[c->f->args[i->args + k]] + offsetof(struct y_text, len)));
			bpf_branch_imm(&m->code, BPF_JGT, R1, Y_STRING_MOST, taken);
		}
	bpf_store_imm(&m->code, 8, R_STATE, offsetof(struct y_state, pends), 1);
	bpf_store_imm(&m->code, 8, R_STATE, at + (s16)offsetof(struct y_pending, map), (s32)i->imm);
	bpf_load(&m->code, 8, R1, R_STATE, (s16)c->slots[i->a]);
	bpf_store(&m->code, 8, R_STATE, at + (s16)offsetof(struct y_pending, value), R1);
	bpf_load(&m->code, 8, R1, R_STATE, offsetof(struct y_state, generation));
	bpf_store(&m->code, 8, R_STATE, at + (s16)offsetof(struct y_pending, generation), R1);
	n = 0;
	for (u32 k = 0; k < i->nargs; k++)
		for (u32 word = 0; word < words_of(map->keys[k]); word++) {
			bool length = !word && map->keys[k] == Y_STR; /* without what stands beside it: cut */

			bpf_load(&m->code, length ? 4 : 8, R1, R_STATE,
			        (s16)(c->slots[c->f->args[i->args + k]] + 8 * word));
			bpf_store(&m->code, 8, R_STATE, (s16)(keys + 8 * n++), R1);
		}
	for (; n < Y_STACK_WORDS; n++)
		bpf_store_imm(&m->code, 8, R_STATE, (s16)(keys + 8 * n), 0);
	bpf_jump(&m->code, done);
	bpf_place(&m->code, taken);
	lost(m);
	bpf_place(&m->code, done);
	if (i->op == Y_OP_MAP_ADD) {
		bpf_load(&m->code, 8, R1, R_STATE, (s16)c->slots[i->a]);
		bpf_store(&m->code, 8, R_STATE, (s16)c->slots[i->dst], R1);
	}
}

void bpf_table(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i)
{
	const struct y_map *map = &m->p->maps[i->imm];

	if (i->op == Y_OP_AGG_GET || i->op == Y_OP_MAP_CLEAR) {
		if (i->op == Y_OP_AGG_GET)
			bpf_refuse(m, i, "what an aggregate has so far, as each CPU has a part of it",
			        "ask in _timer or _end; here a variable or a map has its sum at once: sum += x");
		else
			bpf_refuse(m, i, "clearing a whole map",
			        "_clear in _timer or _end; here _delete(m[key]) takes out one entry");
		return;
	}
	if (has_stack(map)) {
		pend(m, c, i);
		return;
	}
	make_key(m, c, i);
	switch (i->op) {
	case Y_OP_MAP_GET:
		get(m, c, i);
		break;
	case Y_OP_MAP_SET:
		set(m, c, i);
		break;
	case Y_OP_MAP_ADD:
		if (map->value == Y_F64)
			bpf_refuse(m, i, "arithmetic with floating-point numbers", BPF_FLOATS);
		else
			add(m, c, i);
		break;
	case Y_OP_MAP_IN:
		lookup(m, i);
		bpf_op(&m->code, BPF_MOV, R1, R0);
		bpf_op_imm(&m->code, BPF_MOV, R2, 0);
		{
			u32 none = bpf_label(&m->code);

			bpf_branch_imm(&m->code, BPF_JEQ, R1, 0, none);
			bpf_op_imm(&m->code, BPF_MOV, R2, 1);
			bpf_place(&m->code, none);
		}
		bpf_store(&m->code, 8, R_STATE, (s16)c->slots[i->dst], R2);
		break;
	case Y_OP_MAP_DELETE:
		map_and_key(m, i);
		bpf_call(&m->code, HELPER_MAP_DELETE);
		break;
	default:
		aggregate(m, c, i);
	}
}

/* --- edits --- */

/* As a handler does it, with struct y_edit as its state. */
static void edit(struct bpf_make *m, u32 map)
{
	u32 slots[] = {offsetof(struct y_edit, by), offsetof(struct y_edit, result)}, leave;
	const struct bpf_call c = {.slots = slots};
	const struct y_insn i = {.a = 0, .dst = 1, .imm = map};
	struct y_object_edit *ret = &m->ret->object.edits[map];

	m->code = (struct bpf_code){0};
	m->keys = sizeof(struct y_edit);
	leave = bpf_label(&m->code);
	bpf_store_imm(&m->code, 4, R10, AT_KEY, 0);
	bpf_lookup(m, Y_MAP_EDIT, AT_KEY);
	bpf_branch_imm(&m->code, BPF_JEQ, R0, 0, leave);
	bpf_op(&m->code, BPF_MOV, R_STATE, R0);
	if (m->p->maps[map].is_agg)
		aggregate(m, &c, &i);
	else
		add(m, &c, &i);
	bpf_place(&m->code, leave);
	bpf_op_imm(&m->code, BPF_MOV, R0, 0);
	bpf_emit(&m->code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	m->code.no_memory |= !bpf_resolve(&m->code);
	*ret = (struct y_object_edit){m->code.insns, m->code.n};
	m->code.insns = NULL;
	if (m->code.no_memory && !m->error)
		m->error = &error_no_memory;
	bpf_code_free(&m->code);
}

void bpf_table_edits(struct bpf_make *m)
{
	cleanup(free) bool *seen = functions_of(m->p, false);

	if (!seen && !m->error)
		m->error = &error_no_memory;
	for (u32 k = 0; seen && k < m->p->nfunctions; k++)
		for (u32 n = 0; seen[k] && n < m->p->functions[k].ninsns; n++) {
			const struct y_insn *i = &m->p->functions[k].insns[n];
			bool changes = i->op == Y_OP_MAP_ADD || i->op == Y_OP_MAP_DELETE || i->op == Y_OP_MAP_CLEAR ||
			               i->op == Y_OP_AGG_ADD;

			if (changes && !m->ret->gathered[i->imm] && !m->ret->object.edits[i->imm].insns &&
			        m->p->maps[i->imm].value != Y_STR && m->p->maps[i->imm].value != Y_F64)
				edit(m, (u32)i->imm);
		}
}
