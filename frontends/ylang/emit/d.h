/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as a script of DTrace (2.0.7 for Linux, x86-64), which runs it where yrt is not. Addresses are those of
 * the process that it was compiled for: `dtrace -p PID`. Differences from what the VM prints stand at the script's
 * head.
 *
 * D has no loops and no jumps. Calls are inlined; each run through a block of instructions that is left is a clause
 * of its own, chosen by `this->b`, in an order in which all jumps lead onward; a loop is as many clauses as it has
 * rounds, which constants must prove. A read that fails ends its clause: before it, `this->b` names the clause that
 * follows then.
 *
 * Facts (tried with 2.0.7): what a clause assigned before it failed stays, what it printed is lost; `-p` is needed to
 * find functions, and a.out is the name of the program's own file; uregs[] are in the order of struct
 * pt_regs; what copyin() points to is read without its sign.
 */
#ifndef YRT_YLANG_D_H
#define YRT_YLANG_D_H

#include "frontends/ylang/ir.h"
#include "frontends/ylang/target.h"

/* ERROR_UNSUPPORTED: the program has something that the script cannot do, by name and place. */
struct error *y_d_refuses(const struct y_program *p, struct y_target *t);
struct error *y_emit_d(const struct y_program *p, struct y_target *t, FILE *out);

#endif
