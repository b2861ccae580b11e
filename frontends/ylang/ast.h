/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax tree, and the parser that makes it (parse*.c). Types are resolved while parsing, as C needs it. */
#ifndef YRT_YLANG_AST_H
#define YRT_YLANG_AST_H

#include "ir.h"
#include "source.h"
#include "target.h"
#include "token.h"

/* Types of C, and those of Y. */
extern const struct type y_void, y_bool, y_char, y_schar, y_uchar, y_short, y_ushort, y_int, y_uint, y_long, y_ulong,
        y_llong, y_ullong, y_float, y_double;
extern const struct type y_string_type, y_stack_types[Y_STACK_PARTS];
static inline bool y_is_stack(const struct type *type)
{
	return type >= y_stack_types && type < y_stack_types + Y_STACK_PARTS;
}

enum y_node_kind {
	Y_N_NUMBER, /* value, type */
	Y_N_REAL,
	Y_N_STRING, /* bytes, len */
	Y_N_NAME,   /* name; module: module`name */
	Y_N_DOLLAR, /* name without the $ */
	Y_N_UNARY,  /* op: + - ! ~ * & ++ -- (before), "p++" "p--" (behind) */
	Y_N_BINARY, /* op, a, b; also && || , ?? and "_in" */
	Y_N_ASSIGN, /* op: = += … */
	Y_N_CONDITIONAL,
	Y_N_MATCH,  /* a ~~ regex; op: ~~ or !~~; bytes: the pattern */
	Y_N_CALL,   /* name, list */
	Y_N_INDEX,  /* a [ list ] */
	Y_N_MEMBER, /* a . name */
	Y_N_ARROW,
	Y_N_CAST,      /* type, a */
	Y_N_SIZEOF,    /* type, or a */
	Y_N_OFFSETOF,  /* type, a: the path from a name on */
	Y_N_CONTAINER, /* _container_of(a, type, path b) */
	/* statements */
	Y_N_BLOCK,   /* list */
	Y_N_DECLARE, /* name, type, a: the initial value; value: elements of an array, 0: none */
	Y_N_EXPRESSION,
	Y_N_IF,
	Y_N_WHILE,
	Y_N_DO,
	Y_N_FOR, /* a; b; c, d: the body */
	Y_N_SWITCH,
	Y_N_CASE, /* a, the statement b */
	Y_N_DEFAULT,
	Y_N_BREAK,
	Y_N_CONTINUE,
	Y_N_RETURN,
	Y_N_FOREACH, /* names: list of Y_N_NAME, b: the value's or NULL, name: the map (NULL: over threads), c: _top or
	                NULL, d: the body */
	Y_N_TRY,     /* a, b */
	Y_N_DELETE,  /* a */
	Y_N_AGG_ADD, /* a <<< b */
	Y_N_EMPTY,
};

struct y_node {
	enum y_node_kind kind;
	struct y_pos pos;
	const char *macro;
	const char *op, *name, *module, *bytes;
	u32 len;
	u64 value;
	double real;
	const struct type *type;
	struct y_node *a, *b, *c, *d;
	struct y_node **list;
	u32 n;
	struct y_node *next;
};

struct y_tree_function {
	const char *name;
	struct y_pos pos;
	const struct type *returns;
	const struct type **types;
	const char **names;
	u32 nparameters;
	struct y_node *body; /* NULL: only declared so far */
	struct y_tree_function *next;
};

struct y_tree_map {
	const char *name;
	struct y_pos pos;
	bool is_agg;
	const struct type *value;
	const struct type *keys[8];
	u32 nkeys;
	u64 most;
	struct y_tree_map *next;
};

struct y_tree_point {
	const char *text; /* as written, without spaces */
	struct y_pos pos;
	struct y_tree_point *next;
};

struct y_tree_probe {
	struct y_tree_point *points;
	struct y_pos pos;
	struct y_node *predicate, *body;
	struct y_tree_probe *next;
};

struct y_tree { /* in the order of the source */
	struct y_tree_function *functions;
	struct y_tree_map *maps;
	struct y_node *globals; /* Y_N_DECLARE, by next */
	struct y_tree_probe *probes;
};

struct y_tree *y_parse(struct y_source *s, struct y_target *target, struct y_token *t);

/* A pointer to a type; never NULL. */
const struct type *y_pointer_to(struct y_source *s, const struct type *to);
/* As a message has it: "struct ngx_str_t *". */
const char *y_type_text(struct y_source *s, const struct type *type);

#endif
