/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells calls of a native function apart, read as it begins: "arg1+48,arg2+16+56#". Each part is an argument, and
 * offsets: at each but the last is a pointer that is followed; at the last is one to text, which ends in a 0, or with
 * '#' is as long as the word behind the pointer says (Go's string).
 */
#ifndef YRT_HIT_NATIVE_KEY_H
#define YRT_HIT_NATIVE_KEY_H

#include <stdbool.h>
#include <types.h>

#include "unwind/shared/value.h"

/* Is it meant as one? */
bool hit_native_key_is(const char *key);
/* regs: the registers of integer arguments, by their DWARF numbers. False: it is not of this form, or has too much. */
bool hit_native_key(const char *key, const u8 *regs, u32 nregs, struct value_places *ret);

#endif
