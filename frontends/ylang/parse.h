/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the parser share. */
#ifndef YRT_YLANG_PARSE_H
#define YRT_YLANG_PARSE_H

#include "ast.h"

#define Y_NESTED_MOST 200u

struct y_name { /* what a name means before the target is asked: a variable hides a type */
	struct y_name *next;
	const char *name;
	bool is_constant; /* an enumerator of the program, with this value */
	s64 value;
};

struct y_own_type;

struct y_parser {
	struct y_source *s;
	struct y_target *target;
	struct y_token *t;
	struct y_name *names;
	struct y_own_type *types; /* of the program */
	u32 in_types;             /* a body or a typedef: structures that nobody knows may be named there */
	struct y_tree *tree;
	u32 depth;
	bool no_division; /* in a predicate, which ends with "/" */
};

void y_fail_here(struct y_parser *p, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
bool y_take(struct y_parser *p, const char *text);
void y_expect(struct y_parser *p, const char *text, const char *where);
const char *y_take_name(struct y_parser *p, const char *what);
struct y_node *y_node(struct y_parser *p, enum y_node_kind kind, const struct y_token *at);
void y_append(struct y_parser *p, struct y_node *to, struct y_node *item);
void y_deeper(struct y_parser *p);
struct y_name *y_declare(struct y_parser *p, const char *name);

/* parse_type.c */
bool y_at_type(struct y_parser *p);
const struct type *y_parse_base(struct y_parser *p);
/* Pointers behind a base type. */
const struct type *y_parse_pointers(struct y_parser *p, const struct type *base);
/* Says that the target has no such "struct" (what), and what comes close. */
_Noreturn void y_no_such_type(struct y_parser *p, const struct y_token *at, enum type_space space, const char *what);
const struct type *y_parse_type_name(struct y_parser *p);

/* parse_body.c: types that the program itself says; they hide the target's. NULL: it has none of this name. */
const struct type *y_own_type(const struct y_parser *p, enum type_space space, const char *name);
/* One without a body; it may come later. */
const struct type *y_opaque_type(struct y_parser *p, enum type_space space, const char *name);
/* From '{' on. name: "" if it has none. at: for errors. */
const struct type *y_parse_body(struct y_parser *p, enum type_space space, const char *name, const struct y_token *at);
/* Behind the word. */
void y_parse_typedef(struct y_parser *p);

/* parse_expression.c */
struct y_node *y_parse_expression(struct y_parser *p);
struct y_node *y_parse_assignment(struct y_parser *p);
struct y_node *y_parse_conditional(struct y_parser *p);

#endif
