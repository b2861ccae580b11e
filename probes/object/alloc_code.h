/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of allocation functions: where a uprobe costs least, and where they call each other. Calls are followed from
 * each function through its own code and what that calls directly, as far as ALLOC_CODE_FUNCTIONS go. Code without
 * symbols has its bounds from unwind tables.
 */
#ifndef YRT_ALLOC_CODE_H
#define YRT_ALLOC_CODE_H

#include "alloc_functions.h"

#define ALLOC_CODE_FUNCTIONS 1500 /* that are looked through, of a file */

/* Sets place, pushed, tails and wrapper of each function, and inner. */
struct error *alloc_code_read(struct image *img, struct alloc_functions *f);

#endif
