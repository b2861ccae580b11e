/* SPDX-License-Identifier: Apache-2.0 */
/* The expressions of #if and #elif: 64-bit integers, as C11 has them (6.10.1). */
#include <string.h>

#include "preprocess.h"

#define DEPTH_MOST 200u

struct number {
	u64 v;
	bool is_unsigned;
};

struct reader {
	struct y_pp *pp;
	struct y_token *t;
	u32 depth;
	bool dead; /* its value does not matter: a division by zero is none */
};

static struct number conditional(struct reader *r);

static void fail(struct reader *r, const char *what)
{
	y_error(r->pp->s, r->t->pos, r->t->macro, "%s in an #if", what);
}

static bool take(struct reader *r, const char *text)
{
	if (!y_is(r->t, text))
		return false;
	r->t = r->t->next;
	return true;
}

static struct number primary(struct reader *r)
{
	struct y_token *t = r->t;
	struct number n = {0};

	if (take(r, "(")) {
		n = conditional(r);
		if (!take(r, ")"))
			fail(r, "a ')' is missing");
		return n;
	}
	if (t->kind == Y_T_NUMBER) {
		struct y_number number = y_number(r->pp->s, t);

		if (number.is_float)
			fail(r, "a floating-point number");
		n = (struct number){number.value, strpbrk(t->text, "uU") != NULL || number.value > INT64_MAX};
	} else if (t->kind == Y_T_CHARACTER) {
		n.v = (u64)y_character(r->pp->s, t);
	} else if (t->kind != Y_T_NAME) {
		fail(r, t->kind == Y_T_END ? "something is missing" : "what is no integer");
	}
	r->t = t->next;
	return n;
}

static struct number unary(struct reader *r)
{
	struct number n;

	if (++r->depth > DEPTH_MOST)
		fail(r, "too much nesting");
	if (take(r, "!")) {
		n = unary(r);
		n = (struct number){!n.v, false};
	} else if (take(r, "-")) {
		n = unary(r);
		n.v = -n.v;
	} else if (take(r, "~")) {
		n = unary(r);
		n.v = ~n.v;
	} else if (take(r, "+")) {
		n = unary(r);
	} else {
		n = primary(r);
	}
	r->depth--;
	return n;
}

static const struct {
	const char *text;
	u32 level;
} operators[] = {{"*", 10}, {"/", 10}, {"%", 10}, {"+", 9}, {"-", 9}, {"<<", 8}, {">>", 8}, {"<", 7}, {">", 7},
        {"<=", 7}, {">=", 7}, {"==", 6}, {"!=", 6}, {"&", 5}, {"^", 4}, {"|", 3}, {"&&", 2}, {"||", 1}};

static struct number divide(struct reader *r, char op, struct number a, struct number b)
{
	bool u = a.is_unsigned || b.is_unsigned;
	u64 v;

	if (!b.v && r->dead)
		return (struct number){0, u};
	if (!b.v)
		fail(r, "a division by zero");
	if (!u && b.v == UINT64_MAX)
		v = op == '/' ? -a.v : 0;
	else if (u)
		v = op == '/' ? a.v / b.v : a.v % b.v;
	else
		v = op == '/' ? (u64)((s64)a.v / (s64)b.v) : (u64)((s64)a.v % (s64)b.v);
	return (struct number){v, u};
}

static struct number apply(struct reader *r, const char *op, struct number a, struct number b)
{
	bool u = a.is_unsigned || b.is_unsigned;
	bool less = u ? a.v < b.v : (s64)a.v < (s64)b.v, same = a.v == b.v;

	switch (op[0]) {
	case '*':
		return (struct number){a.v * b.v, u};
	case '/':
	case '%':
		return divide(r, op[0], a, b);
	case '+':
		return (struct number){a.v + b.v, u};
	case '-':
		return (struct number){a.v - b.v, u};
	case '=':
		return (struct number){same, false};
	case '!':
		return (struct number){!same, false};
	case '^':
		return (struct number){a.v ^ b.v, u};
	case '<':
		if (op[1] == '<')
			return (struct number){a.v << (b.v & 63), a.is_unsigned};
		return (struct number){less || (op[1] && same), false};
	case '>':
		if (op[1] == '>')
			return (struct number){
			        a.is_unsigned ? a.v >> (b.v & 63) : (u64)((s64)a.v >> (b.v & 63)), a.is_unsigned};
		return (struct number){!less && (op[1] || !same), false};
	case '&':
		return op[1] ? (struct number){a.v && b.v, false} : (struct number){a.v & b.v, u};
	default:
		return op[1] ? (struct number){a.v || b.v, false} : (struct number){a.v | b.v, u};
	}
}

static struct number binary(struct reader *r, u32 level)
{
	struct number a = unary(r);

	for (;;) {
		const char *op = NULL;
		struct number b;
		bool dead = r->dead;
		u32 at = 0;

		for (u32 i = 0; i < sizeof(operators) / sizeof(*operators); i++)
			if (y_is(r->t, operators[i].text) && operators[i].level >= level) {
				op = operators[i].text;
				at = operators[i].level;
			}
		if (!op)
			return a;
		r->t = r->t->next;
		r->dead |= (!strcmp(op, "&&") && !a.v) || (!strcmp(op, "||") && a.v);
		b = binary(r, at + 1);
		r->dead = dead;
		a = apply(r, op, a, b);
	}
}

static struct number conditional(struct reader *r)
{
	struct number n = binary(r, 1), a, b;
	bool dead = r->dead;

	if (!take(r, "?"))
		return n;
	if (++r->depth > DEPTH_MOST)
		fail(r, "too much nesting");
	r->dead = dead || !n.v;
	a = conditional(r);
	if (!take(r, ":"))
		fail(r, "a ':' is missing");
	r->dead = dead || n.v;
	b = conditional(r);
	r->dead = dead;
	r->depth--;
	return (struct number){n.v ? a.v : b.v, a.is_unsigned || b.is_unsigned};
}

/* "defined X" and "defined(X)" become 1 or 0 before macros are expanded. */
static void replace_defined(struct y_pp *pp, struct y_token *t)
{
	for (; t->kind != Y_T_END; t = t->next) {
		struct y_token *name = t->next;
		bool paren = y_is(name, "(");

		if (!y_is(t, "defined"))
			continue;
		if (paren)
			name = name->next;
		if (name->kind != Y_T_NAME || (paren && !y_is(name->next, ")")))
			y_error(pp->s, t->pos, t->macro, "\"defined\" needs a name");
		t->kind = Y_T_NUMBER;
		t->text = y_macro_find(pp, name) ? "1" : "0";
		t->len = 1;
		t->next = paren ? name->next->next : name->next;
	}
}

bool y_condition(struct y_pp *pp, struct y_token *line)
{
	struct reader r = {.pp = pp};
	struct number n;

	replace_defined(pp, line);
	r.t = y_macro_expand_all(pp, line);
	n = conditional(&r);
	if (r.t->kind != Y_T_END)
		fail(&r, "something too much");
	return n.v;
}
