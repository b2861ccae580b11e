/* SPDX-License-Identifier: Apache-2.0 */
/* What a probe sees of its place: arguments by number and by name, and what a function returns. */
#include <stdlib.h>
#include <string.h>

#include "lower.h"
#include "probes/hit/hit_find.h"
#include "probes/y/y_other_words.h"
#include "probes/hit/hit_usdt.h"
#include "unwind/arch/x86_64/arch.h"
#include "unwind/cleanup.h"
#include "unwind/ends_with.h"
#include "unwind/symbols/types_local.h"
#include "unwind/runtime.h"
#include "unwind/symbols/parameters.h"
#include "unwind/symbols/symbols.h"

#define ARGUMENTS_MOST 64u

static u32 emit_register(struct lower *l, const struct y_node *n, u32 number)
{
	u32 dst = new_slot(l, Y_U64);
	struct y_insn *i = emit(l, n, Y_OP_REGISTER, Y_U64);

	i->dst = dst;
	i->imm = number;
	return dst;
}

/* A word of the caller's at an offset from the stack pointer at the function's entry. */
static struct value on_stack(struct lower *l, const struct y_node *n, const struct type *type, u32 offset)
{
	return (struct value){.kind = V_TARGET, .type = type, .slot = emit_register(l, n, DWREG_RSP), .imm = offset};
}

/* The function that the point names, in C. */
static const char *function_name(struct lower *l)
{
	const char *name = strrchr(l->probe->spec, ':');

	return name ? name + 1 : l->probe->spec;
}

static struct error *stop_at_first(void *found, u64 start, u64 end, const char *name)
{
	*(bool *)found = true;
	return &error_no_memory; /* ends it */
}

/*
 * The language whose functions, by its own tables, take arguments otherwise than C's. They have a package before their
 * name; C's that are linked with them have none. NULL: none.
 */
static const struct runtime_ops *convention_of(struct lower *l)
{
	struct image *img = l->target->nmodules ? l->target->modules[0].image : NULL;
	bool found = false;

	for (const struct runtime_ops *const *r = runtimes; img && strchr(function_name(l), '.') && *r; r++) {
		if (!(*r)->argument_regs)
			continue;
		error_free((*r)->functions(img, stop_at_first, &found));
		if (found)
			return *r;
	}
	return NULL;
}

/* The forms that arguments have, where the point is a USDT probe. */
static void find_variants(struct lower *l, struct y_handler *h)
{
	struct hit_spec spec;
	struct hit_found found;
	struct error *err = h->nvariants ? NULL : hit_parse(h->spec, &spec);

	if (err || h->nvariants || spec.language || spec.kind == HIT_FUNCTION || spec.kind == HIT_TRACEPOINT) {
		error_free(err); /* placing says it */
		return;
	}
	for (u32 i = 0; i < l->target->nmodules; i++) {
		err = hit_find(&spec, l->target->modules[i].image, l->target->root ? l->target->root : "", &found);
		for (u32 k = 0; !err && found.usdt && k < found.n; k++) {
			const char *arguments = found.place[k].arguments ? found.place[k].arguments : "";
			u32 v = 0;

			while (v < h->nvariants && strcmp(h->variants[v], arguments) != 0)
				v++;
			if (v < h->nvariants)
				continue;
			h->variants = y_grow(l->s, h->variants, h->nvariants, sizeof(*h->variants));
			h->variants[h->nvariants++] = y_format(l->s, "%s", arguments);
		}
		free(found.others);
		error_free(err);
	}
}

/* _arg(number) of a USDT probe, whose note says where it is. */
static struct value usdt_argument(struct lower *l, const struct y_node *n, u64 number)
{
	u32 dst = new_slot(l, Y_I64);
	struct y_insn *i;

	for (u32 v = 0; v < l->probe->nvariants; v++) {
		struct hit_usdt_argument all[HIT_USDT_ARGUMENTS];
		u32 many = hit_usdt_parse(l->probe->variants[v], all);

		if (number >= many)
			FAIL(l, n, "_arg: the USDT probe %s has %u arguments, from 0", l->probe->spec, many);
		if (all[number].kind == HIT_USDT_UNKNOWN)
			FAIL(l, n, "_arg: where argument %lu of %s is cannot be read: \"%s\"", number, l->probe->spec,
			        l->probe->variants[v]);
	}
	i = emit(l, n, Y_OP_ARGUMENT, Y_I64);
	i->dst = dst;
	i->imm = number;
	return in_slot(&y_long, dst);
}

