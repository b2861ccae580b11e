/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and what stands at the top of a program. */
#include "parse.h"

#include <string.h>

#include "probes/y/y_other_words.h"

#define PARAMETERS_MOST 32u

void y_fail_here(struct y_parser *p, const char *format, ...)
{
	va_list args;
	char text[512];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	y_error(p->s, p->t->pos, p->t->macro, "%s", text);
}

bool y_take(struct y_parser *p, const char *text)
{
	if (!y_is(p->t, text))
		return false;
	p->t = p->t->next;
	return true;
}

void y_expect(struct y_parser *p, const char *text, const char *where)
{
	if (y_take(p, text))
		return;
	if (p->t->kind == Y_T_END)
		y_fail_here(p, "'%s' is missing %s: the program ends here", text, where);
	y_fail_here(p, "'%s' is missing %s, before '%s'", text, where, p->t->text);
}

const char *y_take_name(struct y_parser *p, const char *what)
{
	const char *name = p->t->text;

	if (p->t->kind != Y_T_NAME || *name == '$')
		y_fail_here(p, "the name of %s is missing", what);
	p->t = p->t->next;
	return name;
}

struct y_node *y_node(struct y_parser *p, enum y_node_kind kind, const struct y_token *at)
{
	struct y_node *n = y_new(p->s, sizeof(*n));

	n->kind = kind;
	n->pos = at->pos;
	n->macro = at->macro;
	return n;
}

void y_append(struct y_parser *p, struct y_node *to, struct y_node *item)
{
	to->list = y_grow(p->s, to->list, to->n, sizeof(*to->list));
	to->list[to->n++] = item;
}

void y_deeper(struct y_parser *p)
{
	if (++p->depth > Y_NESTED_MOST)
		y_fail_here(p, "nested more than %u deep", Y_NESTED_MOST);
}

struct y_name *y_declare(struct y_parser *p, const char *name)
{
	struct y_name *n = y_new(p->s, sizeof(*n));

	*n = (struct y_name){.next = p->names, .name = name};
	p->names = n;
	return n;
}

/* --- declarations --- */

static u64 array_size(struct y_parser *p)
{
	const struct y_token *at = p->t;
	struct y_number n;

	if (at->kind != Y_T_NUMBER)
		y_fail_here(p, "the size of an array is a number");
	n = y_number(p->s, at);
	p->t = at->next;
	if (n.is_float || !n.value || n.value > 65536)
		y_error(p->s, at->pos, at->macro, "an array has 1 to 65536 elements");
	y_expect(p, "]", "behind an array's size");
	return n.value;
}

static void check_variable(struct y_parser *p, const struct type *type, const struct y_token *at)
{
	if (type->kind == TYPE_VOID)
		y_error(p->s, at->pos, at->macro, "a variable of type void");
	if (type->kind == TYPE_STRUCT || type->kind == TYPE_UNION || type->kind == TYPE_ARRAY)
		y_error(p->s, at->pos, at->macro,
		        "a variable of type %s: structures stay in the target; use a pointer: `%s *%s = &…`",
		        y_type_text(p->s, type), y_type_text(p->s, type), at->text);
}

/* One variable of a declaration, from its pointers on. */
static struct y_node *declarator(struct y_parser *p, const struct type *base)
{
	const struct type *type = y_parse_pointers(p, base);
	struct y_token *at = p->t;
	struct y_node *n = y_node(p, Y_N_DECLARE, at);

	if (y_is(at, "("))
		y_fail_here(p, "pointers to functions and to arrays are not supported; `void *` holds any address");
	n->name = y_take_name(p, "a variable");
	n->type = type;
	check_variable(p, type, at);
	if (y_take(p, "[")) {
		n->value = array_size(p);
		if (y_is(p->t, "["))
			y_fail_here(p, "arrays of the tracer have one dimension");
	}
	y_declare(p, n->name);
	if (y_is(p->t, "=") && n->value)
		y_fail_here(p, "arrays begin as zeros: no initial values");
	if (y_take(p, "="))
		n->a = y_parse_assignment(p);
	return n;
}

