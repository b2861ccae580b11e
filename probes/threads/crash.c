/* SPDX-License-Identifier: Apache-2.0 */
#include "crash.h"

#include <arch.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <types.h>
#include <ucontext.h>

#include "crash_access.h"
#include "crash_exception.h"
#include "dump.h"
#include "unwind/binary/core_file.h"
#include "unwind/cleanup.h"
#include "unwind/process/process.h"
#include "unwind/symbols/pointed_member.h"
#include "unwind/symbols/symbols.h"

/*
 * The fault that a thread was handling when it died: runtimes catch SIGSEGV, write a report and abort(). The kernel
 * keeps the signal and the registers of that moment on the stack, right above the address of the C library's
 * rt_sigreturn stub (arch/x86/kernel/signal_64.c: struct rt_sigframe; the same since 2.6).
 */

struct dump_thread;

struct crash_signal {
	u32 number;
	s32 code; /* si_code */
	bool has_address;
	u64 address;
	u64 reg[ARCH_NREGS]; /* DWARF numbers */
	bool is_page_fault;  /* then the processor said: */
	bool wrote, ran;
};

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
 * A handler without SA_SIGINFO gets no siginfo, but the frame always has the thread's last page fault. That fault
 * raised this signal if the interrupted instruction accesses its address, or cannot be disassembled (AVX-512).
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

/* The first fault of the thread. A signal from another process is not a fault. */
static bool crash_signal_find(const struct dump_thread *t, struct crash_signal *ret)
{
	cleanup(free) u8 *stack = malloc(STACK_MOST);
	size_t n = stack ? read_stack(t->process, t->at.reg[REG_SP] & ~7ull, stack) : 0;

	return search(t, stack, n, ret);
}

#define NULL_MOST     65536    /* such an address is that of a member of no object (vm.mmap_min_addr) */
#define GUARD_MOST    1048576  /* below a stack: of one that grew too large in one step */
#define MESSAGE_SIZES 16777216 /* of glibc's struct abort_msg_s */

static const struct core_segment *segment_near(const struct core_file *core, u64 addr)
{
	for (u32 i = 0; i < core->nsegments; i++)
		if (addr < core->segments[i].end)
			return &core->segments[i];
	return NULL;
}

static const char *file_of(const struct core_file *core, const struct core_segment *s)
{
	return s->file ? core->files[s->file - 1].path : "memory of no file";
}

/* The stack's end was passed: the stack pointer is in the segment above, or has left it, too. */
static bool is_overflow(const struct core_file *core, u64 addr, u64 sp)
{
	const struct core_segment *s = segment_near(core, addr), *above;
	bool guard = s && addr >= s->start && !(s->prot & (PROT_READ | PROT_WRITE | PROT_EXEC));

	if (!s || (addr >= s->start && !guard))
		return false;
	above = guard ? segment_near(core, s->end) : s;
	return above && above->prot & PROT_WRITE && above->start - addr <= GUARD_MOST && sp < above->end &&
	       sp + GUARD_MOST >= above->start && sp - above->start + GUARD_MOST <= 2 * GUARD_MOST;
}

/* "a null pointer, plus 16: field `next` of `struct node`" */
static void name_member(const struct dump_thread *t, int base, struct crash *c)
{
	u64 pc = c->reg[REG_PC];
	const struct mapping *m = process_mapping(t->process, pc);
	size_t n = strlen(c->about);
	char text[160];

	if (c->address >= NULL_MOST || !m || !m->image || (base >= 0 && base < ARCH_NREGS && c->reg[base]))
		return;
	if (pointed_member(m->image, "", pc - m->bias, base, c->address, text, sizeof(text)))
		snprintf(c->about + n, CRASH_TEXT - n, ": %s", text);
}

/* A handler of the signal may have mapped more before the core was written: a JVM's, which writes a report. */
static bool is_allowed_now(const struct core_segment *s, enum crash_access access)
{
	return s->prot != CORE_PROT_UNKNOWN &&
	       ((access == CRASH_READ && s->prot & PROT_READ) || (access == CRASH_WRITE && s->prot & PROT_WRITE));
}

static void describe_address(const struct core_file *core, u32 fault, struct crash *c)
{
	const struct core_segment *s = segment_near(core, c->address);
	u64 addr = c->address;

	if (addr == 0)
		snprintf(c->about, CRASH_TEXT, "a null pointer");
	else if (addr < NULL_MOST)
		snprintf(c->about, CRASH_TEXT, "a null pointer, plus %lu", addr);
	else if (is_overflow(core, addr, c->reg[REG_SP]))
		snprintf(c->about, CRASH_TEXT, "stack overflow: it lies below the end of the thread's stack");
	else if (!s || addr < s->start)
		snprintf(c->about, CRASH_TEXT, "nothing is mapped there");
	else if (addr == c->reg[REG_PC] && !(s->prot & PROT_EXEC))
		snprintf(c->about, CRASH_TEXT, "no code may run there: %s", file_of(core, s));
	else if (fault == SIGSEGV && is_allowed_now(s, c->access))
		snprintf(c->about, CRASH_TEXT, "it was not mapped, or not for that, but has been since the fault");
	else if (s->prot != CORE_PROT_UNKNOWN)
		snprintf(c->about, CRASH_TEXT, "it is mapped, but only %c%c%c: %s", s->prot & PROT_READ ? 'r' : '-',
		        s->prot & PROT_WRITE ? 'w' : '-', s->prot & PROT_EXEC ? 'x' : '-', file_of(core, s));
}

