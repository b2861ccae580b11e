/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: of the program's functions, and of what Y brings. */
#include "lower.h"

#include <string.h>
#include <sys/stat.h>

static const struct value nothing = {.kind = V_NOTHING, .type = &y_void};

static void need(struct lower *l, const struct y_node *n, u32 least, u32 most)
{
	if (n->n >= least && n->n <= most)
		return;
	if (least == most)
		FAIL(l, n, "%s takes %u argument%s, here are %u", n->name, least, least == 1 ? "" : "s", n->n);
	FAIL(l, n, "%s takes %u to %u arguments, here are %u", n->name, least, most, n->n);
}

static u32 string_argument(struct lower *l, const struct y_node *n, u32 i)
{
	struct value v = as_asked(l, lower_rvalue(l, n->list[i]), &y_string_type);

	if (v.type != &y_string_type)
		FAIL(l, n->list[i], "%s needs a _str, this is %s%s", n->name, y_type_text(l->s, v.type),
		        v.type->kind == TYPE_POINTER ? "; _str(p) reads it" : "");
	return to_slot(l, n->list[i], v);
}

static struct value result(
        struct lower *l, const struct y_node *n, enum y_op op, const struct type *type, u32 a, u32 b, u64 imm)
{
	u32 dst = new_slot(l, type_of_value(l, n, type));
	struct y_insn *i = emit(l, n, op, l->f->slots[dst]);

	i->dst = dst;
	i->a = a;
	i->b = b;
	i->imm = imm;
	return in_slot(type, dst);
}

/* The read just made is of the memory that the pointer leads to. */
static struct value of_space(struct lower *l, const struct type *pointer, struct value v)
{
	l->f->insns[l->f->ninsns - 1].c = pointer->to->kernel ? Y_KERNEL : Y_NONE;
	return v;
}

/* Of the kernel, if the address is its own. */
static const struct type any_char = {
        .kind = TYPE_INT, .name = "char", .size = 1, .is_signed = true, .is_char = true, .kernel = true};

/* _str(p), _str(p, n), of an address, too */
static struct value read_string(struct lower *l, const struct y_node *n)
{
	struct value p, length;
	u32 most = l->in_probe ? Y_STR_MOST_PROBE : Y_STR_MOST, address;

	need(l, n, 1, 2);
	p = lower_rvalue(l, n->list[0]);
	if (n->n == 1)
		p = as_asked(l, p, &y_string_type);
	if (p.type == &y_string_type && n->n == 1)
		return p;
	if (is_integer(p.type) && p.type->size == 8) /* as _arg() and words of unknown type are */
		p = cast_to(l, n, p, y_pointer_to(l->s, l->target->asks_kernel ? &any_char : &y_char));
	if (p.type->kind != TYPE_POINTER)
		FAIL(l, n->list[0], "_str reads where a pointer leads to, this is %s", y_type_text(l->s, p.type));
	if (n->n == 1 && p.type->to->kind != TYPE_VOID && (p.type->to->kind != TYPE_INT || p.type->to->size != 1))
		FAIL(l, n->list[0], "_str of %s, which leads to no characters; a cast would say that it is meant",
		        y_type_text(l->s, p.type));
	address = to_slot(l, n->list[0], p);
	if (n->n == 1)
		return of_space(l, p.type, result(l, n, Y_OP_STR_READ, &y_string_type, address, Y_NONE, most));
	length = lower_rvalue(l, n->list[1]);
	if (!is_integer(length.type))
		FAIL(l, n->list[1], "a length of type %s", y_type_text(l->s, length.type));
	return of_space(l, p.type,
	        result(l, n, Y_OP_STR_READ_N, &y_string_type, address,
	                to_slot(l, n->list[1], cast_to(l, n->list[1], length, &y_long)), most));
}

static struct value concatenate(struct lower *l, const struct y_node *n)
{
	u32 all;

	need(l, n, 2, 16);
	all = string_argument(l, n, 0);
	for (u32 i = 1; i < n->n; i++)
		all = result(l, n, Y_OP_STR_CAT, &y_string_type, all, string_argument(l, n, i), 0).slot;
	return in_slot(&y_string_type, all);
}