/* "int a = 1, *b;" as a block without a scope. */
static struct y_node *declaration(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_BLOCK, p->t);
	const struct type *base = y_parse_base(p);

	n->value = 1; /* no scope of its own */
	do
		y_append(p, n, declarator(p, base));
	while (y_take(p, ","));
	y_expect(p, ";", "behind a declaration");
	return n;
}

/* --- statements --- */

static struct y_node *statement(struct y_parser *p);
static struct y_node *parse_block(struct y_parser *p);

static struct y_node *paren_expression(struct y_parser *p, const char *what)
{
	struct y_node *n;

	y_expect(p, "(", what);
	n = y_parse_expression(p);
	y_expect(p, ")", what);
	return n;
}

static struct y_node *parse_if(struct y_parser *p, struct y_node *n)
{
	n->a = paren_expression(p, "of if");
	n->b = statement(p);
	if (y_take(p, "else"))
		n->c = statement(p);
	return n;
}

static struct y_node *parse_for(struct y_parser *p, struct y_node *n)
{
	struct y_name *names = p->names;

	y_expect(p, "(", "behind for");
	if (y_at_type(p)) {
		n->a = declaration(p);
	} else {
		n->a = y_is(p->t, ";") ? NULL : y_parse_expression(p);
		y_expect(p, ";", "in for");
	}
	n->b = y_is(p->t, ";") ? NULL : y_parse_expression(p);
	y_expect(p, ";", "in for");
	n->c = y_is(p->t, ")") ? NULL : y_parse_expression(p);
	y_expect(p, ")", "of for");
	n->d = statement(p);
	p->names = names;
	return n;
}

static struct y_node *parse_foreach(struct y_parser *p, struct y_node *n)
{
	struct y_name *names = p->names;
	struct y_node *key;

	y_expect(p, "(", "behind _foreach");
	if (y_take(p, "_thread")) {
		key = y_node(p, Y_N_NAME, p->t);
		key->name = y_take_name(p, "a thread's number");
		y_declare(p, key->name);
		y_append(p, n, key);
		y_expect(p, ")", "of _foreach");
		n->d = statement(p);
		p->names = names;
		return n;
	}
	do {
		key = y_node(p, Y_N_NAME, p->t);
		key->name = y_take_name(p, "a key");
		y_declare(p, key->name);
		y_append(p, n, key);
	} while (y_take(p, ","));
	if (y_take(p, ":")) {
		n->b = y_node(p, Y_N_NAME, p->t);
		n->b->name = y_take_name(p, "a value");
		y_declare(p, n->b->name);
	}
	y_expect(p, "_in", "in _foreach");
	n->a = y_node(p, Y_N_NAME, p->t);
	n->name = y_take_name(p, "a map");
	if (y_take(p, ",")) {
		y_expect(p, "_top", "in _foreach");
		n->c = y_parse_assignment(p);
	}
	y_expect(p, ")", "of _foreach");
	n->d = statement(p);
	p->names = names;
	return n;
}

static struct y_node *parse_case(struct y_parser *p, struct y_node *n)
{
	n->a = y_parse_conditional(p);
	y_expect(p, ":", "behind case");
	if (y_is(p->t, "}"))
		n->b = y_node(p, Y_N_EMPTY, p->t);
	else
		n->b = statement(p);
	return n;
}

static struct y_node *parse_do(struct y_parser *p, struct y_node *n)
{
	n->a = statement(p);
	y_expect(p, "while", "behind do");
	n->b = paren_expression(p, "of while");
	y_expect(p, ";", "behind do … while");
	return n;
}

static struct y_node *keyword(struct y_parser *p, struct y_node *n)
{
	switch (n->kind) {
	case Y_N_IF:
		return parse_if(p, n);
	case Y_N_WHILE:
	case Y_N_SWITCH:
		n->a = paren_expression(p, n->kind == Y_N_WHILE ? "of while" : "of switch");
		n->b = statement(p);
		return n;
	case Y_N_DO:
		return parse_do(p, n);
	case Y_N_FOR:
		return parse_for(p, n);
	case Y_N_FOREACH:
		return parse_foreach(p, n);
	case Y_N_CASE:
		return parse_case(p, n);
	case Y_N_DEFAULT:
		y_expect(p, ":", "behind default");
		n->b = y_is(p->t, "}") ? y_node(p, Y_N_EMPTY, p->t) : statement(p);
		return n;
	case Y_N_TRY:
		n->a = parse_block(p);
		y_expect(p, "_catch", "behind _try's block");
		n->b = parse_block(p);
		return n;
	case Y_N_RETURN:
		n->a = y_is(p->t, ";") ? NULL : y_parse_expression(p);
		break;
	case Y_N_DELETE:
		n->a = paren_expression(p, "of _delete");
		break;
	default:
		break;
	}
	y_expect(p, ";", "behind a statement");
	return n;
}

