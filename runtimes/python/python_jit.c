/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "binary/endbr64.h"
#include "binary/proc_path.h"
#include "cleanup.h"
#include "code/disassembler.h"
#include "python_image.h"
#include "symbols/symbols.h"

#define CODE_BYTES 16

static const struct {
	enum python_part part;
	u32 len;
	const char *code;
} forms[] = {
        /* sub $8, %rsp; call *%rcx; add $8, %rsp; ret */
        {PYTHON_TRAMPOLINE, 11, "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3"},
        /* push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret */
        {PYTHON_TRAMPOLINE_FP, 8, "\x55\x48\x89\xe5\xff\xd1\x5d\xc3"},
};

/*
 * Does executable memory of a process begin with a trampoline of -X perf? They are copies of one function, which fill
 * the mapping (Python/asm_trampoline.S of 3.12 to 3.15). ret: PYTHON_TRAMPOLINE or PYTHON_TRAMPOLINE_FP.
 */
static bool python_trampoline(struct memory *mem, u64 start, enum python_part *ret)
{
	u8 code[CODE_BYTES];
	u32 at = 0;

	if (!memory_read(mem, code, sizeof(code), start))
		return false;
	if (is_endbr64(code))
		at = ENDBR64_SIZE;
	for (u32 i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (!memcmp(code + at, forms[i].code, forms[i].len)) {
			*ret = forms[i].part;
			return true;
		}
	return false;
}

#define BYTES_MAX   96
#define WORDS_MAX   10000        /* of environment or command that are looked at */
#define TRAMPOLINES 0x030c0000   /* from 3.12 on */
#define USER_END    (1ull << 47) /* [vsyscall] lies above */

static bool look_for_call(void *ctx, const cs_insn *in)
{
	struct python_jit *ret = ctx;

	ret->ret = in->id == X86_INS_CALL ? in->address + in->size : 0;
	return !ret->ret;
}

/* For what makes room on the stack. */
static bool look_for_room(void *ctx, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;
	struct python_jit *ret = ctx;

	if (in->id != X86_INS_SUB || op[0].reg != X86_REG_RSP)
		return true;
	ret->locals = op[1].type == X86_OP_IMM ? (u32)op[1].imm : 0;
	return false;
}

/* 3.15 has a function that calls compiled code; in 3.14 each piece of it begins with a stub, which the loop calls. */
struct python_jit python_jit_find(struct image *img, u64 eval)
{
	struct python_jit ret = {0};
	struct symbol entry;

	if (symbols_lookup(img, "_PyJIT_Entry", &entry))
		code_each(img, entry.start, entry.start + BYTES_MAX, look_for_call, &ret);
	else
		code_each(img, eval, eval + BYTES_MAX, look_for_room, &ret);
	return ret;
}

static bool is_set(const char *word, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(word, name, len) && word[len] && strcmp(word + len, "0") != 0;
}

static bool sets_compiler(const char *word)
{
	return is_set(word, "PYTHON_JIT=");
}

static bool sets_trampolines(const char *word)
{
	return is_set(word, "PYTHONPERFSUPPORT=") || is_set(word, "PYTHON_PERF_JIT_SUPPORT=");
}

/* -X perf, or -Xperf; what else has such an argument is only looked at in vain. */
static bool asks_for_trampolines(const char *word)
{
	const char *option = strncmp(word, "-X", 2) ? word : word + 2;

	return !strcmp(option, "perf") || !strcmp(option, "perf_jit");
}

/* Does its environment, or its command, have such a word? */
static bool has_word(pid_t pid, const char *file, bool (*wanted)(const char *word))
{
	cleanup(fclose) FILE *words = NULL;
	cleanup(free) char *line = NULL;
	size_t room = 0;
	char path[64];

	proc_path(path, sizeof(path), pid, file);
	words = fopen(path, "re");
	for (u32 i = 0; words && i < WORDS_MAX && getdelim(&line, &room, 0, words) > 0; i++)
		if (wanted(line))
			return true;
	return false;
}

static bool compiles(const struct python_image *image)
{
	return image->jit.ret || image->jit.locals;
}

bool python_jit_expected(const struct python_image *image, pid_t pid)
{
	if (image->version >= TRAMPOLINES &&
	        (has_word(pid, "environ", sets_trampolines) || has_word(pid, "cmdline", asks_for_trampolines)))
		return true;
	return compiles(image) && has_word(pid, "environ", sets_compiler);
}

/* Code that is made after the maps were read, anywhere where mmap() may put it. */
static struct error *claim_deferred(const struct runtime_process *p, u32 config,
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
        bool expected, struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	struct python_vm *vm = arena_at(p->arena, config, sizeof(*vm));
	struct error *err = NULL;
	bool trampolines = false;
	u64 start = 0, end = 0;

	for (u32 i = 0; !err && i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];
		struct runtime_region r = {.vm = config, .start = m->start, .end = m->end};
		enum python_part part = PYTHON_JIT;

		if (!m->anonymous || !(m->prot & PROT_EXEC) || m->image || (m->name && *m->name))
			continue;
		if (python_trampoline(p->memory, m->start, &part)) {
			trampolines = true;
		} else if (!compiles(image)) {
			continue;
		} else {
			start = start ? start : m->start;
			end = m->end;
		}
		r.part = (u8)part;
		err = add(ctx, &r);
	}
	vm->jit_start = start;
	vm->jit_end = end;
	if (!err && (trampolines || start || expected))
		err = claim_deferred(p, config, add, ctx);
	return err;
}