/* glibc, include/stdlib.h: struct abort_msg_s { unsigned int size; char msg[]; }, the same since 2.8. */
static void read_message(const struct process *p, char ret[CRASH_TEXT])
{
	for (u32 i = 0; i < p->maps.nlines; i++) {
		const struct mapping *m = &p->mappings[i];
		struct symbol sym;
		u64 at;
		u32 size;

		if (!m->image || (i && p->mappings[i - 1].image == m->image) ||
		        !symbols_lookup(m->image, "__abort_msg", &sym))
			continue;
		if (memory_read(p->memory, &at, sizeof(at), sym.start + m->bias) && at &&
		        memory_read(p->memory, &size, sizeof(size), at) && size <= MESSAGE_SIZES &&
		        memory_line(p->memory, ret, CRASH_TEXT, at + sizeof(size)))
			return;
	}
	ret[0] = '\0';
}

/* What a runtime says, of the thread that was killed before all others. */
static void ask_runtimes(const struct dump_list *list, const struct dump_thread *killed, struct crash *ret)
{
	for (u32 i = 0; i <= list->n && !*ret->message; i++) {
		const struct dump_thread *t = i ? &list->items[i - 1] : killed;
		struct runtime_process p = process_view(t->process);
		const struct runtime_dying dying = {.p = &p,
		        .frames = t->frames,
		        .n = t->nframes,
		        .thread_pointer = t->at.thread_pointer,
		        .sp = t->at.reg[REG_SP]};

		for (u32 k = 0; k < t->process->ninstances && !*ret->message; k++) {
			const struct instance *in = &t->process->instances[k];

			if (!in->ops->last_words || !in->data ||
			        !in->ops->last_words(in->data, &dying, ret->message, CRASH_TEXT))
				*ret->message = '\0';
		}
		if (*ret->message && t != killed)
			ret->speaker = t->at.tid;
	}
}

/* The fault that came first, if a handler of it was running. */
static u32 take_signal(const struct core_file *core, const struct dump_thread *t, struct crash *ret, s32 *code)
{
	struct crash_signal s;

	*code = core->signal_code;
	if (!crash_signal_find(t, &s)) {
		memcpy(ret->reg, t->at.reg, sizeof(ret->reg));
		ret->has_address = core->has_address;
		ret->address = core->address;
		return core->signal;
	}
	memcpy(ret->reg, s.reg, sizeof(ret->reg));
	*code = s.code;
	ret->first = s.number;
	ret->has_address = s.has_address;
	ret->address = s.address;
	if (s.has_address && s.is_page_fault)
		ret->access = s.ran ? CRASH_RUN : s.wrote ? CRASH_WRITE : CRASH_READ;
	return s.number;
}

static void take_refusal(const struct dump_thread *t, u32 fault, s32 code, struct crash *ret)
{
	struct crash_refusal r;

	crash_refusal(t->process, ret->reg, t->at.thread_pointer, fault, code, &r);
	memcpy(ret->refused, r.what, sizeof(ret->refused));
	if (!r.has_address)
		return;
	ret->has_address = true;
	ret->address = r.address;
	ret->access = r.access;
	snprintf(ret->about, CRASH_TEXT, "%s", r.about);
}

static void describe_fault(
        const struct core_file *core, const struct dump_thread *t, u32 fault, s32 code, struct crash *ret)
{
	bool of_memory = fault == SIGSEGV || fault == SIGBUS;
	enum crash_access access;
	int base = -1;

	if (fault == SIGTRAP && code == SI_KERNEL) { /* behind int3 */
		snprintf(ret->instruction, CRASH_INSN, "int3");
		return;
	}
	access = crash_access(t->process, ret->reg, t->at.thread_pointer, ret->address, ret->instruction, &base);
	if (!of_memory || !ret->has_address) {
		take_refusal(t, fault, code, ret);
		return;
	}
	if (!ret->access)
		ret->access = access;
	describe_address(core, fault, ret);
	if (fault == SIGSEGV && ret->access != CRASH_RUN)
		name_member(t, base, ret);
}

void crash_describe(
        const struct core_file *core, const struct dump_list *list, const struct dump_thread *killed, struct crash *ret)
{
	s32 code;
	u32 fault;

	*ret = (struct crash){0};
	fault = take_signal(core, killed, ret, &code);
	if ((ret->first || !core->sent) &&
	        (fault == SIGSEGV || fault == SIGBUS || fault == SIGILL || fault == SIGFPE || fault == SIGTRAP))
		describe_fault(core, killed, fault, code, ret);
	if (core->signal == SIGABRT && !ret->first)
		read_message(killed->process, ret->message);
	if (core->signal == SIGABRT && !*ret->message && !crash_exception(killed, ret->message, CRASH_TEXT))
		*ret->message = '\0';
	if (!*ret->message)
		ask_runtimes(list, killed, ret);
}