static struct y_node *simple(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_EXPRESSION, p->t), *add;

	n->a = y_parse_expression(p);
	if (y_is(p->t, "<<<")) {
		add = y_node(p, Y_N_AGG_ADD, p->t);
		p->t = p->t->next;
		add->a = n->a;
		add->b = y_parse_expression(p);
		n = add;
	}
	if (n->a && n->a->kind == Y_N_NAME && p->t->kind == Y_T_NAME)
		y_error(p->s, n->a->pos, n->a->macro,
		        "'%s' stands before a name as a type would, and the target has no "
		        "such type; a string of the program is a _str",
		        n->a->name);
	y_expect(p, ";", "behind a statement");
	return n;
}

static struct y_node *statement(struct y_parser *p)
{
	static const struct {
		const char *word;
		enum y_node_kind kind;
	} words[] = {{"if", Y_N_IF}, {"while", Y_N_WHILE}, {"do", Y_N_DO}, {"for", Y_N_FOR}, {"switch", Y_N_SWITCH},
	        {"case", Y_N_CASE}, {"default", Y_N_DEFAULT}, {"break", Y_N_BREAK}, {"continue", Y_N_CONTINUE},
	        {"return", Y_N_RETURN}, {"_foreach", Y_N_FOREACH}, {"_try", Y_N_TRY}, {"_delete", Y_N_DELETE}};
	struct y_token *at = p->t;
	struct y_node *n = NULL;

	y_deeper(p);
	for (u32 i = 0; !n && i < sizeof(words) / sizeof(*words); i++)
		if (y_take(p, words[i].word))
			n = keyword(p, y_node(p, words[i].kind, at));
	if (!n && y_is(at, "goto"))
		y_fail_here(p, "goto is not supported");
	if (!n && y_is(at, "asm"))
		y_fail_here(p, "assembly is not supported");
	if (!n && y_is(at, "{"))
		n = parse_block(p);
	if (!n && y_take(p, ";"))
		n = y_node(p, Y_N_EMPTY, at);
	if (!n)
		n = y_at_type(p) ? declaration(p) : simple(p);
	p->depth--;
	return n;
}

static struct y_node *parse_block(struct y_parser *p)
{
	struct y_node *n = y_node(p, Y_N_BLOCK, p->t);
	struct y_name *names = p->names;

	y_expect(p, "{", "to begin a block");
	while (!y_is(p->t, "}")) {
		if (p->t->kind == Y_T_END)
			y_fail_here(p, "a '}' is missing: the block of line %u does not end", n->pos.line);
		y_append(p, n, statement(p));
	}
	p->t = p->t->next;
	p->names = names;
	return n;
}

/* --- the top --- */

static void *append(void *list, void *item, size_t next)
{
	void **link = list;

	while (*link)
		link = (void **)((char *)*link + next);
	*link = item;
	return item;
}

static const struct type *map_type(struct y_parser *p, const char *what)
{
	const struct y_token *at = p->t;
	const struct type *type;

	for (u32 i = 0; i < Y_STACK_PARTS; i++)
		if (y_is(at, y_stack_types[i].name)) {
			p->t = at->next;
			return &y_stack_types[i];
		}
	if (!y_at_type(p) && at->kind == Y_T_NAME && y_is(at->next, "*"))
		y_no_such_type(p, at, TYPES_PLAIN, "type");
	if (!y_at_type(p))
		y_fail_here(p,
		        "a map's %s needs a type: '%s' is not one; `_map long n[_str, int];` counts by two keys, "
		        "`_map long n[_stack];` by stack",
		        what, p->t->text);
	type = y_parse_type_name(p);
	if (type->kind != TYPE_INT && type->kind != TYPE_POINTER && type->kind != TYPE_ENUM && type != &y_string_type &&
	        (*what != 'v' || type->kind != TYPE_FLOAT))
		y_error(p->s, at->pos, at->macro, "a %s of type %s: it may be an integer, a pointer or _str", what,
		        y_type_text(p->s, type));
	return type;
}

