/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which methods a place in compiled code stands for. An nmethod has PcDescs, sorted by pc, at its calls, safepoint
 * polls and implicit exceptions. Each leads to a scope: method, bytecode, and the scope that it was inlined into, as
 * UNSIGNED5 numbers (code/pcDesc.hpp, code/scopeDesc.cpp, code/debugInfo.cpp: the same from JDK 8 to 28).
 */
#ifndef YRT_HOTSPOT_SCOPES_H
#define YRT_HOTSPOT_SCOPES_H

#include "runtimes/hotspot/code/hotspot_code.h"

#define HOTSPOT_SCOPES_MAX 255

/* A method at a place in compiled code. */
struct hotspot_scope {
	u64 method; /* Method* */
	u32 bci;    /* HOTSPOT_NO_BCI: unknown */
};

struct hotspot_pc {
	s32 pc;    /* from the beginning of the code */
	s32 scope; /* offset in the scopes; 0: nothing but the root method is known */
};

/* Copies of the tables of one nmethod, in one piece of memory. */
struct hotspot_tables {
	u64 method; /* the one that was compiled */
	u32 level;
	bool no_zero;
	const struct hotspot_pc *pcs; /* strictly ascending, without the sentinels at both ends */
	const u8 *scopes;
	const u64 *metadata;
	u32 npcs, nscopes, nmetadata;
	u32 bytes; /* of all */
};

/*
 * Freed by free(). NULL: the nmethod is not there (any more), its tables make no sense, or there is no memory for them.
 * no_zero: as in hotspot_unsigned5.h.
 */
struct hotspot_tables *hotspot_tables_read(const struct hotspot_layout *l, const struct hotspot_code *c,
        struct memory *m, u64 nmethod, u32 compile_id, bool no_zero);

/* The methods of a PcDesc, innermost first; returns how many, the last is the root. 0: the scopes make no sense. */
u32 hotspot_scopes_at(
        const struct hotspot_tables *t, const struct hotspot_pc *pc, struct hotspot_scope ret[HOTSPOT_SCOPES_MAX]);
/* The last PcDesc before this offset, and the first one at or behind it; NULL: there is none. */
void hotspot_pcs_around(
        const struct hotspot_tables *t, u32 offset, const struct hotspot_pc **before, const struct hotspot_pc **after);

#endif
