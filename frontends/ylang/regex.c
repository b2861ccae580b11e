/* SPDX-License-Identifier: Apache-2.0 */
/* A regex from its text to instructions: a tree first, as {m,n} repeats parts of it. */
#include "regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

#define NESTED_MOST 100u
#define REPEAT_MOST 1000u

enum node_kind { N_EMPTY, N_SET, N_ASSERT, N_GROUP, N_SEQUENCE, N_CHOICE, N_REPEAT };

struct node {
	enum node_kind kind;
	u32 set, assert, capture; /* capture 0: none */
	u32 least, most;          /* of a repeat; most UINT32_MAX: no limit */
	bool lazy;
	struct node *a, *b;
};

struct compiler {
	struct y_memory *memory;
	const char *start, *p, *end;
	bool any_case;
	struct y_regex *r;
	u32 depth, sets_room;
	const char *problem;
};

static struct node *parse_choice(struct compiler *c);

static struct node *fail(struct compiler *c, const char *problem)
{
	if (!c->problem)
		c->problem = problem;
	return NULL;
}

static struct node *new_node(struct compiler *c, enum node_kind kind)
{
	struct node *n = y_memory_get(c->memory, sizeof(*n));

	if (!n)
		return fail(c, "out of memory");
	n->kind = kind;
	return n;
}

/* --- sets --- */

static void add_byte(struct y_regex_set *s, u32 byte)
{
	s->bits[byte / 32] |= 1u << (byte % 32);
}

static bool has_byte(const struct y_regex_set *s, u32 byte)
{
	return s->bits[byte / 32] >> (byte % 32) & 1;
}

static void add_if(struct y_regex_set *s, int (*is)(int c), bool not )
{
	for (int i = 0; i < 256; i++)
		if ((i < 128 && is(i)) != not )
			add_byte(s, (u32)i);
}

static int is_word(int c)
{
	return isalnum(c) || c == '_';
}

static int is_space(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* \d and so on. False: c is no class. */
static bool add_class(struct y_regex_set *s, char c)
{
	bool not = isupper((unsigned char)c);

	switch (tolower((unsigned char)c)) {
	case 'd':
		add_if(s, isdigit, not );
		return true;
	case 'w':
		add_if(s, is_word, not );
		return true;
	case 's':
		add_if(s, is_space, not );
		return true;
	default:
		return false;
	}
}

static struct node *set_node(struct compiler *c, struct y_regex_set s)
{
	struct node *n = new_node(c, N_SET);

	if (!n)
		return NULL;
	if (c->r->nsets == c->sets_room) {
		struct y_regex_set *more = y_memory_get(c->memory, 2 * (c->sets_room + 8) * sizeof(*more));

		if (!more)
			return fail(c, "out of memory");
		if (c->r->nsets)
			memcpy(more, c->r->sets, c->r->nsets * sizeof(*more));
		c->r->sets = more;
		c->sets_room = 2 * (c->sets_room + 8);
	}
	for (int i = 'a'; c->any_case && i <= 'z'; i++)
		if (has_byte(&s, (u32)i) || has_byte(&s, (u32)toupper(i))) {
			add_byte(&s, (u32)i);
			add_byte(&s, (u32)toupper(i));
		}
	c->r->sets[c->r->nsets] = s;
	n->set = c->r->nsets++;
	return n;
}

static struct node *byte_node(struct compiler *c, unsigned char byte)
{
	struct y_regex_set s = {0};

	add_byte(&s, byte);
	return set_node(c, s);
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
	                                    : -1;
}

/* The byte that an escape behind '\' means; -1: it is none. */
static int escaped_byte(struct compiler *c)
{
	static const char from[] = "ntrfae0", to[] = "\n\t\r\f\a\033\0";
	char e = *c->p++;
	const char *known = strchr(from, e);
	int value = 0, n = 0;

	if (e == 'x') {
		for (; n < 2 && c->p < c->end && hex_digit(*c->p) >= 0; n++)
			value = value * 16 + hex_digit(*c->p++);
		return n ? value : -1;
	}
	if (known && e)
		return (unsigned char)to[known - from];
	return isalnum((unsigned char)e) ? -1 : (unsigned char)e;
}

static bool named_class(struct compiler *c, struct y_regex_set *s)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} all[] = {{"[:alpha:]", isalpha}, {"[:digit:]", isdigit}, {"[:alnum:]", isalnum}, {"[:space:]", is_space},
	        {"[:upper:]", isupper}, {"[:lower:]", islower}, {"[:punct:]", ispunct}, {"[:xdigit:]", isxdigit},
	        {"[:print:]", isprint}, {"[:word:]", is_word}};

	for (u32 i = 0; i < sizeof(all) / sizeof(*all); i++) {
		size_t len = strlen(all[i].name);

		if ((size_t)(c->end - c->p) >= len && !strncmp(c->p, all[i].name, len)) {
			add_if(s, all[i].is, false);
			c->p += len;
			return true;
		}
	}
	return false;
}