static struct value valid(struct lower *l, const struct y_node *n)
{
	u32 failed = new_block(l), end = new_block(l), dst = new_slot(l, Y_I32), fail = l->fail;
	struct y_insn *i;

	need(l, n, 1, 1);
	l->fail = failed;
	lower_rvalue(l, n->list[0]);
	l->fail = fail;
	i = emit(l, NULL, Y_OP_CONST, Y_I32);
	i->dst = dst;
	i->imm = 1;
	emit_jump(l, end);
	place_block(l, failed);
	emit(l, NULL, Y_OP_CONST, Y_I32)->dst = dst;
	place_block(l, end);
	return in_slot(&y_int, dst);
}

/* _count(agg), _count(agg[keys]) … */
static struct value aggregate(struct lower *l, const struct y_node *n, enum y_agg what)
{
	struct y_node *a;
	struct value v;
	struct y_insn *i;
	u32 dst;

	need(l, n, 1, 1);
	a = n->list[0];
	v = a->kind == Y_N_INDEX ? lower_map_element(l, a) : lower_expression(l, a);
	if (v.kind != V_MAP || !l->p->maps[v.imm].is_agg)
		FAIL(l, a, "%s needs an aggregate", n->name);
	if (v.nkeys != l->p->maps[v.imm].nkeys)
		FAIL(l, a, "%s needs one element of %s", n->name, l->p->maps[v.imm].name);
	dst = new_slot(l, Y_I64);
	i = emit(l, n, Y_OP_AGG_GET, Y_I64);
	i->dst = dst;
	i->a = what;
	i->imm = v.imm;
	i->args = add_args(l, v.keys, v.nkeys);
	i->nargs = v.nkeys;
	return in_slot(&y_long, dst);
}

/* _lhist(agg, low, high, step) */
static void set_steps(struct lower *l, const struct y_node *n, struct y_map *m)
{
	s64 low = lower_constant(l, n->list[1], "where it begins"),
	    high = lower_constant(l, n->list[2], "where it ends"), step = lower_constant(l, n->list[3], "the step");
	u64 steps = step > 0 && high > low ? ((u64)high - (u64)low - 1) / (u64)step + 1 : 0;

	if (!steps || steps > Y_STEPS_MOST)
		FAIL(l, n, "_lhist(a, low, high, step) has 1 to %u steps, here are %lu", Y_STEPS_MOST, steps);
	m->low = low;
	m->step = (u64)step;
	m->steps = (u32)steps;
}

/* All of one aggregate have the same buckets. */
static void histogram(struct lower *l, const struct y_node *n)
{
	bool linear = !strcmp(n->name, "_lhist");
	struct y_map *m, before;
	struct value v;
	struct y_insn *i;

	need(l, n, linear ? 4 : 1, linear ? 4 : 1);
	v = lower_expression(l, n->list[0]);
	if (v.kind != V_MAP || !l->p->maps[v.imm].is_agg || v.nkeys)
		FAIL(l, n->list[0], "%s needs a whole aggregate", n->name);
	m = &l->p->maps[v.imm];
	before = *m;
	if (linear)
		set_steps(l, n, m);
	if (y_prints_histogram(l->p, (u32)v.imm) &&
	        (before.steps != (linear ? m->steps : 0) || before.low != m->low || before.step != m->step))
		FAIL(l, n, "%s has other buckets elsewhere: a second aggregate takes the same values", m->name);
	i = emit(l, n, Y_OP_PRINT_MAP, Y_VOID);
	i->a = Y_HIST;
	i->imm = v.imm;
}

static struct value to_integer(struct lower *l, const struct y_node *n)
{
	struct value v;

	need(l, n, 1, 1);
	v = lower_rvalue(l, n->list[0]);
	if (v.type->kind != TYPE_FLOAT)
		FAIL(l, n->list[0], "_dtoi needs a floating-point number, this is %s", y_type_text(l->s, v.type));
	return cast_to(l, n, v, &y_long);
}

