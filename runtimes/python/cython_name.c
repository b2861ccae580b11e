/* SPDX-License-Identifier: Apache-2.0 */
#include "cython_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCOPES_MAX 16
#define LENGTH_MAX 1000
#define FUSED      "__pyx_fuse_"
#define LAMBDA     "__pyx_lambda_funcdef_"
#define SPECIAL    "__pyx_specialmethod_" /* stands for the wrapper behind it */
#define CPP_STATIC "_ZL"                  /* of a static function, then the length of its name */
#define GENERATOR  CYTHON_PREFIX "gb_"
#define MEMORYVIEW "15View_dot_MemoryView_" /* the one scope whose name has a dot, which its length counts */

enum kind { KIND_WRAPPER, KIND_BODY, KIND_GENERATOR, KIND_C, KIND_SLOT };

struct part {
	const char *text;
	u32 len;
};

struct parsed {
	enum kind kind;
	struct part fused; /* "1_0": which types a function was made for */
	struct part scopes[SCOPES_MAX];
	u32 nscopes;
	struct part number, name, slot;
};

static const struct {
	const char *word;
	enum kind kind;
	enum translated_layer layer;
} kinds[] = {
        {"pw_", KIND_WRAPPER, TRANSLATED_WRAPPER},
        {"pf_", KIND_BODY, TRANSLATED_BODY},
        {"gb_", KIND_GENERATOR, TRANSLATED_C},
        {"f_", KIND_C, TRANSLATED_C},
        {"getprop_", KIND_C, TRANSLATED_NONE},
        {"setprop_", KIND_C, TRANSLATED_NONE},
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static bool begins(const struct part *p, const char *word)
{
	size_t len = strlen(word);

	return p->len >= len && !memcmp(p->text, word, len);
}

static void skip(struct part *p, u32 n)
{
	p->text += n;
	p->len -= n;
}

static bool is_digit(const struct part *p, u32 i)
{
	return i < p->len && isdigit((u8)p->text[i]);
}

/* Letters, digits and underscores at the beginning. */
static struct part identifier(const char *text)
{
	u32 n = 0;

	while (isalnum((u8)text[n]) || text[n] == '_')
		n++;
	return (struct part){text, n};
}

/* A length, so many characters, "_", and more behind it. rest begins behind it then. */
static bool scope(struct part *rest, struct part *ret)
{
	u32 n = 0, i = 0;

	if (begins(rest, MEMORYVIEW)) {
		*ret = (struct part){"View.MemoryView", strlen("View.MemoryView")};
		skip(rest, strlen(MEMORYVIEW));
		return rest->len;
	}
	if (!is_digit(rest, 0) || rest->text[0] == '0')
		return false;
	for (; is_digit(rest, i) && n <= LENGTH_MAX; i++)
		n = n * 10 + (u32)(rest->text[i] - '0');
	if (n > LENGTH_MAX || rest->len - i < n + 2 || is_digit(rest, i) || rest->text[i + n] != '_')
		return false;
	*ret = (struct part){rest->text + i, n};
	skip(rest, i + n + 1);
	return true;
}

static void skip_number(struct part *rest)
{
	while (is_digit(rest, 0))
		skip(rest, 1);
}

/* "1_0" of __pyx_fuse_1_0, which both functions and names may begin with. */
static void take_fused(struct part *rest, struct part *ret)
{
	u32 i = 0;

	if (!begins(rest, FUSED))
		return;
	skip(rest, strlen(FUSED));
	while (is_digit(rest, i) || (i && i < rest->len && rest->text[i] == '_' && is_digit(rest, i + 1)))
		i++;
	*ret = (struct part){rest->text, i};
	skip(rest, i);
}

/* What pw, pf and so on it is; "tp_dealloc" and the like are slots. */
static bool take_kind(struct part *rest, struct parsed *p)
{
	u32 n = 0;

	if (!begins(rest, CYTHON_PREFIX))
		return false;
	skip(rest, strlen(CYTHON_PREFIX));
	for (u32 i = 0; i < KINDS; i++)
		if (begins(rest, kinds[i].word)) {
			p->kind = kinds[i].kind;
			skip(rest, strlen(kinds[i].word));
			return true;
		}
	while (n < rest->len && (islower((u8)rest->text[n]) || (rest->text[n] == '_' && !is_digit(rest, n + 1))))
		n++;
	p->kind = KIND_SLOT;
	p->slot = (struct part){rest->text, n};
	if (n < 4 || rest->text[2] != '_' || n + 1 >= rest->len || rest->text[n] != '_')
		return false;
	skip(rest, n + 1);
	return true;
}

static bool is_dunder(const struct part *p)
{
	return p->len > 4 && begins(p, "__") && !memcmp(p->text + p->len - 2, "__", 2);
}

static bool is_generator(const struct part *p)
{
	struct part rest = *p;

	if (!begins(p, "generator"))
		return false;
	skip(&rest, strlen("generator"));
	skip_number(&rest);
	return !rest.len;
}

/*
 * A def has two numbers of its scope, of which the body takes the first, so a wrapper always has one (but a lambda's);
 * and so has a generator, whose number is behind theirs. A body's may be the scope's first, which has none: then a last
 * scope that is no class, by its capital, may be the number and the beginning of the name as well.
 */
static bool take_number(struct part *rest, const struct part *before, struct parsed *p)
{
	const struct part *last = &p->scopes[p->nscopes - 1];
	bool number = is_digit(rest, 0), capital = last->text[strspn(last->text, "_")] < 'a';

	if (p->kind == KIND_C || p->kind == KIND_SLOT)
		return !number;
	if (begins(rest, LAMBDA))
		return true;
	if (p->kind == KIND_BODY && !number && p->nscopes > 1 && !capital && !is_dunder(rest))
		return false;
	if (p->kind == KIND_WRAPPER && !number && p->nscopes > 1) {
		*rest = *before;
		p->nscopes--;
		number = true;
	}
	p->number = *rest;
	skip_number(rest);
	p->number.len -= rest->len;
	return rest->len && (number || p->kind == KIND_BODY) && (p->kind != KIND_GENERATOR || is_generator(rest));
}

/* Python's own mangling of private names: _Class__name. */
static void strip_class(const struct part *class, struct part *name)
{
	struct part c = *class;

	while (c.len && c.text[0] == '_')
		skip(&c, 1);
	if (c.len && name->len > c.len + 3 && name->text[0] == '_' && !memcmp(name->text + 1, c.text, c.len) &&
	        !memcmp(name->text + 1 + c.len, "__", 2))
		skip(name, 1 + c.len);
}

static bool take_name(struct part *rest, struct parsed *p)
{
	struct part within;

	take_fused(rest, &p->fused);
	if (begins(rest, LAMBDA)) {
		skip(rest, strlen(LAMBDA));
		while (scope(rest, &within))
			;
	}
	strip_class(&p->scopes[p->nscopes - 1], rest);
	p->name = *rest;
	return rest->len && !is_digit(rest, 0);
}

static bool parse(struct part rest, struct parsed *p)
{
	struct part before = rest;

	if (begins(&rest, SPECIAL))
		skip(&rest, strlen(SPECIAL));
	take_fused(&rest, &p->fused);
	if (!take_kind(&rest, p))
		return false;
	while (p->nscopes < SCOPES_MAX) {
		struct part at = rest;

		if (!scope(&rest, &p->scopes[p->nscopes]))
			break;
		before = at;
		p->nscopes++;
	}
	return p->nscopes && p->nscopes < SCOPES_MAX && take_number(&rest, &before, p) && take_name(&rest, p);
}

/* The text with what stands before and behind it; false: there is no room. */
static bool put(char *ret, size_t size, size_t *at, const char *before, struct part p, const char *behind)
{
	int n;

	if (!p.len)
		return true;
	n = snprintf(ret + *at, size - *at, "%s%.*s%s", before, (int)p.len, p.text, behind);
	*at += (size_t)n;
	return *at < size;
}

/* A compiler's clone: ".cold", or " [clone .cold]" behind what C++'s demangler gives for the arguments. */
static bool put_clone(char *ret, size_t size, size_t *at, const char *rest)
{
	const char *clone = strstr(rest, " [clone ");

	if (*rest == '.')
		return put(ret, size, at, " [clone ", (struct part){rest, (u32)strlen(rest)}, "]");
	return !clone || put(ret, size, at, "", (struct part){clone, (u32)strlen(clone)}, "");
}

bool cython_is_symbol(const char *symbol)
{
	return !strncmp(symbol, CYTHON_PREFIX, strlen(CYTHON_PREFIX));
}

bool cython_demangle(const char *name, char *ret, size_t size)
{
	struct part all = identifier(name);
	const char *rest = name + all.len;
	struct parsed p = {0};
	char text[4 * LENGTH_MAX];
	size_t at = 0;
	bool fits = true;

	if (all.len > LENGTH_MAX || (*rest && *rest != '.' && *rest != '(' && *rest != ' ') || !parse(all, &p))
		return false;
	for (u32 i = 0; i < p.nscopes; i++)
		fits = fits && put(text, sizeof(text), &at, "", p.scopes[i], ".");
	fits = fits && put(text, sizeof(text), &at, "", p.name, "") && put(text, sizeof(text), &at, ".", p.slot, "") &&
	       put(text, sizeof(text), &at, " [fused ", p.fused, "]") && put_clone(text, sizeof(text), &at, rest);
	if (!fits || at >= size)
		return false;
	memcpy(ret, text, at + 1);
	return true;
}

enum translated_layer cython_layer(const char *symbol)
{
	struct part rest, fused;

	if (!strncmp(symbol, CPP_STATIC, strlen(CPP_STATIC)))
		symbol += strlen(CPP_STATIC) + strspn(symbol + strlen(CPP_STATIC), "0123456789");
	rest = identifier(symbol);
	take_fused(&rest, &fused);
	if (!begins(&rest, CYTHON_PREFIX))
		return TRANSLATED_NONE;
	skip(&rest, strlen(CYTHON_PREFIX));
	for (u32 i = 0; i < KINDS; i++)
		if (begins(&rest, kinds[i].word))
			return kinds[i].layer;
	return TRANSLATED_NONE;
}

bool cython_wrapper_of(const char *symbol, char *ret, size_t size)
{
	static const char body[] = CYTHON_PREFIX "pf_";
	struct part rest = identifier(symbol), last;
	const char *start = symbol + sizeof(body) - 1;
	u32 scopes = 0;
	int n;

	if (!begins(&rest, body))
		return false;
	skip(&rest, sizeof(body) - 1);
	while (scopes < SCOPES_MAX && scope(&rest, &last))
		scopes++;
	if (!scopes || is_digit(&rest, 0))
		return false;
	n = snprintf(
	        ret, size, CYTHON_PREFIX "pw_%.*s1%.*s", (int)(rest.text - start), start, (int)rest.len, rest.text);
	return n > 0 && (size_t)n < size;
}

bool cython_generator_wrapper(const char *symbol, char *ret, size_t size)
{
	struct part all = identifier(symbol);
	struct parsed p = {0};
	const char *scopes;
	unsigned long number;
	int n;

	if (!strncmp(symbol, CPP_STATIC, strlen(CPP_STATIC))) {
		skip(&all, (u32)strlen(CPP_STATIC));
		number = strtoul(all.text, NULL, 10);
		skip_number(&all);
		all.len = number < all.len ? (u32)number : all.len;
	}
	if (all.len > LENGTH_MAX || !begins(&all, GENERATOR) || !parse(all, &p) || p.fused.len || !p.number.len)
		return false;
	scopes = all.text + strlen(GENERATOR);
	number = strtoul(p.number.text, NULL, 10);
	n = snprintf(ret, size, CYTHON_PREFIX "pw_%.*s%lu", (int)(p.number.text - scopes), scopes, number - 1);
	return number > 1 && n > 0 && (size_t)n < size;
}

bool cython_is_glue(const char *symbol)
{
	static const char *const begins[] = {"CyFunction_Call", "CyFunction_Vectorcall", "Coroutine_AmSend",
	        "Coroutine_Send", "Generator_Next", "PyCFunction_FastCall", "PyFunction_FastCall", "PyObject_Call",
	        "PyObject_FastCall", "_PyObject_Call", "PyVectorcall_FastCall"};

	if (strncmp(symbol, "__Pyx_", 6))
		return false;
	for (u32 i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(symbol + 6, begins[i], strlen(begins[i])))
			return true;
	return false;
}
