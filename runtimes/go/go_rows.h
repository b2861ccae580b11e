/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rows of Go's functions, by pclntab's table of frame sizes (pcsp). What assembly does beyond that table comes
 * from its name and its code: where stacks begin, which callers' pc is exact, the kernel's signal frame, a stack
 * pointer kept in a register, saved registers of C.
 *
 * Sources: runtime/asm_amd64.s, sys_linux_amd64.s, race_amd64.s, preempt_amd64.s, cgo/asm_amd64.s, cgo/abi_amd64.h of
 * the versions named in go_table.h.
 */
#ifndef YRT_GO_ROWS_H
#define YRT_GO_ROWS_H

#include "cfi/cfi.h"

extern const struct cfi_provider go_provider;

/*
 * Functions that keep the stack pointer in a register while they run on another stack, up to NULL. Their rows are
 * relative to the kept stack pointer: the walker restores it first, because the caller's stack may be anywhere.
 */
extern const char *const go_keepers[];

#endif
