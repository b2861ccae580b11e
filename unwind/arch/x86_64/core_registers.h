/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's registers as a core file of x86-64 has them (NT_PRSTATUS: struct user_regs_struct of <sys/user.h>). */
#ifndef YRT_CORE_REGISTERS_H
#define YRT_CORE_REGISTERS_H

#include <elf.h>
#include <sys/user.h>

#include "arch.h"

#define ARCH_CORE_MACHINE EM_X86_64

struct core_registers {
	u64 reg[ARCH_NREGS]; /* DWARF numbers */
	u64 thread_pointer;
	s32 syscall; /* < 0: it is in none */
	u64 arguments[6];
};

static inline void arch_core_registers(const struct user_regs_struct *from, struct core_registers *ret)
{
	*ret = (struct core_registers){
	        .reg = {from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi, from->rbp, from->rsp,
	                from->r8, from->r9, from->r10, from->r11, from->r12, from->r13, from->r14, from->r15,
	                from->rip},
	        .thread_pointer = from->fs_base,
	        .syscall = (s32)from->orig_rax,
	        .arguments = {from->rdi, from->rsi, from->rdx, from->r10, from->r8, from->r9},
	};
}

#endif
