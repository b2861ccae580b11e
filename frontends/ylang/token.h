/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: of a file (lex.c), and what the preprocessor makes of them (preprocess.c). */
#ifndef YRT_YLANG_TOKEN_H
#define YRT_YLANG_TOKEN_H

#include "source.h"

enum y_token_kind {
	Y_T_END,
	Y_T_NAME,
	Y_T_NUMBER,
	Y_T_STRING,
	Y_T_CHARACTER,
	Y_T_REGEX,
	Y_T_PUNCTUATION,
	Y_T_PLACEMARKER
};

struct y_hidden { /* macros that are not expanded again in this token */
	const struct y_hidden *next;
	const char *name;
};

struct y_token {
	enum y_token_kind kind;
	const char *text; /* as written, NUL-terminated; of strings, characters and regexes: with their quotes */
	u32 len;
	bool first;       /* of its line */
	bool space;       /* there is space before it */
	struct y_pos pos; /* of the outermost macro, if it came from one: */
	const char *macro;
	const struct y_hidden *hidden;
	struct y_token *next;
};

/* All tokens of a file; the last one is of kind Y_T_END. */
struct y_token *y_lex(struct y_source *s, u32 file);
/* The same of a text that is glued or given by -D; positions are those of pos. */
struct y_token *y_lex_text(struct y_source *s, const char *text, struct y_pos pos);

static inline bool y_is(const struct y_token *t, const char *text)
{
	const char *own = t->text;

	if (t->kind != Y_T_NAME && t->kind != Y_T_PUNCTUATION)
		return false;
	while (*own && *own == *text)
		own++, text++;
	return *own == *text;
}

/* What a constant says. Errors are at the token. */
struct y_number {
	bool is_float, is_unsigned, is_long;
	u64 value;
	double real;
};
struct y_number y_number(struct y_source *s, const struct y_token *t);
s64 y_character(struct y_source *s, const struct y_token *t);
/* The bytes of a string, without quotes and escapes. */
char *y_string(struct y_source *s, const struct y_token *t, u32 *len);

/*
 * The preprocessor: ## directives, which ask the target, # directives and macros, as C11. What it leaves has none.
 */
struct y_asks { /* may be NULL functions: nothing is there */
	void *target;
	bool (*has_type)(void *target, const char *name);
	bool (*has_field)(void *target, const char *type, const char *field);
	bool (*has_function)(void *target, const char *name);
	bool (*has_variable)(void *target, const char *name);
};

struct y_preprocess {
	struct y_source *source;
	struct y_asks asks;
	const char *const *defines;  /* "NAME" or "NAME=VALUE", up to NULL */
	const char *const *includes; /* directories, up to NULL */
};
struct y_token *y_preprocess(const struct y_preprocess *p, u32 file);

#endif
