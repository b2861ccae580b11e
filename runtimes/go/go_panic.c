/* SPDX-License-Identifier: Apache-2.0 */
#include "go_panic.h"

#include <stdio.h>
#include <string.h>

#include "go_names.h"

#define TEXT_MOST 512
#define NAME_MOST 64

enum { G_STACK_END = 8, G_PANIC = 32, TYPE_KIND = 23 };

/* internal/abi/type.go: the low five bits of a type's kind */
enum kind {
	KIND_BOOL = 1,
	KIND_INT,
	KIND_INT8,
	KIND_INT16,
	KIND_INT32,
	KIND_INT64,
	KIND_UINT,
	KIND_UINT8,
	KIND_UINT16,
	KIND_UINT32,
	KIND_UINT64,
	KIND_UINTPTR,
	KIND_FLOAT32,
	KIND_FLOAT64,
	KIND_STRING = 24,
	KIND_MASK = 31
};

static u64 word(const struct go_dying *at, u64 addr)
{
	u64 ret;

	return memory_read(at->p->memory, &ret, sizeof(ret), addr) ? ret : 0;
}

static bool name_at(const struct go_dying *at, u32 i, char ret[NAME_MOST])
{
	struct go_function fn;
	u64 pc;

	return i < at->n && frame_kind(&at->frames[i]) == FRAME_NATIVE &&
	       go_frame_function(at->table, at->bias, &at->frames[i], &pc, &fn) &&
	       go_function_name(at->table, &fn, ret, NAME_MOST);
}

/* The outermost frame of the function; at->n: it is not on the stack. */
static u32 frame_of(const struct go_dying *at, const char *name)
{
	char found[NAME_MOST];

	for (u32 i = at->n; i-- > 0;)
		if (name_at(at, i, found) && !strcmp(found, name))
			return i;
	return at->n;
}

static bool read_text(const struct go_dying *at, u64 text, u64 length, char ret[TEXT_MOST])
{
	u64 n = length < TEXT_MOST - 1 ? length : TEXT_MOST - 1;

	if (!text || !n || !memory_read(at->p->memory, ret, n, text))
		return false;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return *ret;
}

/* --- a panic --- */

static s64 as_signed(u64 value, u32 kind)
{
	return kind == KIND_INT8    ? (s8)value
	       : kind == KIND_INT16 ? (s16)value
	       : kind == KIND_INT32 ? (s32)value
	                            : (s64)value;
}

static u64 as_unsigned(u64 value, u32 kind)
{
	return kind == KIND_UINT8    ? (u8)value
	       : kind == KIND_UINT16 ? (u16)value
	       : kind == KIND_UINT32 ? (u32)value
	                             : value;
}

static void put_float(u64 value, u32 kind, char ret[TEXT_MOST])
{
	double d;
	float f;

	memcpy(&d, &value, sizeof(d));
	memcpy(&f, &value, sizeof(f));
	snprintf(ret, TEXT_MOST, "%g", kind == KIND_FLOAT32 ? (double)f : d);
}

/* An interface{}: its type, and where the value is. */
static bool put_value(const struct go_dying *at, u64 type, u64 data, char ret[TEXT_MOST])
{
	u64 value = word(at, data);
	u8 kind;

	if (!memory_read(at->p->memory, &kind, 1, type + TYPE_KIND))
		return false;
	kind &= KIND_MASK;
	if (kind == KIND_STRING)
		return read_text(at, value, word(at, data + 8), ret);
	if (kind == KIND_BOOL)
		snprintf(ret, TEXT_MOST, value & 0xff ? "true" : "false");
	else if (kind >= KIND_INT && kind <= KIND_INT64)
		snprintf(ret, TEXT_MOST, "%ld", as_signed(value, kind));
	else if (kind >= KIND_UINT && kind <= KIND_UINTPTR)
		snprintf(ret, TEXT_MOST, "%lu", as_unsigned(value, kind));
	else if (kind == KIND_FLOAT32 || kind == KIND_FLOAT64)
		put_float(value, kind, ret);
	else
		snprintf(ret, TEXT_MOST, "a value that is no text and no number");
	return true;
}

static bool panic_text(
        const struct go_dying *at, const struct go_config *config, u64 thread_pointer, char ret[TEXT_MOST])
{
	u64 g = word(at, thread_pointer + (u64)config->tls), m = g ? word(at, g + config->g_m) : 0;
	u64 goroutine = m ? word(at, m + config->m_curg) : 0, panic, first;

	panic = goroutine ? word(at, goroutine + G_PANIC) : 0;
	if (!panic)
		return false;
	first = word(at, panic); /* argp: into the goroutine's stack, or 0 */
	if (!first || (first >= word(at, goroutine) && first < word(at, goroutine + G_STACK_END)))
		panic += 8;
	return put_value(at, word(at, panic), word(at, panic + 8), ret);
}

/* --- a fatal error --- */

/*
 * Its text is a constant where throw() is called: lea text(%rip), %rax; mov $length, %ebx; call, the arguments in
 * registers since 1.17. at: the return address.
 */
static bool constant_text(const struct go_dying *at, u64 pc, char ret[TEXT_MOST])
{
	u8 code[24];
	s32 offset;
	u32 length;

	if (!memory_read(at->p->memory, code, sizeof(code), pc - sizeof(code)) || code[19] != 0xe8)
		return false;
	for (u32 i = 0; i + 12 <= 19; i++) {
		if (code[i] != 0x48 || code[i + 1] != 0x8d || code[i + 2] != 0x05 || code[i + 7] != 0xbb)
			continue;
		memcpy(&offset, code + i + 3, sizeof(offset));
		memcpy(&length, code + i + 8, sizeof(length));
		return read_text(at, pc - sizeof(code) + i + 7 + (u64)(s64)offset, length, ret);
	}
	return false;
}

/* sync.fatal() and the like, which only pass the text on. */
static bool is_relay(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (!strcmp(dot, ".throw") || !strcmp(dot, ".fatal"));
}

static bool throw_text(const struct go_dying *at, char ret[TEXT_MOST])
{
	u32 i = frame_of(at, "runtime.throw");
	char name[NAME_MOST];

	if (i == at->n)
		i = frame_of(at, "runtime.fatal");
	while (name_at(at, ++i, name) && is_relay(name))
		;
	return i < at->n && constant_text(at, frame_addr(&at->frames[i]), ret);
}

bool go_last_words(
        const struct go_dying *at, const struct go_config *config, u64 thread_pointer, char *ret, size_t size)
{
	char text[TEXT_MOST];

	if (throw_text(at, text)) {
		snprintf(ret, size, "fatal error: %s", text);
		return true;
	}
	if (frame_of(at, "runtime.fatalpanic") == at->n || !config || !panic_text(at, config, thread_pointer, text))
		return false;
	snprintf(ret, size, "panic: %s", text);
	return true;
}