/* One byte in a class, at *c->p; -1: it was a class of its own, -2: an error. */
static int class_byte(struct compiler *c, struct y_regex_set *s)
{
	int byte;

	if (*c->p == '[' && c->end - c->p > 1 && c->p[1] == ':') {
		if (named_class(c, s))
			return -1;
		fail(c, "no class of this name");
		return -2;
	}
	if (*c->p != '\\')
		return (unsigned char)*c->p++;
	c->p++;
	if (c->p == c->end) {
		fail(c, "a class without an end");
		return -2;
	}
	if (add_class(s, *c->p)) {
		c->p++;
		return -1;
	}
	if (*c->p == 'b') {
		c->p++;
		return '\b';
	}
	byte = escaped_byte(c);
	if (byte < 0)
		fail(c, "an escape that is not supported");
	return byte < 0 ? -2 : byte;
}

static struct node *parse_class(struct compiler *c)
{
	struct y_regex_set s = {0};
	bool not = c->p < c->end && *c->p == '^', first = true;

	c->p += not ;
	for (; c->p < c->end && (*c->p != ']' || first); first = false) {
		int low = class_byte(c, &s), high = low;

		if (low == -2)
			return NULL;
		if (c->end - c->p > 1 && *c->p == '-' && c->p[1] != ']') {
			c->p++;
			high = class_byte(c, &s);
			if (low < 0 || high < low)
				return fail(c, "a range of bytes that goes backwards, or of classes");
		}
		for (int i = low; i >= 0 && i <= high; i++)
			add_byte(&s, (u32)i);
	}
	if (c->p == c->end)
		return fail(c, "a class without an end");
	c->p++;
	if (not &&c->any_case) {
		struct node *n = set_node(c, s); /* both cases before it is turned round */

		if (!n)
			return NULL;
		for (u32 i = 0; i < 8; i++)
			c->r->sets[n->set].bits[i] = ~c->r->sets[n->set].bits[i];
		return n;
	}
	for (u32 i = 0; not &&i < 8; i++)
		s.bits[i] = ~s.bits[i];
	return set_node(c, s);
}

/* --- atoms --- */

static struct node *assert_node(struct compiler *c, enum y_regex_assert what)
{
	struct node *n = new_node(c, N_ASSERT);

	if (n)
		n->assert = what;
	return n;
}

static struct node *parse_escape(struct compiler *c)
{
	struct y_regex_set s = {0};
	int byte;

	if (c->p == c->end)
		return fail(c, "a '\\' at the end");
	switch (*c->p) {
	case 'A':
		c->p++;
		return assert_node(c, Y_A_BEGIN);
	case 'z':
		c->p++;
		return assert_node(c, Y_A_END);
	case 'Z':
		c->p++;
		return assert_node(c, Y_A_END_LINE);
	case 'b':
	case 'B':
		return assert_node(c, *c->p++ == 'b' ? Y_A_WORD : Y_A_NO_WORD);
	case '1' ... '9':
		return fail(c, "a back reference: these cannot be matched in linear time");
	default:
		break;
	}
	if (add_class(&s, *c->p)) {
		c->p++;
		return set_node(c, s);
	}
	byte = escaped_byte(c);
	return byte < 0 ? fail(c, "an escape that is not supported") : byte_node(c, (unsigned char)byte);
}

static struct node *parse_group(struct compiler *c)
{
	struct node *n = new_node(c, N_GROUP);

