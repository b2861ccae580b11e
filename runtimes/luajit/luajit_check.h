/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a layout on a live process, by what must hold in every VM of 2.1: links that must close, tags, sizes that must
 * add up (lj_obj.h; lj_state.c stack_init; lj_trace.c trace_save; lj_parse.c fs_finish; lj_mcode.c; lj_asm_x86.h
 * asm_head_root). A wrong offset makes the check fail that uses its member.
 */
#ifndef YRT_LUAJIT_CHECK_H
#define YRT_LUAJIT_CHECK_H

#include "luajit_layout.h"
#include "runtime.h"

enum luajit_check_result {
	LUAJIT_CHECK_SILENT, /* the process has nothing to check: no trace, no prototype on a stack */
	LUAJIT_CHECK_HOLDS,
	LUAJIT_CHECK_FAILS,
};

struct luajit_check {
	const char *name; /* static: "main thread", "snapshots" … */
	const char *what; /* static: what must hold */
	enum luajit_check_result result;
};

#define LUAJIT_CHECKS 20

/*
 * Runs all checks of the VM whose global_State is at g; returns their number. The process keeps running, so a failing
 * check is repeated before it counts. p->mappings must be there.
 */
u32 luajit_check_vm(
        const struct luajit_layout *l, const struct runtime_process *p, u64 g, struct luajit_check ret[LUAJIT_CHECKS]);
/* True if none fails; else *failed (may be NULL) is the first that does. */
bool luajit_layout_check_process(
        const struct luajit_layout *l, const struct runtime_process *p, u64 g, struct luajit_check *failed);

#endif
