/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "parse.h"

static struct y_node *unary(struct y_parser *p);

static struct y_node *number(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_NUMBER, p->t);
	struct y_number v = y_number(p->s, p->t);

	if (v.is_float) {
		n->kind = Y_N_REAL;
		n->real = v.real;
		n->type = strpbrk(p->t->text, "fF") && strncmp(p->t->text, "0x", 2) ? &y_float : &y_double;
	} else {
		n->value = v.value;
		n->type = v.is_long ? (v.is_unsigned ? &y_ulong : &y_long) : v.is_unsigned ? &y_uint : &y_int;
	}
	p->t = p->t->next;
	return n;
}

/* Strings side by side are one. */
static struct y_node *string(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_STRING, p->t);

	n->type = &y_string_type;
	n->bytes = "";
	while (p->t->kind == Y_T_STRING) {
		u32 len;
		char *more = y_string(p->s, p->t, &len), *all = y_new(p->s, n->len + len + 1);

		memcpy(all, n->bytes, n->len);
		memcpy(all + n->len, more, len);
		n->bytes = all;
		n->len += len;
		p->t = p->t->next;
	}
	return n;
}

static struct y_node *size_of(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_SIZEOF, p->t);
	struct y_token *paren = p->t->next;

	p->t = paren;
	if (y_take(p, "(")) {
		if (y_at_type(p)) {
			n->type = y_parse_type_name(p);
			y_expect(p, ")", "behind sizeof's type");
			return n;
		}
		p->t = paren;
	}
	n->a = unary(p);
	return n;
}

/* A path of members: "a.b[2].c", as a tree whose innermost is a name. */
static struct y_node *member_path(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_NAME, p->t), *outer;

	n->name = y_take_name(p, "a member");
	for (;;) {
		if (y_is(p->t, ".")) {
			outer = y_node(p, Y_N_MEMBER, p->t);
			p->t = p->t->next;
			outer->name = y_take_name(p, "a member");
		} else if (y_is(p->t, "[")) {
			outer = y_node(p, Y_N_INDEX, p->t);
			p->t = p->t->next;
			y_append(p, outer, y_parse_assignment(p));
			y_expect(p, "]", "behind an index");
		} else {
			return n;
		}
		outer->a = n;
		n = outer;
	}
}

static struct y_node *offset_of(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_OFFSETOF, p->t);

	p->t = p->t->next;
	y_expect(p, "(", "behind offsetof");
	n->type = y_parse_type_name(p);
	y_expect(p, ",", "behind offsetof's type");
	n->a = member_path(p);
	y_expect(p, ")", "behind offsetof's member");
	return n;
}

static struct y_node *container_of(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_CONTAINER, p->t);

	p->t = p->t->next;
	y_expect(p, "(", "behind _container_of");
	n->a = y_parse_assignment(p);
	y_expect(p, ",", "behind the pointer");
	n->type = y_parse_type_name(p);
	y_expect(p, ",", "behind the type");
	n->b = member_path(p);
	y_expect(p, ")", "behind _container_of's member");
	return n;
}

/* A name, "module`name", or a call. */
static struct y_node *name(struct y_parser *p)
{
	struct y_node *n = y_node(p, *p->t->text == '$' ? Y_N_DOLLAR : Y_N_NAME, p->t);

	n->name = p->t->text + (*p->t->text == '$');
	p->t = p->t->next;
	if (n->kind == Y_N_NAME && y_take(p, "`")) {
		n->module = n->name;
		n->name = y_take_name(p, "a name");
	}
	while (n->kind == Y_N_NAME && y_is(p->t, ":") && y_is(p->t->next, ":") && !p->t->next->space &&
	        p->t->next->next->kind == Y_T_NAME) {
		n->name = y_format(p->s, "%s::%s", n->name, p->t->next->next->text);
		p->t = p->t->next->next->next;
	}
	if (n->kind == Y_N_DOLLAR || !y_take(p, "("))
		return n;
	n->kind = Y_N_CALL;
	if (y_take(p, ")"))
		return n;
	do
		y_append(p, n, y_parse_assignment(p));
	while (y_take(p, ","));
	y_expect(p, ")", "behind the arguments");
	return n;
}

/* If the next name is an enumerator that the program declared, its value; else NULL. */
static struct y_node *enumerator(struct y_parser *p)
{
	const struct y_name *name = p->names;
	struct y_node *n;

