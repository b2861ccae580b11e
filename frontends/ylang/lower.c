/* SPDX-License-Identifier: Apache-2.0 */
/* A program's maps, variables, functions and handlers. */
#include "lower.h"

#include <stdlib.h>
#include <string.h>

#include "compile.h"

static enum y_type kept_type(const struct type *type)
{
	if (type == &y_string_type)
		return Y_STR;
	if (y_is_stack(type))
		return Y_STACK;
	if (type->kind == TYPE_FLOAT)
		return Y_F64;
	return type->is_signed ? Y_I64 : Y_U64;
}

static void check_name(struct lower *l, const char *name, struct y_pos pos)
{
	u32 n = 0;

	for (const struct y_tree_map *m = l->tree->maps; m; m = m->next)
		n += !strcmp(m->name, name);
	for (const struct y_node *g = l->tree->globals; g; g = g->next)
		n += !strcmp(g->name, name);
	for (const struct y_tree_function *f = l->tree->functions; f; f = f->next)
		n += f->body && !strcmp(f->name, name);
	if (n > 1)
		y_error(l->s, pos, NULL, "the program has another %s", name);
}

static void lower_maps(struct lower *l)
{
	for (const struct y_tree_map *t = l->tree->maps; t; t = t->next) {
		struct y_map *m;

		check_name(l, t->name, t->pos);
		l->p->maps = y_grow(l->s, l->p->maps, l->p->nmaps, sizeof(*l->p->maps));
		m = &l->p->maps[l->p->nmaps++];
		*m = (struct y_map){.name = t->name,
		        .is_agg = t->is_agg,
		        .value = t->is_agg ? Y_I64 : kept_type(t->value),
		        .nkeys = t->nkeys,
		        .most = t->most ? (u32)t->most : Y_MAP_ENTRIES};
		for (u32 i = 0; i < t->nkeys; i++) {
			m->keys[i] = kept_type(t->keys[i]);
			if (y_is_stack(t->keys[i]))
				m->part = (enum y_stack)(t->keys[i] - y_stack_types);
		}
	}
}

/* --- functions --- */

static void begin_function(struct lower *l, const char *name, const struct type *returns, struct y_pos pos)
{
	struct y_node at = {.pos = pos};

	l->p->functions = y_grow(l->s, l->p->functions, l->p->nfunctions, sizeof(*l->p->functions));
	l->f = &l->p->functions[l->p->nfunctions++];
	*l->f = (struct y_function){.name = name, .place = add_place(l, &at)};
	l->f->returns = returns->kind == TYPE_VOID ? Y_VOID : type_of_value(l, &at, returns);
	l->returns = returns;
	l->variables = NULL;
	l->fail = Y_PROPAGATE;
	l->thread_pointer = Y_NONE;
	l->break_to = l->continue_to = Y_NONE;
	l->captures[0] = Y_NONE;
	l->block = Y_NONE;
	place_block(l, new_block(l));
}

/* A place nobody has reached: the end of a function without return gives 0. */
static void end_function(struct lower *l)
{
	struct y_insn *i;
	u32 slot = Y_NONE;

	if (l->block != Y_NONE) {
		if (l->f->returns == Y_STR) {
			slot = new_slot(l, Y_STR);
			i = emit(l, NULL, Y_OP_LITERAL, Y_STR);
			i->dst = slot;
			i->imm = add_literal(l, "", 0);
		} else if (l->f->returns) {
			slot = emit_const(l, l->f->returns, 0);
		}
		emit(l, NULL, Y_OP_RETURN, l->f->returns)->a = slot;
	}
	for (u32 b = 0; b < l->f->nblocks; b++) {
		if (l->f->blocks[b].n)
			continue;
		place_block(l, b);
		emit(l, NULL, Y_OP_EXIT, Y_VOID);
	}
}

/* Globals are declared one by one: an initial value sees those before it. */
static void lower_globals(struct lower *l)
{
	struct y_function scratch = {.name = "global"};

	for (const struct y_node *g = l->tree->globals; g; g = g->next) {
		struct y_global own = {.name = g->name, .n = (u32)g->value};

		check_name(l, g->name, g->pos);
		own.type = type_of_value(l, g, g->type);
		l->f = &scratch;
		scratch = (struct y_function){.name = "global"};
		l->block = Y_NONE;
		if (own.type == Y_STR && g->a) {
			if (g->a->kind != Y_N_STRING)
				FAIL(l, g->a, "the initial value of a global is a constant");
			own.value = add_literal(l, g->a->bytes, g->a->len);
		} else if (own.type == Y_STR) {
			own.value = add_literal(l, "", 0);
		} else if (g->a) {
			struct value v = convert_to(l, g->a, lower_expression(l, g->a), g->type, "the initial value");

			if (v.kind != V_CONST)
				FAIL(l, g->a, "the initial value of a global is a constant");
			own.value = v.imm;
		}
		l->p->globals = y_grow(l->s, l->p->globals, l->p->nglobals, sizeof(*l->p->globals));
		l->p->globals[l->p->nglobals++] = own;
	}
}

