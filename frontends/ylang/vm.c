/* SPDX-License-Identifier: Apache-2.0 */
#include "vm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontends/format/text.h"
#include "regex.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/process/syscall.h"
#include "vm_state.h"

#define STACK_MOST    (64u << 20) /* bytes of slots and arrays of all functions that run */
#define CHECK_STEPS   4096u       /* between two looks at the clock */
#define FAILURES_MOST 256u

struct string_chunk {
	struct string_chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

struct each {
	struct y_entry *entries; /* copies: the map may change meanwhile */
	u32 n, next;
};

enum flow { FLOW_FAILED, FLOW_RETURNED, FLOW_EXIT, FLOW_ERROR };

struct vm {
	const struct y_program *p;
	struct y_target *target;
	const struct y_run_options *o;
	struct y_run_stats *stats;
	struct y_pages pages;
	struct y_table *tables;
	struct y_str **literals;
	u64 *globals;
	u64 **global_arrays;
	u64 tracer_bytes;
	struct string_chunk *strings;
	size_t string_bytes;
	u64 *stack;
	size_t stack_used, stack_size; /* in words */
	void *regex_room;
	u64 steps, limit_ns;
	u32 depth;
	bool probing; /* probes run meanwhile */
	/* of the last failure */
	enum y_status status;
	u64 at;
	u32 place;
};

struct call_frame {
	const struct y_function *f;
	u64 *slots, **arrays;
	struct each *each;
	u64 returned;
};

/* --- strings --- */

static void *new_bytes(struct vm *vm, size_t size)
{
	struct string_chunk *c = vm->strings;
	void *ret;

	size = (size + 7) & ~(size_t)7;
	if (!c || c->size - c->used < size) {
		size_t room = size > (64u << 10) ? size : 64u << 10;

		if (vm->string_bytes + room > Y_TRACER_MOST)
			return NULL;
		c = malloc(sizeof(*c) + room);
		if (!c)
			return NULL;
		*c = (struct string_chunk){.next = vm->strings, .size = room};
		vm->strings = c;
		vm->string_bytes += room;
	}
	ret = c->bytes + c->used;
	c->used += size;
	return ret;
}

static void free_strings(struct vm *vm)
{
	while (vm->strings) {
		struct string_chunk *c = vm->strings;

		vm->strings = c->next;
		free(c);
	}
	vm->string_bytes = 0;
}

static struct y_str *new_string(struct vm *vm, u32 len)
{
	struct y_str *s = new_bytes(vm, sizeof(*s) + len);

