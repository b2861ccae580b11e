/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hit_callee_match.h"
#include "hit_code.h"
#include "unwind/binary/memory.h"
#include "unwind/binary/proc_path.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"
#include "unwind/process/descriptor.h"
#include "unwind/process/syscall.h"

#define SMALL      (1ull << 20) /* numbers that are no addresses, as far as one can tell */
#define TEXT_LEAST 2            /* characters that bytes of unknown kind must have to be text */
#define CUT        "..."

static bool is_libc(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return !strncmp(name, "libc.", 5) || !strncmp(name, "libc-", 5) || !strncmp(name, "ld-musl", 7) ||
	       !strncmp(name, "libpthread", 10);
}

static void look(struct hit_function *f)
{
	char root[64];

	f->looked = true;
	f->syscall = -1;
	if (!f->img)
		return;
	f->syscall = is_libc(f->img->path) ? syscall_number(f->name) : -1;
	if (f->syscall >= 0)
		return;
	proc_path(root, sizeof(root), f->pid, "root");
	f->described = parameters_find(f->img, root, f->addr, &f->parameters);
	if (!f->described && !f->own_convention)
		f->nregs = hit_code_arguments(f->img, f->addr);
}

/* The bytes that a register pointed to. NULL: they could not be read. */
static const u8 *bytes_at(const struct latency_record *r, u32 reg)
{
	return (r->read | r->text) >> reg & 1 ? r->memory[reg] : NULL;
}

/* The number of the register that pointed there; LATENCY_REGS: what is there could not be read. */
static u32 register_of(const struct latency_record *r, u64 addr)
{
	u32 i = 0;

	while (i < LATENCY_REGS && !(r->reg[i] == addr && bytes_at(r, i)))
		i++;
	return i;
}

static const u8 *bytes_of(const struct latency_record *r, u64 addr)
{
	u32 reg = register_of(r, addr);

	return reg < LATENCY_REGS ? r->memory[reg] : NULL;
}

static bool is_printable(u8 c)
{
	return (c >= ' ' && c != 0x7f) || c == '\n' || c == '\t';
}

/* How many of the bytes are text; at most `most`, up to a 0. Another byte that does not print: 0. */
static u32 text_length(const u8 *bytes, u32 most)
{
	u32 n = 0;

	while (n < most && bytes[n] && is_printable(bytes[n]))
		n++;
	return n == most || !bytes[n] ? n : 0;
}

static void put_quoted(FILE *out, const u8 *bytes, u32 n, bool cut)
{
	putc('"', out);
	for (u32 i = 0; i < n; i++) {
		if (bytes[i] == '\n' || bytes[i] == '\t')
			fputs(bytes[i] == '\n' ? "\\n" : "\\t", out);
		else if (bytes[i] == '"' || bytes[i] == '\\')
			fprintf(out, "\\%c", bytes[i]);
		else
			putc(bytes[i], out);
	}
	fputs(cut ? "\"" CUT : "\"", out);
}

static void put_address(FILE *out, u64 value)
{
	if (value)
		fprintf(out, "0x%lx", value);
	else
		fputs("NULL", out);
}

/* Of bytes whose kind nobody knows: the first ones of a structure are seldom UTF-8. What was cut may end anywhere. */
static bool is_utf8(const u8 *bytes, u32 n)
{
	char text[LATENCY_MEMORY + 1] = "";
	const char *at = text;

	memcpy(text, bytes, n);
	while (*at)
		if (text_next(&at) == TEXT_REPLACEMENT && (n < LATENCY_MEMORY || at + 4 < text + n))
			return false;
	return true;
}

/* Shows text of at least `least` characters as such, anything else as the address. least 0: it need not be UTF-8. */
static void put_string(FILE *out, const struct latency_record *r, u64 addr, u32 least)
{
	const u8 *bytes = bytes_of(r, addr);
	u32 n = bytes ? text_length(bytes, LATENCY_MEMORY) : 0;

	if (bytes && n >= least && (n || !*bytes) && (!least || is_utf8(bytes, n)))
		put_quoted(out, bytes, n, n == LATENCY_MEMORY);
	else
		put_address(out, addr);
}

/* have: of the bytes are there. */
static void put_text(FILE *out, u64 addr, const u8 *bytes, u32 have, u64 size)
{
	u32 most = size < have ? (u32)size : have;

	if (!size)
		fputs("\"\"", out);
	else if (bytes && text_length(bytes, most) == most)
		put_quoted(out, bytes, most, size > most);
	else
		fprintf(out, "0x%lx, %lu bytes", addr, size);
}

