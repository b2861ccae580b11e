/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions of a runtime a name means: those with exactly that name; with * and ?, those that match; or else
 * those whose name ends so, if that is one name ("checkout", "views.checkout" of "orders.views.checkout").
 */
#ifndef YRT_HIT_CALLEE_MATCH_H
#define YRT_HIT_CALLEE_MATCH_H

#include "hit_spec.h"
#include "unwind/process/process.h"
#include "unwind/runtime_calls.h"

#define CALLEES_MAX 64 /* that a pattern may match */

struct callee_match {
	struct runtime_callee *of;
	u32 n;
	u32 all;              /* that match, also where they are too many */
	struct hit_near near; /* if there is none */
};

/*
 * In one process, in all runtimes of this view. whole: the end of a name is not enough. ret->of is malloc'd, also where
 * there is an error.
 */
struct error *callee_match(const struct process *p, const char *view, const char *text, const char *name, bool whole,
        struct callee_match *ret);
/* Calls add() for each function of a process that the pattern matches. */
struct error *callee_each(const struct process *p, const char *view, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);
/* All forms of a function that was found in the process, with `changes`, as they are by now. ret->of is malloc'd. */
struct error *callee_again(
        const struct process *p, const char *view, const struct runtime_callee *of, struct callee_match *ret);
/* The word of struct pt_regs that has a register, by its DWARF number; CALLEE_NO_REG: none has. */
u32 callee_register(u8 number);
/* As runtime_calls_ops.field. */
bool callee_field(const struct process *p, const char *view, const struct runtime_callee *of, u32 i, const char *fields,
        struct value_places *v, u32 slot);
/* Is it a pattern? */
bool callee_is_pattern(const char *name);
/* Does any runtime of the view say where its functions are? Its form: "python:MODULE.FUNCTION"; NULL: none. */
const char *callee_form(const char *view);

/* Which functions have one of the process's inlined (runtime_calls.h). */
void callee_inlined(const struct process *p, const char *view, const struct runtime_callee *of,
        void (*add)(void *ctx, const char *into), void *ctx);

/* Writes an argument as the view's language does; "?" if none of the process's runtimes can. */
void callee_value(const struct process *p, const char *view, const struct runtime_value *v, FILE *out);

#endif
