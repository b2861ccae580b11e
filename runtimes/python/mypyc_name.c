/* SPDX-License-Identifier: Apache-2.0 */
#include "mypyc_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "symbols/symbols.h"

#define BODY            "CPyDef_"
#define WRAPPER         "CPyPy_"
#define DOT             "___"
#define ESCAPED         "___3_"
#define GLUE            "_glue"
#define NAME_MAX_LENGTH 1000

static const char *behind(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) ? NULL : text + n;
}

/* What follows the prefix; NULL: it is no such name. */
static const char *qualified(const char *symbol)
{
	const char *name = behind(symbol, BODY);

	return name ? name : behind(symbol, WRAPPER);
}

bool mypyc_is_symbol(const char *symbol)
{
	return qualified(symbol);
}

static size_t length(const char *name)
{
	size_t n = 0;

	while (isalnum((u8)name[n]) || name[n] == '_')
		n++;
	return n;
}

/* Where "__" and the name of a base begin, if "_glue" ends the name; else the name's end. */
static size_t without_glue(const char *name, size_t len)
{
	size_t n = len;

	if (len <= strlen(GLUE) || memcmp(name + len - strlen(GLUE), GLUE, strlen(GLUE)))
		return len;
	for (n = len - strlen(GLUE); n > 2 && (name[n - 1] != '_' || name[n - 2] != '_'); n--)
		;
	return n > 3 ? n - 2 : len;
}

/* Dots between parts that are not empty. Returns the length; 0: there is no room, or a part is empty. */
static size_t translate(const char *name, size_t len, char *ret, size_t size)
{
	size_t at = 0, i = 0;

	while (i < len && at + strlen(DOT) < size) {
		if (len - i > strlen(ESCAPED) && behind(name + i, ESCAPED)) {
			memcpy(ret + at, DOT, strlen(DOT));
			at += strlen(DOT);
			i += strlen(ESCAPED);
		} else if (len - i >= strlen(DOT) && behind(name + i, DOT)) {
			if (!at || ret[at - 1] == '.' || len - i == strlen(DOT))
				return 0;
			ret[at++] = '.';
			i += strlen(DOT);
		} else {
			ret[at++] = name[i++];
		}
	}
	return i == len ? at : 0;
}

bool mypyc_demangle(const char *name, char *ret, size_t size)
{
	const char *begin = qualified(name), *clone;
	char text[NAME_MAX_LENGTH];
	size_t len, n;

	if (!begin)
		return false;
	len = length(begin);
	clone = begin + len;
	if (!len || (*clone && *clone != '.'))
		return false;
	n = translate(begin, without_glue(begin, len), text, sizeof(text));
	if (!n || n + strlen(clone) + sizeof(" [clone ]") > size)
		return false;
	snprintf(ret, size, "%.*s%s%s%s", (int)n, text, *clone ? " [clone " : "", clone, *clone ? "]" : "");
	return true;
}

enum translated_layer mypyc_layer(const char *symbol)
{
	const char *name = behind(symbol, BODY);

	if (!name)
		return mypyc_is_symbol(symbol) ? TRANSLATED_WRAPPER : TRANSLATED_NONE;
	return without_glue(name, length(name)) < length(name) || strstr(name, "_gen_____next__") ? TRANSLATED_BODY
	                                                                                          : TRANSLATED_C;
}

struct search {
	char module[NAME_MAX_LENGTH], local[NAME_MAX_LENGTH], found[NAME_MAX_LENGTH];
};

bool mypyc_makes(const char *symbol, const char *module, const char *local)
{
	const char *rest = behind(symbol, BODY), *class, *method;
	size_t nlocal = strlen(local), nclass, nmethod;

	rest = rest ? behind(rest, module) : NULL;
	rest = rest ? behind(rest, DOT) : NULL;
	if (!rest || !*rest)
		return false;
	if (!strcmp(rest, local))
		return true;
	class = rest;
	for (method = strstr(rest + 1, DOT); method; method = strstr(method + 1, DOT)) {
		nclass = (size_t)(method - class);
		nmethod = strlen(method + strlen(DOT));
		if (nmethod + 1 + nclass == nlocal && !memcmp(local, method + strlen(DOT), nmethod) &&
		        local[nmethod] == '_' && !memcmp(local + nmethod + 1, class, nclass))
			return true;
	}
	return false;
}

static bool is_maker(void *ctx, const char *string)
{
	struct search *s = ctx;
	const char *symbol = strstr(string, BODY);

	if (!symbol || strlen(symbol) >= sizeof(s->found) || !mypyc_makes(symbol, s->module, s->local))
		return false;
	strcpy(s->found, symbol);
	return true;
}

/* "walk_Tree" and before it the module's name, of a generator's symbol. */
static bool generator(const char *symbol, struct search *s)
{
	static const char *const methods[] = {
	        "_gen_____mypyc_generator_helper__", "_gen_____next__", "_gen___send", "_gen___throw"};
	const char *begin = behind(symbol, BODY), *local = NULL, *end = NULL, *dot;

	for (u32 i = 0; begin && !end && i < sizeof(methods) / sizeof(*methods); i++) {
		end = strstr(begin, methods[i]);
		if (end && (isalnum((u8)end[strlen(methods[i])]) || end[strlen(methods[i])] == '_'))
			end = NULL;
	}
	if (!end || (size_t)(end - begin) >= NAME_MAX_LENGTH)
		return false;
	/* the last separator: the first three of its underscores */
	for (dot = strstr(begin, DOT); dot && dot < end; dot = strstr(local, DOT))
		local = dot + strlen(DOT);
	if (!local || local >= end)
		return false;
	snprintf(s->module, sizeof(s->module), "%.*s", (int)(local - strlen(DOT) - begin), begin);
	snprintf(s->local, sizeof(s->local), "%.*s", (int)(end - local), local);
	return true;
}

bool mypyc_resolve(struct image *img, const char *symbol, char *ret, size_t size)
{
	char part[NAME_MAX_LENGTH + sizeof(BODY DOT)];
	struct search s = {.found = ""};

	if (!generator(symbol, &s))
		return false;
	snprintf(part, sizeof(part), "%s%s%s", BODY, s.module, DOT);
	return symbols_search(img, part, is_maker, &s) && mypyc_demangle(s.found, ret, size);
}