struct value lower_place(struct lower *l, const struct y_node *n)
{
	if (!l->in_probe || l->probe->point != Y_PROBE)
		FAIL(l, n,
		        "%s is the address of a probe in the target's code: functions, lines and USDT probes have it",
		        n->name);
	return in_slot(&y_ulong, emit_register(l, n, DWREG_RIP));
}

struct value lower_argument(struct lower *l, const struct y_node *n, u64 number)
{
	const struct runtime_ops *other;

	if (!l->probe)
		FAIL(l, n, "_arg: only a probe of a function has arguments");
	if (l->probe->point != Y_PROBE)
		return lower_kernel_argument(l, n, number);
	if (l->probe->returns)
		FAIL(l, n, "_arg: where a function returns, its arguments are gone; keep them in a map at its entry");
	if (l->probe->line)
		FAIL(l, n, "_arg: registers hold other things in a line; a probe of the function has its arguments");
	find_variants(l, l->probe);
	if (l->probe->nvariants)
		return usdt_argument(l, n, number);
	other = convention_of(l);
	if (other && number >= other->nargument_regs)
		FAIL(l, n, "_arg: %s passes %u words in registers, from 0; $name is a parameter wherever it is",
		        other->language, other->nargument_regs);
	if (other)
		return in_slot(&y_long, emit_register(l, n, other->argument_regs[number]));
	if (number >= ARGUMENTS_MOST)
		FAIL(l, n, "_arg takes 0 to %u", ARGUMENTS_MOST - 1);
	if (number < 6)
		return in_slot(&y_long, emit_register(l, n, parameter_regs[number]));
	return rvalue(l, n, on_stack(l, n, &y_long, 8 * (u32)(number - 5)));
}

static void no_parameter(struct lower *l, const struct y_node *n, struct types *types, const char *function)
{
	struct y_near near = {.name = n->name};
	char lacks[Y_LACKS];

	if (!types)
		FAIL(l, n, "$%s: no debug information describes %s; _arg(0) is its first argument%s", n->name, function,
		        y_target_lacks(l->target, Y_MODULES, lacks));
	types_parameters(types, function, y_near_offer, &near);
	FAIL(l, n, "%s has no parameter %s%s; $return is what it returns", function, n->name, y_near_text(l->s, &near));
}

static bool is_word(const struct type *type)
{
	return (is_integer(type) || type->kind == TYPE_POINTER || type->kind == TYPE_ENUM) && type->size <= 8;
}

static struct value returned(struct lower *l, const struct y_node *n)
{
	const char *function = function_name(l);
	const struct type *type = &y_long;

	if (!l->probe->returns)
		FAIL(l, n, "$return: only a probe of a return has it: _probe %s:return", l->probe->spec);
	for (u32 i = 0; i < l->target->nmodules; i++) {
		struct types *types = y_target_types(l->target, i);
		struct type_function f;

		if (!types || !types_function(types, function, &f) || !f.type->to)
			continue;
		type = convention_of(l) ? types_result(types, function) : f.type->to;
		break;
	}
	if (!is_word(type))
		FAIL(l, n, "$return: %s returns %s, which is in no general register", function,
		        y_type_text(l->s, type));
	return cast_to(l, n, in_slot(&y_ulong, emit_register(l, n, DWREG_RAX)), type);
}

/* Where it is at the function's first instruction, by debug information. */
static struct value located(
        struct lower *l, const struct y_node *n, u32 module, u64 addr, u32 number, const struct type *type)
{
	const struct y_target_module *m = &l->target->modules[module];
	struct parameters all;
	const struct parameter *p;

	if (!parameters_find(m->debug ? m->debug : m->image, l->target->root ? l->target->root : "", addr, &all) ||
	        number >= all.n)
		FAIL(l, n,
		        "$%s: the debug information does not say where it is; _arg(%u) is what C's convention passes "
		        "there",
		        n->name, number);
	p = &all.of[number];
	if (!is_word(type))
		FAIL(l, n, "$%s is of type %s: only integers and pointers can be taken from a register", n->name,
		        y_type_text(l->s, type));
	if (p->stack)
		return on_stack(l, n, type, p->stack);
	if (p->nregs != 1)
		FAIL(l, n, "$%s: the compiler has removed it", n->name);
	return cast_to(l, n, in_slot(&y_ulong, emit_register(l, n, p->reg[0])), type);
}

