/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler without calls and with its loops laid out: what emit/d.c makes clauses of. Functions are copied to where
 * they are called. A node is a block in a round of each loop that it is in; nodes have an order in which all edges lead
 * onward: a loop's rounds one behind the other, then what follows it.
 */
#ifndef YRT_YLANG_D_FLAT_H
#define YRT_YLANG_D_FLAT_H

#include "frontends/ylang/ir.h"
#include "frontends/ylang/source.h"

#define D_NEST    4u      /* loops in each other */
#define D_ROUNDS  64u     /* of a loop */
#define D_OP_ZERO Y_OPS_N /* array imm is all zeros: a function with arrays begins */

struct d_block {
	struct y_insn *insns;
	u32 n;
	u32 order;          /* of edges that are no rounds; 0: it is never reached */
	u32 entries, backs; /* edges to it: forward ones, and of further rounds, if it is a loop's head */
	bool after_failure; /* an edge of a failure leads to it */
	u32 loops[D_NEST];  /* that it is in: their heads, outermost first */
	u32 nloops;
};

struct d_flat {
	const struct y_program *p;
	struct y_source *s;
	struct d_block *blocks;
	u32 nblocks;
	u8 *slots;   /* enum y_type of each */
	bool *local; /* is this slot used in one block alone, which sets it first? */
	u32 nslots;
	struct y_array *arrays;
	u32 narrays;
	u32 *args;
	u32 nargs;
	u32 place; /* of the handler */
};

/* The handler's function, flat. Leaves by y_leave() with what cannot be done. */
void d_flatten(struct d_flat *f, u32 function);
/* Before: is the first block in those rounds before the second in those? */
bool d_is_before(const struct d_flat *f, u32 a, const u32 *rounds_a, u32 b, const u32 *rounds_b);
/* The rounds that an edge from block a, in these rounds, to block b leads to. False: it is more than D_ROUNDS. */
bool d_follow(const struct d_flat *f, u32 a, const u32 *rounds, u32 b, u32 *ret);
/* Leaves with this refusal. what: what the program has there. */
void d_refuse(const struct d_flat *f, u32 place, const char *what, const char *why) __attribute__((noreturn));

#endif
