/* SPDX-License-Identifier: Apache-2.0 */
#include "preprocess.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "unwind/cleanup.h"

/* The expressions of #if and #elif: 64-bit integers, as C11 has them (6.10.1). */

#define DEPTH_MOST 200u

struct number {
	u64 v;
	bool is_unsigned;
};

struct reader {
	struct y_pp *pp;
	struct y_token *t;
	u32 depth;
	bool dead; /* its value does not matter, so that a division by zero is no error */
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

/* #if's expression. */
static bool y_condition(struct y_pp *pp, struct y_token *line)
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

#define INCLUDES_MOST 32u
#define FILE_MOST     (16u << 20)

static struct y_token *process_file(struct y_pp *pp, u32 file);

/* --- conditions --- */

/* The rest of a line as a list of its own; *t: what follows it. */
static struct y_token *take_line(struct y_pp *pp, struct y_token **t)
{
	struct y_token head = {0}, *last = &head, *end;
	struct y_pos pos = (*t)->pos;

	for (; !(*t)->first && (*t)->kind != Y_T_END; *t = (*t)->next) {
		last = last->next = y_token_copy(pp, *t);
		pos = (*t)->pos;
	}
	end = y_new(pp->s, sizeof(*end));
	*end = (struct y_token){.kind = Y_T_END, .text = "", .pos = pos, .first = true};
	last->next = end;
	return head.next;
}

static const char *take_name(struct y_pp *pp, struct y_token **t, const struct y_token *directive, const char *what)
{
	const char *ret = (*t)->text;

	if ((*t)->kind != Y_T_NAME)
		y_error(pp->s, directive->pos, NULL, "##%s needs %s", directive->text, what);
	if (!strcmp(ret, "struct") || !strcmp(ret, "union") || !strcmp(ret, "enum")) {
		*t = (*t)->next;
		if ((*t)->kind != Y_T_NAME)
			y_error(pp->s, directive->pos, NULL, "##%s needs %s", directive->text, what);
		ret = y_format(pp->s, "%s %s", ret, (*t)->text);
	}
	*t = (*t)->next;
	return ret;
}

/* What a directive such as ##ifdeffield asks, without its "if" or "elif"; -1: it is none. */
static int ask(struct y_pp *pp, const char *what, const struct y_token *directive, struct y_token *line)
{
	const struct y_asks *a = &pp->p->asks;
	bool negated = !strncmp(what, "ndef", 4);
	const char *kind = what + (negated ? 4 : 3), *name;
	int found;

	if (!negated && strncmp(what, "def", 3))
		return -1;
	if (!strcmp(kind, "var")) {
		name = take_name(pp, &line, directive, "a variable");
		found = a->has_variable && a->has_variable(a->target, name);
	} else if (!strcmp(kind, "type")) {
		name = take_name(pp, &line, directive, "a type");
		found = a->has_type && a->has_type(a->target, name);
	} else if (!strcmp(kind, "func")) {
		name = take_name(pp, &line, directive, "a function");
		found = a->has_function && a->has_function(a->target, name);
	} else if (!strcmp(kind, "field")) {
		name = take_name(pp, &line, directive, "a type and a field");
		found = a->has_field &&
		        a->has_field(a->target, name, take_name(pp, &line, directive, "a type and a field"));
	} else {
		return -1;
	}
	if (line->kind != Y_T_END)
		y_error(pp->s, line->pos, NULL, "##%s takes no more than that", directive->text);
	return found != negated;
}

static int test(struct y_pp *pp, const struct y_token *directive, bool asks, const char *what, struct y_token *line)
{
	if (!*what)
		return y_condition(pp, line);
	if (asks)
		return ask(pp, what, directive, line);
	if (strcmp(what, "def") && strcmp(what, "ndef"))
		return -1;
	if (line->kind != Y_T_NAME || line->next->kind != Y_T_END)
		y_error(pp->s, directive->pos, NULL, "#if%s needs one name", what);
	return (y_macro_find(pp, line) != NULL) == !strcmp(what, "def");
}

static void unknown(struct y_pp *pp, const struct y_token *t, bool asks)
{
	static const char *const all[] = {"ifdefvar", "ifndefvar", "elifdefvar", "elifndefvar", "ifdeftype",
	        "ifndeftype", "elifdeftype", "elifndeftype", "ifdeffield", "ifndeffield", "elifdeffield",
	        "elifndeffield", "ifdeffunc", "ifndeffunc", "elifdeffunc", "elifndeffunc"};
	static const char *const own[] = {"define", "undef", "include", "if", "ifdef", "ifndef", "elif", "else",
	        "endif", "error", "pragma", "line"};
	struct y_near near = {.name = t->text};

	for (u32 i = 0; asks && i < sizeof(all) / sizeof(*all); i++)
		y_near_offer(&near, all[i]);
	for (u32 i = 0; !asks && i < sizeof(own) / sizeof(*own); i++)
		y_near_offer(&near, own[i]);
	y_error(pp->s, t->pos, NULL, "no directive %s%s%s", asks ? "##" : "#", t->text, y_near_text(pp->s, &near));
}

/* The name of the directive that begins at t, on a line of its own; NULL: none does. */
static struct y_token *directive_at(struct y_token *t, bool *asks)
{
	*asks = y_is(t, "##");
	return t->first && (*asks || y_is(t, "#")) && !t->next->first && t->next->kind == Y_T_NAME ? t->next : NULL;
}

/* Skips to the next #elif, #else or #endif of this group: its '#'. */
static struct y_token *skip_part(struct y_pp *pp, struct y_token *t)
{
	u32 depth = 0;

