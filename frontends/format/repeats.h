/* SPDX-License-Identifier: Apache-2.0 */
/* Recursions on a stack: a cycle of functions is shown once, with how often it repeats. */
#ifndef YRT_FORMAT_REPEATS_H
#define YRT_FORMAT_REPEATS_H

#include <types.h>

/* The length of the cycle of functions that begins at i of n, and how often it repeats; 1: it is not folded. */
u32 repeats(const u32 *functions, u32 n, u32 i, u32 *turns);

#endif