/* What is at addr is a pointer to text, and its size. */
static void put_structure(FILE *out, const struct latency_record *r, u64 addr, bool size_first)
{
	u32 reg = register_of(r, addr);
	u64 word[2];

	if (reg == LATENCY_REGS || !(r->followed >> reg & 1)) {
		put_address(out, addr);
		return;
	}
	memcpy(word, r->memory[reg], sizeof(word));
	put_text(out, word[size_first], r->behind[reg], LATENCY_BEHIND, word[!size_first]);
}

static s64 with_sign(u64 value, u32 size)
{
	u32 unused = size && size < 8 ? 64 - 8 * size : 0;

	return (s64)(value << unused) >> unused;
}

static u64 without_sign(u64 value, u32 size)
{
	return size && size < 8 ? value & ((1ull << 8 * size) - 1) : value;
}

static void put_signed(FILE *out, const struct latency_record *r, const struct parameter *p, u64 word)
{
	s64 value = with_sign(word, p->size);
	size_t len = strlen(p->name);
	char text[DESCRIPTOR_TEXT];

	fprintf(out, "%ld", value);
	if (p->size == 4 && value >= 0 && len >= 2 && !strcmp(p->name + len - 2, "fd") &&
	        descriptor_text((pid_t)r->tid, (int)value, text))
		fprintf(out, " = %s", text);
}

/* The words of a parameter. Returns how many are known. */
static u32 words_of(const struct latency_record *r, const struct parameter *p, u64 word[PARAMETER_REGS])
{
	u32 n = 0;

	while (n < p->nregs && p->reg[n] < LATENCY_REGS) {
		word[n] = r->reg[p->reg[n]];
		n++;
	}
	while (p->stack && n < PARAMETER_REGS && bytes_at(r, LATENCY_SP) &&
	        p->stack + (n + 1) * sizeof(u64) <= LATENCY_MEMORY) {
		memcpy(&word[n], r->memory[LATENCY_SP] + p->stack + n * sizeof(u64), sizeof(u64));
		n++;
	}
	return n;
}

static void put_parameter(FILE *out, const struct latency_record *r, const struct parameter *p)
{
	u64 word[PARAMETER_REGS], value;
	bool both = p->kind == PARAMETER_TEXT || p->kind == PARAMETER_SIZED || p->kind == PARAMETER_BOXED;

	if (*p->name)
		fprintf(out, "%s = ", p->name);
	if (words_of(r, p, word) < 1u + both) {
		fputs("?", out);
		return;
	}
	value = without_sign(*word, p->size);
	switch (p->kind) {
	case PARAMETER_OTHER:
		fputs("?", out);
		break;
	case PARAMETER_SIGNED:
		put_signed(out, r, p, *word);
		break;
	case PARAMETER_UNSIGNED:
		fprintf(out, "%lu", value);
		break;
	case PARAMETER_BOOL:
		fputs(value & 0xff ? "true" : "false", out);
		break;
	case PARAMETER_CHAR:
		if (value >= ' ' && value < 0x7f)
			fprintf(out, "'%c'", (int)value);
		else
			fprintf(out, "%ld", with_sign(value, p->size));
		break;
	case PARAMETER_POINTER:
		put_address(out, *word);
		break;
	case PARAMETER_TO_TEXT:
	case PARAMETER_TO_SIZED:
		put_structure(out, r, *word, p->kind == PARAMETER_TO_SIZED);
		break;
	case PARAMETER_STRING:
		put_string(out, r, *word, 0);
		break;
	case PARAMETER_TEXT:
		put_text(out, word[0], bytes_of(r, word[0]), LATENCY_MEMORY, word[1]);
		break;
	case PARAMETER_BOXED:
		if (word[0])
			put_address(out, word[1]);
		else
			fputs("nil", out);
		break;
	case PARAMETER_SIZED:
		put_text(out, word[1], bytes_of(r, word[1]), LATENCY_MEMORY, word[0]);
		break;
	}
}

static void put_value(FILE *out, const struct latency_record *r, u64 value)
{
	if (value < SMALL)
		fprintf(out, "%lu", value);
	else if ((s64)value < 0 && (s64)value > -(s64)SMALL)
		fprintf(out, "%ld", (s64)value);
	else
		put_string(out, r, value, TEXT_LEAST);
}