static void map_keys(struct y_parser *p, struct y_tree_map *m)
{
	do {
		if (m->nkeys == 8)
			y_fail_here(p, "a map has at most 8 keys");
		m->keys[m->nkeys++] = map_type(p, "key");
	} while (y_take(p, ","));
	y_expect(p, "]", "behind the keys' types");
}

/* _map (n) type name[types]; _agg name[types]; */
static void parse_map(struct y_parser *p, bool is_agg)
{
	struct y_tree_map *m = y_new(p->s, sizeof(*m));

	m->is_agg = is_agg;
	if (!is_agg && y_take(p, "(")) {
		struct y_number n;

		if (p->t->kind != Y_T_NUMBER)
			y_fail_here(p, "the number of a map's entries is missing");
		n = y_number(p->s, p->t);
		if (n.is_float || !n.value || n.value > 1u << 24)
			y_fail_here(p, "a map has 1 to 16777216 entries");
		m->most = n.value;
		p->t = p->t->next;
		y_expect(p, ")", "behind the number of entries");
	}
	m->value = is_agg ? &y_long : map_type(p, "value");
	if (y_is_stack(m->value))
		y_fail_here(p, "a stack is a key, not a value");
	m->pos = p->t->pos;
	m->name = y_take_name(p, is_agg ? "an aggregate" : "a map");
	y_declare(p, m->name);
	if (y_take(p, "["))
		map_keys(p, m);
	else if (!is_agg)
		y_fail_here(p, "a map needs keys: _map long %s[long];", m->name);
	y_expect(p, ";", "behind a declaration");
	append(&p->tree->maps, m, offsetof(struct y_tree_map, next));
}

static void parse_parameters(struct y_parser *p, struct y_tree_function *f)
{
	f->types = y_new(p->s, PARAMETERS_MOST * sizeof(*f->types));
	f->names = y_new(p->s, PARAMETERS_MOST * sizeof(*f->names));
	if (y_is(p->t, "void") && y_is(p->t->next, ")"))
		p->t = p->t->next;
	while (!y_is(p->t, ")")) {
		struct y_node *n;

		if (f->nparameters)
			y_expect(p, ",", "between parameters");
		if (f->nparameters == PARAMETERS_MOST)
			y_fail_here(p, "a function has at most %u parameters", PARAMETERS_MOST);
		n = declarator(p, y_parse_base(p));
		if (n->value || n->a)
			y_error(p->s, n->pos, n->macro, "a parameter is no array and has no initial value");
		f->types[f->nparameters] = n->type;
		f->names[f->nparameters++] = n->name;
	}
	p->t = p->t->next;
}

static void parse_function(struct y_parser *p, const struct type *returns, struct y_token *name)
{
	struct y_tree_function *f = y_new(p->s, sizeof(*f));
	struct y_name *names;

	*f = (struct y_tree_function){.name = name->text, .pos = name->pos, .returns = returns};
	y_declare(p, f->name);
	names = p->names;
	p->t = name->next->next;
	parse_parameters(p, f);
	if (!y_take(p, ";"))
		f->body = parse_block(p);
	p->names = names;
	append(&p->tree->functions, f, offsetof(struct y_tree_function, next));
}

static void parse_declarations(struct y_parser *p)
{
	const struct type *base = y_parse_base(p), *type;
	struct y_token *start;

	if (y_take(p, ";")) /* a type alone */
		return;
	start = p->t;
	type = y_parse_pointers(p, base);
	if (p->t->kind == Y_T_NAME && y_is(p->t->next, "(")) {
		if (type->kind == TYPE_STRUCT || type->kind == TYPE_UNION)
			y_fail_here(p, "a function that returns a %s: return a pointer", y_type_text(p->s, type));
		parse_function(p, type, p->t);
		return;
	}
	p->t = start;
	do
		append(&p->tree->globals, declarator(p, base), offsetof(struct y_node, next));
	while (y_take(p, ","));
	y_expect(p, ";", "behind a declaration");
}

