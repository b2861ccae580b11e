/* SPDX-License-Identifier: Apache-2.0 */
#include "expression.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 64
#define DEEPEST         32 /* parentheses */

struct reader {
	const char *text, *at;
	const struct facts *facts;
	const char *expected; /* the first thing that was not there */
	u32 depth;
};

static double either(struct reader *r);

static void skip_blanks(struct reader *r)
{
	r->at += strspn(r->at, " \t\n");
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_';
}

/* A word of its own, or a sign. */
static bool take(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(r);
	if (strncmp(r->at, word, n) || (isalpha((unsigned char)*word) && is_name(r->at[n])))
		return false;
	r->at += n;
	return true;
}

static double fail(struct reader *r, const char *expected)
{
	if (!r->expected)
		r->expected = expected;
	return NAN;
}

static double number(struct reader *r)
{
	static const struct {
		const char *suffix;
		double factor;
	} units[] = {{"%", 0.01}, {"ms", 1e-3}, {"us", 1e-6}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"s", 1}};
	char *end;
	double value = strtod(r->at, &end);

	if (end == r->at)
		return fail(r, "a number or a name");
	r->at = end;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t n = strlen(units[i].suffix);

		if (!strncmp(r->at, units[i].suffix, n) && !is_name(r->at[n])) {
			r->at += n;
			return value * units[i].factor;
		}
	}
	return value;
}

static const struct fact *name(struct reader *r)
{
	char text[NAME_MAX_LENGTH];
	size_t n = 0;

	skip_blanks(r);
	while (is_name(*r->at) && n + 1 < sizeof(text))
		text[n++] = *r->at++;
	text[n] = '\0';
	if (!n || is_name(*r->at))
		fail(r, "a name");
	return r->facts ? facts_find(r->facts, text) : NULL;
}

static double primary(struct reader *r)
{
	const struct fact *fact;
	double value;

	skip_blanks(r);
	if (take(r, "(")) {
		if (++r->depth > DEEPEST)
			return fail(r, "fewer parentheses");
		value = either(r);
		r->depth--;
		return take(r, ")") ? value : fail(r, "a closing parenthesis");
	}
	if (take(r, "known"))
		return name(r) != NULL;
	if (!isalpha((unsigned char)*r->at))
		return number(r);
	fact = name(r);
	return fact && !fact->text ? fact->number : NAN;
}

static double unary(struct reader *r)
{
	bool negative = take(r, "-");
	double value = primary(r);

	return negative ? -value : value;
}

static double product(struct reader *r)
{
	double value = unary(r);

	for (;;) {
		if (take(r, "*"))
			value *= unary(r);
		else if (take(r, "/"))
			value /= unary(r);
		else
			return value;
	}
}

static double sum(struct reader *r)
{
	double value = product(r);

	for (;;) {
		if (take(r, "+"))
			value += product(r);
		else if (take(r, "-"))
			value -= product(r);
		else
			return value;
	}
}

static double truth(double a, double b, bool holds)
{
	return isnan(a) || isnan(b) ? NAN : holds;
}

static double comparison(struct reader *r)
{
	double a = sum(r), b;

	if (take(r, ">="))
		return b = sum(r), truth(a, b, a >= b);
	if (take(r, "<="))
		return b = sum(r), truth(a, b, a <= b);
	if (take(r, "!="))
		return b = sum(r), truth(a, b, a != b);
	if (take(r, ">"))
		return b = sum(r), truth(a, b, a > b);
	if (take(r, "<"))
		return b = sum(r), truth(a, b, a < b);
	if (take(r, "="))
		return b = sum(r), truth(a, b, a == b);
	return a;
}

static double negation(struct reader *r)
{
	bool negated = false;
	double value;

	while (take(r, "not"))
		negated = !negated;
	value = comparison(r);
	return negated && !isnan(value) ? value == 0 : value;
}

/* What is false whatever the other is, is known to be. */
static double both(struct reader *r)
{
	double value = negation(r);

	while (take(r, "and")) {
		double other = negation(r);

		value = value == 0 || other == 0 ? 0 : isnan(value) || isnan(other) ? NAN : 1;
	}
	return value;
}

static double either(struct reader *r)
{
	double value = both(r);

	while (take(r, "or")) {
		double other = both(r);

		value = (!isnan(value) && value) || (!isnan(other) && other) ? 1
		        : isnan(value) || isnan(other)                       ? NAN
		                                                             : 0;
	}
	return value;
}

static struct error *read_all(struct reader *r, double *ret)
{
	*ret = either(r);
	skip_blanks(r);
	if (!r->expected && *r->at)
		fail(r, "and, or, a comparison, or the end");
	return r->expected ? error_new(ERROR_INPUT, "%s after \"%.*s\"", r->expected, (int)(r->at - r->text), r->text)
	                   : NULL;
}

struct error *expression_value(const char *text, const struct facts *f, double *ret)
{
	struct reader r = {.text = text, .at = text, .facts = f};

	return read_all(&r, ret);
}

struct error *expression_check(const char *text)
{
	struct reader r = {.text = text, .at = text};
	double value;

	return read_all(&r, &value);
}
