/* SPDX-License-Identifier: Apache-2.0 */
#include <capstone/capstone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "python_image.h"
#include "symbols.h"

#define BYTES_MAX   96
#define ENVIRON_MAX 10000	  /* variables that are looked at */
#define USER_END    (1ull << 47) /* [vsyscall] lies above */

/* The first instruction of function that calls, or one that makes room on the stack. */
static bool find(struct image *img, u64 function, unsigned id, cs_insn *in, csh handle)
{
	u8 code[BYTES_MAX];
	const u8 *at = code;
	size_t size = sizeof(code);

	if (!image_read(img, code, size, function))
		return false;
	while (cs_disasm_iter(handle, &at, &size, &function, in))
		if (in->id == id && (id != X86_INS_SUB || in->detail->x86.operands[0].reg == X86_REG_RSP))
			return true;
	return false;
}

/* 3.15 has a function that calls compiled code; in 3.14 each piece of it begins with a stub, which the loop calls. */
struct python_jit python_jit_find(struct image *img, u64 eval)
{
	struct python_jit ret = {0};
	struct symbol entry;
	csh handle;
	cs_insn *in;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return ret;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	in = cs_malloc(handle);
	if (in && symbols_lookup(img, "_PyJIT_Entry", &entry)) {
		if (find(img, entry.start, X86_INS_CALL, in, handle))
			ret.ret = in->address + in->size;
	} else if (in && find(img, eval, X86_INS_SUB, in, handle) && in->detail->x86.operands[1].type == X86_OP_IMM) {
		ret.locals = (u32)in->detail->x86.operands[1].imm;
	}
	if (in)
		cs_free(in, 1);
	cs_close(&handle);
	return ret;
}

/* Was it started with the compiler on? A build that has it on by default tells by the first code. */
static bool is_wanted(pid_t pid)
{
	cleanup(fclose) FILE *file = NULL;
	cleanup(free) char *line = NULL;
	static const char name[] = "PYTHON_JIT=";
	size_t room = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	for (u32 i = 0; file && i < ENVIRON_MAX && getdelim(&line, &room, 0, file) > 0; i++)
		if (!strncmp(line, name, sizeof(name) - 1))
			return line[sizeof(name) - 1] && strcmp(line + sizeof(name) - 1, "0");
	return false;
}

/* Code that is compiled after the maps were read, anywhere where mmap() may put it. */
static struct error *claim_late(const struct runtime_process *p, u32 config,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	struct runtime_region r = {.part = PYTHON_JIT_LATE, .vm = config, .unmapped = true};

	for (u32 i = 0; i < p->nmappings && p->mappings[i].end <= USER_END; i++) {
		r.start = r.start ? r.start : p->mappings[i].end;
		r.end = p->mappings[i].start;
	}
	return add(ctx, &r);
}

struct error *python_jit_regions(const struct python_image *image, const struct runtime_process *p, u32 config,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	struct python_vm *vm = arena_at(p->arena, config, sizeof(*vm));
	struct error *err = NULL;
	bool compiles = image->jit.ret || image->jit.locals;
	u64 start = 0, end = 0;

	for (u32 i = 0; !err && i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];
		struct runtime_region r = {.vm = config, .start = m->start, .end = m->end};
		enum python_part part = PYTHON_JIT;

		if (!m->anonymous || !(m->prot & PROT_EXEC) || m->image || (m->name && *m->name))
			continue;
		if (!python_trampoline(p->memory, m->start, &part)) {
			if (!compiles)
				continue;
			start = start ? start : m->start;
			end = m->end;
		}
		r.part = (u8)part;
		err = add(ctx, &r);
	}
	vm->jit_start = start;
	vm->jit_end = end;
	if (!err && compiles && (start || is_wanted(p->pid)))
		err = claim_late(p, config, add, ctx);
	return err;
}
