/* SPDX-License-Identifier: Apache-2.0 */
/* Orders a profile independently of the arrival of its stacks, so that equal profiles give equal files. */
#ifndef YRT_FORMAT_ORDER_H
#define YRT_FORMAT_ORDER_H

#include "unwind/profile/profile.h"

struct order {
	u32 *functions; /* all, by name, module, file, line, kind, flags */
	u32 *rank;      /* of a function: where it is in functions */
	u32 *nodes;     /* all in preorder, the root first, siblings by rank */
	u32 *depth;     /* of a node; the root's is 0 */
	u32 deepest;    /* the largest depth */
};

struct error *order_create(const struct profile *p, struct order **ret);
void order_destroy(struct order *o);

static inline void cleanup_order(struct order **o)
{
	order_destroy(*o);
}

#endif
