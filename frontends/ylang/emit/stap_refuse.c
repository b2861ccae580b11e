/* SPDX-License-Identifier: Apache-2.0 */
/* What SystemTap's language cannot say. */
#include <stdlib.h>
#include <string.h>

#include "stap.h"
#include "unwind/arch/x86_64/arch.h"

#define BY_ITSELF "yrt y runs it by itself"

static const char *no_operation(const struct y_insn *i)
{
	if (y_type_is_float(i->type) || (i->op == Y_OP_CONVERT && y_type_is_float((enum y_type)i->imm)))
		return "SystemTap has no floating-point numbers";
	if (i->c == Y_KERNEL && (i->op == Y_OP_LOAD || i->op == Y_OP_STR_READ || i->op == Y_OP_STR_READ_N))
		return "what the kernel has is read by the kernel's own debug information there";
	switch (i->op) {
	case Y_OP_ARGUMENT:
		return "arguments of tracepoints, system calls and USDT probes have other names there";
	case Y_OP_MATCH:
		return "regular expressions are others there, and keep no captures";
	case Y_OP_STR_CUT:
		return "nothing says whether a string was cut";
	case Y_OP_REGISTER:
		return i->imm == DWREG_RIP ? "it is written otherwise there" : NULL;
	case Y_OP_STACK:
		return "its stacks have no frames of languages";
	case Y_OP_SYMBOL:
		return "it names no addresses of data";
	case Y_OP_CONTEXT:
		return i->imm == Y_PROG  ? "it does not know _prog"
		       : i->imm >= Y_UID ? "it is written otherwise there"
		                         : NULL;
	default:
		return NULL;
	}
}

static const char *no_point(const struct y_handler *h)
{
	if (h->point == Y_CALL)
		return "it has no probes of a language's functions";
	if (h->returns)
		return "its probes of returns put another address on the target's stack";
	if (h->point == Y_TRACEPOINT || h->point == Y_SYSCALL)
		return "tracepoints and system calls have other names and arguments there";
	return h->nvariants ? "USDT probes have other arguments there" : NULL;
}

static struct error *refused(const struct y_place *at, const char *what, const char *why)
{
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "%s:%u:%u: stap: %s: %s", at->file, at->line, at->column, what, why),
	        BY_ITSELF);
}

static bool reads(const struct y_insn *i)
{
	return i->op == Y_OP_LOAD || i->op == Y_OP_STR_READ || i->op == Y_OP_STR_READ_N;
}

/* A function that is called: not by itself, and what reads the target not outside of it. */
static struct error *check_calls(const struct y_program *p, const struct y_handler *h)
{
	bool *seen = calloc(p->nfunctions, sizeof(*seen));
	bool outside = y_is_outside(h->point);
	struct error *err = seen ? NULL : &error_no_memory;

	if (seen)
		y_see_calls(p, h->function, seen);
	for (u32 k = 0; !err && k < p->nfunctions; k++)
		for (u32 i = 0; !err && seen[k] && outside && i < p->functions[k].ninsns; i++)
			if (reads(&p->functions[k].insns[i]))
				err = refused(&p->places[p->functions[k].insns[i].place],
				        p->functions[h->function].name,
				        "it runs in no process there, so that nothing of the target can be read");
	free(seen);
	return err;
}

static struct error *check_recursion(const struct y_program *p, u32 number)
{
	const struct y_function *f = &p->functions[number];
	struct error *err = NULL;

	for (u32 i = 0; !err && i < f->ninsns; i++) {
		bool *seen = f->insns[i].op == Y_OP_CALL ? calloc(p->nfunctions, sizeof(*seen)) : NULL;

		if (!seen)
			continue;
		y_see_calls(p, (u32)f->insns[i].imm, seen);
		if (seen[number])
			err = refused(&p->places[f->insns[i].place], f->name, "functions that call themselves");
		free(seen);
	}
	return err;
}

struct error *y_stap_refuses(const struct y_program *p, struct y_target *t)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->nhandlers; i++) {
		const struct y_handler *h = &p->handlers[i];
		const struct y_function *f = &p->functions[h->function];
		struct y_target_object o;

		if (no_point(h))
			err = refused(&p->places[f->place], f->name, no_point(h));
		else if (h->point == Y_PROBE && !y_target_function(t, h->spec, &o))
			err = refused(
			        &p->places[f->place], f->name, "only one function, by its name, is a point there");
		else
			err = check_calls(p, h);
	}
	for (u32 k = 0; !err && k < p->nfunctions; k++) {
		const struct y_function *f = &p->functions[k];

		for (u32 i = 0; !err && i < f->ninsns; i++)
			if (no_operation(&f->insns[i]))
				err = refused(&p->places[f->insns[i].place ? f->insns[i].place : f->place],
				        y_op_name(f->insns[i].op), no_operation(&f->insns[i]));
		if (!err)
			err = check_recursion(p, k);
	}
	for (u32 i = 0; !err && i < p->nliterals; i++)
		if (memchr(p->literals[i].bytes, 0, p->literals[i].len))
			err = error_hint(
			        error_new(ERROR_UNSUPPORTED, "stap: a string with a NUL byte: its strings end there"),
			        BY_ITSELF);
	for (u32 i = 0; !err && i < p->nmaps; i++)
		if (!y_is_used(p, i, true))
			err = error_hint(error_new(ERROR_UNSUPPORTED,
			                         "stap: nothing is ever put into %s: its type is not known there",
			                         p->maps[i].name),
			        BY_ITSELF);
	return err;
}