static void no_local(struct lower *l, const struct y_node *n, struct types *types)
{
	struct y_near near = {.name = n->name};

	types_locals(types, l->line_at, y_near_offer, &near);
	FAIL(l, n, "no variable %s is in scope at 0x%lx, where this line begins%s", n->name, l->line_at,
	        y_near_text(l->s, &near));
}

/* A register and what is added to it. */
static u32 emit_based(struct lower *l, const struct y_node *n, const struct type_local *v)
{
	u32 base = emit_register(l, n, v->reg);

	return emit_binary(l, n, Y_OP_ADD, Y_U64, base, emit_const(l, Y_U64, (u64)v->offset));
}

/* $name in a line: a variable or a parameter, where debug information has it there. */
static struct value local(struct lower *l, const struct y_node *n)
{
	struct types *types = y_target_types(l->target, l->line_module);
	struct type_local v;
	enum type_where where = types_local(types, l->target->modules[l->line_module].image, l->line_at, n->name, &v);
	struct value memory = {.kind = V_TARGET, .type = v.type, .slot = Y_NONE, .module = l->line_module};

	if (where == WHERE_UNKNOWN)
		no_local(l, n, types);
	if (where == WHERE_NOWHERE)
		FAIL(l, n, "$%s: the compiler keeps it nowhere where this line begins; another line may have it",
		        n->name);
	if (where == WHERE_OTHER || (where != WHERE_MEMORY && where != WHERE_ADDRESS && !is_word(v.type)))
		FAIL(l, n, "$%s is in no general register and at no single place of the memory in this line", n->name);
	if (where == WHERE_MEMORY && types_is_entry(types, l->line_at))
		FAIL(l, n,
		        "$%s: this line begins at the function's first instruction, before its variables are there; "
		        "a probe of the function has its parameters",
		        n->name);
	if (l->explain)
		fprintf(l->explain, "$%s: %s at 0x%lx of %s\n", n->name, y_type_text(l->s, v.type), l->line_at,
		        l->target->modules[l->line_module].path);
	switch (where) {
	case WHERE_REGISTER:
		return cast_to(l, n, in_slot(&y_ulong, emit_register(l, n, v.reg)), v.type);
	case WHERE_SUM:
		return cast_to(l, n, in_slot(&y_ulong, emit_based(l, n, &v)), v.type);
	case WHERE_VALUE:
		return constant(v.type->kind == TYPE_ENUM ? v.type->to : v.type,
		        y_wrap(type_of_value(l, n, v.type), (u64)v.offset));
	case WHERE_MEMORY:
		memory.slot = emit_based(l, n, &v);
		return memory;
	default:
		memory.imm = (u64)v.offset;
		return memory;
	}
}

struct value lower_parameter(struct lower *l, const struct y_node *n)
{
	const char *function;
	struct types *known = NULL;

	if (!l->probe)
		FAIL(l, n, "$%s: only probes of functions have parameters", n->name);
	if (l->probe->point != Y_PROBE)
		return lower_kernel_name(l, n);
	if (!strcmp(n->name, "return"))
		return returned(l, n);
	if (l->probe->line)
		return local(l, n);
	if (l->probe->returns)
		FAIL(l, n, "$%s: where a function returns, its parameters are gone; keep them in a map at its entry",
		        n->name);
	function = function_name(l);
	for (u32 i = 0; i < l->target->nmodules; i++) {
		struct types *types = y_target_types(l->target, i);
		const struct type *type;
		struct type_function f;
		int number;

		if (!types || !types_function(types, function, &f) || !f.addr)
			continue;
		known = types;
		number = types_parameter(types, function, n->name, &type);
		if (number >= 0)
			return located(l, n, i, f.addr, (u32)number, type);
	}
	no_parameter(l, n, known, function);
	return (struct value){0};
}

