/* SPDX-License-Identifier: Apache-2.0 */
/* endbr64, with which functions begin where indirect branches are checked (-fcf-protection). */
#ifndef YRT_ENDBR64_H
#define YRT_ENDBR64_H

#include <stdbool.h>
#include <string.h>
#include <types.h>

#include "image.h"

#define ENDBR64_SIZE 4

/* code: ENDBR64_SIZE bytes. */
static inline bool is_endbr64(const u8 *code)
{
	return !memcmp(code, "\xf3\x0f\x1e\xfa", ENDBR64_SIZE);
}

/*
 * Where to place a uprobe at a function's entry: behind its endbr64, if it has one. The kernel emulates push and some
 * others, but executes endbr64 behind the breakpoint in a single step, a second exception (arch/x86/kernel/uprobes.c of
 * Linux 6.18).
 */
static inline u64 probed_entry(struct image *img, u64 addr)
{
	u8 code[ENDBR64_SIZE];

	return image_read(img, code, sizeof(code), addr) && is_endbr64(code) ? addr + ENDBR64_SIZE : addr;
}

#endif