	if (s)
		*s = (struct y_str){.len = len};
	return s;
}

static const struct y_str *string_of(u64 v)
{
	static const struct y_str empty;

	return v ? (const struct y_str *)v : &empty;
}

static u64 copy_string(struct vm *vm, const char *bytes, u32 len)
{
	struct y_str *s = new_string(vm, len);

	if (s)
		memcpy(s->bytes, bytes, len);
	return (u64)s;
}

/* --- failures --- */

static bool fail(struct vm *vm, const struct y_insn *i, enum y_status status, u64 at)
{
	vm->status = status;
	vm->at = at;
	vm->place = i->place;
	return false;
}

/* --- reading --- */

static bool load(struct vm *vm, const struct y_insn *i, u64 addr, u64 *ret)
{
	u32 size = y_type_size(i->type);
	const u8 *bytes = y_pages_at(&vm->pages, addr, size);
	u64 word = 0, at;

	if (bytes)
		memcpy(&word, bytes, size);
	else if (!y_pages_read(&vm->pages, &word, size, addr, &at))
		return fail(vm, i, Y_FAULT, at);
	*ret = y_type_is_float(i->type) ? word : y_wrap(i->type, word);
	return true;
}

static bool read_string(struct vm *vm, const struct y_insn *i, u64 addr, u64 *ret)
{
	char room[4096];
	struct y_str *s;
	u64 n = 0, at, unused;
	bool cut = false, faults;
	char *all = NULL;

	for (;;) { /* page by page, so that what follows the NUL is not needed */
		u64 more = Y_PAGE - (addr + n) % Y_PAGE, left = i->imm - n;
		char *grown, *nul;

		more = more < left ? more : left;
		if (!more) {
			char next;

			cut = y_pages_read(&vm->pages, &next, 1, addr + n, &at) && next;
			break;
		}
		faults = !y_pages_read(&vm->pages, room, more, addr + n, &at);
		if (faults) { /* the string may end before */
			more = at - addr - n;
			faults = !y_pages_read(&vm->pages, room, more, addr + n, &unused) || !memchr(room, 0, more);
		}
		if (faults) {
			free(all);
			return fail(vm, i, Y_FAULT, at);
		}
		nul = memchr(room, 0, more);
		more = nul ? (u64)(nul - room) : more;
		grown = realloc(all, n + more + 1);
		if (!grown) {
			free(all);
			return fail(vm, i, Y_LIMIT, 0);
		}
		all = grown;
		memcpy(all + n, room, more);
		n += more;
		if (nul)
			break;
	}
	s = new_string(vm, (u32)n);
	if (s && n)
		memcpy(s->bytes, all, n);
	free(all);
	if (!s)
		return fail(vm, i, Y_LIMIT, 0);
	s->cut = cut;
	*ret = (u64)s;
	return true;
}

static bool read_bytes(struct vm *vm, const struct y_insn *i, u64 addr, u64 n, u64 *ret)
{
	struct y_str *s;
	u64 at;

	if (n > i->imm)
		return fail(vm, i, Y_LIMIT, 0);
	s = new_string(vm, (u32)n);
	if (!s)
		return fail(vm, i, Y_LIMIT, 0);
	if (!y_pages_read(&vm->pages, s->bytes, n, addr, &at))
		return fail(vm, i, Y_FAULT, at);
	*ret = (u64)s;
	return true;
}

static bool concatenate(struct vm *vm, const struct y_insn *i, u64 x, u64 y, u64 *ret)
{
	const struct y_str *a = string_of(x), *b = string_of(y);
	struct y_str *s = a->len + b->len <= Y_STR_MOST ? new_string(vm, a->len + b->len) : NULL;

	if (!s)
		return fail(vm, i, Y_LIMIT, 0);
	memcpy(s->bytes, a->bytes, a->len);
	memcpy(s->bytes + a->len, b->bytes, b->len);
	*ret = (u64)s;
	return true;
}

static u64 compare_strings(enum y_op op, u64 x, u64 y)
{
	const struct y_str *a = string_of(x), *b = string_of(y);
	int c = memcmp(a->bytes, b->bytes, a->len < b->len ? a->len : b->len);

	c = c ? c : (a->len > b->len) - (a->len < b->len);
	return op == Y_OP_EQ ? !c : op == Y_OP_NE ? c != 0 : op == Y_OP_LT ? c < 0 : c <= 0;
}

static bool match(struct vm *vm, struct call_frame *fr, const struct y_insn *i)
{
	const struct y_regex *r = vm->p->regexes[i->imm];
	const struct y_str *s = string_of(fr->slots[i->a]);
	u32 saved[2 * Y_REGEX_CAPTURES];

	fr->slots[i->dst] = y_regex_match(r, s->bytes, s->len, saved, vm->regex_room);
	for (u32 k = 0; fr->slots[i->dst] && k < i->nargs; k++) {
		u64 capture = 0;

		if (saved[2 * k + 1] != UINT32_MAX) {
			capture = copy_string(vm, s->bytes + saved[2 * k], saved[2 * k + 1] - saved[2 * k]);
			if (!capture)
				return fail(vm, i, Y_LIMIT, 0);
		}
		fr->slots[fr->f->args[i->args + k]] = capture;
	}
	return true;
}

/* --- maps --- */

static void get_keys(const struct call_frame *fr, const struct y_insn *i, u64 *keys)
{
	for (u32 k = 0; k < i->nargs; k++)
		keys[k] = fr->slots[fr->f->args[i->args + k]];
}

/* A string of a map may go away: the program gets a copy. */
static u64 own_string(struct vm *vm, u64 v)
{
	return copy_string(vm, string_of(v)->bytes, string_of(v)->len);
}

/* The engine of probes has a part of the map. */
static void edited(struct vm *vm, const struct y_insn *i, struct y_entry *e, u64 by)
{
	if (vm->probing && e)
		vm->o->probes->edit(
		        vm->o->probes_ctx, (u32)i->imm, i->op == Y_OP_MAP_CLEAR ? Y_OP_MAP_DELETE : i->op, e, by);
}

static void map_op(struct vm *vm, struct call_frame *fr, const struct y_insn *i)
{
	struct y_table *t = &vm->tables[i->imm];
	struct y_entry *e;
	u64 keys[Y_KEYS_MOST];

	get_keys(fr, i, keys);
	switch (i->op) {
	case Y_OP_MAP_GET:
		e = y_table_find(t, keys);
		fr->slots[i->dst] = e ? (t->map->value == Y_STR ? own_string(vm, e->value) : e->value) : 0;
		break;
	case Y_OP_MAP_SET:
		e = y_table_add(t, keys);
		if (e)
			y_table_set(t, e, fr->slots[i->a]);
		edited(vm, i, e, 0);
		break;
	case Y_OP_MAP_ADD:
		e = y_table_add(t, keys);
		if (e)
			e->value += fr->slots[i->a];
		edited(vm, i, e, fr->slots[i->a]);
		fr->slots[i->dst] = e ? e->value : fr->slots[i->a];
		break;
	case Y_OP_MAP_IN:
		fr->slots[i->dst] = y_table_find(t, keys) != NULL;
		break;
	case Y_OP_MAP_DELETE:
		edited(vm, i, y_table_find(t, keys), 0);
		y_table_delete(t, keys);
		break;
	case Y_OP_AGG_ADD:
		e = y_table_add(t, keys);
		if (e)
			y_aggregate_add(&vm->p->maps[i->imm], (struct y_aggregate *)e->value, (s64)fr->slots[i->a]);
		edited(vm, i, e, fr->slots[i->a]);
		break;
	case Y_OP_AGG_GET:
		e = y_table_find(t, keys);
		fr->slots[i->dst] = e ? (u64)y_aggregate_get((struct y_aggregate *)e->value, i->a) : 0;
		break;
	default:
		for (u32 k = 0; k < t->nentries; k++)
			edited(vm, i, t->entries[k]->gone ? NULL : t->entries[k], 0);
		y_table_clear(t);
	}
}

static void begin_each(struct vm *vm, struct call_frame *fr, const struct y_insn *i)
{
	const struct y_table *t = &vm->tables[i->imm];
	struct each *each = &fr->each[i->a];
	u64 top = i->b == Y_NONE ? UINT64_MAX : (s64)fr->slots[i->b] < 0 ? 0 : fr->slots[i->b];
	u32 n;
	struct y_entry **sorted = y_table_sorted(t, top == UINT64_MAX || top < UINT32_MAX ? top : UINT32_MAX, &n);

	free(each->entries);
	*each = (struct each){.entries = n ? calloc(n, sizeof(*each->entries)) : NULL};
	for (u32 k = 0; each->entries && k < n; k++) {
		struct y_entry *e = &each->entries[each->n++];

		*e = *sorted[k];
		for (u32 x = 0; x < t->map->nkeys; x++)
			if (t->map->keys[x] == Y_STR)
				e->keys[x] = own_string(vm, e->keys[x]);
		if (t->map->is_agg)
			e->value = (u64)((struct y_aggregate *)e->value)->sum;
		else if (t->map->value == Y_STR)
			e->value = own_string(vm, e->value);
	}
	free(sorted);
}

/* False: there is no next one. */
static bool next_each(struct call_frame *fr, const struct y_insn *i)
{
	struct each *each = &fr->each[i->a];
	const struct y_entry *e;

	if (each->next == each->n)
		return false;
	e = &each->entries[each->next++];
	for (u32 k = 0; k < i->nargs; k++)
		fr->slots[fr->f->args[i->args + k]] = e->keys[k];
	if (i->dst != Y_NONE)
		fr->slots[i->dst] = e->value;
	return true;
}

/* --- output --- */

static void print(struct vm *vm, const struct call_frame *fr, const struct y_insn *i)
{
	struct y_printed values[64];

	for (u32 k = 0; k < i->nargs / 3; k++) {
		const u32 *slots = &fr->f->args[i->args + 3 * k];

		values[k] = (struct y_printed){fr->slots[slots[0]], fr->slots[slots[1]], fr->slots[slots[2]]};
	}
	(vm->o->json ? y_json_format : y_print_format)(vm->o->out, &vm->p->formats[i->imm], values);
}

static void say(struct vm *vm, const struct y_insn *i, const char *kind, const struct y_str *s)
{
	const struct y_place *place = &vm->p->places[i->place];

	fflush(vm->o->out);
	fprintf(vm->o->err, "%s:%u:%u: %s: ", place->file, place->line, place->column, kind);
	y_put_text(vm->o->err, s->bytes, s->len);
	fputc('\n', vm->o->err);
}

static u64 context(struct vm *vm, enum y_context what)
{
	const struct y_target *t = vm->target;
	struct timespec ts;

	switch (what) {
	case Y_PID:
	case Y_TID:
		return (u64)(t->core ? (pid_t)t->core->pid : t->pid);
	case Y_COMM:
		return copy_string(vm, t->comm, (u32)strlen(t->comm));
	case Y_PROG:
		return t->nmodules ? copy_string(vm, t->modules[0].path, (u32)strlen(t->modules[0].path)) : 0;
	case Y_NS:
	case Y_WALL:
		if (t->core)
			return 0;
		clock_gettime(what == Y_NS ? CLOCK_MONOTONIC : CLOCK_REALTIME, &ts);
		return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
	default:
		return 0;
	}
}

static u64 symbol(struct vm *vm, u64 what, bool call)
{
	char room[600];
	const char *name = call                                                    ? syscall_name((int)what)
	                   : y_target_symbol(vm->target, what, room, sizeof(room)) ? room
	                                                                           : NULL;

	return name ? copy_string(vm, name, (u32)strlen(name)) : 0;
}

/* --- functions --- */

static enum flow run_function(struct vm *vm, u32 number, const u64 *args, u64 *ret);

static bool step(struct vm *vm, const struct y_insn *i)
{
	if (++vm->steps > vm->p->limits.steps)
		return fail(vm, i, Y_LIMIT, 0);
	if (vm->steps % CHECK_STEPS)
		return true;
	if (vm->o->stop && *vm->o->stop)
		return fail(vm, i, Y_LIMIT, 0);
	return now_ns() < vm->limit_ns || fail(vm, i, Y_LIMIT, 0);
}

static bool run_array(struct vm *vm, struct call_frame *fr, const struct y_insn *i)
{
	bool global = i->imm >= Y_GLOBAL_ARRAY;
	u32 n = global ? vm->p->globals[i->imm - Y_GLOBAL_ARRAY].n : fr->f->arrays[i->imm].n;
	u64 *array = global ? vm->global_arrays[i->imm - Y_GLOBAL_ARRAY] : fr->arrays[i->imm];
	u64 *slots = fr->slots, index = slots[i->a];

	if (index >= n)
		return fail(vm, i, Y_LIMIT, 0);
	if (i->op == Y_OP_ARRAY_SET)
		array[index] = slots[i->b];
	else if (i->op == Y_OP_ARRAY_GET)
		slots[i->dst] = array[index];
	else
		slots[i->dst] = array[index] = y_wrap(i->type, array[index] + slots[i->b]);
	return true;
}

/* A string that outlives a handler. */
static void set_global(struct vm *vm, const struct y_insn *i, u64 value)
{
	if (i->type == Y_STR) {
		const struct y_str *s = string_of(value);
		struct y_str *copy = malloc(sizeof(*copy) + s->len);

		if (!copy)
			return;
		memcpy(copy, s, sizeof(*copy) + s->len);
		free((void *)vm->globals[i->imm]);
		value = (u64)copy;
	}
	vm->globals[i->imm] = value;
}

static enum flow call(struct vm *vm, struct call_frame *fr, const struct y_insn *i)
{
	u64 args[64], ret = 0;
	enum flow flow;