/* What another tool's word is here, if spec begins with one. */
static void check_words(struct lower *l, const char *spec, struct y_pos pos)
{
	const char *word = y_other_words(spec);

	if (word)
		y_error(l->s, pos, NULL, "_probe %s: in Y: %s", spec, word);
}

static void no_line(struct lower *l, struct y_pos pos, const char *file, u32 line, u32 next)
{
	char bare[Y_LACKS];

	if (next)
		y_error(l->s, pos, NULL, "_probe %s:%u: no code begins in this line; the next one that has is %u", file,
		        line, next);
	y_error(l->s, pos, NULL, "_probe %s:%u: no debug information has code of this file from that line on%s", file,
	        line, y_target_bare(l->target, bare));
}

bool lower_line(struct lower *l, const char *spec, struct y_pos pos, u32 *module, struct line_places *ret)
{
	const char *last = strrchr(spec, ':');
	u32 line, next = 0;
	const char *file;

	if (!last || !last[1] || last[1 + strspn(last + 1, "0123456789")])
		return false;
	line = (u32)strtoul(last + 1, NULL, 10);
	file = y_format(l->s, "%.*s", (int)(last - spec), spec);
	if (l->target->machine)
		check_words(l, spec, pos);
	if (l->target->machine)
		y_error(l->s, pos, NULL, "_probe %s: lines belong to a process: -p PID or --select", spec);
	for (*module = 0; *module < l->target->nmodules; ++*module) {
		const struct y_target_module *m = &l->target->modules[*module];

		y_target_types(l->target, *module); /* finds m->debug */
		error_free(symbols_load(m->image, l->target->root ? l->target->root : ""));
		if (!source_line_find(m->image, m->debug ? m->debug : m->image, file, line, ret))
			continue;
		if (ret->line == line && ret->more)
			y_error(l->s, pos, NULL, "_probe %s: it is in more than %u functions", spec, LINE_PLACES_MAX);
		if (ret->line == line)
			return true;
		next = next ? next : ret->line;
	}
	if (!next)
		check_words(l, spec, pos);
	no_line(l, pos, file, line, next);
	return false;
}

/* The file that was started by this path or name, where that is a link: redis-server is one to redis-check-rdb. */
static const char *behind_link(struct lower *l, const char *spec)
{
	const char *text = strncmp(spec, "uprobe:", 7) ? spec : spec + 7, *end = strchr(text, ':');
	const struct y_target *t = l->target;
	struct hit_spec file = {0};
	cleanup(free) char *real = NULL;

	if (!end || end[1] == ':' || (size_t)(end - text) >= sizeof(file.file))
		return spec;
	memcpy(file.file, text, (size_t)(end - text));
	for (u32 i = 0; i < t->nmodules; i++)
		if (hit_is_file(&file, t->modules[i].path))
			return spec;
	if (*text == '/')
		real = realpath(y_format(l->s, "%s%s", t->root ? t->root : "", file.file), NULL);
	for (u32 i = 0; i < t->nmodules; i++)
		if ((real && ends_with(real, t->modules[i].path)) || (!i && !strcmp(file.file, t->comm)))
			return y_format(l->s, "uprobe:%s%s", t->modules[i].path, end);
	return spec;
}

/* "module:function:return" as `probe -e` takes it. */
void lower_point(struct lower *l, struct y_handler *h, struct y_pos pos)
{
	const char *last = strrchr(h->spec, ':');
	bool entry = last && !strcmp(last, ":entry");

	if (l->target->machine)
		check_words(l, h->spec, pos);
	if (l->target->machine)
		y_error(l->s, pos, NULL,
		        "_probe %s: functions belong to a process: -p PID or --select; with -a there are system calls, "
		        "tracepoints, _profile and _timer",
		        h->spec);
	h->returns = (last && !strcmp(last, ":return")) || !strncmp(h->spec, "uretprobe:", 10);
	if (entry || !strcmp(last ? last : "", ":return"))
		h->spec = y_format(l->s, "%.*s", (int)(last - h->spec), h->spec);
	if (h->returns && !strncmp(h->spec, "uretprobe:", 10))
		h->spec += 10;
	if (hit_language(h->spec)) /* "python:orders.checkout", "lua:app.lua:handle" */
		h->point = Y_CALL;
	else
		h->spec = behind_link(l, h->spec);
}
