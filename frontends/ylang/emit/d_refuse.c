/* SPDX-License-Identifier: Apache-2.0 */
/* What D cannot say, but for loops (d_flat.h). */
#include "d_make.h"

#include <string.h>

#include "unwind/arch/x86_64/arch.h"

static const char *no_operation(const struct y_insn *i)
{
	if (y_type_is_float((enum y_type)i->type) || (i->op == Y_OP_CONVERT && y_type_is_float((enum y_type)i->imm)))
		return "D has no floating-point numbers";
	switch (i->op) {
	case Y_OP_STR_READ:
	case Y_OP_STR_READ_N:
		return i->c == Y_KERNEL ? "strings of the kernel have other types there" : NULL;
	case Y_OP_MATCH:
		return "D has no regular expressions";
	case Y_OP_STR_CUT:
		return "nothing says whether a string was cut";
	case Y_OP_REGISTER:
		return i->imm == DWREG_RIP ? "it is written otherwise there" : NULL;
	case Y_OP_STACK:
		return "its stacks have no frames of languages";
	case Y_OP_SYMBOL:
		return "it names addresses only where it prints them";
	case Y_OP_EACH_BEGIN:
	case Y_OP_EACH_NEXT:
		return "D cannot walk over its maps";
	case Y_OP_MAP_IN:
		return "a missing key and 0 are the same there";
	case Y_OP_AGG_GET:
		return "D's aggregations can only be printed";
	case Y_OP_CONTEXT:
		return i->imm == Y_CPU || i->imm > Y_WALL ? "it does not know this without its libraries" : NULL;
	default:
		return NULL;
	}
}

static const char *no_point(const struct y_handler *h)
{
	if (h->point == Y_CALL)
		return "it has no probes of a language's functions";
	if (h->returns && h->point == Y_PROBE)
		return "its probes of returns put another address on the target's stack";
	return h->nvariants ? "USDT probes have other arguments there" : NULL;
}

/* Others would be patterns, or end the name. */
static bool is_plain(const char *name)
{
	return !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$@+-")];
}

static bool reads(const struct y_insn *i)
{
	return (i->op == Y_OP_LOAD || i->op == Y_OP_STR_READ || i->op == Y_OP_STR_READ_N) && i->c != Y_KERNEL;
}

/* What it cannot do at this point alone. */
static const char *no_operation_at(enum y_point point, const struct y_insn *i)
{
	if (reads(i) && y_is_outside(point))
		return "it runs in no process there, so that nothing of the target can be read";
	if (point == Y_PROBE && i->op == Y_OP_CONTEXT && i->imm == Y_COMM)
		return "DTrace takes it from types of the kernel there, which Linux does not bring in its form";
	return NULL;
}

static void check_handler(struct d *y, const struct y_handler *h)
{
	const struct y_function *f = &y->p->functions[h->function];
	bool *seen = y_new(y->s, y->p->nfunctions + 1);
	struct y_target_object o;

	if (no_point(h))
		d_refuse(&y->f, f->place, f->name, no_point(h));
	if (h->point == Y_PROBE && !y_target_function(y->t, h->spec, &o))
		d_refuse(&y->f, f->place, f->name, "only one function, by its name, is a point there");
	if (h->point == Y_PROBE && !is_plain(strrchr(h->spec, ':') ? strrchr(h->spec, ':') + 1 : h->spec))
		d_refuse(&y->f, f->place, f->name, "a name with signs that stand for something else there");
	y_see_calls(y->p, h->function, seen);
	for (u32 k = 0; k < y->p->nfunctions; k++)
		for (u32 i = 0; seen[k] && i < y->p->functions[k].ninsns; i++) {
			const struct y_insn *insn = &y->p->functions[k].insns[i];
			const char *why = no_operation_at(h->point, insn);

			if (why)
				d_refuse(&y->f, insn->place ? insn->place : f->place, f->name, why);
		}
}

static void check_map(struct d *y, u32 map)
{
	const struct y_map *m = &y->p->maps[map];
	const char *why = NULL;

	if (!y_is_used(y->p, map, true))
		why = "nothing is ever put into it: its type is not known there";
	else if (m->most != Y_MAP_ENTRIES && m->most != Y_MAP_ENTRIES_PROBE)
		why = "its associative arrays have no limit of their own";
	else if (m->steps && (m->low != (s32)m->low || m->step != (u64)(s32)m->step ||
	                             m->low + (s64)(m->steps * m->step) > INT32_MAX))
		why = "steps of its histograms have 32 bits";
	else if (!d_is_added(y->p, map) && d_prints_map(y->p, map))
		why = "D prints what is only added to, or reads it, not both";
	if (why)
		y_leave(y->s,
		        error_hint(error_new(ERROR_UNSUPPORTED, "d: %s: %s", m->name, why), "yrt y runs it by itself"));
}

bool d_prints_map(const struct y_program *p, u32 map)
{
	for (u32 k = 0; k < p->nfunctions; k++)
		for (u32 i = 0; i < p->functions[k].ninsns; i++) {
			const struct y_insn *insn = &p->functions[k].insns[i];

			if (insn->op == Y_OP_PRINT_MAP && insn->imm == map && insn->a == Y_TABLE)
				return true;
		}
	return d_prints_at_end(p);
}

void d_check_program(struct d *y)
{
	y->f = (struct d_flat){.p = y->p, .s = y->s};
	if (!y->t->pid && !y->t->machine)
		y_leave(y->s, error_hint(error_new(ERROR_UNSUPPORTED, "d: a core: it looks at processes that run"),
		                      "yrt y runs it by itself"));
	for (u32 i = 0; i < y->p->nhandlers; i++)
		check_handler(y, &y->p->handlers[i]);
	for (u32 k = 0; k < y->p->nfunctions; k++) {
		const struct y_function *f = &y->p->functions[k];

		for (u32 i = 0; i < f->ninsns; i++)
			if (no_operation(&f->insns[i]))
				d_refuse(&y->f, f->insns[i].place ? f->insns[i].place : f->place,
				        y_op_name((enum y_op)f->insns[i].op), no_operation(&f->insns[i]));
		for (u32 i = 0; i < f->narrays; i++)
			if (f->arrays[i].n > D_ROUNDS)
				d_refuse(&y->f, f->place, f->name, "an array of more than 64 elements");
	}
	for (u32 i = 0; i < y->p->nliterals; i++)
		if (memchr(y->p->literals[i].bytes, 0, y->p->literals[i].len))
			y_leave(y->s, error_hint(error_new(ERROR_UNSUPPORTED,
			                                 "d: a string with a NUL byte: its strings end there"),
			                      "yrt y runs it by itself"));
	for (u32 i = 0; i < y->p->nmaps; i++)
		check_map(y, i);
}
