/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "symbols.h"
#include "translated.h"

/*
 * Names of Haskell's functions. GHC's symbol for the code of one is PACKAGE_Module_name_info or Module_name_info, with
 * a unique name behind it for some, each part z-encoded (compiler/GHC/Utils/Encoding.hs of 9.4: zDecodeString; a "z"
 * or "Z" and what follows stands for a character, so "_" only separates).
 */

#define SUFFIX "_info"

/* The character that a letter stands for behind "z" or "Z"; 0: none. */
static char decoded(char escape, char letter)
{
	static const char lower[] = "a&b|c^d$e=g>h#i.l<m-n!p+q'r\\s/t*u_v%zz", upper[] = "L(R)M[N]C:ZZ";

	for (const char *c = escape == 'z' ? lower : upper; *c; c += 2)
		if (*c == letter)
			return c[1];
	return 0;
}

/* Appends a part of n bytes. False: it is not z-encoded so that it can be shown, or there is no room. */
static bool decode(const char *part, size_t n, char *ret, size_t size, size_t *len)
{
	for (size_t i = 0; i < n; i++) {
		bool escaped = part[i] == 'z' || part[i] == 'Z';
		char c = !escaped ? part[i] : i + 1 < n ? decoded(part[i], part[i + 1]) : 0;

		if (!c || (!escaped && !isalnum((unsigned char)c)) || *len + 1 >= size)
			return false;
		ret[(*len)++] = c;
		i += escaped;
	}
	ret[*len] = '\0';
	return n > 0;
}

/* Is it a module's name with a dot in it, as nearly all have? "GHCziBase" */
static bool is_module(const char *part, size_t n)
{
	for (size_t i = 1; i + 2 < n; i++)
		if (part[i] == 'z' && part[i + 1] == 'i' && isupper((unsigned char)part[i + 2]))
			return isupper((unsigned char)*part);
	return false;
}

/* A program's own module has no dot: its name must have an escape. */
static bool is_main(const char *part, size_t n, const char *name)
{
	return n == 4 && !strncmp(part, "Main", 4) && *name == 'z' && islower((unsigned char)name[1]);
}

/*
 * "base_GHCziBase_zdwfoldr_info" is "GHC.Base.$wfoldr". False: it is no such symbol, or could be one of C, as it has
 * no module with a dot in it and no escape in the name; or there is no room.
 */
static bool ghc_demangle(const char *symbol, char *ret, size_t size)
{
	size_t whole = strlen(symbol), end = sizeof(SUFFIX) - 1, len = 0;
	const char *part = symbol, *last = symbol + whole - end, *name;

	if (whole <= end || strcmp(last, SUFFIX))
		return false;
	for (; (name = memchr(part, '_', (size_t)(last - part))); part = name) {
		size_t n = (size_t)(name++ - part);

		if (!is_module(part, n) && !is_main(part, n, name))
			continue;
		if (!decode(part, n, ret, size, &len) || len + 1 >= size)
			return false;
		ret[len++] = '.';
		return decode(name, strcspn(name, "_"), ret, size, &len);
	}
	return false;
}

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
