/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the compiler that check types and make instructions (lower*.c) share. */
#ifndef YRT_YLANG_LOWER_H
#define YRT_YLANG_LOWER_H

#include "ast.h"
#include "ir.h"
#include "unwind/symbols/source_line.h"

enum value_kind {
	V_NOTHING,
	V_CONST,   /* imm: an integer, as a slot would hold it, or bits of a float */
	V_SLOT,    /* a result */
	V_LOCAL,   /* a variable's slot */
	V_GLOBAL,  /* imm: its number */
	V_ARRAY,   /* imm: of ARRAY_GET; a whole one */
	V_ELEMENT, /* imm: of ARRAY_GET; slot: the index */
	V_TARGET,  /* in the target: at slot + imm; slot Y_NONE: at offset imm of module */
	V_MAP,     /* imm: its number; with keys: an element, else whole */
};

struct value {
	enum value_kind kind;
	const struct type *type;
	u32 slot;
	u64 imm;
	u32 module;
	u32 bits, shift, word; /* a bit-field of the target */
	u32 keys[Y_KEYS_MOST], nkeys;
};

struct variable {
	struct variable *next;
	const char *name;
	const struct type *type;
	u32 slot;
	bool array;
};

struct label { /* case */
	struct label *next;
	u64 value;
	bool other; /* default */
	u32 block;
};

struct lower {
	struct y_source *s;
	struct y_target *target;
	struct y_program *p;
	const struct y_tree *tree;
	/* of the function that is made */
	struct y_function *f;
	const struct type *returns;
	struct variable *variables;
	u32 block;                 /* that is being filled; Y_NONE: none, what comes cannot be reached */
	u32 fail;                  /* where failures go */
	u32 break_to, continue_to; /* Y_NONE: there is no loop */
	struct label *labels;      /* of the switch */
	const struct type *switch_type;
	u32 captures[Y_CAPTURES_MOST]; /* slots; [0] Y_NONE: nothing was matched so far */
	u32 catches;                   /* _catch blocks around this */
	u32 thread_pointer;            /* of the thread that a loop is at; Y_NONE: of none */
	bool in_probe;
	struct y_handler *probe; /* of which point; NULL: of none */
	u64 line_at;             /* of a line: its place in the file of line_module */
	u32 line_module;
	const char *untyped; /* the last of the target's names of which no type is known, and where it is */
	u32 untyped_module;
	FILE *explain; /* where types and offsets come from; NULL: nobody asks */
};

#define FAIL(l, n, ...) y_error((l)->s, (n)->pos, (n)->macro, __VA_ARGS__)

/* lower_emit.c */
u32 new_slot(struct lower *l, enum y_type type);
u32 new_block(struct lower *l);
u32 add_place(struct lower *l, const struct y_node *at);
void place_block(struct lower *l, u32 block);
struct y_insn *emit(struct lower *l, const struct y_node *at, enum y_op op, enum y_type type);
u32 emit_const(struct lower *l, enum y_type type, u64 value);
/* Of two slots of a type: one of the same, or, of a comparison, an int. */
u32 emit_binary(struct lower *l, const struct y_node *at, enum y_op op, enum y_type type, u32 a, u32 b);
void emit_jump(struct lower *l, u32 block);
void emit_branch(struct lower *l, u32 slot, u32 yes, u32 no);
void emit_move(struct lower *l, u32 dst, u32 src);
u32 add_args(struct lower *l, const u32 *slots, u32 n);
u32 add_literal(struct lower *l, const char *bytes, u32 len);
u32 add_module(struct lower *l, u32 module);

/* lower_value.c */
enum y_type type_of_value(const struct lower *l, const struct y_node *at, const struct type *type);
bool is_integer(const struct type *type); /* also enumerations */
bool is_arithmetic(const struct type *type);
bool same_type(const struct type *a, const struct type *b);
struct value constant(const struct type *type, u64 value);
struct value in_slot(const struct type *type, u32 slot);
struct value rvalue(struct lower *l, const struct y_node *at, struct value v);
u32 to_slot(struct lower *l, const struct y_node *at, struct value v);
/*
 * An argument of a language's function has been read as a number, and its value is used nowhere yet: of a text or a
 * double it is read as that instead. Other values are as they were.
 */
