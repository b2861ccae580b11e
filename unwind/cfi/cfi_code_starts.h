/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What symbols and relocations of a file say about its functions: where they begin, and which never return. Part of
 * cfi_code.c's work (cfi_internal.h).
 */
#ifndef YRT_CFI_CODE_STARTS_H
#define YRT_CFI_CODE_STARTS_H

#include <types.h>

#include "binary/image.h"
#include "error.h"

struct code_start {
	u64 addr;
	bool never_returns; /* to its caller, which its instructions do not show */
};

struct code_starts {
	struct code_start *list; /* sorted by address */
	u64 *ends;               /* words of the GOT through which a function is called that never returns; sorted */
	u32 n, nends;
};

/* Only fails for memory; code_starts_free() in any case. */
struct error *code_starts_find(struct code_starts *ret, struct image *img);
void code_starts_free(struct code_starts *starts);
/* The number of the first function at addr or behind it. */
u32 code_starts_from(const struct code_starts *starts, u64 addr);
/* Is what the word at addr points to, once it is relocated, a function that never returns? */
bool code_starts_ends(const struct code_starts *starts, u64 addr);

#endif