static void lower_functions(struct lower *l)
{
	for (const struct y_tree_function *f = l->tree->functions; f; f = f->next) {
		if (!f->body)
			continue;
		check_name(l, f->name, f->pos);
		begin_function(l, f->name, f->returns, f->pos);
		l->f->nparameters = f->nparameters;
		for (u32 i = 0; i < f->nparameters; i++) {
			struct y_node at = {.pos = f->pos};

			declare_variable(l, f->names[i], f->types[i], new_slot(l, type_of_value(l, &at, f->types[i])));
		}
		lower_statement(l, f->body);
		end_function(l);
	}
}

/* --- handlers --- */

/* "1s", "100ms", "5us" in nanoseconds; 0: it is no time. */
static u64 parse_time(const char *text)
{
	static const struct {
		const char *unit;
		u64 ns;
	} units[] = {{"ns)", 1}, {"us)", 1000}, {"ms)", 1000000}, {"s)", 1000000000}, {"m)", 60000000000}};
	char *end;
	u64 n = strtoull(text, &end, 10);

	for (u32 i = 0; end > text && i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(end, units[i].unit) && n < 1000000)
			return n * units[i].ns;
	return 0;
}

static struct y_handler handler_of(struct lower *l, const struct y_tree_point *point)
{
	struct y_handler h = {.point = Y_PROBE, .spec = point->text};
	char *end;
	u64 n;

	if (!strcmp(point->text, "_oneshot"))
		return (struct y_handler){.point = Y_ONESHOT};
	if (!strcmp(point->text, "_begin"))
		return (struct y_handler){.point = Y_BEGIN};
	if (!strcmp(point->text, "_end"))
		return (struct y_handler){.point = Y_END};
	if (!strncmp(point->text, "_timer(", 7)) {
		h = (struct y_handler){.point = Y_TIMER, .period_ns = parse_time(point->text + 7)};
		if (!h.period_ns)
			y_error(l->s, point->pos, NULL, "_timer needs a time: _timer(1s), _timer(100ms)");
		return h;
	}
	if (!strncmp(point->text, "_profile(", 9)) {
		n = strtoull(point->text + 9, &end, 10);
		if (strcmp(end, ")") || !n || n > 10000)
			y_error(l->s, point->pos, NULL, "_profile needs a rate from 1 to 10000: _profile(99)");
		return (struct y_handler){.point = Y_PROFILE, .period_ns = 1000000000 / n};
	}
	if (lower_kernel_point(l, &h, point->text, point->pos))
		return h;
	if (*point->text == '_') { /* C's names may begin with it, too: __cxa_throw, _ZN4shop5Order5totalEi */
		struct y_near near = {.name = point->text};
		struct y_target_object o;
		static const char *const all[] = {"_oneshot", "_begin", "_end", "_timer", "_profile"};

		for (u32 i = 0; i < 5; i++)
			y_near_offer(&near, all[i]);
		if (*near.best[0] && !y_target_place(l->target, NULL, point->text, &o))
			y_error(l->s, point->pos, NULL, "no probe point %s%s", point->text, y_near_text(l->s, &near));
	}
	return h;
}

static void add_handler(struct lower *l, const struct y_tree_probe *probe, const char *name, struct y_handler h)
{
	h.function = l->p->nfunctions;
	l->in_probe = y_in_kernel(h.point);
	l->probe = l->in_probe ? &h : NULL;
	l->target->asks_kernel = h.point > Y_PROBE;
	if (h.point == Y_PROBE && !h.line)
		lower_point(l, &h, probe->pos);
	begin_function(l, name, &y_void, probe->pos);
	if (probe->predicate) {
		u32 yes = new_block(l), no = new_block(l);

		lower_condition(l, probe->predicate, yes, no);
		place_block(l, no);
		emit(l, NULL, Y_OP_RETURN, Y_VOID);
		place_block(l, yes);
	}
	lower_statement(l, probe->body);
	end_function(l);
	l->in_probe = l->target->asks_kernel = false;
	l->probe = NULL;
	l->p->handlers = y_grow(l->s, l->p->handlers, l->p->nhandlers, sizeof(*l->p->handlers));
	l->p->handlers[l->p->nhandlers++] = h;
}

