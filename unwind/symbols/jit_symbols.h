/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that a process compiled itself, as it reports them to debuggers (GDB manual, "JIT Compilation
 * Interface"): the variable __jit_debug_descriptor leads to a list of ELF files in memory. LLVM's JIT compilers keep
 * one for each piece of code (Numba, PostgreSQL; GDBRegistrationListener.cpp of LLVM 7 to 20). They are relocatable
 * files that contain the addresses at which their sections were loaded.
 */
#ifndef YRT_JIT_SYMBOLS_H
#define YRT_JIT_SYMBOLS_H

#include <types.h>

#include "binary/memory.h"
#include "runtime.h"

struct jit_symbols;

/* Reads nothing yet. NULL: out of memory. */
struct jit_symbols *jit_symbols_create(void);
void jit_symbols_destroy(struct jit_symbols *s);
/*
 * The function that covers addr, without the marks "[abi:…]" in which Numba keeps a hash; NULL: none. Valid until the
 * next call. The list is read again if addr is not known and the list has changed. Its content is untrusted: at most
 * 256 MiB are read.
 */
const char *jit_symbols_find(
        struct jit_symbols *s, struct memory *mem, const struct mapping *mappings, u32 n, u64 addr);

#endif