	if (!n)
		return NULL;
	if (c->p < c->end && *c->p == '?') {
		if (c->end - c->p > 1 && c->p[1] == ':')
			c->p += 2;
		else
			return fail(c,
			        "what begins with (? is not supported but for (?:…): look-around, names and flags "
			        "cannot be matched in linear time, or are not here");
	} else if (c->r->captures == Y_REGEX_CAPTURES) {
		return fail(c, "more than 9 captures; (?:…) groups without one");
	} else {
		n->capture = c->r->captures++;
	}
	n->a = parse_choice(c);
	if (!n->a)
		return NULL;
	if (c->p == c->end || *c->p != ')')
		return fail(c, "a ')' is missing");
	c->p++;
	return n;
}

static struct node *parse_atom(struct compiler *c)
{
	struct y_regex_set any = {0};

	switch (*c->p++) {
	case '.':
		for (u32 i = 0; i < 256; i++)
			if (i != '\n')
				add_byte(&any, i);
		return set_node(c, any);
	case '[':
		return parse_class(c);
	case '(':
		return parse_group(c);
	case '^':
		return assert_node(c, Y_A_BEGIN);
	case '$':
		return assert_node(c, Y_A_END_LINE);
	case '\\':
		return parse_escape(c);
	case '*':
	case '+':
	case '?':
		c->p--;
		return fail(c, "nothing to repeat");
	default:
		return byte_node(c, (unsigned char)c->p[-1]);
	}
}

/* "{m}", "{m,}", "{m,n}". False: it is no such thing, and '{' is itself. */
static bool parse_bounds(struct compiler *c, u32 *least, u32 *most)
{
	const char *p = c->p + 1;
	char *end;

	if (p == c->end || !isdigit((unsigned char)*p))
		return false;
	*least = *most = (u32)strtoul(p, &end, 10);
	p = end;
	if (p < c->end && *p == ',') {
		p++;
		*most = UINT32_MAX;
		if (p < c->end && isdigit((unsigned char)*p)) {
			*most = (u32)strtoul(p, &end, 10);
			p = end;
		}
	}
	if (p >= c->end || *p != '}')
		return false;
	c->p = p + 1;
	return true;
}

static struct node *parse_repeat(struct compiler *c)
{
	struct node *a = parse_atom(c), *n;

	while (a && c->p < c->end) {
		u32 least = 0, most = UINT32_MAX;

		if (*c->p == '{') {
			if (!parse_bounds(c, &least, &most))
				break;
			if (least > REPEAT_MOST || (most != UINT32_MAX && (most > REPEAT_MOST || most < least)))
				return fail(c, "a repetition of more than 1000, or of less than its least");
		} else if (*c->p == '*' || *c->p == '+' || *c->p == '?') {
			least = *c->p == '+';
			most = *c->p == '?' ? 1 : UINT32_MAX;
			c->p++;
		} else {
			break;
		}
		if (c->p < c->end && *c->p == '+')
			return fail(c, "possessive repetitions are not supported");
		n = new_node(c, N_REPEAT);
		if (!n)
			return NULL;
		n->a = a;
		n->least = least;
		n->most = most;
		n->lazy = c->p < c->end && *c->p == '?';
		c->p += n->lazy;
		a = n;
		if (c->p < c->end && strchr("*+?", *c->p))
			return fail(c, "a repetition of a repetition: (?:…) would say that it is meant");
	}
	return a;
}

static struct node *pair(struct compiler *c, enum node_kind kind, struct node *a, struct node *b)
{
	struct node *n = a && b ? new_node(c, kind) : NULL;

	if (n) {
		n->a = a;
		n->b = b;
	}
	return n;
}

static struct node *parse_sequence(struct compiler *c)
{
	struct node *n = NULL;

	while (c->p < c->end && *c->p != '|' && *c->p != ')') {
		struct node *next = parse_repeat(c);

		if (!next)
			return NULL;
		n = n ? pair(c, N_SEQUENCE, n, next) : next;
		if (!n)
			return NULL;
	}
	return n ? n : new_node(c, N_EMPTY);
}

static struct node *parse_choice(struct compiler *c)
{
	struct node *n;

	if (++c->depth > NESTED_MOST)
		return fail(c, "nested more than 100 deep");
	n = parse_sequence(c);
	while (n && c->p < c->end && *c->p == '|') {
		c->p++;
		n = pair(c, N_CHOICE, n, parse_sequence(c));
	}
	c->depth--;
	return n;
}

