/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetches what the expansion of a stack is going to read, for all its nmethods at once. Each step (from nmethod to
 * Method, ConstMethod, ConstantPool, class, and Symbols) is one system call for all of them instead of one for each. It
 * only fills pages; the code that uses them checks their contents.
 */
#ifndef YRT_HOTSPOT_PREFETCH_H
#define YRT_HOTSPOT_PREFETCH_H

#include "hotspot_blocks.h"
#include "runtimes/hotspot/layout/hotspot_layout.h"

#define HOTSPOT_PREFETCH_MAX 64

/* Fills b for these n <= HOTSPOT_PREFETCH_MAX addresses of nmethods. */
void hotspot_prefetch(const struct hotspot_layout *l, struct hotspot_blocks *b, const u64 *nmethods, u32 n);

#endif
