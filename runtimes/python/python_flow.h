/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of a function with its cold parts, and which can be reached from which. Indirect jumps lead nowhere;
 * a jump out of the code counts as a return.
 */
#ifndef YRT_PYTHON_FLOW_H
#define YRT_PYTHON_FLOW_H

#include <capstone/capstone.h>

#include "python_image.h"

#define FLOW_NOWHERE UINT32_MAX

enum python_flow_flag {
	FLOW_STOPS = 1,      /* nothing is reached by way of it */
	FLOW_RETURNS = 2,    /* or goes to another function for good */
	FLOW_DISPATCHES = 4, /* goes nobody knows where */
	FLOW_FALLS = 8,      /* into the next one */
	FLOW_REACHED = 16,
	FLOW_OWN = 32, /* this and higher ones are the user's */
};

struct python_insn {
	u64 addr;
	u32 size, flags;
	u64 target; /* of a jump; 0: none */
};

struct python_flow {
	struct python_insn *insns; /* sorted */
	u32 *todo;
	u32 n, ntodo;
};

/* Which flags an instruction gets besides. */
typedef u32 python_flow_mark(const cs_insn *in, const void *ctx);

/* False: too much code, or not readable. To be freed in any case: cleanup(python_flow). */
bool python_flow_decode(struct image *img, const struct python_range *ranges, u32 n, python_flow_mark *mark,
        const void *ctx, struct python_flow *ret);
void cleanup_python_flow(struct python_flow *f);

/*
 * The number of the instruction at an address, of the one behind i, and of the one that i jumps to. FLOW_NOWHERE: none.
 */
u32 python_flow_find(const struct python_flow *f, u64 addr);
u32 python_flow_next(const struct python_flow *f, u32 i);
u32 python_flow_jump(const struct python_flow *f, u32 i);

/*
 * Marks everything that can be reached from i, and nothing else, as FLOW_REACHED. Returns how many, and which flags
 * were met.
 */
u32 python_flow_explore(struct python_flow *f, u32 i, u32 *flags);

#endif