static struct value symbol(struct lower *l, const struct y_node *n)
{
	struct value v;

	need(l, n, 1, 1);
	v = lower_rvalue(l, n->list[0]);
	if (v.type->kind != TYPE_POINTER && !is_integer(v.type))
		FAIL(l, n->list[0], "_sym needs an address, this is %s", y_type_text(l->s, v.type));
	return result(l, n, Y_OP_SYMBOL, &y_string_type, to_slot(l, n, cast_to(l, n, v, &y_ulong)), Y_NONE, 0);
}

/* _syscall(number) */
static struct value call_of(struct lower *l, const struct y_node *n)
{
	struct value v;

	need(l, n, 1, 1);
	v = lower_rvalue(l, n->list[0]);
	if (!is_integer(v.type))
		FAIL(l, n->list[0], "_syscall needs a system call's number, this is %s", y_type_text(l->s, v.type));
	return result(l, n, Y_OP_SYMBOL, &y_string_type, to_slot(l, n, cast_to(l, n, v, &y_ulong)), Y_NONE, 1);
}

/* _cgroupid("/sys/fs/cgroup/…"): what _cgroup is of processes in it. The directory's inode is that of kernfs. */
static struct value cgroup_of(struct lower *l, const struct y_node *n)
{
	const char *path;
	struct stat st;

	need(l, n, 1, 1);
	if (n->list[0]->kind != Y_N_STRING)
		FAIL(l, n, "_cgroupid needs a path, as it stands: _cgroupid(\"/sys/fs/cgroup/…\")");
	path = y_format(l->s, "%.*s", (int)n->list[0]->len, n->list[0]->bytes);
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		FAIL(l, n->list[0], "there is no cgroup %s", path);
	return constant(&y_ulong, st.st_ino);
}

enum builtin {
	B_STR,
	B_LEN,
	B_CUT,
	B_CAT,
	B_VALID,
	B_COUNT,
	B_SUM,
	B_MIN,
	B_MAX,
	B_AVG,
	B_HIST,
	B_LHIST,
	B_DTOI,
	B_SYM,
	B_SYSCALL,
	B_CGROUPID,
	B_ARG,
	B_PRINTF,
	B_PRINT,
	B_WARN,
	B_ERROR,
	B_EXIT,
	B_CLEAR,
	BUILTINS
};

static const char *const builtins[] = {"_str", "_len", "_cut", "_cat", "_valid", "_count", "_sum", "_min", "_max",
        "_avg", "_hist", "_lhist", "_dtoi", "_sym", "_syscall", "_cgroupid", "_arg", "printf", "_print", "_warn",
        "_error", "_exit", "_clear"};

static void offer_builtins(struct y_near *near)
{
	for (u32 i = 0; i < BUILTINS; i++)
		y_near_offer(near, builtins[i]);
}

static struct value act(struct lower *l, const struct y_node *n, enum builtin b)
{
	struct value v;
	u32 slot;

	switch (b) {
	case B_PRINTF:
		lower_printf(l, n);
		break;
	case B_PRINT:
		lower_print(l, n);
		break;
	case B_HIST:
	case B_LHIST:
		histogram(l, n);
		break;
	case B_WARN:
	case B_ERROR:
		need(l, n, 1, 1);
		slot = string_argument(l, n, 0);
		emit(l, n, b == B_WARN ? Y_OP_WARN : Y_OP_ERROR, Y_VOID)->a = slot;
		break;
	case B_CLEAR:
		need(l, n, 1, 1);
		v = lower_expression(l, n->list[0]);
		if (v.kind != V_MAP || v.nkeys)
			FAIL(l, n, "_clear needs a whole map or aggregate");
		emit(l, n, Y_OP_MAP_CLEAR, Y_VOID)->imm = v.imm;
		break;
	default:
		need(l, n, 0, 0);
		emit(l, n, Y_OP_EXIT, Y_VOID);
	}
	return nothing;
}