	if (!step(vm, i) || vm->depth >= Y_DEPTH_MOST) {
		fail(vm, i, Y_LIMIT, 0);
		return FLOW_FAILED;
	}
	for (u32 k = 0; k < i->nargs; k++)
		args[k] = fr->slots[fr->f->args[i->args + k]];
	flow = run_function(vm, (u32)i->imm, args, &ret);
	if (flow == FLOW_RETURNED && i->dst != Y_NONE)
		fr->slots[i->dst] = ret;
	return flow;
}

/* What can fail, and does not end a block. */
static bool run_failing(struct vm *vm, struct call_frame *fr, const struct y_insn *i)
{
	u64 *slots = fr->slots;
	enum y_status status;

	switch (i->op) {
	case Y_OP_LOAD:
		return load(vm, i, slots[i->a] + i->imm, &slots[i->dst]);
	case Y_OP_LOOP:
		return step(vm, i);
	case Y_OP_DIV:
	case Y_OP_MOD:
		status = y_compute(i->op, i->type, slots[i->a], slots[i->b], &slots[i->dst]);
		return status == Y_OK || fail(vm, i, status, 0);
	case Y_OP_ARRAY_GET:
	case Y_OP_ARRAY_SET:
	case Y_OP_ARRAY_ADD:
		return run_array(vm, fr, i);
	case Y_OP_STR_READ:
		return read_string(vm, i, slots[i->a], &slots[i->dst]);
	case Y_OP_STR_READ_N:
		return read_bytes(vm, i, slots[i->a], slots[i->b], &slots[i->dst]);
	case Y_OP_STR_AT:
		if (slots[i->b] >= string_of(slots[i->a])->len)
			return fail(vm, i, Y_LIMIT, 0);
		slots[i->dst] = (u8)string_of(slots[i->a])->bytes[slots[i->b]];
		return true;
	case Y_OP_STR_CAT:
		return concatenate(vm, i, slots[i->a], slots[i->b], &slots[i->dst]);
	case Y_OP_MATCH:
		return match(vm, fr, i);
	default:
		return fail(vm, i, Y_LIMIT, 0);
	}
}

static void run_global(struct vm *vm, u64 *slots, const struct y_insn *i)
{
	u64 *global = &vm->globals[i->imm];

	if (i->op == Y_OP_GLOBAL_SET)
		set_global(vm, i, slots[i->a]);
	else if (i->op == Y_OP_GLOBAL_GET)
		slots[i->dst] = i->type == Y_STR ? own_string(vm, *global) : *global;
	else
		slots[i->dst] = *global = y_wrap(i->type, *global + slots[i->a]);
}

static void run_simple(struct vm *vm, struct call_frame *fr, const struct y_insn *i)
{
	u64 *slots = fr->slots;

	switch (i->op) {
	case Y_OP_LITERAL:
		slots[i->dst] = (u64)vm->literals[i->imm];
		break;
	case Y_OP_CONVERT:
		slots[i->dst] = y_convert(i->type, (enum y_type)i->imm, slots[i->a]);
		break;
	case Y_OP_ADDRESS:
		slots[i->dst] = vm->p->modules[i->a].bias + i->imm;
		break;
	case Y_OP_GLOBAL_GET:
	case Y_OP_GLOBAL_SET:
	case Y_OP_GLOBAL_ADD:
		run_global(vm, slots, i);
		break;
	case Y_OP_STR_LEN:
		slots[i->dst] = string_of(slots[i->a])->len;
		break;
	case Y_OP_STR_CUT:
		slots[i->dst] = string_of(slots[i->a])->cut;
		break;
	case Y_OP_EACH_BEGIN:
		begin_each(vm, fr, i);
		break;
	case Y_OP_PRINT:
		print(vm, fr, i);
		break;
	case Y_OP_PRINT_MAP:
		(vm->o->json ? y_json_table : y_print_table)(vm->o->out, &vm->tables[i->imm], i->a);
		break;
	case Y_OP_WARN:
		say(vm, i, "warning", string_of(slots[i->a]));
		break;
	case Y_OP_STATUS:
		slots[i->dst] = vm->status;
		break;
	case Y_OP_AT:
		slots[i->dst] = vm->at;
		break;
	case Y_OP_CONTEXT:
		slots[i->dst] = context(vm, (enum y_context)i->imm);
		break;
	case Y_OP_SYMBOL:
		slots[i->dst] = symbol(vm, slots[i->a], i->imm);
		break;
	default:
		map_op(vm, fr, i);
	}
}

static bool is_map_op(u16 op)
{
	return op >= Y_OP_MAP_GET && op <= Y_OP_AGG_GET;
}

static enum flow interpret(struct vm *vm, struct call_frame *fr)
{
	const struct y_function *f = fr->f;
	const struct y_insn *i = f->insns + f->blocks[0].start;
	u64 *slots = fr->slots;
	enum flow flow;

