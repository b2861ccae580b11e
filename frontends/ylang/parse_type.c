/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "parse.h"

#define INT_TYPE(id, text, bytes, sign, ...)                                                                           \
	const struct type id = {                                                                                       \
	        .kind = TYPE_INT, .name = text, .size = bytes, .is_signed = sign, .to = &y_void, __VA_ARGS__}

const struct type y_void = {.kind = TYPE_VOID, .name = "void"};
INT_TYPE(y_bool, "_Bool", 1, false, .is_bool = true);
INT_TYPE(y_char, "char", 1, true, .is_char = true);
INT_TYPE(y_schar, "signed char", 1, true, .is_char = true);
INT_TYPE(y_uchar, "unsigned char", 1, false, .is_char = true);
INT_TYPE(y_short, "short", 2, true, );
INT_TYPE(y_ushort, "unsigned short", 2, false, );
INT_TYPE(y_int, "int", 4, true, );
INT_TYPE(y_uint, "unsigned int", 4, false, );
INT_TYPE(y_long, "long", 8, true, );
INT_TYPE(y_ulong, "unsigned long", 8, false, );
INT_TYPE(y_llong, "long long", 8, true, );
INT_TYPE(y_ullong, "unsigned long long", 8, false, );
const struct type y_float = {.kind = TYPE_FLOAT, .name = "float", .size = 4, .to = &y_void};
const struct type y_double = {.kind = TYPE_FLOAT, .name = "double", .size = 8, .to = &y_void};
const struct type y_string_type = {.kind = TYPE_OTHER, .name = "_str", .to = &y_void};
const struct type y_stack_types[Y_STACK_PARTS] = {
        [Y_WHOLE_STACK] = {.kind = TYPE_OTHER, .name = "_stack", .to = &y_void},
        [Y_USER_STACK] = {.kind = TYPE_OTHER, .name = "_ustack", .to = &y_void},
        [Y_KERNEL_STACK] = {.kind = TYPE_OTHER, .name = "_kstack", .to = &y_void}};

const struct type *y_pointer_to(struct y_source *s, const struct type *to)
{
	struct type *type = y_new(s, sizeof(*type));

	*type = (struct type){.kind = TYPE_POINTER, .name = "", .size = 8, .to = to};
	return type;
}

const char *y_type_text(struct y_source *s, const struct type *type)
{
	const char *name = *type->name ? type->name : "(without a name)", *to;

	if (!*type->name && type->alias)
		return type->alias;
	switch (type->kind) {
	case TYPE_STRUCT:
		return y_format(s, "struct %s", name);
	case TYPE_UNION:
		return y_format(s, "union %s", name);
	case TYPE_ENUM:
		return y_format(s, "enum %s", name);
	case TYPE_POINTER:
		to = y_type_text(s, type->to);
		return y_format(s, "%s%s", to, to[strlen(to) - 1] == '*' ? "*" : " *");
	case TYPE_ARRAY:
		return y_format(s, "%s[%lu]", y_type_text(s, type->to), type->count);
	case TYPE_FUNCTION:
		return "function";
	default:
		return name;
	}
}

/* --- words --- */

static const char *const words[] = {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned",
        "_Bool", "const", "volatile", "struct", "union", "enum", "static", "bool"};

enum word {
	W_VOID,
	W_CHAR,
	W_SHORT,
	W_INT,
	W_LONG,
	W_FLOAT,
	W_DOUBLE,
	W_SIGNED,
	W_UNSIGNED,
	W_BOOL,
	W_CONST,
	W_VOLATILE,
	W_STRUCT,
	W_UNION,
	W_ENUM,
	W_STATIC,
	W_BOOL_,
	WORDS
};

static int word_of(const struct y_token *t)
{
	for (int i = 0; t->kind == Y_T_NAME && i < WORDS; i++)
		if (!strcmp(t->text, words[i]))
			return i;
	return -1;
}

static bool is_variable(const struct y_parser *p, const char *name)
{
	for (const struct y_name *n = p->names; n; n = n->next)
		if (!strcmp(n->name, name))
			return true;
	return false;
}

/* Types of stdint.h and the like, where the target does not have them. */
static const struct type *standard_type(const char *name)
{
	static const struct {
		const char *name;
		const struct type *type;
	} all[] = {{"int8_t", &y_schar}, {"uint8_t", &y_uchar}, {"int16_t", &y_short}, {"uint16_t", &y_ushort},
	        {"int32_t", &y_int}, {"uint32_t", &y_uint}, {"int64_t", &y_long}, {"uint64_t", &y_ulong},
	        {"size_t", &y_ulong}, {"ssize_t", &y_long}, {"intptr_t", &y_long}, {"uintptr_t", &y_ulong},
	        {"ptrdiff_t", &y_long}};

	for (u32 i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i].name, name))
			return all[i].type;
	return NULL;
}

