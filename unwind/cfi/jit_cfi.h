/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind information of code that a process compiled itself. LLVM's JIT compilers (Numba's, PostgreSQL's) write an
 * .eh_frame section for each piece of code, for exceptions, into memory that becomes read-only (RuntimeDyld,
 * SectionMemoryManager.cpp of LLVM 7 to 20). It is found by its bytes, because a stripped program has no pointer to it.
 * Functions that throw nothing (nounwind), which are most of Numba's, have no entry in it: their rows are made from the
 * code (cfi_internal.h).
 */
#ifndef YRT_JIT_CFI_H
#define YRT_JIT_CFI_H

#include <types.h>

#include "cfi.h"
#include "binary/memory.h"
#include "runtime.h"

/*
 * Rows of all code in anonymous executable mappings for which such sections exist, in process addresses. *hash is one
 * of sections, mappings and code; 0: there are no sections. *ret is NULL then, or if nothing has changed. Reads at most
 * 64 MiB of sections and 4 MiB of code; the content is untrusted.
 */
struct error *jit_cfi_find(struct memory *mem, const struct mapping *mappings, u32 n, u64 *hash, struct cfi **ret);

#endif