/* --- instructions --- */

static bool put(struct compiler *c, enum y_regex_op op, u32 x, u32 y)
{
	if (c->r->n == Y_REGEX_MOST) {
		fail(c, "it is too large: more than 4096 instructions");
		return false;
	}
	c->r->insns[c->r->n++] = (struct y_regex_insn){(u8)op, x, y};
	return true;
}

static bool generate(struct compiler *c, const struct node *n);

/* A split at `at`, into what follows it and `other`: in this order, unless it is lazy. */
static void set_split(struct compiler *c, u32 at, u32 other, bool lazy)
{
	c->r->insns[at].x = lazy ? other : at + 1;
	c->r->insns[at].y = lazy ? at + 1 : other;
}

static bool generate_repeat(struct compiler *c, const struct node *n)
{
	u32 at, first = UINT32_MAX;

	for (u32 i = 0; i < n->least; i++)
		if (!generate(c, n->a))
			return false;
	if (n->most == UINT32_MAX) {
		at = c->r->n;
		if (!put(c, Y_R_SPLIT, 0, 0) || !generate(c, n->a) || !put(c, Y_R_JUMP, at, 0))
			return false;
		set_split(c, at, c->r->n, n->lazy);
		return true;
	}
	/* nested: (a(a)?)?; the splits are chained by y until the end is known */
	for (u32 i = n->least; i < n->most; i++) {
		at = c->r->n;
		if (!put(c, Y_R_SPLIT, 0, first))
			return false;
		first = at;
		if (!generate(c, n->a))
			return false;
	}
	while (first != UINT32_MAX) {
		u32 next = c->r->insns[first].y;

		set_split(c, first, c->r->n, n->lazy);
		first = next;
	}
	return true;
}

static bool generate_choice(struct compiler *c, const struct node *n)
{
	u32 split = c->r->n, jump;

	if (!put(c, Y_R_SPLIT, 0, 0) || !generate(c, n->a))
		return false;
	jump = c->r->n;
	if (!put(c, Y_R_JUMP, 0, 0))
		return false;
	set_split(c, split, c->r->n, false);
	if (!generate(c, n->b))
		return false;
	c->r->insns[jump].x = c->r->n;
	return true;
}

static bool generate(struct compiler *c, const struct node *n)
{
	switch (n->kind) {
	case N_SET:
		return put(c, Y_R_SET, n->set, 0);
	case N_ASSERT:
		return put(c, Y_R_ASSERT, n->assert, 0);
	case N_GROUP:
		if (!n->capture)
			return generate(c, n->a);
		return put(c, Y_R_SAVE, 2 * n->capture, 0) && generate(c, n->a) &&
		       put(c, Y_R_SAVE, 2 * n->capture + 1, 0);
	case N_SEQUENCE:
		return generate(c, n->a) && generate(c, n->b);
	case N_CHOICE:
		return generate_choice(c, n);
	case N_REPEAT:
		return generate_repeat(c, n);
	default:
		return true;
	}
}

struct y_regex *y_regex_compile(
        struct y_memory *memory, const char *pattern, u32 len, bool any_case, const char **problem, u32 *at)
{
	struct compiler c = {
	        .memory = memory, .start = pattern, .p = pattern, .end = pattern + len, .any_case = any_case};
	struct node *tree = NULL;

	*problem = NULL;
	*at = 0;
	c.r = y_memory_get(memory, sizeof(*c.r));
	if (!c.r)
		return NULL;
	c.r->insns = y_memory_get(memory, Y_REGEX_MOST * sizeof(*c.r->insns));
	if (!c.r->insns)
		return NULL;
	c.r->captures = 1;
	tree = parse_choice(&c);
	if (tree && c.p < c.end)
		tree = fail(&c, "a ')' without '('");
	if (tree && put(&c, Y_R_SAVE, 0, 0) && generate(&c, tree) && put(&c, Y_R_SAVE, 1, 0) &&
	        put(&c, Y_R_MATCH, 0, 0))
		return c.r;
	*problem = c.problem;
	*at = (u32)(c.p - c.start);
	return NULL;
}
