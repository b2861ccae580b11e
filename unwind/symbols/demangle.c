/* SPDX-License-Identifier: Apache-2.0 */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "ghc_names.h"
#include "symbols.h"
#include "translated.h"

#define MANGLED_MAX   4096
#define DEMANGLED_MAX 1024
#define WHOLE_MAX     (16u << 10)
#define WORK_MAX      (64u << 10)
#define CUT           "…"
#define OPTIONS       (DMGL_PARAMS | DMGL_ANSI)

struct demangled {
	char text[WHOLE_MAX + sizeof(CUT)];
	size_t max, len, seen;
	jmp_buf too_much;
};

/*
 * Substitutions can double the output at each step, so a name of 4 KB can stand for more than can be printed: printing
 * is left by a jump then. Only rust's punycode has memory at that moment, and it is less than the name.
 */
static void append(const char *text, size_t len, void *arg)
{
	struct demangled *out = arg;
	size_t room = out->max - out->len;

	out->seen += len;
	if (out->seen > WORK_MAX)
		longjmp(out->too_much, 1);
	if (len > room)
		len = room;
	if (len) /* text may be NULL then */
		memcpy(out->text + out->len, text, len);
	out->len += len;
}

/* Names of more than 1 KB are left mangled by libiberty, whose recursion limit also looks at the length. */
static bool demangle(const char *name, struct demangled *out)
{
	if (setjmp(out->too_much))
		return true;
	if (rust_demangle_callback(name, OPTIONS, append, out))
		return true;
	out->len = out->seen = 0;
	return cplus_demangle_v3_callback(name, OPTIONS, append, out);
}

/* Marks what was cut, not within a UTF-8 character. */
static void finish(struct demangled *out)
{
	size_t len = out->len;

	if (out->seen > len) {
		while (len && ((u8)out->text[len - 1] & 0xc0) == 0x80)
			len--;
		if (len && (u8)out->text[len - 1] >= 0xc0)
			len--;
		memcpy(out->text + len, CUT, sizeof(CUT));
	} else {
		out->text[len] = 0;
	}
}

bool symbol_is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) || !strncmp(name, "_GLOBAL_", 8) ||
	       translated_is_symbol(name);
}

static char *demangle_to(const char *name, size_t max)
{
	size_t len = strnlen(name, MANGLED_MAX + 1);
	char plain[WHOLE_MAX + 1];
	struct demangled out;

	if (ghc_demangle(name, plain, max + 1))
		return strdup(plain);
	out.max = max;
	out.len = out.seen = 0;
	if (!symbol_is_mangled(name) || len > MANGLED_MAX || !demangle(name, &out)) {
		out.len = out.seen = 0;
		append(name, len, &out);
	}
	finish(&out);
	return translated_demangle(out.text, plain, max + 1) ? strdup(plain) : strdup(out.text);
}

char *symbol_demangle(const char *name)
{
	return demangle_to(name, DEMANGLED_MAX);
}

char *symbol_demangle_whole(const char *name)
{
	return demangle_to(name, WHOLE_MAX);
}
