/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By how much the program's own code is slower behind a hit: its caches and predictions are cold.
 *
 * That is beyond what an exception costs by itself, and no pair of uprobes sees it: between them lies next to no code.
 * Where calls are dense it is more than the program's own time between two of them (C programs on an Intel Xeon: 100 to
 * 250 ns, where an exception took 700). Windows with all uprobes and windows with landmarks alone (alloc_marks.h) each
 * say how often the program passes a landmark in a second of its own time. Here is looked for what makes both equal.
 *
 * Where there are no landmarks, it is a part of what an exception costs, and how much is hardly known.
 */
#ifndef YRT_ALLOC_COLD_H
#define YRT_ALLOC_COLD_H

#include "alloc_weigh.h"

/* with: windows with all uprobes, those at landmarks, too; alone: with these alone. exception_ns: a usual one. */
void alloc_cold_fit(const struct alloc_slice *with, u32 nwith, const struct alloc_slice *alone, u32 nalone,
        double exception_ns, struct alloc_cold *ret);

#endif