	for (;; i++) {
		switch (i->op) {
		case Y_OP_CONST:
			slots[i->dst] = i->imm;
			continue;
		case Y_OP_MOVE:
			slots[i->dst] = slots[i->a];
			continue;
		case Y_OP_JUMP:
			i = f->insns + f->blocks[i->b].start - 1;
			continue;
		case Y_OP_BRANCH:
			i = f->insns + f->blocks[slots[i->a] ? i->b : i->c].start - 1;
			continue;
		case Y_OP_EACH_NEXT:
			i = f->insns + f->blocks[next_each(fr, i) ? i->b : i->c].start - 1;
			continue;
		case Y_OP_RETURN:
			fr->returned = i->a == Y_NONE ? 0 : slots[i->a];
			return FLOW_RETURNED;
		case Y_OP_EXIT:
			return FLOW_EXIT;
		case Y_OP_ERROR:
			say(vm, i, "error", string_of(slots[i->a]));
			return FLOW_ERROR;
		case Y_OP_CALL:
			flow = call(vm, fr, i);
			if (flow == FLOW_RETURNED)
				continue;
			if (flow != FLOW_FAILED)
				return flow;
			break;
		default:
			if (i->op >= Y_OP_ADD && i->op <= Y_OP_LE && i->op != Y_OP_DIV && i->op != Y_OP_MOD) {
				bool unary = i->op == Y_OP_NEG || i->op == Y_OP_NOT;

				if (i->type == Y_STR)
					slots[i->dst] = compare_strings(i->op, slots[i->a], slots[i->b]);
				else
					y_compute(i->op, i->type, slots[i->a], unary ? 0 : slots[i->b], &slots[i->dst]);
				continue;
			}
			if (!y_op_can_fail(i->op) || is_map_op(i->op)) {
				run_simple(vm, fr, i);
				continue;
			}
			if (run_failing(vm, fr, i))
				continue;
		}
		if (i->fail == Y_PROPAGATE)
			return FLOW_FAILED;
		i = f->insns + f->blocks[i->fail].start - 1;
	}
}

/* Slots, then the arrays; zeroed. */
static bool make_frame(struct vm *vm, struct call_frame *fr, size_t *words)
{
	size_t need = fr->f->nslots;

	for (u32 i = 0; i < fr->f->narrays; i++)
		need += fr->f->arrays[i].n;
	*words = need;
	if (vm->stack_used + need > vm->stack_size)
		return false;
	fr->slots = vm->stack + vm->stack_used;
	memset(fr->slots, 0, need * sizeof(u64));
	need = fr->f->nslots;
	if (fr->f->narrays)
		fr->arrays = calloc(fr->f->narrays, sizeof(*fr->arrays));
	if (fr->f->neach)
		fr->each = calloc(fr->f->neach, sizeof(*fr->each));
	if ((fr->f->narrays && !fr->arrays) || (fr->f->neach && !fr->each))
		return false;
	for (u32 i = 0; i < fr->f->narrays; i++) {
		fr->arrays[i] = fr->slots + need;
		need += fr->f->arrays[i].n;
	}
	return true;
}

static enum flow run_function(struct vm *vm, u32 number, const u64 *args, u64 *ret)
{
	struct call_frame fr = {.f = &vm->p->functions[number]};
	struct y_insn at = {.place = vm->place};
	enum flow flow = FLOW_FAILED;
	size_t words = 0;

