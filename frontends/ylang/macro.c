/* SPDX-License-Identifier: Apache-2.0 */
/* Macros, by Prosser's algorithm: each token knows the macros that are not expanded in it again (C11, 6.10.3). */
#include <stdlib.h>
#include <string.h>

#include "preprocess.h"

#define TOKENS_MOST     (2u << 20)
#define PARAMETERS_MOST 127u

struct argument {
	struct y_token *tokens, *expanded; /* up to Y_T_END; expanded: NULL until it is asked for */
};

struct y_token *y_token_copy(struct y_pp *pp, const struct y_token *t)
{
	struct y_token *copy = y_new(pp->s, sizeof(*copy));

	if (++pp->ntokens > TOKENS_MOST)
		y_error(pp->s, t->pos, t->macro, "macros expand to more than %u tokens", TOKENS_MOST);
	*copy = *t;
	copy->next = NULL;
	return copy;
}

struct y_macro *y_macro_find(struct y_pp *pp, const struct y_token *t)
{
	if (t->kind == Y_T_NAME)
		for (struct y_macro *m = pp->macros; m; m = m->next)
			if (!strcmp(m->name, t->text))
				return m->gone ? NULL : m;
	return NULL;
}

/* --- definitions --- */

static struct y_token *read_parameters(struct y_pp *pp, struct y_macro *m, struct y_token *t)
{
	m->is_function = true;
	m->parameters = y_new(pp->s, PARAMETERS_MOST * sizeof(*m->parameters));
	while (!y_is(t, ")")) {
		if (m->nparameters && !y_is(t, ","))
			y_error(pp->s, t->pos, NULL, "a ',' or ')' is missing in the parameters of macro %s", m->name);
		if (m->nparameters)
			t = t->next;
		if (m->nparameters == PARAMETERS_MOST)
			y_error(pp->s, t->pos, NULL, "a macro has at most %u parameters", PARAMETERS_MOST);
		m->variadic = y_is(t, "...");
		if (!m->variadic && t->kind != Y_T_NAME)
			y_error(pp->s, t->pos, NULL, "a macro's parameter is a name");
		m->parameters[m->nparameters++] = m->variadic ? "__VA_ARGS__" : t->text;
		t = t->next;
		if (m->variadic && !y_is(t, ")"))
			y_error(pp->s, t->pos, NULL, "'...' is the last parameter");
	}
	return t->next;
}

static int parameter(const struct y_macro *m, const struct y_token *t)
{
	if (t->kind == Y_T_NAME)
		for (u32 i = 0; i < m->nparameters; i++)
			if (!strcmp(m->parameters[i], t->text))
				return (int)i;
	return -1;
}

static void check_body(struct y_pp *pp, const struct y_macro *m)
{
	const struct y_token *last = NULL;

	for (const struct y_token *t = m->body; t->kind != Y_T_END; last = t, t = t->next) {
		if (y_is(t, "#") && m->is_function && parameter(m, t->next) < 0)
			y_error(pp->s, t->pos, NULL, "'#' needs a parameter of the macro behind it");
		if (y_is(t, "##") && (!last || t->next->kind == Y_T_END))
			y_error(pp->s, t->pos, NULL, "'##' needs something on both sides");
	}
}

static bool same_body(const struct y_macro *a, const struct y_macro *b)
{
	const struct y_token *p = a->body, *q = b->body;

	if (a->is_function != b->is_function || a->variadic != b->variadic || a->nparameters != b->nparameters)
		return false;
	for (; p->kind != Y_T_END && q->kind != Y_T_END; p = p->next, q = q->next)
		if (strcmp(p->text, q->text))
			return false;
	return p->kind == q->kind;
}

void y_macro_define(struct y_pp *pp, struct y_token *t)
{
	struct y_macro *m = y_new(pp->s, sizeof(*m)), *old = y_macro_find(pp, t);

	if (t->kind != Y_T_NAME || !strcmp(t->text, "defined"))
		y_error(pp->s, t->pos, NULL, "#define needs a name");
	m->name = t->text;
	if (y_is(t->next, "(") && !t->next->space)
		m->body = read_parameters(pp, m, t->next->next);
	else
		m->body = t->next;
	check_body(pp, m);
	if (old && !same_body(old, m))
		y_error(pp->s, t->pos, NULL, "macro %s is defined already, and differently; #undef it first", m->name);
	m->next = pp->macros;
	pp->macros = m;
}

/* --- expansion --- */

static bool is_hidden(const struct y_hidden *h, const char *name)
{
	for (; h; h = h->next)
		if (!strcmp(h->name, name))
			return true;
	return false;
}

static const struct y_hidden *hide(struct y_pp *pp, const struct y_hidden *rest, const char *name)
{
	struct y_hidden *h = y_new(pp->s, sizeof(*h));

	*h = (struct y_hidden){.next = rest, .name = name};
	return h;
}

