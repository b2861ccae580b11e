/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More regions than a process may have (REGIONS_MAX): programs with thousands of executable mappings (.NET, which never
 * writes to executable memory). Files stay whatever happens: every stack goes through libc and the program.
 */
#ifndef YRT_REGIONS_FIT_H
#define YRT_REGIONS_FIT_H

#include <types.h>

#include "shared/region.h"

struct regions_lost {
	u32 rows;    /* so many regions of made code lost their unwind rows: only frame pointers lead out of them */
	u32 regions; /* so many are left out: stacks end at them */
};

/*
 * Makes n regions, sorted, at most `most`, in place; returns how many there are then. In this order: code that nothing
 * describes becomes one region with its neighbours, gaps included; then so does code that the process made, without its
 * rows; then what is in no file is left out, and what no runtime claims before the rest.
 */
u32 regions_fit(struct region *items, u32 n, u32 most, struct regions_lost *lost);

#endif
