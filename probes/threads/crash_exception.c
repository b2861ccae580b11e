/* SPDX-License-Identifier: Apache-2.0 */
#include "crash_exception.h"

#include <stdio.h>
#include <string.h>

#include "dump.h"
#include "unwind/cleanup.h"
#include "unwind/code/disassembler.h"
#include "unwind/process/process.h"
#include "unwind/symbols/symbols.h"

#define CODE_MOST    96
#define TYPE_MOST    512
#define BASES        8 /* of a class */
#define LEVELS       4 /* of inheritance, where all have several */
#define BASE_VIRTUAL 1
#define GNU          0x474e5543432b2b00 /* "GNUCC++": the low byte is 1 for one that std::rethrow_exception() threw */
#define LLVM         0x434c4e47432b2b00 /* "CLNGC++" */

/* From the exception's type_info on; in both libraries. */
enum { HEADER_CLASS = 80, HEADER_SIZE = 112, LLVM_BEFORE = 16 };

static u64 word(const struct process *p, u64 addr)
{
	u64 ret;

	return memory_read(p->memory, &ret, sizeof(ret), addr) ? ret : 0;
}

/* --- the thread's variable --- */

struct tls_code { /* what __cxa_get_globals() has done so far */
	const struct dump_thread *t;
	u32 stride; /* of the vector of the thread's modules: glibc's entries are two words, musl's one */
	u64 rdi, rax;
};

/* glibc's and musl's threads alike: the second word leads to the vector, which numbers modules from 1. */
static u64 tls_address(const struct tls_code *c)
{
	const struct process *p = c->t->process;
	u64 module = word(p, c->rdi), vector = word(p, c->t->at.thread_pointer + 8), block;

	block = module && module < 65536 ? word(p, vector + module * c->stride) : 0;
	return block && block + 1 ? block + word(p, c->rdi + 8) : 0;
}

/* One instruction; false: it ends there. */
static bool step(void *ctx, const cs_insn *insn)
{
	struct tls_code *c = ctx;
	const cs_x86_op *op = insn->detail->x86.operands;
	bool result = op[0].type == X86_OP_REG && op[0].reg == X86_REG_RAX;
	u64 relative = insn->address + insn->size + (u64)op[1].mem.disp;

	if (insn->id == X86_INS_RET)
		return false;
	if (insn->id == X86_INS_CALL) {
		c->rax = tls_address(c);
	} else if (insn->id == X86_INS_LEA && op[0].reg == X86_REG_RDI && op[1].mem.base == X86_REG_RIP) {
		c->rdi = relative;
	} else if (insn->id == X86_INS_LEA && result && op[1].mem.base == X86_REG_RAX) {
		c->rax += (u64)op[1].mem.disp;
	} else if (insn->id == X86_INS_MOV && result && op[1].type == X86_OP_MEM) {
		c->rax = op[1].mem.segment == X86_REG_FS ? c->t->at.thread_pointer : word(c->t->process, relative);
	} else if (insn->id == X86_INS_ADD && result && op[1].type == X86_OP_IMM) {
		c->rax += (u64)op[1].imm;
	} else if (insn->id == X86_INS_ADD && result && op[1].type == X86_OP_MEM) {
		c->rax += op[1].mem.segment == X86_REG_FS ? c->t->at.thread_pointer : word(c->t->process, relative);
	}
	return true;
}

/* What the function at `code` returns, in this thread. */
static u64 run_code(const struct dump_thread *t, u64 code, u32 stride)
{
	struct tls_code c = {.t = t, .stride = stride};
	u8 bytes[CODE_MOST];
	struct disassembler d;

	if (!memory_read(t->process->memory, bytes, sizeof(bytes), code) || !disassembler_open(&d))
		return 0;
	disassemble(&d, bytes, sizeof(bytes), code, step, &c);
	disassembler_close(&d);
	return c.rax;
}

/* --- the exception --- */

/* The header that a pointer of the library leads to, from the type on; 0: it is none. */
static u64 header_at(const struct process *p, u64 at)
{
	u64 class = at ? word(p, at + HEADER_CLASS) : 0;

	if (class == GNU)
		return at;
	if (class == GNU + 1) /* its own first word is the exception that it stands for */
		return word(p, at) - HEADER_SIZE;
	if (at && (word(p, at + LLVM_BEFORE + HEADER_CLASS) & ~0xffull) == LLVM)
		return at + LLVM_BEFORE;
	return 0;
}

static u64 find_header(const struct dump_thread *t)
{
	const struct process *p = t->process;

	for (u32 i = 0; i < p->maps.nlines; i++) {
		const struct mapping *m = &p->mappings[i];
		struct symbol sym;

		if (!m->image || (i && p->mappings[i - 1].image == m->image) ||
		        !symbols_lookup(m->image, "__cxa_get_globals", &sym))
			continue;
		for (u32 stride = 16; stride >= 8; stride -= 8) {
			u64 globals = run_code(t, sym.start + m->bias, stride);
			u64 header = globals ? header_at(p, word(p, globals)) : 0;

			if (header)
				return header;
		}
	}
	return 0;
}

/* --- its type --- */

/* A type_info: its own table, then its mangled name, which may begin with a star. */
static bool type_name(const struct process *p, u64 type, char ret[TYPE_MOST])
{
	char text[TYPE_MOST];

	if (!type || !memory_string(p->memory, text, sizeof(text), word(p, type + 8)) || !text[0])
		return false;
	memcpy(ret, text, sizeof(text));
	if (*text == '*')
		memmove(ret, text + 1, sizeof(text) - 1);
	return true;
}

/* What describes a class's bases (2.9.5): the class of its type_info. */
enum bases { BASES_NONE, BASES_ONE, BASES_SEVERAL };