static const struct y_hidden *in_both(struct y_pp *pp, const struct y_hidden *a, const struct y_hidden *b)
{
	const struct y_hidden *both = NULL;

	for (; a; a = a->next)
		if (is_hidden(b, a->name))
			both = hide(pp, both, a->name);
	return both;
}

static struct y_token *end_token(struct y_pp *pp, struct y_pos pos)
{
	struct y_token *t = y_new(pp->s, sizeof(*t));

	*t = (struct y_token){.kind = Y_T_END, .text = "", .pos = pos, .first = true};
	return t;
}

/* One argument, from t on; *t: the ',' or ')' behind it. */
static struct y_token *read_argument(struct y_pp *pp, struct y_token **t, bool rest, const struct y_token *name)
{
	struct y_token head = {0}, *last = &head;

	for (u32 depth = 0; depth || (!y_is(*t, ")") && (rest || !y_is(*t, ","))); *t = (*t)->next) {
		if ((*t)->kind == Y_T_END)
			y_error(pp->s, name->pos, name->macro, "a ')' is missing behind the arguments of macro %s",
			        name->text);
		depth += y_is(*t, "(");
		depth -= y_is(*t, ")");
		last = last->next = y_token_copy(pp, *t);
	}
	last->next = end_token(pp, name->pos);
	return head.next;
}

/* *t: the '(' ; behind: the ')'. */
static struct argument *read_arguments(
        struct y_pp *pp, const struct y_macro *m, struct y_token **t, const struct y_token *name)
{
	struct argument *args = y_new(pp->s, (m->nparameters + 1) * sizeof(*args));
	u32 n = 0;

	*t = (*t)->next;
	while (n < m->nparameters) {
		bool last = n + 1 == m->nparameters;

		args[n++].tokens = read_argument(pp, t, last && m->variadic, name);
		if (!y_is(*t, ",") || last)
			break;
		*t = (*t)->next;
	}
	if (n + 1 == m->nparameters && m->variadic)
		args[n++].tokens = end_token(pp, name->pos);
	if (n < m->nparameters || !y_is(*t, ")"))
		y_error(pp->s, name->pos, name->macro, "macro %s takes %u argument%s%s", m->name,
		        m->nparameters - m->variadic, m->nparameters - m->variadic == 1 ? "" : "s",
		        m->variadic ? " or more" : "");
	return args;
}

static struct y_token *stringize(struct y_pp *pp, const struct y_token *at, const struct y_token *arg)
{
	struct y_token *t = y_token_copy(pp, at);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		y_leave(pp->s, &error_no_memory);
	fputc('"', out);
	for (const struct y_token *a = arg; a->kind != Y_T_END; a = a->next) {
		bool quoted = a->kind == Y_T_STRING || a->kind == Y_T_CHARACTER;

		if (a != arg && (a->space || a->first))
			fputc(' ', out);
		for (const char *p = a->text; *p; p++) {
			if (quoted && (*p == '"' || *p == '\\'))
				fputc('\\', out);
			fputc(*p, out);
		}
	}
	fputc('"', out);
	fclose(out);
	t->kind = Y_T_STRING;
	t->text = y_keep(pp->s, text, size);
	t->len = (u32)size;
	free(text);
	return t;
}

/* Makes one token of two: into a. */
static void glue(struct y_pp *pp, struct y_token *a, const struct y_token *b)
{
	struct y_token *t;

	if (b->kind == Y_T_PLACEMARKER)
		return;
	if (a->kind == Y_T_PLACEMARKER) {
		struct y_token *next = a->next;

		*a = *b;
		a->next = next;
		return;
	}
	t = y_lex_text(pp->s, y_format(pp->s, "%s%s", a->text, b->text), a->pos);
	if (t->kind == Y_T_END || t->next->kind != Y_T_END)
		y_error(pp->s, a->pos, a->macro, "'##' makes \"%s%s\", which is no token", a->text, b->text);
	a->kind = t->kind;
	a->text = t->text;
	a->len = t->len;
}

struct output {
	struct y_token head, *last;
};

static void put(struct y_pp *pp, struct output *out, const struct y_token *t)
{
	out->last = out->last->next = y_token_copy(pp, t);
}

/* A list, or a placemarker where it is empty and something is glued to it. */
static void put_all(
        struct y_pp *pp, struct output *out, const struct y_token *list, const struct y_token *from, bool glued)
{
	bool first = true;

	for (const struct y_token *t = list; t->kind != Y_T_END; t = t->next, first = false) {
		put(pp, out, t);
		if (first)
			out->last->space = from->space;
		out->last->first = false;
	}
	if (first && glued) {
		struct y_token marker = {.kind = Y_T_PLACEMARKER, .text = "", .pos = from->pos};

		put(pp, out, &marker);
	}
}

static void put_argument(struct y_pp *pp, struct output *out, struct argument *arg, const struct y_token *t, bool glued)
{
	struct y_token head = {0}, *last = &head;

	if (glued) {
		put_all(pp, out, arg->tokens, t, true);
		return;
	}
	if (!arg->expanded) {
		for (const struct y_token *a = arg->tokens; a; a = a->next)
			last = last->next = y_token_copy(pp, a);
		arg->expanded = y_macro_expand_all(pp, head.next);
	}
	put_all(pp, out, arg->expanded, t, false);
}