struct value as_asked(struct lower *l, struct value v, const struct type *type);
/* As an assignment would; what: "the initial value of x". */
struct value convert_to(
        struct lower *l, const struct y_node *at, struct value v, const struct type *type, const char *what);
struct value cast_to(struct lower *l, const struct y_node *at, struct value v, const struct type *type);
/* The address of what lies in the target, as a slot. */
u32 address_slot(struct lower *l, const struct y_node *at, struct value v);
struct value member_of(struct lower *l, const struct y_node *at, struct value v, const char *name);
struct value element_of(struct lower *l, const struct y_node *at, struct value array, struct value index);
void store(struct lower *l, const struct y_node *at, struct value to, struct value v);
const struct type *promoted(struct value v);
const struct type *common_type(const struct type *a, const struct type *b);
u64 size_of_type(struct lower *l, const struct y_node *at, const struct type *type);

/* lower_expression.c */
struct value lower_expression(struct lower *l, const struct y_node *n);
/* rvalue() of it. */
struct value lower_rvalue(struct lower *l, const struct y_node *n);
void lower_condition(struct lower *l, const struct y_node *n, u32 yes, u32 no);
const struct type *type_of_expression(struct lower *l, const struct y_node *n);
struct value lower_map_element(struct lower *l, const struct y_node *n);
int find_map(const struct lower *l, const char *name);
s64 lower_constant(struct lower *l, const struct y_node *n, const char *what);

/* lower_probe.c: what a probe sees of its place */
struct value lower_argument(struct lower *l, const struct y_node *n, u64 number); /* _arg(number) */
struct value lower_parameter(struct lower *l, const struct y_node *n);            /* $name, $return */
struct value lower_place(struct lower *l, const struct y_node *n);                /* _ip */
void lower_point(struct lower *l, struct y_handler *h, struct y_pos pos);
/* "file.c:120": where the code of that line begins, in the first module that has any. False: spec is no line. */
bool lower_line(struct lower *l, const char *spec, struct y_pos pos, u32 *module, struct line_places *ret);

/* lower_thread.c */
struct value lower_thread_local(struct lower *l, const struct y_node *n, const struct y_target_object *o);
void lower_foreach_thread(struct lower *l, const struct y_node *n);

/* lower_point.c: tracepoints and system calls. False: the point is neither */
bool lower_kernel_point(struct lower *l, struct y_handler *h, const char *text, struct y_pos pos);
struct value lower_kernel_argument(struct lower *l, const struct y_node *n, u64 number);
struct value lower_kernel_name(struct lower *l, const struct y_node *n);

/* lower_name.c */
struct value lower_name(struct lower *l, const struct y_node *n);
/* "; here it is …": what other tools call so. NULL: nothing. */
const char *lower_other_word(struct lower *l, const char *name);
/* Is n a name that a module of the target exports? Where it is, without its type, which takes no debug information. */
bool lower_exported(struct lower *l, const struct y_node *n, struct value *ret);
/* "main.counter", a variable of a package of Go. False: n is a member of a variable. */
bool lower_package_name(struct lower *l, const struct y_node *n, struct value *ret);
struct value lower_dollar(struct lower *l, const struct y_node *n);
/* "_luajit", the first of them, or with a number: what a runtime is found from. False: n has no such name. */
bool lower_root(struct lower *l, const struct y_node *n, struct value *ret);
/* NULL: it is none of the program's. */
const struct y_tree_function *find_function(const struct lower *l, const char *name, u32 *number);

/* lower_call.c, lower_print.c */
struct value lower_call(struct lower *l, const struct y_node *n);
void lower_printf(struct lower *l, const struct y_node *n);
void lower_print(struct lower *l, const struct y_node *n);

/* lower_statement.c */
void lower_statement(struct lower *l, const struct y_node *n);
void declare_variable(struct lower *l, const char *name, const struct type *type, u32 slot);

#endif