/* "ns::Type" as one name; behind: the token after it. */
static const char *scoped_name(struct y_parser *p, struct y_token *t, struct y_token **behind)
{
	const char *name = t->text;

	t = t->next;
	while (y_is(t, ":") && y_is(t->next, ":") && t->next->next->kind == Y_T_NAME && !t->next->space) {
		name = y_format(p->s, "%s::%s", name, t->next->next->text);
		t = t->next->next->next;
	}
	*behind = t;
	return name;
}

static void check_agreement(
        struct y_parser *p, const struct y_token *at, const char *what, const char *name, u32 module, int other)
{
	if (other >= 0)
		y_error(p->s, at->pos, at->macro, "%s%s is not the same in %s and %s", what, name,
		        p->target->modules[module].path, p->target->modules[other].path);
}

/* A variable of the program itself is no type of a library: saves a look at what all libraries have. */
static bool is_own_variable(struct y_parser *p, const char *name)
{
	struct types *types = p->target->nmodules ? y_target_types(p->target, 0) : NULL;
	struct y_target_object o;

	return types && !types_find(types, TYPES_PLAIN, name) && y_target_place(p->target, NULL, name, &o) && !o.module;
}

/* What can be behind a type's name. Names of functions and of variables are mostly told by that, before libraries are
 * asked for a type. */
static bool follows_type(const struct y_token *t)
{
	return t->kind == Y_T_NAME || y_is(t, "*") || y_is(t, ")") || y_is(t, "]") || y_is(t, ",");
}

static const struct type *named_type(struct y_parser *p, struct y_token *t, struct y_token **behind)
{
	const struct type *type;
	const char *name;
	u32 module;
	int other;

	if (t->kind != Y_T_NAME || *t->text == '$' || is_variable(p, t->text))
		return NULL;
	*behind = t->next;
	if (!strcmp(t->text, "_str"))
		return y_is(t->next, "(") ? NULL : &y_string_type;
	name = scoped_name(p, t, behind);
	if (!follows_type(*behind))
		return NULL;
	type = y_own_type(p, TYPES_PLAIN, name);
	if (type)
		return type;
	type = standard_type(name);
	if (type)
		return type;
	type = is_own_variable(p, name) ? NULL : y_target_type(p->target, TYPES_PLAIN, name, &module, &other);
	if (type)
		check_agreement(p, t, "type ", name, module, other);
	return type;
}

bool y_at_type(struct y_parser *p)
{
	struct y_token *behind;

	return word_of(p->t) >= 0 || named_type(p, p->t, &behind);
}

/* --- base types --- */

void y_no_such_type(struct y_parser *p, const struct y_token *at, enum type_space space, const char *what)
{
	struct y_near near = {.name = at->text};
	char lacks[Y_LACKS];

	for (u32 i = 0; i < p->target->nmodules; i++)
		if (y_target_types(p->target, i))
			types_names(y_target_types(p->target, i), space, y_near_offer, &near);
	if (y_runtimes_of_type(at->text) && !y_runtimes_complaint(p->target))
		y_error(p->s, at->pos, at->macro,
		        "the target has no %s %s, nor %s, whose type it is: no %s was found there", what, at->text,
		        y_runtimes_of_type(at->text), y_runtimes_of_type(at->text));
	if (y_runtimes_complaint(p->target))
		y_error(p->s, at->pos, at->macro, "the target has no %s %s; %s", what, at->text,
		        y_runtimes_complaint(p->target));
	if (*y_target_lacks(p->target, 0, lacks))
		y_error(p->s, at->pos, at->macro, "the target has no %s %s%s", what, at->text, lacks);
	y_error(p->s, at->pos, at->macro, "the target has no %s %s%s; ##ifdeftype would ask%s", what, at->text,
	        y_near_text(p->s, &near), y_target_bare(p->target, lacks));
}

