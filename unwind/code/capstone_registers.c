/* SPDX-License-Identifier: Apache-2.0 */
#include "capstone_registers.h"

#include <arch.h>
#include <capstone/capstone.h>

u8 capstone_register(u32 reg)
{
	static const struct {
		u16 reg, half;
		u8 number;
	} regs[] = {{X86_REG_RAX, X86_REG_EAX, DWREG_RAX}, {X86_REG_RDX, X86_REG_EDX, DWREG_RDX},
	        {X86_REG_RCX, X86_REG_ECX, DWREG_RCX}, {X86_REG_RBX, X86_REG_EBX, DWREG_RBX},
	        {X86_REG_RSI, X86_REG_ESI, DWREG_RSI}, {X86_REG_RDI, X86_REG_EDI, DWREG_RDI},
	        {X86_REG_RBP, X86_REG_EBP, DWREG_RBP}, {X86_REG_RSP, X86_REG_ESP, DWREG_RSP},
	        {X86_REG_R8, X86_REG_R8D, DWREG_R8}, {X86_REG_R9, X86_REG_R9D, DWREG_R9},
	        {X86_REG_R10, X86_REG_R10D, DWREG_R10}, {X86_REG_R11, X86_REG_R11D, DWREG_R11},
	        {X86_REG_R12, X86_REG_R12D, DWREG_R12}, {X86_REG_R13, X86_REG_R13D, DWREG_R13},
	        {X86_REG_R14, X86_REG_R14D, DWREG_R14}, {X86_REG_R15, X86_REG_R15D, DWREG_R15}};

	for (u32 i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		if (regs[i].reg == reg || regs[i].half == reg)
			return regs[i].number;
	return CAPSTONE_NO_REG;
}

u8 capstone_register_part(u32 reg)
{
	static const struct {
		u16 word, byte;
		u8 number;
	} parts[] = {{X86_REG_AX, X86_REG_AL, DWREG_RAX}, {X86_REG_DX, X86_REG_DL, DWREG_RDX},
	        {X86_REG_CX, X86_REG_CL, DWREG_RCX}, {X86_REG_BX, X86_REG_BL, DWREG_RBX},
	        {X86_REG_SI, X86_REG_SIL, DWREG_RSI}, {X86_REG_DI, X86_REG_DIL, DWREG_RDI},
	        {X86_REG_BP, X86_REG_BPL, DWREG_RBP}, {X86_REG_SP, X86_REG_SPL, DWREG_RSP},
	        {X86_REG_R8W, X86_REG_R8B, DWREG_R8}, {X86_REG_R9W, X86_REG_R9B, DWREG_R9},
	        {X86_REG_R10W, X86_REG_R10B, DWREG_R10}, {X86_REG_R11W, X86_REG_R11B, DWREG_R11},
	        {X86_REG_R12W, X86_REG_R12B, DWREG_R12}, {X86_REG_R13W, X86_REG_R13B, DWREG_R13},
	        {X86_REG_R14W, X86_REG_R14B, DWREG_R14}, {X86_REG_R15W, X86_REG_R15B, DWREG_R15}};

	for (u32 i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].word == reg || parts[i].byte == reg)
			return parts[i].number;
	return capstone_register(reg);
}