static enum bases bases_of(const struct process *p, u64 type)
{
	char name[TYPE_MOST];

	if (!type_name(p, word(p, word(p, type) - 8), name))
		return BASES_NONE;
	if (!strcmp(name, "N10__cxxabiv120__si_class_type_infoE"))
		return BASES_ONE;
	return strcmp(name, "N10__cxxabiv121__vmi_class_type_infoE") ? BASES_NONE : BASES_SEVERAL;
}

/* Where in an object the part lies that keeps what(): of std::logic_error or std::runtime_error. False: it has none. */
static bool find_message(const struct process *p, u64 type, u32 level, u64 *offset)
{
	u64 first = word(p, type + 16); /* the base; of several: flags and their number */
	char name[TYPE_MOST];
	enum bases bases;

	if (level > LEVELS || !type_name(p, type, name))
		return false;
	if (!strcmp(name, "St11logic_error") || !strcmp(name, "St13runtime_error"))
		return true;
	bases = bases_of(p, type);
	if (bases == BASES_ONE)
		return find_message(p, first, level + 1, offset);
	for (u64 i = 0; bases == BASES_SEVERAL && i < BASES && i < first >> 32; i++) {
		u64 before = *offset, place = word(p, type + 32 + 16 * i); /* offset << 8 | flags */

		*offset += (u64)((s64)place >> 8);
		if (!(place & BASE_VIRTUAL) && find_message(p, word(p, type + 24 + 16 * i), level + 1, offset))
			return true;
		*offset = before;
	}
	return false;
}

static const char string[] = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";

static bool read_text(const struct process *p, u64 header, const char *type, char ret[CRASH_TEXT])
{
	u64 object = header + HEADER_SIZE, offset = 0;

	if (!strcmp(type, "PKc") || !strcmp(type, "Pc") || !strcmp(type, string))
		return memory_string(p->memory, ret, CRASH_TEXT, word(p, object));
	if (!strcmp(type, "i")) {
		snprintf(ret, CRASH_TEXT, "%d", (int)word(p, object));
		return true;
	}
	return find_message(p, word(p, header), 0, &offset) &&
	       memory_string(p->memory, ret, CRASH_TEXT, word(p, object + offset + 8));
}

static char *shown_type(const char *type)
{
	static const char prefix[] = "typeinfo for ";
	char mangled[TYPE_MOST + 8];
	char *text;

	if (!strcmp(type, string))
		return strdup("std::string");
	snprintf(mangled, sizeof(mangled), "_ZTI%s", type);
	text = symbol_demangle(mangled);
	if (text && !strncmp(text, prefix, strlen(prefix)))
		memmove(text, text + strlen(prefix), strlen(text + strlen(prefix)) + 1);
	return text;
}

/* --- */

/* The function that a frame is in, as its file calls it; "": not known. */
static const char *function_of(const struct process *p, const struct frame *f)
{
	struct symbol sym;

	return symbols_of_frame(p->mappings, p->maps.nlines, f, &sym) ? sym.name : "";
}

static bool is_terminate(const struct process *p, const struct frame *f)
{
	const char *name = function_of(p, f);

	return !strcmp(name, "_ZSt9terminatev") || !strncmp(name, "_ZN10__cxxabiv111__terminate", 28) ||
	       !strncmp(name, "_ZSt11__terminate", 17);
}

/* Who called std::terminate(), in the frames from i on, where no exception did. */
static const char *no_exception(const struct dump_thread *t, u32 i)
{
	while (i < t->nframes && is_terminate(t->process, &t->frames[i]))
		i++;
	if (i < t->nframes && !strcmp(function_of(t->process, &t->frames[i]), "__cxa_pure_virtual"))
		return "a pure virtual function was called";
	if (i < t->nframes && !strcmp(function_of(t->process, &t->frames[i]), "__cxa_deleted_virtual"))
		return "a deleted virtual function was called";
	return "std::terminate() without an exception";
}

#define END_FRAMES 4 /* from std::terminate() to who called it */

/* An exception that may not leave a function: the personality ends the program. */
static bool is_personality(const struct process *p, const struct frame *f)
{
	const char *name = function_of(p, f);

	return !strcmp(name, "__gxx_personality_v0") || !strcmp(name, "__cxa_call_terminate");
}

/* The outermost frame of what the C++ library does to end the program; false: none. */
static bool find_end(const struct dump_thread *t, u32 *i, bool *may_not_leave)
{
	const struct process *p = t->process;

	*may_not_leave = false;
	for (*i = 0; *i < t->nframes; ++*i)
		if (is_terminate(p, &t->frames[*i]) || is_personality(p, &t->frames[*i]))
			break;
	for (u32 k = *i; k < t->nframes && k < *i + END_FRAMES; k++)
		*may_not_leave |= is_personality(p, &t->frames[k]);
	return *i < t->nframes;
}

bool crash_exception(const struct dump_thread *t, char *ret, size_t size)
{
	char type[TYPE_MOST], text[CRASH_TEXT] = "";
	cleanup(free) char *shown = NULL;
	bool may_not_leave;
	u64 header;
	u32 i;

	if (!find_end(t, &i, &may_not_leave))
		return false;
	header = find_header(t);
	if (!header || !type_name(t->process, word(t->process, header), type)) {
		snprintf(ret, size, "%s", no_exception(t, i));
		return true;
	}
	shown = shown_type(type);
	if (!read_text(t->process, header, type, text))
		*text = '\0';
	text[strcspn(text, "\n")] = '\0';
	snprintf(ret, size, "%s%s%s%s", shown ? shown : type, *text ? ": " : "", text,
	        may_not_leave ? ", thrown through a noexcept function" : "");
	return true;
}
