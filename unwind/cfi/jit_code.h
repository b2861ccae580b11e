/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for code that a process made itself and that nothing describes: kernels of oneDNN (Xbyak; OpenVINO, PyTorch,
 * TensorFlow), FBGEMM (asmjit). They are made from the code of one function at a time, of which each way has to end
 * with the caller's stack and registers (cfi_code_find_function()). Where a function begins is tried out: allocators
 * give page-aligned memory to each kernel (Xbyak), or pieces at multiples of 16 bytes (asmjit). A function that makes a
 * frame is found anywhere behind a return or padding (GHDL's mcode).
 *
 * Functions at the beginning of touched pages are found at once, others when a frame was seen in them. Code may be
 * replaced: functions whose bytes have changed are dropped.
 */
#ifndef YRT_JIT_CODE_H
#define YRT_JIT_CODE_H

#include <types.h>

#include "cfi.h"
#include "binary/memory.h"

struct jit_code;

/* Pages of executable memory; page-aligned. */
struct jit_range {
	u64 start, end;
};

/* NULL: no memory. */
struct jit_code *jit_code_create(void);
void jit_code_destroy(struct jit_code *c);
/* A frame was seen at pc. */
void jit_code_saw(struct jit_code *c, u64 pc);
/* Is there anything to find out: frames that were seen, functions that have changed? The latter is looked at once a
 * second. */
bool jit_code_wants(struct jit_code *c, struct memory *mem);
/*
 * Looks at the code in ranges, in order. *changed: *ret has the rows of all functions, NULL if there are none. Reads at
 * most 8 MiB of it, besides what frames were seen in; the content is untrusted.
 */
struct error *jit_code_find(struct jit_code *c, pid_t pid, struct memory *mem, const struct jit_range *ranges, u32 n,
        bool *changed, struct cfi **ret);

#endif