	vm->depth++;
	if (make_frame(vm, &fr, &words)) {
		vm->stack_used += words;
		if (fr.f->nparameters)
			memcpy(fr.slots, args, fr.f->nparameters * sizeof(u64));
		flow = interpret(vm, &fr);
		vm->stack_used -= words;
	} else {
		fail(vm, &at, Y_LIMIT, 0);
	}
	for (u32 i = 0; fr.each && i < fr.f->neach; i++)
		free(fr.each[i].entries);
	free(fr.each);
	free(fr.arrays);
	vm->depth--;
	*ret = fr.returned;
	return flow;
}

/* --- handlers --- */

static void count_failure(struct vm *vm)
{
	struct y_run_stats *s = vm->stats;

	s->failed++;
	for (u32 i = 0; i < s->nfailures; i++)
		if (s->failures[i].place == vm->place && s->failures[i].status == vm->status) {
			s->failures[i].count++;
			return;
		}
	if (s->nfailures == FAILURES_MOST || grow(&s->failures, s->nfailures, sizeof(*s->failures)))
		return;
	s->failures[s->nfailures++] = (struct y_failure){vm->place, vm->status, vm->at, 1};
}

static enum flow run_handler(struct vm *vm, const struct y_handler *h)
{
	enum flow flow;
	u64 ret;