	while (name && strcmp(name->name, p->t->text) != 0)
		name = name->next;
	if (!name || !name->is_constant)
		return NULL;
	n = y_node(p, Y_N_NUMBER, p->t);
	n->value = (u64)name->value;
	n->type = name->value == (int)name->value ? &y_int : &y_long;
	p->t = p->t->next;
	return n;
}

static struct y_node *primary(struct y_parser *p)
{
	struct y_token *at = p->t;
	struct y_node *n;

	switch (at->kind) {
	case Y_T_NUMBER:
		return number(p);
	case Y_T_STRING:
		return string(p);
	case Y_T_CHARACTER:
		n = y_node(p, Y_N_NUMBER, at);
		n->value = (u64)y_character(p->s, at);
		n->type = &y_int;
		p->t = at->next;
		return n;
	case Y_T_REGEX:
		y_fail_here(p, "a regex stands behind ~~ or !~~");
	case Y_T_NAME:
		if (y_is(at, "sizeof"))
			return size_of(p);
		if (y_is(at, "offsetof"))
			return offset_of(p);
		if (y_is(at, "_container_of"))
			return container_of(p);
		n = enumerator(p);
		return n ? n : name(p);
	default:
		break;
	}
	if (y_take(p, "(")) {
		if (y_is(p->t, "{"))
			y_fail_here(p, "statements in expressions are not C");
		n = y_parse_expression(p);
		y_expect(p, ")", "to match the '('");
		return n;
	}
	if (at->kind == Y_T_END)
		y_fail_here(p, "an expression is missing at the end of the program");
	y_fail_here(p, "an expression is missing before '%s'", at->text);
}

static struct y_node *postfix(struct y_parser *p)
{
	struct y_node *n = primary(p), *outer;

	for (u32 i = 0;; i++) {
		const struct y_token *at = p->t;

		if (i > 1000)
			y_fail_here(p, "too many members and indices in one expression");
		if (y_take(p, "[")) {
			outer = y_node(p, Y_N_INDEX, at);
			do
				y_append(p, outer, y_parse_assignment(p));
			while (y_take(p, ","));
			y_expect(p, "]", "behind an index");
		} else if (y_is(at, ".") || y_is(at, "->")) {
			outer = y_node(p, y_is(at, ".") ? Y_N_MEMBER : Y_N_ARROW, at->next);
			p->t = at->next;
			outer->name = y_take_name(p, "a member");
		} else if (y_is(at, "++") || y_is(at, "--")) {
			outer = y_node(p, Y_N_UNARY, at);
			outer->op = y_is(at, "++") ? "p++" : "p--";
			p->t = at->next;
		} else if (y_is(at, "(")) {
			y_fail_here(p, "only the program's own functions are called, by their names: nothing of the "
			               "target is, nor its methods");
		} else {
			return n;
		}
		outer->a = n;
		n = outer;
	}
}

static struct y_node *cast(struct y_parser *p, struct y_token *paren)
{
	struct y_node *n = y_node(p, Y_N_CAST, paren);

	n->type = y_parse_type_name(p);
	y_expect(p, ")", "behind a type");
	if (y_is(p->t, "{"))
		y_fail_here(p, "compound literals are not supported: structures lie in the target");
	n->a = unary(p);
	return n;
}

/* "name *)" or "name **)". */
static bool is_unknown_cast(const struct y_token *t)
{
	const struct y_token *star = t->next;

	if (t->kind != Y_T_NAME || *t->text == '$')
		return false;
	while (y_is(star, "*"))
		star = star->next;
	return star != t->next && y_is(star, ")");
}

static struct y_node *unary(struct y_parser *p)
{
	static const char *const operators[] = {"+", "-", "!", "~", "*", "&", "++", "--", "&&"};
	struct y_token *at = p->t;
	struct y_node *n = NULL;

	y_deeper(p);
	for (u32 i = 0; !n && i < sizeof(operators) / sizeof(*operators); i++) {
		if (at->kind != Y_T_PUNCTUATION || !y_is(at, operators[i]))
			continue;
		if (!strcmp(operators[i], "&&"))
			y_fail_here(p, "an expression is missing before '&&'");
		p->t = at->next;
		n = y_node(p, Y_N_UNARY, at);
		n->op = operators[i];
		n->a = unary(p);
	}
	if (!n && y_is(at, "(")) {
		p->t = at->next;
		if (y_at_type(p))
			n = cast(p, at);
		else if (is_unknown_cast(p->t))
			y_no_such_type(p, p->t, TYPES_PLAIN, "type");
		else
			p->t = at;
	}
	if (!n)
		n = postfix(p);
	p->depth--;
	return n;
}