struct captured { /* the target's memory as far as the record has it */
	struct memory mem;
	const struct latency_record *record;
};

/* Reads of text may go on behind what was taken of it: it is cut there. */
static bool captured_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	static const char cut[] = CUT;
	const u8 *bytes = bytes_of(((struct captured *)mem)->record, addr);
	u8 *to = dst;

	for (size_t k = 0; bytes && k < size; k++) {
		if (k < LATENCY_MEMORY)
			to[k] = bytes[k];
		else
			to[k] = k - LATENCY_MEMORY < sizeof(cut) ? (u8)cut[k - LATENCY_MEMORY] : 0;
	}
	return bytes;
}

#define ERRORS_MOST 4096

/* With what the C library's function returned: an int, or a long. */
static char *system_call(const struct hit_function *f, const struct latency_record *r)
{
	s64 result = (s64)r->result[callee_register(DWREG_RAX)];
	cleanup(free) char *text = NULL;
	char *ret;

	struct captured captured = {.mem.read = captured_read, .record = r};
	struct syscall call = {.number = f->syscall, .tid = (pid_t)r->tid, .memory = &captured.mem, .past = true};

	for (u32 i = 0; i < sizeof(parameter_regs); i++)
		call.arguments[i] = r->reg[parameter_regs[i]];
	text = syscall_text(&call);
	if (!text || !(r->followed & LATENCY_RETURNED))
		return TAKE(text);
	result = result <= UINT32_MAX && result > (s64)UINT32_MAX - ERRORS_MOST ? (s32)result : result;
	return asprintf(&ret, "%s = %ld", text, result) < 0 ? NULL : ret;
}

/* What it returned: registers as they were then, in place of those of the entry. */
static void put_results(FILE *out, const struct hit_function *f, const struct latency_record *r)
{
	static const u8 numbers[] = {DWREG_RAX, DWREG_RDX, DWREG_RCX, DWREG_RBX, DWREG_RSI, DWREG_RDI, DWREG_R8,
	        DWREG_R9, DWREG_R10, DWREG_R11};
	const struct parameters *all = &f->parameters;
	struct latency_record then = {.tid = r->tid};

	if (!f->described || !all->nresults || !(r->followed & LATENCY_RETURNED) ||
	        (all->nresults == 1 && all->result[0].kind == PARAMETER_OTHER))
		return;
	for (u32 i = 0; i < sizeof(numbers); i++)
		then.reg[numbers[i]] = r->result[callee_register(numbers[i])];
	then.read = r->read & LATENCY_RETURNED ? 1u << DWREG_RAX : 0;
	then.text = r->text & LATENCY_RETURNED ? 1u << DWREG_RAX : 0;
	memcpy(then.memory[DWREG_RAX], r->returned, LATENCY_MEMORY);
	fputs(all->nresults > 1 ? " = (" : " = ", out);
	for (u32 i = 0; i < all->nresults; i++) {
		fputs(i ? ", " : "", out);
		put_parameter(out, &then, &all->result[i]);
	}
	fputs(all->more_results ? ", " CUT ")" : all->nresults > 1 ? ")" : "", out);
}

/* Bytes that steer terminals; what is no UTF-8 is for those who print it. */
static char *without_controls(char *text)
{
	for (char *s = text; s && *s; s++)
		if ((u8)*s < ' ' || *s == 0x7f)
			*s = '?';
	return text;
}

char *hit_call_text(struct hit_function *f, const struct latency_record *record)
{
	const struct parameters *all = &f->parameters;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (!f->looked)
		look(f);
	if (f->syscall >= 0)
		return without_controls(system_call(f, record));
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	fprintf(out, f->described || f->nregs ? "%s(" : "%s(" CUT, f->name);
	for (u32 i = 0; f->described && i < all->n; i++) {
		fputs(i ? ", " : "", out);
		put_parameter(out, record, &all->of[i]);
	}
	for (u32 i = 0; !f->described && i < f->nregs && i < sizeof(parameter_regs); i++) {
		fputs(i ? ", " : "", out);
		put_value(out, record, record->reg[parameter_regs[i]]);
	}
	fputs(f->described && all->more ? ", " CUT ")" : ")", out);
	put_results(out, f, record);
	fclose(out);
	return without_controls(text);
}