/* The ## operators, left to right, of what has been put; then placemarkers go. */
static void put_body(struct y_pp *pp, struct output *out, const struct y_macro *m, struct argument *args)
{
	bool glue_next = false;

	for (const struct y_token *t = m->body; t->kind != Y_T_END; t = t->next) {
		struct y_token *left = out->last;
		int i = m->is_function ? parameter(m, t) : -1;
		bool glued = glue_next || y_is(t->next, "##");

		if (y_is(t, "##")) {
			glue_next = true;
			continue;
		}
		if (m->is_function && y_is(t, "#")) {
			t = t->next;
			out->last = out->last->next = stringize(pp, t, args[parameter(m, t)].tokens);
		} else if (i >= 0) {
			put_argument(pp, out, &args[i], t, glued);
		} else {
			put(pp, out, t);
		}
		if (glue_next && left != &out->head && left->next) {
			struct y_token *right = left->next;

			/* GNU's: ", ## __VA_ARGS__" without arguments drops the comma */
			if (right->kind == Y_T_PLACEMARKER && y_is(left, ",") && i >= 0 && m->variadic &&
			        (u32)i + 1 == m->nparameters)
				left->kind = Y_T_PLACEMARKER;
			else if (!(y_is(left, ",") && i >= 0 && m->variadic && (u32)i + 1 == m->nparameters))
				glue(pp, left, right);
			else
				right = NULL;
			if (right) {
				left->next = right->next;
				out->last = out->last == right ? left : out->last;
			}
		}
		glue_next = false;
	}
}

static struct y_token *finish(struct output *out, const struct y_token *name, const struct y_hidden *hidden,
        struct y_pp *pp, struct y_token *rest)
{
	struct y_token **link = &out->head.next;

	while (*link) {
		struct y_token *t = *link;

		if (t->kind == Y_T_PLACEMARKER) {
			*link = t->next;
			continue;
		}
		for (const struct y_hidden *h = hidden; h; h = h->next)
			if (!is_hidden(t->hidden, h->name))
				t->hidden = hide(pp, t->hidden, h->name);
		t->first = false;
		link = &t->next;
	}
	*link = rest;
	if (out->head.next != rest) {
		out->head.next->first = name->first;
		out->head.next->space = name->space;
	}
	return out->head.next;
}

/* What comes from the macro's own text is where the macro was used; arguments are where they were written. */
static struct y_macro localized(struct y_pp *pp, const struct y_macro *m, const struct y_token *name)
{
	struct y_macro copy = *m;
	struct output body = {.last = &body.head};

	for (const struct y_token *t = m->body; t->kind != Y_T_END; t = t->next) {
		put(pp, &body, t);
		body.last->pos = name->pos;
		body.last->macro = name->macro ? name->macro : m->name;
	}
	body.last->next = end_token(pp, name->pos);
	copy.body = body.head.next;
	return copy;
}

static struct y_token *builtin(struct y_pp *pp, const struct y_token *t)
{
	const char *text;
	struct y_token *ret;

	if (!strcmp(t->text, "__LINE__"))
		text = y_format(pp->s, "%u", t->pos.line);
	else if (!strcmp(t->text, "__FILE__"))
		text = y_format(pp->s, "\"%s\"", pp->s->files[t->pos.file].name);
	else
		return NULL;
	ret = y_lex_text(pp->s, text, t->pos);
	ret->first = t->first;
	ret->space = t->space;
	ret->next = t->next;
	return ret;
}

bool y_macro_expand(struct y_pp *pp, struct y_token **t)
{
	struct y_token *name = *t, *rest, *made = name->kind == Y_T_NAME ? builtin(pp, name) : NULL;
	struct output out = {.last = &out.head};
	const struct y_hidden *hidden;
	struct argument *args = NULL;
	struct y_macro *m, local;

	if (made) {
		*t = made;
		return true;
	}
	m = y_macro_find(pp, name);
	if (!m || is_hidden(name->hidden, m->name) || (m->is_function && !y_is(name->next, "(")))
		return false;
	rest = name->next;
	hidden = name->hidden;
	if (m->is_function) {
		args = read_arguments(pp, m, &rest, name);
		hidden = in_both(pp, name->hidden, rest->hidden);
		rest = rest->next;
	}
	local = localized(pp, m, name);
	put_body(pp, &out, &local, args);
	*t = finish(&out, name, hide(pp, hidden, m->name), pp, rest);
	return true;
}

struct y_token *y_macro_expand_all(struct y_pp *pp, struct y_token *t)
{
	struct y_token head = {0}, *last = &head;

	while (t->kind != Y_T_END) {
		if (y_macro_expand(pp, &t))
			continue;
		last = last->next = t;
		t = t->next;
	}
	last->next = t;
	return head.next;
}