	for (; t->kind != Y_T_END; t = t->next) {
		bool asks;
		struct y_token *name = directive_at(t, &asks);

		if (!name)
			continue;
		if (!strncmp(name->text, "if", 2))
			depth++;
		else if (!depth && (!strncmp(name->text, "el", 2) || !strcmp(name->text, "endif")))
			return t;
		else if (!strcmp(name->text, "endif"))
			depth--;
	}
	y_error(pp->s, pp->groups->pos, NULL, "#if without #endif");
}

static struct y_token *begin_group(struct y_pp *pp, struct y_token *name, bool asks, struct y_token *t)
{
	struct y_group *g = y_new(pp->s, sizeof(*g));
	struct y_token *line = take_line(pp, &t);
	int yes = test(pp, name, asks, name->text + 2, line);

	if (yes < 0)
		unknown(pp, name, asks);
	*g = (struct y_group){
	        .outer = pp->groups, .pos = name->pos, .asks = asks, .taken = yes, .file = name->pos.file};
	pp->groups = g;
	return yes ? t : skip_part(pp, t);
}

static void check_group(struct y_pp *pp, const struct y_token *name, bool asks)
{
	struct y_group *g = pp->groups;

	if (!g || g->file != name->pos.file)
		y_error(pp->s, name->pos, NULL, "%s%s without an #if", asks ? "##" : "#", name->text);
	if (g->asks != asks)
		y_error(pp->s, name->pos, NULL, "%s%s of a group that begins with %s, in line %u", asks ? "##" : "#",
		        name->text, g->asks ? "##" : "#", g->pos.line);
}

static struct y_token *next_part(struct y_pp *pp, struct y_token *name, bool asks, struct y_token *t)
{
	struct y_group *g = pp->groups;
	bool is_else = !strcmp(name->text, "else");
	struct y_token *line = take_line(pp, &t);
	int yes;

	check_group(pp, name, asks);
	if (g->in_else)
		y_error(pp->s, name->pos, NULL, "#%s behind #else", name->text);
	g->in_else = is_else;
	if (is_else && line->kind != Y_T_END)
		y_error(pp->s, line->pos, NULL, "#else takes nothing");
	if (g->taken)
		return skip_part(pp, t);
	yes = is_else ? 1 : test(pp, name, asks, name->text + 4, line);
	if (yes < 0)
		unknown(pp, name, asks);
	g->taken = yes;
	return yes ? t : skip_part(pp, t);
}

/* --- files --- */

static char *read_file(struct y_pp *pp, const char *path, size_t *size)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > FILE_MOST)
		return NULL;
	text = y_new(pp->s, (size_t)st.st_size + 1);
	n = read(fd, text, (size_t)st.st_size);
	*size = n < 0 ? 0 : (size_t)n;
	return n < 0 ? NULL : text;
}

static struct y_token *include(struct y_pp *pp, struct y_token *line, const struct y_token *name)
{
	const char *own = pp->s->files[name->pos.file].name, *slash = strrchr(own, '/'), *path, *text = NULL;
	size_t size;
	char *wanted;
	u32 len;

