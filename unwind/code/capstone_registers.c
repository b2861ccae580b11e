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
