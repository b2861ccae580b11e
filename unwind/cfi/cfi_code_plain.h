/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The most frequent instructions of 64-bit code, decoded without capstone, which takes longer by an order of magnitude.
 * Part of cfi_code.c's work (cfi_internal.h).
 */
#ifndef YRT_CFI_CODE_PLAIN_H
#define YRT_CFI_CODE_PLAIN_H

#include <capstone/capstone.h>
#include <stddef.h>
#include <types.h>

/*
 * ret, which has a detail, becomes as capstone would make it: its number, address and size, its operands, the registers
 * below flags that it writes without naming them, and whether it is a jump. Nothing else is set. False: capstone must
 * be asked.
 */
bool code_plain_decode(const u8 *code, size_t size, u64 addr, cs_insn *ret);

#endif
