/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a layout on a live process (runtime_check.h), by what must hold in every VM of 2.1: links, tags, sizes
 * (lj_obj.h; lj_state.c stack_init; lj_trace.c trace_save; lj_parse.c fs_finish; lj_mcode.c; lj_asm_x86.h
 * asm_head_root).
 */
#ifndef YRT_LUAJIT_CHECK_H
#define YRT_LUAJIT_CHECK_H

#include "luajit_layout.h"
#include "runtime_check.h"

#define LUAJIT_CHECK_PROTOS 16
#define LUAJIT_CHECK_TRACES 64 /* that are looked at */

/* p->mappings must be there. */
struct luajit_checked {
	const struct luajit_layout *l;
	const struct runtime_process *p;
	u64 g; /* global_State: given with l and p, the rest is found */
	u64 gg, j;
	u64 thread; /* the one that runs, or main */
	u64 protos[LUAJIT_CHECK_PROTOS];
	u32 nprotos;
	u32 nfunctions, nwrong; /* on stacks; those that are Lua functions but for their prototype, or the other way */
	u64 traces[LUAJIT_CHECK_TRACES];
	u16 numbers[LUAJIT_CHECK_TRACES];
	u32 ntraces;
};

extern const struct runtime_checks luajit_checks; /* of a struct luajit_checked */

#endif
