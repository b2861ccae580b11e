/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of an image while its table is compiled, in struct cfi_parsed. They come from its FDEs, from a
 * provider, or are known to have no FDE. cfi_sort_functions() sorts them by start; functions that are added later keep
 * the order. The only errors are those of memory.
 */
#ifndef YRT_CFI_FUNCTIONS_H
#define YRT_CFI_FUNCTIONS_H

#include "cfi_internal.h"

/* By start; of those at one address the first in the file first. */
void cfi_sort_functions(struct cfi_parsed *p);
/* It has no FDE. */
bool cfi_is_synthetic(const struct cfi_function *fn);
/* Drops the functions of .debug_frame that .eh_frame covers, even in part. */
void cfi_drop_known(struct cfi_parsed *p);
/* Hand-written entry points have no FDE, but nobody called them. */
struct error *cfi_add_entry(const struct image *img, struct cfi_parsed *p);
/* The linker describes the stubs of dynamic programs only; those of IFUNCs in static ones jump and push nothing. */
struct error *cfi_add_stubs(struct image *img, struct cfi_parsed *p);
/* Adds the n functions of a provider, in place of all that share code with them. */
struct error *cfi_add_provided(
        const struct image *img, struct cfi_parsed *p, const struct cfi_provider *provider, void *functions, u32 n);

/* Calls gap for each stretch of [at, end) between functions, which are sorted. */
struct error *cfi_each_gap(
        const struct cfi_parsed *p, u64 at, u64 end, struct error *(*gap)(void *ctx, u64 start, u64 end), void *ctx);

#endif