static struct y_tree_point *parse_point(struct y_parser *p)
{
	struct y_tree_point *point = y_new(p->s, sizeof(*point));
	u32 depth = 0;

	*point = (struct y_tree_point){.text = "", .pos = p->t->pos};
	for (; depth || (!y_is(p->t, "{") && !y_is(p->t, ",") && !(y_is(p->t, "/") && p->t->space));
	        p->t = p->t->next) {
		if (p->t->kind == Y_T_END)
			y_fail_here(p, "a '{' is missing behind _probe");
		depth += y_is(p->t, "(");
		depth -= depth && y_is(p->t, ")");
		point->text = y_format(p->s, "%s%s", point->text, p->t->text);
	}
	if (!*point->text)
		y_fail_here(p, "a probe's point is missing: _oneshot, _timer(1s), a function …");
	return point;
}

static bool is_of_kernel(const char *point)
{
	return !strncmp(point, "syscall:", 8) || !strncmp(point, "tracepoint:", 11) || !strncmp(point, "_profile", 8);
}

static void parse_probe(struct y_parser *p, const struct y_token *at)
{
	struct y_tree_probe *probe = y_new(p->s, sizeof(*probe));

	probe->pos = at->pos;
	do
		append(&probe->points, parse_point(p), offsetof(struct y_tree_point, next));
	while (y_take(p, ","));
	p->target->asks_kernel = is_of_kernel(probe->points->text);
	if (y_take(p, "/")) {
		p->no_division = true;
		probe->predicate = y_parse_conditional(p);
		p->no_division = false;
		y_expect(p, "/", "behind a predicate");
	}
	probe->body = parse_block(p);
	p->target->asks_kernel = false;
	append(&p->tree->probes, probe, offsetof(struct y_tree_probe, next));
}

/* Other tools' programs begin with a point alone: BEGIN { … }, tracepoint:sched:sched_switch / … / { … }. */
static void fail_at_top(struct y_parser *p, const struct y_token *at)
{
	const struct y_token *next = at->next;
	const char *words = y_other_words(at->text);

	if (at->kind == Y_T_NAME && (words || y_is(next, ":") || y_is(next, "{") || y_is(next, "/")))
		y_fail_here(p, "a handler begins with _probe: %s",
		        words ? words : y_format(p->s, "_probe %s%s", at->text, y_is(next, ":") ? ":…" : " …"));
	if (!strcmp(at->text, "probe"))
		y_fail_here(p, "a handler begins with _probe");
	if (at->kind == Y_T_NAME && y_is(next, "("))
		y_fail_here(p, "a statement stands in a handler: _probe _oneshot { %s(… }", at->text);
	if (at->kind == Y_T_NAME && *at->text != '_' && (y_is(next, "*") || next->kind == Y_T_NAME))
		y_no_such_type(p, at, TYPES_PLAIN, "type");
	y_fail_here(p, "a declaration, a function or _probe POINT { … } is missing before '%s'", at->text);
}

struct y_tree *y_parse(struct y_source *s, struct y_target *target, struct y_token *t)
{
	struct y_parser p = {.s = s, .target = target, .t = t, .tree = y_new(s, sizeof(struct y_tree))};

	while (p.t->kind != Y_T_END) {
		const struct y_token *at = p.t;

		if (y_take(&p, "_probe"))
			parse_probe(&p, at);
		else if (y_take(&p, "_map"))
			parse_map(&p, false);
		else if (y_take(&p, "_agg"))
			parse_map(&p, true);
		else if (y_take(&p, "typedef"))
			y_parse_typedef(&p);
		else if (y_at_type(&p))
			parse_declarations(&p);
		else if (!y_take(&p, ";"))
			fail_at_top(&p, at);
	}
	if (!p.tree->probes)
		y_error(s, t->pos, NULL, "the program has no _probe: nothing would run");
	return p.tree;
}
