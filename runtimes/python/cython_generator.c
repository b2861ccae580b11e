/* SPDX-License-Identifier: Apache-2.0 */
#include "cython_generator.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "cython_name.h"
#include "symbols/symbols.h"

#define PREFIX_MAX 1024

struct search {
	const char *prefix; /* of the wrapper's symbol */
	const char *scopes; /* "uvloop.loop.Loop." */
	size_t nscopes;
	char name[PREFIX_MAX];
};

/* Is it the wrapper, not something within a function whose name's length is the same number? */
static bool is_wrapper(void *ctx, const char *symbol)
{
	struct search *s = ctx;
	cleanup(free) char *plain = symbol_demangle(symbol);
	const char *name;

	if (!plain || isdigit((u8)strstr(symbol, s->prefix)[strlen(s->prefix)]) ||
	        strncmp(plain, s->scopes, s->nscopes))
		return false;
	name = plain + s->nscopes;
	if (!*name || strpbrk(name, ". ") || strlen(name) >= sizeof(s->name))
		return false;
	strcpy(s->name, name);
	return true;
}

bool cython_generator_name(struct image *img, const char *symbol, char *ret, size_t size)
{
	char prefix[PREFIX_MAX], text[2 * PREFIX_MAX];
	cleanup(free) char *plain = NULL;
	struct search s = {.prefix = prefix, .name = "genexpr"};
	const char *clone, *dot;
	int n;

	if (!cython_generator_wrapper(symbol, prefix, sizeof(prefix)))
		return false;
	plain = symbol_demangle(symbol);
	clone = plain ? strstr(plain, " [clone ") : NULL;
	dot = plain ? memrchr(plain, '.', clone ? (size_t)(clone - plain) : strlen(plain)) : NULL;
	if (!dot)
		return false;
	s.scopes = plain;
	s.nscopes = (size_t)(dot - plain) + 1;
	symbols_search(img, prefix, is_wrapper, &s);
	n = snprintf(text, sizeof(text), "%.*s%s%s", (int)s.nscopes, plain, s.name, clone ? clone : "");
	if (n < 0 || (size_t)n >= sizeof(text) || (size_t)n >= size)
		return false;
	memcpy(ret, text, (size_t)n + 1);
	return true;
}

/* The body of a scope's first def can be read in two ways: the file has the wrapper of the right one. */
bool cython_resolve(struct image *img, const char *symbol, char *ret, size_t size)
{
	cleanup(free) char *plain = NULL;
	char wrapper[PREFIX_MAX], shown[2 * PREFIX_MAX];
	struct symbol sym;

	if (cython_generator_name(img, symbol, ret, size))
		return true;
	if (cython_demangle(symbol, shown, sizeof(shown)) || !cython_wrapper_of(symbol, wrapper, sizeof(wrapper)) ||
	        !symbols_lookup(img, wrapper, &sym))
		return false;
	plain = symbol_demangle(wrapper);
	return plain && snprintf(ret, size, "%s", plain) >= 0;
}