static const struct {
	const char *text;
	u32 level;
} operators[] = {{"*", 10}, {"/", 10}, {"%", 10}, {"+", 9}, {"-", 9}, {"<<", 8}, {">>", 8}, {"<", 7}, {">", 7},
        {"<=", 7}, {">=", 7}, {"_in", 7}, {"==", 6}, {"!=", 6}, {"~~", 6}, {"!~~", 6}, {"&", 5}, {"^", 4}, {"|", 3},
        {"&&", 2}, {"||", 1}};

static const char *operator_at(const struct y_parser *p, u32 level, u32 *own)
{
	for (u32 i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (y_is(p->t, operators[i].text) && operators[i].level >= level &&
		        !(p->no_division && !strcmp(operators[i].text, "/"))) {
			*own = operators[i].level;
			return operators[i].text;
		}
	return NULL;
}

static struct y_node *match(struct y_parser *p, struct y_node *a, const struct y_token *at, const char *op)
{
	struct y_node *n = y_node(p, Y_N_MATCH, at);

	if (p->t->kind != Y_T_REGEX)
		y_fail_here(p, "a regex is missing behind %s: rx/…/", op);
	n->op = op;
	n->a = a;
	n->bytes = p->t->text;
	n->len = p->t->len;
	p->t = p->t->next;
	return n;
}

/* An expression without operators below this level. */
static struct y_node *operand(struct y_parser *p, u32 level)
{
	struct y_node *a = unary(p);

	y_deeper(p);
	for (u32 i = 0;; i++) {
		const struct y_token *at = p->t;
		u32 own;
		const char *op = operator_at(p, level, &own);
		struct y_node *n;

		if (!op)
			break;
		if (i > 10000)
			y_fail_here(p, "too many operators in one expression");
		p->t = at->next;
		if (own == 6 && strstr(op, "~~")) {
			a = match(p, a, at, op);
			continue;
		}
		n = y_node(p, Y_N_BINARY, at);
		n->op = op;
		n->a = a;
		n->b = operand(p, own + 1);
		a = n;
	}
	p->depth--;
	return a;
}

/* "a ?? b" binds weaker than ||, to the right. */
static struct y_node *or_else(struct y_parser *p)
{
	struct y_node *a = operand(p, 1), *n;
	const struct y_token *at = p->t;

	if (!y_take(p, "??"))
		return a;
	y_deeper(p);
	n = y_node(p, Y_N_BINARY, at);
	n->op = "??";
	n->a = a;
	n->b = or_else(p);
	p->depth--;
	return n;
}

struct y_node *y_parse_conditional(struct y_parser *p)
{
	struct y_node *a = or_else(p), *n;
	const struct y_token *at = p->t;

	if (!y_take(p, "?"))
		return a;
	y_deeper(p);
	n = y_node(p, Y_N_CONDITIONAL, at);
	n->a = a;
	n->b = y_parse_expression(p);
	y_expect(p, ":", "of '?'");
	n->c = y_parse_conditional(p);
	p->depth--;
	return n;
}

struct y_node *y_parse_assignment(struct y_parser *p)
{
	static const char *const assigns[] = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
	struct y_node *a = y_parse_conditional(p), *n;
	const struct y_token *at = p->t;

	for (u32 i = 0; i < sizeof(assigns) / sizeof(*assigns); i++) {
		if (at->kind != Y_T_PUNCTUATION || !y_is(at, assigns[i]))
			continue;
		y_deeper(p);
		p->t = at->next;
		n = y_node(p, Y_N_ASSIGN, at);
		n->op = assigns[i];
		n->a = a;
		n->b = y_parse_assignment(p);
		p->depth--;
		return n;
	}
	return a;
}

struct y_node *y_parse_expression(struct y_parser *p)
{
	bool no_division = p->no_division;
	struct y_node *a;

	p->no_division = false;
	a = y_parse_assignment(p);
	while (y_is(p->t, ",")) {
		struct y_node *n = y_node(p, Y_N_BINARY, p->t);

		p->t = p->t->next;
		n->op = ",";
		n->a = a;
		n->b = y_parse_assignment(p);
		a = n;
	}
	p->no_division = no_division;
	return a;
}
