/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the code of a build shows of its layout: instructions of the VM (vm_x64.dasc, vm_x86.dasc for references of 32
 * bits) and of small exported functions that must use a member. In the VM of every 2.1, rbp is L or a function, rbx the
 * bytecode, rdx the base, and r14 the dispatch table, which is at a constant distance from global_State.
 */
#ifndef YRT_LUAJIT_FACTS_H
#define YRT_LUAJIT_FACTS_H

#include "binary/image.h"
#include "luajit_layout.h"

struct luajit_access;

struct luajit_facts {
	struct luajit_access *vm; /* the VM's instructions that have an operand in memory, or add a constant */
	u32 nvm;
	struct image *img;
	/* found without any layout; size 0: not */
	struct layout_member glref; /* lua_State.glref */
	s32 g2disp;                 /* from global_State to the dispatch table */
	s32 trace;                  /* jit_State.trace, from the dispatch table; 0: not found */
};

/* start, end: the VM's code in the file. img must outlive the facts. */
struct error *luajit_facts_read(struct image *img, u64 start, u64 end, struct luajit_facts *ret);
void luajit_facts_free(struct luajit_facts *facts);

/* What the code says of a member as a layout has it. */
enum luajit_verdict { LUAJIT_SILENT, LUAJIT_AGREES, LUAJIT_CONTRADICTS };

/* field: number in luajit_layout_schema. Distances between the parts of GG_State are checked as a whole. */
enum luajit_verdict luajit_facts_ask(const struct luajit_facts *facts, const struct luajit_layout *l, u32 field);

/*
 * An error that names the members that the code contradicts; NULL if none.
 * what: the layout, for the message.
 */
struct error *luajit_facts_check(const struct luajit_facts *facts, const struct layout *l, const char *what);

/* Sets the parts of GG_State to where the code has them: the data before them differs by build. False: unknown. */
bool luajit_facts_place(const struct luajit_facts *facts, struct layout *l);

#endif
