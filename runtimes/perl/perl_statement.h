/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of a frame as caller() and die() give it. A block of one statement loses its nextstate, and so does the
 * condition of an `elsif`: then PL_curcop is the statement of the `if`, and the lost COP is an OP_NULL in the tree of
 * ops behind it. closest_cop() of util.c (5.20 to 5.44) finds it by the op that runs, or that a caller continues with.
 */
#ifndef YRT_PERL_STATEMENT_H
#define YRT_PERL_STATEMENT_H

#include "perl_objects.h"

/* op: perl_op() of a frame whose statement this is. The statement itself if there is no other one. */
u64 perl_closest_cop(const struct perl_reader *r, u64 cop, u32 op);
/* False: the code whose tree of ops has this root does not have this statement. */
bool perl_may_have(const struct perl_reader *r, u64 root, u64 cop);

#endif