static struct value call_builtin(struct lower *l, const struct y_node *n, enum builtin b)
{
	switch (b) {
	case B_STR:
		return read_string(l, n);
	case B_LEN:
	case B_CUT:
		need(l, n, 1, 1);
		return result(
		        l, n, b == B_LEN ? Y_OP_STR_LEN : Y_OP_STR_CUT, &y_int, string_argument(l, n, 0), Y_NONE, 0);
	case B_CAT:
		return concatenate(l, n);
	case B_VALID:
		return valid(l, n);
	case B_COUNT:
	case B_SUM:
	case B_MIN:
	case B_MAX:
	case B_AVG:
		return aggregate(l, n, b - B_COUNT + Y_COUNT);
	case B_DTOI:
		return to_integer(l, n);
	case B_SYM:
		return symbol(l, n);
	case B_SYSCALL:
		return call_of(l, n);
	case B_CGROUPID:
		return cgroup_of(l, n);
	case B_ARG:
		need(l, n, 1, 1);
		return lower_argument(l, n, (u64)lower_constant(l, n->list[0], "_arg's number"));
	default:
		return act(l, n, b);
	}
}

/* What Y has in place of a function that a user of C has at hand. */
static const char *instead_of(struct lower *l, const struct y_node *n)
{
	const char *own = y_format(l->s, "_%s", n->name);

	for (u32 i = 0; i < BUILTINS; i++)
		if (!strcmp(builtins[i], own))
			return y_format(l->s, "; Y's own is %s", own);
	if (!strncmp(n->name, "str", 3) || !strncmp(n->name, "mem", 3))
		return "; _str(p) or _str(p, n) is a value: ==, <, ~~ rx/…/, s[i] and _len take it";
	return "";
}

static void no_function(struct lower *l, const struct y_node *n)
{
	struct y_near near = {.name = n->name};
	struct y_target_object o;
	const char *word;

	if (y_target_object(l->target, n->module, n->name, &o))
		FAIL(l, n, "%s is the target's: Y reads the target and calls nothing there%s", n->name,
		        instead_of(l, n));
	offer_builtins(&near);
	for (const struct y_tree_function *f = l->tree->functions; f; f = f->next)
		y_near_offer(&near, f->name);
	word = lower_other_word(l, n->name);
	FAIL(l, n, "no function %s%s", n->name, word ? word : y_near_text(l->s, &near));
}

static struct value call_own(struct lower *l, const struct y_node *n, const struct y_tree_function *f, u32 number)
{
	u32 slots[64], dst = Y_NONE;
	enum y_type type = f->returns->kind == TYPE_VOID ? Y_VOID : type_of_value(l, n, f->returns);
	struct y_insn *i;

	if (number == Y_NONE)
		FAIL(l, n, "function %s is declared, but has no body", n->name);
	if (n->n != f->nparameters)
		FAIL(l, n, "%s takes %u argument%s, here are %u", n->name, f->nparameters,
		        f->nparameters == 1 ? "" : "s", n->n);
	for (u32 k = 0; k < n->n; k++)
		slots[k] = to_slot(l, n->list[k],
		        convert_to(l, n->list[k], lower_expression(l, n->list[k]), f->types[k],
		                y_format(l->s, "parameter %s", f->names[k])));
	if (type)
		dst = new_slot(l, type);
	i = emit(l, n, Y_OP_CALL, type);
	i->dst = dst;
	i->imm = number;
	i->args = add_args(l, slots, n->n);
	i->nargs = n->n;
	return type ? in_slot(f->returns, dst) : nothing;
}

struct value lower_call(struct lower *l, const struct y_node *n)
{
	struct value root;
	u32 number;
	const struct y_tree_function *f = n->module ? NULL : find_function(l, n->name, &number);

	if (f)
		return call_own(l, n, f, number);
	for (u32 i = 0; !n->module && i < BUILTINS; i++)
		if (!strcmp(builtins[i], n->name))
			return call_builtin(l, n, i);
	if (lower_root(l, n, &root))
		return root;
	no_function(l, n);
	return nothing;
}
