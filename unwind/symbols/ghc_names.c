/* SPDX-License-Identifier: Apache-2.0 */
#include "ghc_names.h"

#include <ctype.h>
#include <string.h>

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

bool ghc_demangle(const char *symbol, char *ret, size_t size)
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