	vm->steps = 0;
	vm->limit_ns = now_ns() + (u64)(vm->p->limits.time_s * 1e9);
	vm->stats->handlers++;
	if (vm->probing)
		vm->o->probes->take(vm->o->probes_ctx);
	flow = run_function(vm, h->function, NULL, &ret);
	if (vm->probing)
		vm->o->probes->give(vm->o->probes_ctx);
	vm->stats->steps += vm->steps;
	if (flow == FLOW_FAILED)
		count_failure(vm);
	if (flow == FLOW_ERROR)
		vm->stats->error = true;
	free_strings(vm);
	return flow;
}

/* A new look at the target: timers see it as it is then. */
static void end_look(struct vm *vm)
{
	vm->stats->pages += vm->pages.read;
	if (!vm->target->core && vm->target->memory)
		vm->stats->pages_changed += y_pages_changed(&vm->pages);
	y_pages_end(&vm->pages);
	vm->pages.read = 0;
}

static bool stopped(const struct vm *vm)
{
	return vm->o->stop && *vm->o->stop;
}

/* All handlers of a point; false: the run ends. */
static bool run_point(struct vm *vm, enum y_point point)
{
	bool go_on = true;

	for (u32 i = 0; go_on && i < vm->p->nhandlers; i++) {
		enum flow flow;

		if (vm->p->handlers[i].point != point)
			continue;
		flow = run_handler(vm, &vm->p->handlers[i]);
		go_on = flow != FLOW_EXIT && flow != FLOW_ERROR;
		end_look(vm);
	}
	return go_on;
}

/* The next timer that is due; NULL: there is none. */
static const struct y_handler *next_timer(const struct vm *vm, const u64 *due, u32 *number)
{
	*number = Y_NONE;
	for (u32 i = 0; i < vm->p->nhandlers; i++)
		if (vm->p->handlers[i].point == Y_TIMER && (*number == Y_NONE || due[i] < due[*number]))
			*number = i;
	return *number == Y_NONE ? NULL : &vm->p->handlers[*number];
}

static bool is_gone(const struct vm *vm)
{
	u8 byte;

	for (u32 i = 0; i < vm->target->maps.nlines; i++)
		if (vm->target->memory && memory_read(vm->target->memory, &byte, 1, vm->target->maps.lines[i].start))
			return false;
	return vm->target->memory != NULL;
}

/* Until then, or somewhat earlier. False: the run ends. */
static bool sleep_until(struct vm *vm, u64 ns)
{
	struct timespec until = now_timespec(ns);

	if (vm->probing)
		return vm->o->probes->wait(vm->o->probes_ctx, ns) && !is_gone(vm);
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR || !is_gone(vm);
}

static void run_timers(struct vm *vm)
{
	cleanup(free) u64 *due = calloc(vm->p->nhandlers, sizeof(*due));
	u64 now = now_ns(), end = vm->o->duration_s > 0 ? now + (u64)(vm->o->duration_s * 1e9) : UINT64_MAX;
	const struct y_handler *h;
	u32 number;

	for (u32 i = 0; due && i < vm->p->nhandlers; i++)
		due[i] = now + vm->p->handlers[i].period_ns;
	while (due && ((h = next_timer(vm, due, &number)) || vm->probing) && !stopped(vm)) {
		u64 next = h && due[number] < end ? due[number] : end;
		enum flow flow;

		if (!h && next <= now_ns())
			return;
		if (h && due[number] > end && (!vm->probing || end <= now_ns()))
			return;
		if (!sleep_until(vm, next))
			return;
		if (!h || due[number] > now_ns())
			continue;
		flow = run_handler(vm, h);
		end_look(vm);
		fflush(vm->o->out);
		if (flow == FLOW_EXIT || flow == FLOW_ERROR)
			return;
		due[number] += h->period_ns;
		if (due[number] < now_ns())
			due[number] = now_ns(); /* late: not all that were missed */
	}
}

/* --- a run --- */

static bool make_globals(struct vm *vm)
{
	const struct y_program *p = vm->p;

	vm->globals = calloc(p->nglobals + 1, sizeof(*vm->globals));
	vm->global_arrays = calloc(p->nglobals + 1, sizeof(*vm->global_arrays));
	for (u32 i = 0; vm->globals && vm->global_arrays && i < p->nglobals; i++) {
		const struct y_global *g = &p->globals[i];
		struct y_insn set = {.type = g->type, .imm = i};

		if (g->n) {
			vm->global_arrays[i] = calloc(g->n, sizeof(u64));
			if (!vm->global_arrays[i])
				return false;
		} else if (g->type == Y_STR) {
			set_global(vm, &set, copy_string(vm, p->literals[g->value].bytes, p->literals[g->value].len));
		} else {
			vm->globals[i] = g->value;
		}
	}
	return vm->globals && vm->global_arrays;
}

static bool make_literals(struct vm *vm)
{
	const struct y_program *p = vm->p;

	vm->literals = calloc(p->nliterals + 1, sizeof(*vm->literals));
	for (u32 i = 0; vm->literals && i < p->nliterals; i++) {
		struct y_str *s = malloc(sizeof(*s) + p->literals[i].len);

		if (!s)
			return false;
		*s = (struct y_str){.len = p->literals[i].len};
		memcpy(s->bytes, p->literals[i].bytes, s->len);
		vm->literals[i] = s;
	}
	return vm->literals;
}

static bool make(struct vm *vm)
{
	const struct y_program *p = vm->p;
	size_t room = 1;

	vm->stack_size = STACK_MOST / sizeof(u64);
	vm->stack = malloc(STACK_MOST); /* touched only as far as it is used */
	vm->tables = calloc(p->nmaps + 1, sizeof(*vm->tables));
	for (u32 i = 0; i < p->nregexes; i++)
		room = y_regex_room(p->regexes[i]) > room ? y_regex_room(p->regexes[i]) : room;
	vm->regex_room = malloc(room);
	for (u32 i = 0; vm->tables && i < p->nmaps; i++)
		vm->tables[i] = (struct y_table){
		        .map = &p->maps[i], .buckets = y_prints_histogram(p, i), .bytes = &vm->tracer_bytes};
	y_pages_begin(&vm->pages, vm->target->memory);
	return vm->stack && vm->tables && vm->regex_room && make_literals(vm) && make_globals(vm);
}

static void unmake(struct vm *vm)
{
	const struct y_program *p = vm->p;

	for (u32 i = 0; vm->tables && i < p->nmaps; i++) {
		vm->stats->lost += vm->tables[i].lost;
		y_table_clear(&vm->tables[i]);
	}
	for (u32 i = 0; i < p->nglobals; i++) {
		if (vm->globals && p->globals[i].type == Y_STR && !p->globals[i].n)
			free((void *)vm->globals[i]);
		if (vm->global_arrays)
			free(vm->global_arrays[i]);
	}
	for (u32 i = 0; vm->literals && i < p->nliterals; i++)
		free(vm->literals[i]);
	free(vm->literals);
	free(vm->globals);
	free(vm->global_arrays);
	free(vm->tables);
	free(vm->stack);
	free(vm->regex_room);
	free_strings(vm);
	y_pages_end(&vm->pages);
}

static struct error *start_probes(struct vm *vm)
{
	struct y_share share = {.tables = vm->tables,
	        .globals = vm->globals,
	        .global_arrays = vm->global_arrays,
	        .out = vm->o->out,
	        .err = vm->o->err,
	        .json = vm->o->json,
	        .stats = vm->stats};
	struct error *err = vm->o->probes ? vm->o->probes->start(vm->o->probes_ctx, &share) : NULL;