/* A line may be in several functions, and in each more than once: a handler for each place. */
static void lower_handler(struct lower *l, const struct y_tree_probe *probe, const struct y_tree_point *point)
{
	struct y_handler h = handler_of(l, point);
	struct line_places places;
	u32 module = 0;

	if (h.point != Y_PROBE || !lower_line(l, h.spec, probe->pos, &module, &places)) {
		add_handler(l, probe, point->text, h);
		return;
	}
	h.line = true;
	for (u32 i = 0; i < places.n; i++) {
		l->line_module = module;
		l->line_at = places.addr[i];
		h.spec = y_format(l->s, "%s+0x%lx", l->target->modules[module].path, places.addr[i]);
		add_handler(l, probe, point->text, h);
	}
}

static u32 count_handlers(const struct y_program *p, enum y_point point)
{
	u32 n = 0;

	for (u32 i = 0; i < p->nhandlers; i++)
		n += p->handlers[i].point == point;
	return n;
}

static void lower_program(struct lower *l)
{
	l->p->places = y_grow(l->s, l->p->places, 0, sizeof(*l->p->places));
	l->p->places[0] = (struct y_place){.file = ""};
	l->p->nplaces = 1;
	lower_maps(l);
	lower_globals(l);
	lower_functions(l);
	for (const struct y_tree_probe *probe = l->tree->probes; probe; probe = probe->next)
		for (const struct y_tree_point *point = probe->points; point; point = point->next)
			lower_handler(l, probe, point);
	if (count_handlers(l->p, Y_ONESHOT) > 1)
		y_error(l->s, l->tree->probes->pos, NULL, "_oneshot runs once and ends the run: there can be only one");
	if (count_handlers(l->p, Y_ONESHOT) && (count_handlers(l->p, Y_TIMER) || y_has_probes(l->p)))
		y_error(l->s, l->tree->probes->pos, NULL,
		        "_oneshot ends the run at once: timers and probes would never run beside it; _begin does not "
		        "end it");
}

/* --- the whole --- */

static bool has_type(void *target, const char *name)
{
	enum type_space space = !strncmp(name, "struct ", 7)  ? TYPES_STRUCT
	                        : !strncmp(name, "union ", 6) ? TYPES_UNION
	                        : !strncmp(name, "enum ", 5)  ? TYPES_ENUM
	                                                      : TYPES_PLAIN;
	u32 module;
	int other;

	return y_target_type(target, space, space == TYPES_PLAIN ? name : strchr(name, ' ') + 1, &module, &other);
}

static bool has_field(void *target, const char *name, const char *field)
{
	enum type_space space = !strncmp(name, "union ", 6)    ? TYPES_UNION
	                        : !strncmp(name, "struct ", 7) ? TYPES_STRUCT
	                                                       : TYPES_PLAIN;
	struct type_member m;
	const struct type *type;
	u32 module;
	int other;

	type = y_target_type(target, space, space == TYPES_PLAIN ? name : strchr(name, ' ') + 1, &module, &other);
	return type && type_member(type, field, &m);
}

static bool has_variable(void *target, const char *name)
{
	struct y_target_object o;

	return y_target_object(target, NULL, name, &o) && !o.function;
}

static bool has_function(void *target, const char *name)
{
	struct y_target_object o;

	return y_target_object(target, NULL, name, &o) && (o.function || !o.type);
}

static void compile(struct y_source *s, const struct y_compile_options *o, struct y_target *target, struct y_program *p)
{
	struct y_preprocess pp = {.source = s,
	        .asks = {target, has_type, has_field, has_function, has_variable},
	        .defines = o->defines,
	        .includes = o->includes};
	struct lower l = {.s = s, .target = target, .p = p, .explain = o->explain};
	u32 file = y_add_file(s, o->name, o->text, o->size);
	struct y_token *t;

	t = y_preprocess(&pp, file);
	if (o->tokens) {
		for (; t->kind != Y_T_END; t = t->next)
			fprintf(o->tokens, "%s%s", t->text, t->next->first ? "\n" : " ");
		return;
	}
	l.tree = y_parse(s, target, t);
	lower_program(&l);
}

struct error *y_compile(const struct y_compile_options *o, struct y_target *target, struct y_program **ret)
{
	struct y_program *p = y_program_new();
	struct y_source s = {0};

	*ret = NULL;
	if (!p)
		return &error_no_memory;
	s.memory = p->memory;
	if (!setjmp(s.leave))
		compile(&s, o, target, p);
	if (!s.error && target->failed) {
		s.error = target->failed;
		target->failed = NULL;
	}
	if (s.error) {
		y_program_free(p);
		return s.error;
	}
	*ret = p;
	return NULL;
}
