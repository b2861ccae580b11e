/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the expansion of a stack is going to read, for all its nmethods at once: each step from nmethod over Method,
 * ConstMethod, ConstantPool and class to the Symbols is one call of the kernel, not one for each. It only fills pages;
 * what they hold is checked by those who use it.
 */
#ifndef YRT_HOTSPOT_PREFETCH_H
#define YRT_HOTSPOT_PREFETCH_H

#include "hotspot_blocks.h"
#include "runtimes/hotspot/layout/hotspot_layout.h"

#define HOTSPOT_PREFETCH_MAX 64

/* Fills b for these n <= HOTSPOT_PREFETCH_MAX addresses of nmethods. */
void hotspot_prefetch(const struct hotspot_layout *l, struct hotspot_blocks *b, const u64 *nmethods, u32 n);

#endif