static const struct type *tagged_type(struct y_parser *p, int word)
{
	enum type_space space = word == W_STRUCT ? TYPES_STRUCT : word == W_UNION ? TYPES_UNION : TYPES_ENUM;
	const struct y_token *at = p->t;
	struct y_token *behind, whole;
	const struct type *type;
	u32 module;
	int other;
	const char *name;

	if (y_is(at, "{"))
		return y_parse_body(p, space, "", at);
	if (at->kind != Y_T_NAME)
		y_fail_here(p, "the name of a %s is missing", words[word]);
	name = scoped_name(p, p->t, &behind);
	p->t = behind;
	while (y_is(p->t, ".") && p->t->next->kind == Y_T_NAME) { /* Go's "main.Order" */
		name = y_format(p->s, "%s.%s", name, p->t->next->text);
		p->t = p->t->next->next;
	}
	whole = *at;
	whole.text = name;
	if (y_is(p->t, "{"))
		return y_parse_body(p, space, name, at);
	type = y_own_type(p, space, name);
	if (type)
		return type;
	type = y_target_type(p->target, space, name, &module, &other);
	if (!type && space != TYPES_ENUM && (p->in_types || y_is(p->t, ";")))
		return y_opaque_type(p, space, name);
	if (!type)
		y_no_such_type(p, &whole, space, words[word]);
	check_agreement(p, at, y_format(p->s, "%s ", words[word]), name, module, other);
	return type;
}

static const struct type *of_words(struct y_parser *p, const u32 n[WORDS], const struct y_token *at)
{
	bool u = n[W_UNSIGNED];
	u32 sizes = n[W_CHAR] + n[W_SHORT] + (n[W_LONG] > 0), others = n[W_VOID] + n[W_FLOAT] + n[W_BOOL] + n[W_BOOL_];

	if (n[W_SIGNED] + n[W_UNSIGNED] > 1 || sizes > 1 || n[W_LONG] > 2 || n[W_INT] > 1 || others > 1 ||
	        (others && sizes + n[W_INT] + n[W_SIGNED] + n[W_UNSIGNED] + n[W_DOUBLE]) ||
	        (n[W_DOUBLE] && (sizes || n[W_INT] || u || n[W_SIGNED])))
		y_error(p->s, at->pos, at->macro,
		        n[W_DOUBLE] && n[W_LONG] ? "long double is not supported" : "these words make no type of C");
	if (n[W_VOID])
		return &y_void;
	if (n[W_FLOAT] || n[W_DOUBLE])
		return n[W_FLOAT] ? &y_float : &y_double;
	if (n[W_BOOL] + n[W_BOOL_])
		return &y_bool;
	if (n[W_CHAR])
		return u ? &y_uchar : n[W_SIGNED] ? &y_schar : &y_char;
	if (n[W_SHORT])
		return u ? &y_ushort : &y_short;
	if (n[W_LONG] == 2)
		return u ? &y_ullong : &y_llong;
	if (n[W_LONG])
		return u ? &y_ulong : &y_long;
	return u ? &y_uint : &y_int;
}

const struct type *y_parse_base(struct y_parser *p)
{
	u32 n[WORDS] = {0}, arithmetic = 0;
	const struct type *type = NULL;
	const struct y_token *at = p->t;

	for (;;) {
		int word = word_of(p->t);
		struct y_token *behind;
		const struct type *named;

		if (word == W_STRUCT || word == W_UNION || word == W_ENUM) {
			p->t = p->t->next;
			type = tagged_type(p, word);
		} else if (word >= 0) {
			p->t = p->t->next;
			n[word]++;
			arithmetic += word != W_CONST && word != W_VOLATILE && word != W_STATIC;
		} else if (!type && !arithmetic && (named = named_type(p, p->t, &behind))) {
			type = named;
			p->t = behind;
		} else {
			break;
		}
	}
	if (type && arithmetic)
		y_error(p->s, at->pos, at->macro, "these words make no type of C");
	if (!type && !arithmetic && p->t->kind == Y_T_NAME && *p->t->text != '_' && *p->t->text != '$')
		y_no_such_type(p, p->t, TYPES_PLAIN, "type");
	if (!type && !arithmetic)
		y_fail_here(p, "a type is missing before '%s'", p->t->text);
	return type ? type : of_words(p, n, at);
}

const struct type *y_parse_pointers(struct y_parser *p, const struct type *base)
{
	u32 n = 0;

	while (y_is(p->t, "*") || y_is(p->t, "const") || y_is(p->t, "volatile") || y_is(p->t, "restrict")) {
		if (y_is(p->t, "*")) {
			if (base == &y_string_type)
				y_fail_here(p,
				        "a pointer to _str: strings lie in the tracer, pointers lead into the target");
			if (++n > 16)
				y_fail_here(p, "too many '*'");
			base = y_pointer_to(p->s, base);
		}
		p->t = p->t->next;
	}
	return base;
}

const struct type *y_parse_type_name(struct y_parser *p)
{
	const struct type *type = y_parse_pointers(p, y_parse_base(p));

	if (y_is(p->t, "(") && y_is(p->t->next, "*"))
		y_fail_here(p, "pointers to functions and to arrays are not supported; `void *` holds any address");
	return type;
}
