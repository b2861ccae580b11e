/* SPDX-License-Identifier: Apache-2.0 */
#include "crash.h"

#include <capstone.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/process/process.h"
#include "unwind/symbols/symbols.h"

#define NULL_MOST     65536    /* such an address is that of a member of no object (vm.mmap_min_addr) */
#define GUARD_MOST    1048576  /* below a stack: of one that grew too large in one step */
#define INSN_MOST     15       /* bytes */
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

static void describe_address(const struct core_file *core, const struct thread_record *t, char ret[CRASH_TEXT])
{
	const struct core_segment *s = segment_near(core, core->address);
	u64 addr = core->address;

	if (addr == 0)
		snprintf(ret, CRASH_TEXT, "a null pointer");
	else if (addr < NULL_MOST)
		snprintf(ret, CRASH_TEXT, "a null pointer, plus %lu", addr);
	else if (is_overflow(core, addr, t->reg[REG_SP]))
		snprintf(ret, CRASH_TEXT, "stack overflow: it lies below the end of the thread's stack");
	else if (!s || addr < s->start)
		snprintf(ret, CRASH_TEXT, "nothing is mapped there");
	else if (addr == t->reg[REG_PC] && !(s->prot & PROT_EXEC))
		snprintf(ret, CRASH_TEXT, "no code may run there: %s", file_of(core, s));
	else if (s->prot != CORE_PROT_UNKNOWN)
		snprintf(ret, CRASH_TEXT, "it is mapped, but only %c%c%c: %s", s->prot & PROT_READ ? 'r' : '-',
		        s->prot & PROT_WRITE ? 'w' : '-', s->prot & PROT_EXEC ? 'x' : '-', file_of(core, s));
}

static void describe_instruction(const struct process *p, u64 pc, char ret[CRASH_INSN])
{
	u8 code[INSN_MOST];
	size_t n = INSN_MOST;
	cs_insn *insn;
	csh cs;

	while (n && !memory_read(p->memory, code, n, pc))
		n--;
	if (!n || cs_open(CS_ARCH_X86, CS_MODE_64, &cs))
		return;
	if (cs_disasm(cs, code, n, pc, 1, &insn)) {
		snprintf(ret, CRASH_INSN, "%s%s%s", insn->mnemonic, *insn->op_str ? " " : "", insn->op_str);
		cs_free(insn, 1);
	}
	cs_close(&cs);
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
		        memory_string(p->memory, ret, CRASH_TEXT, at + sizeof(size))) {
			ret[strcspn(ret, "\n")] = '\0';
			return;
		}
	}
	ret[0] = '\0';
}

void crash_describe(
        const struct core_file *core, const struct process *p, const struct thread_record *killed, struct crash *ret)
{
	*ret = (struct crash){0};
	if (core->signal == SIGSEGV || core->signal == SIGBUS || core->signal == SIGILL || core->signal == SIGFPE ||
	        core->signal == SIGTRAP)
		describe_instruction(p, killed->reg[REG_PC], ret->instruction);
	if (core->has_address && (core->signal == SIGSEGV || core->signal == SIGBUS))
		describe_address(core, killed, ret->about);
	if (core->signal == SIGABRT)
		read_message(p, ret->message);
}