	vm->probing = vm->o->probes && !err;
	return err;
}

static void stop_probes(struct vm *vm)
{
	if (vm->probing)
		vm->o->probes->stop(vm->o->probes_ctx);
	vm->probing = false;
}

/* A program of probes that says nothing at its end shows what it has gathered. */
static void print_all(struct vm *vm)
{
	for (u32 i = 0; i < vm->p->nmaps; i++)
		if (vm->tables[i].used)
			(vm->o->json ? y_json_table : y_print_table)(
			        vm->o->out, &vm->tables[i], y_prints_histogram(vm->p, i) ? Y_HIST : Y_TABLE);
}

struct error *y_run(
        const struct y_program *p, struct y_target *t, const struct y_run_options *o, struct y_run_stats *ret)
{
	struct vm vm = {.p = p, .target = t, .o = o, .stats = ret};
	u64 start = process_cpu_ns();
	struct error *err = y_vm_refuses(p, t->core != NULL, o->probes != NULL);

	*ret = (struct y_run_stats){0};
	if (err)
		return err;
	if (make(&vm)) {
		if (run_point(&vm, Y_BEGIN) && run_point(&vm, Y_ONESHOT)) {
			err = start_probes(&vm);
			if (!err)
				run_timers(&vm);
			stop_probes(&vm);
		}
		if (!err && !ret->error && !y_has_point(p, Y_END) && o->probes && !y_prints_map(p))
			print_all(&vm);
		else if (!err && !ret->error)
			run_point(&vm, Y_END);
	} else {
		err = &error_no_memory;
	}
	unmake(&vm);
	ret->cpu_ns = process_cpu_ns() - start;
	if (!err)
		err = text_finish(o->out, "the output");
	return err;
}