	if (line->kind != Y_T_STRING) {
		line = y_macro_expand_all(pp, line);
		if (line->kind != Y_T_STRING)
			y_error(pp->s, name->pos, NULL, "#include needs \"FILE\": there are no system headers here");
	}
	wanted = y_string(pp->s, line, &len);
	if (line->next->kind != Y_T_END || strlen(wanted) != len || !len)
		y_error(pp->s, name->pos, NULL, "#include needs one \"FILE\"");
	if (pp->depth == INCLUDES_MOST)
		y_error(pp->s, name->pos, NULL, "files include each other %u deep", INCLUDES_MOST);
	path = *wanted == '/' || !slash ? wanted : y_format(pp->s, "%.*s/%s", (int)(slash - own), own, wanted);
	text = read_file(pp, path, &size);
	for (const char *const *dir = pp->p->includes; !text && *wanted != '/' && dir && *dir; dir++) {
		path = y_format(pp->s, "%s/%s", *dir, wanted);
		text = read_file(pp, path, &size);
	}
	if (!text)
		y_error(pp->s, line->pos, NULL, "no file \"%s\" beside this one%s", wanted,
		        pp->p->includes && *pp->p->includes ? ", nor in the directories of -I"
		                                            : "; -I names directories");
	return process_file(pp, y_add_file(pp->s, path, text, size));
}

static struct y_token *directive(struct y_pp *pp, struct y_token *name, bool asks, struct y_token **out)
{
	struct y_token *t = name->next, *line;
	const char *text = name->text;

	*out = NULL;
	if (!strncmp(text, "if", 2))
		return begin_group(pp, name, asks, t);
	if (!strncmp(text, "elif", 4) || !strcmp(text, "else"))
		return next_part(pp, name, asks, t);
	line = take_line(pp, &t);
	if (!strcmp(text, "endif")) {
		check_group(pp, name, asks);
		pp->groups = pp->groups->outer;
	} else if (asks) {
		unknown(pp, name, asks);
	} else if (!strcmp(text, "define")) {
		y_macro_define(pp, line);
	} else if (!strcmp(text, "undef")) {
		struct y_macro *m = y_macro_find(pp, line);

		if (line->kind != Y_T_NAME || line->next->kind != Y_T_END)
			y_error(pp->s, name->pos, NULL, "#undef needs one name");
		if (m)
			m->gone = true;
	} else if (!strcmp(text, "include")) {
		*out = include(pp, line, name);
	} else if (!strcmp(text, "error")) {
		const char *rest = pp->s->files[name->pos.file].text;

		for (u32 n = 1; n < name->pos.line && rest; n++)
			rest = strchr(rest, '\n') + 1;
		rest += name->pos.column - 1;
		y_error(pp->s, name->pos, NULL, "#%.*s", (int)strcspn(rest, "\n"), rest);
	} else if (strcmp(text, "pragma")) {
		unknown(pp, name, asks);
	}
	return t;
}

static struct y_token *process(struct y_pp *pp, struct y_token *t)
{
	struct y_token head = {0}, *last = &head;

	while (t->kind != Y_T_END) {
		struct y_token *name, *added;
		bool asks;

		if (y_macro_expand(pp, &t))
			continue;
		name = t->hidden || t->macro ? NULL : directive_at(t, &asks);
		if (name) {
			t = directive(pp, name, asks, &added);
			for (last->next = added; added && last->next && last->next->kind != Y_T_END;)
				last = last->next;
			continue;
		}
		if (t->first && y_is(t, "#") && t->next->first && !t->macro) {
			t = t->next; /* a null directive */
			continue;
		}
		last = last->next = t;
		t = t->next;
	}
	last->next = t;
	return head.next;
}

static struct y_token *process_file(struct y_pp *pp, u32 file)
{
	struct y_token *t;

	pp->depth++;
	t = process(pp, y_lex(pp->s, file));
	if (pp->groups && pp->groups->file == file)
		y_error(pp->s, pp->groups->pos, NULL, "#if without #endif");
	pp->depth--;
	return t;
}

static void define(struct y_pp *pp, const char *text)
{
	const char *value = strchr(text, '=');
	const char *line = value ? y_format(pp->s, "%.*s %s", (int)(value - text), text, value + 1)
	                         : y_format(pp->s, "%s 1", text);
	u32 file = y_add_file(pp->s, "-D", line, strlen(line));

	y_macro_define(pp, y_lex_text(pp->s, line, (struct y_pos){file, 1, 1}));
}

struct y_token *y_preprocess(const struct y_preprocess *p, u32 file)
{
	struct y_pp pp = {.p = p, .s = p->source};

	define(&pp, "__Y__=1");
	for (const char *const *d = p->defines; d && *d; d++)
		define(&pp, *d);
	return process_file(&pp, file);
}
