/* SPDX-License-Identifier: Apache-2.0 */
/* Registers as the disassembler numbers them. */
#ifndef YRT_CAPSTONE_REGISTERS_H
#define YRT_CAPSTONE_REGISTERS_H

#include <types.h>

#define CAPSTONE_NO_REG 0xff

/* The DWARF number of an x86_reg, a general register of 64 bits or its lower half; CAPSTONE_NO_REG: another one. */
u8 capstone_register(u32 reg);
/* The same also of its low 16 or 8 bits ("sil"; not of the second byte, "ah"). */
u8 capstone_register_part(u32 reg);

#endif
