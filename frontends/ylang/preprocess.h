/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the preprocessor share: macros (macro.c), directives and conditions (preprocess.c). */
#ifndef YRT_YLANG_PREPROCESS_H
#define YRT_YLANG_PREPROCESS_H

#include "token.h"

struct y_macro {
	struct y_macro *next;
	const char *name;
	bool is_function, variadic, gone;
	const char **parameters; /* the last one of a variadic macro is "__VA_ARGS__" */
	u32 nparameters;
	struct y_token *body; /* up to Y_T_END */
};

struct y_group { /* #if … #endif */
	struct y_group *outer;
	struct y_pos pos;
	bool asks;  /* begun by ## */
	bool taken; /* one of its parts was */
	bool in_else;
	u32 file;
};

struct y_pp {
	const struct y_preprocess *p;
	struct y_source *s;
	struct y_macro *macros;
	struct y_group *groups;
	u32 depth;   /* of includes */
	u64 ntokens; /* that expansions have made */
};

struct y_macro *y_macro_find(struct y_pp *pp, const struct y_token *t);
/* #define, from the name on; the line ends with Y_T_END. */
void y_macro_define(struct y_pp *pp, struct y_token *line);
/* Expands t if it is a macro: the tokens to go on with. False: it is none. */
bool y_macro_expand(struct y_pp *pp, struct y_token **t);
/* All of a list up to its Y_T_END. */
struct y_token *y_macro_expand_all(struct y_pp *pp, struct y_token *t);

struct y_token *y_token_copy(struct y_pp *pp, const struct y_token *t);

#endif
