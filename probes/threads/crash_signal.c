/* SPDX-License-Identifier: Apache-2.0 */
#include "crash_signal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "crash_access.h"
#include "dump.h"
#include "unwind/cleanup.h"
#include "unwind/process/process.h"

#define STACK_MOST (4u << 20) /* of a handler: HotSpot's takes some 100 KB */
#define CHUNK      65536
#define PAGE       4096

/* As the kernel has it: its ucontext is shorter than the C library's. */
struct kernel_frame {
	u64 restorer;
	u64 flags, link, stack[3];
	u64 gregs[23]; /* enum of <sys/ucontext.h> */
	u64 fpstate, reserved[8];
	u64 mask;
	siginfo_t info;
};

#define USER_CS         0x33 /* arch/x86/include/asm/segment.h: __USER_CS */
#define TRAP_PAGE_FAULT 14   /* Intel SDM 3A, 6.15: error code of vector 14 */
#define FAULT_WRITE     2
#define FAULT_FETCH     16

/* mov $15, %rax; syscall */
static bool is_restorer(const struct process *p, u64 addr)
{
	static const u8 code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	const struct mapping *m = process_mapping(p, addr);
	u8 there[sizeof(code)];

	return m && m->image && memory_read(p->memory, there, sizeof(there), addr) &&
	       !memcmp(there, code, sizeof(code));
}

static bool is_fault(const siginfo_t *info)
{
	return info->si_code > 0 &&
	       (info->si_signo == SIGSEGV || info->si_signo == SIGBUS || info->si_signo == SIGILL ||
	               info->si_signo == SIGFPE || info->si_signo == SIGTRAP);
}

static void take(const struct kernel_frame *f, struct crash_signal *ret)
{
	static const u8 from[][2] = {{DWREG_R8, REG_R8}, {DWREG_R9, REG_R9}, {DWREG_R10, REG_R10}, {DWREG_R11, REG_R11},
	        {DWREG_R12, REG_R12}, {DWREG_R13, REG_R13}, {DWREG_R14, REG_R14}, {DWREG_R15, REG_R15},
	        {DWREG_RDI, REG_RDI}, {DWREG_RSI, REG_RSI}, {DWREG_RBP, REG_RBP}, {DWREG_RBX, REG_RBX},
	        {DWREG_RDX, REG_RDX}, {DWREG_RAX, REG_RAX}, {DWREG_RCX, REG_RCX}, {DWREG_RSP, REG_RSP},
	        {DWREG_RIP, REG_RIP}};

	*ret = (struct crash_signal){.is_page_fault = f->gregs[REG_TRAPNO] == TRAP_PAGE_FAULT,
	        .wrote = f->gregs[REG_ERR] & FAULT_WRITE,
	        .ran = f->gregs[REG_ERR] & FAULT_FETCH};
	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++)
		ret->reg[from[i][0]] = f->gregs[from[i][1]];
}

/*
 * A handler without SA_SIGINFO gets no siginfo. The thread's last page fault is told in any case: it is this signal's
 * if the instruction that was interrupted works at that address, or the disassembler does not know it (AVX-512).
 */
static bool take_fault(const struct dump_thread *t, const struct kernel_frame *f, struct crash_signal *ret)
{
	bool told = is_fault(&f->info);
	char text[CRASH_INSN];
	int base;

	take(f, ret);
	ret->number = told ? (u32)f->info.si_signo : SIGSEGV;
	ret->code = told ? f->info.si_code : SEGV_MAPERR;
	ret->has_address = !told || f->info.si_code != SI_KERNEL;
	ret->address = !told ? f->gregs[REG_CR2] : ret->has_address ? (u64)(uintptr_t)f->info.si_addr : 0;
	if (told || !ret->is_page_fault)
		return told;
	return crash_access(t->process, ret->reg, t->at.thread_pointer, ret->address, text, &base) || !*text;
}

/* Reads as much of the stack as there is. */
static size_t read_stack(const struct process *p, u64 from, u8 *ret)
{
	size_t n = 0;

	while (n < STACK_MOST && memory_read(p->memory, ret + n, CHUNK, from + n))
		n += CHUNK;
	while (n < STACK_MOST) { /* to the end of the page, and page by page */
		size_t size = PAGE - (from + n) % PAGE;

		size = size < STACK_MOST - n ? size : STACK_MOST - n;
		if (!memory_read(p->memory, ret + n, size, from + n))
			break;
		n += size;
	}
	return n;
}

/* Did the walk go through a signal there, to this program counter? Others are left over from handlers that ended. */
static bool was_walked(const struct dump_thread *t, u64 restorer, u64 pc)
{
	for (u32 i = 0; i < t->nframes; i++)
		if (frame_kind(&t->frames[i]) == FRAME_NATIVE && frame_addr(&t->frames[i]) == restorer &&
		        (i + 1 == t->nframes || frame_kind(&t->frames[i + 1]) != FRAME_NATIVE ||
		                frame_addr(&t->frames[i + 1]) == pc))
			return true;
	return false;
}

/* The outermost is the first that came. */
static bool search(const struct dump_thread *t, const u8 *stack, size_t n, struct crash_signal *ret)
{
	u64 restorer = 0;
	bool found = false;

	for (size_t i = 0; i + sizeof(struct kernel_frame) <= n; i += 8) {
		struct kernel_frame f;
		struct crash_signal s;

		memcpy(&f, stack + i, sizeof(f));
		if (f.link || (u16)f.gregs[REG_CSGSFS] != USER_CS || !was_walked(t, f.restorer, f.gregs[REG_RIP]))
			continue;
		if (f.restorer != restorer && !is_restorer(t->process, f.restorer))
			continue;
		restorer = f.restorer;
		if (take_fault(t, &f, &s)) {
			*ret = s;
			found = true;
		}
	}
	return found;
}

bool crash_signal_find(const struct dump_thread *t, struct crash_signal *ret)
{
	cleanup(free) u8 *stack = malloc(STACK_MOST);
	size_t n = stack ? read_stack(t->process, t->at.reg[REG_SP] & ~7ull, stack) : 0;

	return search(t, stack, n, ret);
}
