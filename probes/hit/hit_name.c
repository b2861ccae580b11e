/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"
#include "unwind/symbols/compiler_copy.h"
#include "unwind/symbols/symbols.h"

#define ANONYMOUS "(anonymous namespace)"
#define CLONE     " [clone "

static bool is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static int depth_by(char c)
{
	return strchr("<{([", c) ? 1 : strchr(">})]", c) ? -1 : 0;
}

/* C++'s keyword, before which a name is over for those who look for brackets and spaces. */
static bool is_operator(const char *text, const char *at)
{
	return !strncmp(at, "operator", 8) && !is_letter(at[8]) && (at == text || !is_letter(at[-1]));
}

/* Names of the standard library have abbreviations in mangled symbols. */
void hit_name_set(struct hit_name *n, const char *text)
{
	size_t longest = 0;
	int depth = 0;

	n->text = text;
	*n->part = '\0';
	if (strstr(text, "std::") || strlen(text) >= sizeof(n->part))
		return;
	if (!strncmp(text, ANONYMOUS, strlen(ANONYMOUS)))
		text += strlen(ANONYMOUS);
	for (const char *at = text; *at && *at != '(' && !is_operator(text, at);) {
		size_t len = 0;

		while (is_letter(at[len]))
			len++;
		if (len > longest && !depth && at[len] != ' ') {
			longest = len;
			memcpy(n->part, at, len);
			n->part[len] = '\0';
		}
		depth += len ? 0 : depth_by(*at);
		at += len ? len : 1;
	}
}

/* Behind the name of a function, of a whole copy of it? */
static bool is_copy(const char *suffix)
{
	return compiler_copy(suffix, false) && !strstr(suffix, ".cold") && !strstr(suffix, ".part.");
}

/* Where a bracket that closes at `close` was opened. */
static char *opening(char *text, char *close)
{
	int depth = 0;

	for (char *at = close; at >= text; at--) {
		depth -= depth_by(*at);
		if (!depth)
			return at;
	}
	return NULL;
}

/* The arguments in the end of a demangled name, NULL if it has none. Only qualifiers follow them. */
static char *arguments(char *text)
{
	char *close = strrchr(text, ')');

	if (!close || strpbrk(close + 1, ":<>{}"))
		return NULL;
	return opening(text, close);
}

static char *operator_in(char *text)
{
	for (char *at = text; (at = strstr(at, "operator")); at++)
		if (is_operator(text, at))
			return at;
	return NULL;
}

/* The name behind what a function returns. */
static char *behind_type(char *text)
{
	char *end = operator_in(text), *ret = text;
	int depth = 0;

	for (char *at = text; *at && at != end; at++) {
		depth += depth_by(*at);
		if (*at == ' ' && !depth)
			ret = at + 1;
	}
	return ret;
}

/* Without the parameters of the template. */
static void cut_parameters(char *name)
{
	size_t len = strlen(name);
	char *open;

	if (!len || name[len - 1] != '>' || operator_in(name))
		return;
	open = opening(name, name + len - 1);
	if (open && open > name)
		*(open - name > 2 && open[-1] == ':' ? open - 2 : open) = '\0';
}

static bool is_thunk(const char *text)
{
	static const char *const heads[] = {"virtual thunk to ", "non-virtual thunk to ", "covariant return thunk to "};

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		if (!strncmp(text, heads[i], strlen(heads[i])))
			return true;
	return false;
}

static bool is_part(const char *text)
{
	return strstr(text, ".cold") || strstr(text, ".part.");
}

/* text: a demangled name, that is cut to pieces. */
static bool is_any_form(char *text, const char *wanted)
{
	char *clone = strstr(text, CLONE), *args, *name;

	if (!strcmp(text, wanted))
		return true;
	if (is_thunk(text) || (clone && is_part(clone)))
		return false;
	if (clone)
		*clone = '\0';
	args = arguments(text);
	if (args)
		*args = '\0';
	name = behind_type(text);
	if (args)
		*args = '(';
	if (!strcmp(text, wanted) || !strcmp(name, wanted))
		return true;
	if (args)
		*args = '\0';
	if (!strcmp(text, wanted) || !strcmp(name, wanted))
		return true;
	cut_parameters(name);
	return !strcmp(name, wanted);
}

bool hit_name_is(const struct hit_name *n, const char *symbol)
{
	size_t len = strlen(n->text);
	cleanup(free) char *name = NULL;

	if (!strncmp(symbol, n->text, len) && (!symbol[len] || is_copy(symbol + len)))
		return true;
	if (!symbol_is_mangled(symbol) || !strstr(symbol, n->part))
		return false;
	name = symbol_demangle_whole(symbol);
	return name && is_any_form(name, n->text);
}

char *hit_name_short(const char *symbol)
{
	cleanup(free) char *name = symbol_demangle_whole(symbol);
	char *clone = name ? strstr(name, CLONE) : NULL, *args, *ret;

	if (!name || is_thunk(name))
		return TAKE(name);
	if (clone)
		*clone = '\0';
	args = arguments(name);
	if (args)
		*args = '\0';
	ret = behind_type(name);
	cut_parameters(ret);
	return strdup(ret);
}

void hit_name_last(const char *name, char ret[HIT_NAME_MAX])
{
	char *args, *last, *colons;
	int depth = 0;

	snprintf(ret, HIT_NAME_MAX, "%s", name);
	args = arguments(ret);
	if (args)
		*args = '\0';
	last = behind_type(ret);
	cut_parameters(last);
	colons = operator_in(last);
	for (char *at = last; *at && at != colons; at++) {
		depth += depth_by(*at);
		if (!depth && at[0] == ':' && at[1] == ':')
			last = at + 2;
	}
	memmove(ret, last, strlen(last) + 1);
}

bool hit_name_fits(const char *pattern, const char *name)
{
	const char *star = NULL, *from = name;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			from = name;
		} else if (*pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++from;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}
