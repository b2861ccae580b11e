/* SPDX-License-Identifier: Apache-2.0 */
/* Names: Y's own first, then the target's. */
#include "lower.h"

#include <string.h>

static struct value context(struct lower *l, const struct y_node *n, enum y_context what, const struct type *type)
{
	u32 dst = new_slot(l, type_of_value(l, n, type));
	struct y_insn *i = emit(l, n, Y_OP_CONTEXT, l->f->slots[dst]);

	i->dst = dst;
	i->imm = what;
	return in_slot(type, dst);
}

static struct value failure(struct lower *l, const struct y_node *n, enum y_op op, const struct type *type)
{
	u32 dst = new_slot(l, type_of_value(l, n, type));

	if (!l->catches)
		FAIL(l, n, "%s means something only in a _catch block", n->name);
	emit(l, n, op, l->f->slots[dst])->dst = dst;
	return in_slot(type, dst);
}

static struct value stack(struct lower *l, const struct y_node *n, enum y_stack what)
{
	u32 dst = new_slot(l, Y_STACK);
	struct y_insn *i;

	if (!l->in_probe)
		FAIL(l, n,
		        "%s: only a probe in the target's code has a stack; _oneshot, _timer, _begin and _end run "
		        "outside of it",
		        n->name);
	i = emit(l, n, Y_OP_STACK, Y_STACK);
	i->dst = dst;
	i->imm = what;
	return in_slot(&y_stack_types[what], dst);
}

static const char *const own_names[] = {"_pid", "_tid", "_comm", "_cpu", "_ns", "_wall", "_prog", "_uid", "_gid",
        "_cgroup", "_status", "_at", "_stack", "_ustack", "_kstack", "_FAULT", "_ABSENT", "_OPTIMIZED_OUT", "_LIMIT",
        "_DIV", "_ip"};

enum own {
	O_PID,
	O_TID,
	O_COMM,
	O_CPU,
	O_NS,
	O_WALL,
	O_PROG,
	O_UID,
	O_GID,
	O_CGROUP,
	O_STATUS,
	O_AT,
	O_STACK,
	O_USTACK,
	O_KSTACK,
	O_FAULT,
	O_ABSENT,
	O_OPTIMIZED,
	O_LIMIT,
	O_DIV,
	O_IP,
	OWN
};

static struct value own_name(struct lower *l, const struct y_node *n, enum own own)
{
	switch (own) {
	case O_PID:
		return context(l, n, Y_PID, &y_int);
	case O_TID:
		return context(l, n, Y_TID, &y_int);
	case O_COMM:
		return context(l, n, Y_COMM, &y_string_type);
	case O_CPU:
		return context(l, n, Y_CPU, &y_int);
	case O_NS:
		return context(l, n, Y_NS, &y_ulong);
	case O_WALL:
		return context(l, n, Y_WALL, &y_ulong);
	case O_PROG:
		return context(l, n, Y_PROG, &y_string_type);
	case O_UID:
	case O_GID:
	case O_CGROUP:
		if (!l->in_probe)
			FAIL(l, n, "%s is of a thread: a probe has it", n->name);
		return context(l, n, own - O_UID + Y_UID, own == O_CGROUP ? &y_ulong : &y_uint);
	case O_STATUS:
		return failure(l, n, Y_OP_STATUS, &y_int);
	case O_AT:
		return failure(l, n, Y_OP_AT, &y_ulong);
	case O_STACK:
	case O_USTACK:
	case O_KSTACK:
		return stack(l, n, own - O_STACK + Y_WHOLE_STACK);
	case O_IP:
		return lower_place(l, n);
	default:
		return constant(&y_int, own - O_FAULT + Y_FAULT);
	}
}

static bool find_variable(struct lower *l, const char *name, struct value *ret)
{
	for (struct variable *v = l->variables; v; v = v->next)
		if (!strcmp(v->name, name)) {
			*ret = v->array ? (struct value){.kind = V_ARRAY, .type = v->type, .imm = v->slot}
			                : (struct value){.kind = V_LOCAL, .type = v->type, .slot = v->slot};
			return true;
		}
	return false;
}

static bool find_global(struct lower *l, const char *name, struct value *ret)
{
	u32 number = 0;

	for (const struct y_node *g = l->tree->globals; g; g = g->next, number++)
		if (number < l->p->nglobals && !strcmp(g->name, name)) {
			*ret = g->value ? (struct value){.kind = V_ARRAY,
			                          .type = g->type,
			                          .imm = Y_GLOBAL_ARRAY + number}
			                : (struct value){
			                          .kind = V_GLOBAL, .type = g->type, .imm = number, .slot = Y_NONE};
			return true;
		}
	return false;
}

const struct y_tree_function *find_function(const struct lower *l, const char *name, u32 *number)
{
	const struct y_tree_function *declared = NULL;
	u32 i = 0;

	for (const struct y_tree_function *f = l->tree->functions; f; f = f->next) {
		if (!strcmp(f->name, name)) {
			declared = f;
			if (f->body) {
				*number = i;
				return f;
			}
		}
		i += f->body != NULL;
	}
	*number = Y_NONE;
	return declared;
}

/* --- the target's --- */

const char *lower_other_word(struct lower *l, const char *name)
{
	static const char *const words[][2] = {{"args", "$NAME, as in $filename"}, {"retval", "$return, at :return"},
	        {"nsecs", "_ns"}, {"timestamp", "_ns"}, {"execname", "_comm"}, {"kstack", "_kstack"},
	        {"ustack", "_ustack"}, {"stack", "_stack"}, {"backtrace", "_stack"},
	        {"count", "n[key]++ of a _map long n[…]"}, {"hist", "a <<< x, and _hist(a) in _end"},
	        {"lhist", "a <<< x, and _lhist(a, low, high, step) in _end"},
	        {"quantize", "a <<< x, and _hist(a) in _end"}, {"sum", "a <<< x, and _sum(a) in _end"},
	        {"avg", "a <<< x, and _avg(a) in _end"}, {"copyinstr", "_str(p)"}, {"user_string", "_str(p)"},
	        {"str", "_str(p)"}, {"buf", "_str(p, n)"},
	        {"func", "n[_ip]++ of a _map long n[long]; _sym of its keys in _end"},
	        {"probe", "n[_ip]++ of a _map long n[long]; _sym of its keys in _end"}};

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(name, words[i][0]))
			return y_format(l->s, "; here it is %s", words[i][1]);
	if (!strncmp(name, "arg", 3) && name[3] >= '0' && name[3] <= '9' && !name[4])
		return y_format(l->s, "; here it is _arg(%s)", name + 3);
	return NULL;
}

static void no_such_name(struct lower *l, const struct y_node *n)
{
	struct y_near near = {.name = n->name};
	const char *word = n->module ? NULL : lower_other_word(l, n->name);
	char lacks[Y_LACKS];

	if (word)
		FAIL(l, n, "neither the program nor the target has a name %s%s", n->name, word);
	for (struct variable *v = l->variables; v; v = v->next)
		y_near_offer(&near, v->name);
	for (const struct y_node *g = l->tree->globals; g; g = g->next)
		y_near_offer(&near, g->name);
	for (u32 i = 0; i < l->p->nmaps; i++)
		y_near_offer(&near, l->p->maps[i].name);
	for (u32 i = 0; i < sizeof(own_names) / sizeof(*own_names); i++)
		y_near_offer(&near, own_names[i]);
	for (u32 i = 0; i < l->target->nmodules && *n->name != '_'; i++)
		if (y_target_types(l->target, i)) {
			types_names(y_target_types(l->target, i), TYPES_VARIABLE, y_near_offer, &near);
			types_names(y_target_types(l->target, i), TYPES_ENUMERATOR, y_near_offer, &near);
		}
	if (n->module)
		FAIL(l, n, "no module %s of the target has a variable or function %s%s", n->module, n->name,
		        y_near_text(l->s, &near));
	FAIL(l, n,
	        "neither the program nor the target has a name %s%s; the program's own are declared (long n; _map long "
	        "n[_str];), ##ifdefvar asks for the target's%s",
	        n->name, y_near_text(l->s, &near), y_target_lacks(l->target, 0, lacks));
}

bool lower_root(struct lower *l, const struct y_node *n, struct value *ret)
{
	const char *runtime, *name;
	const struct type *type;
	u64 roots[Y_ROOTS_MOST];
	u32 found, module;
	s64 number = 0;
	int other;

	if (n->module || !y_runtimes_root(n->name, &runtime, &name))
		return false;
	if (n->kind == Y_N_CALL && n->n != 1)
		FAIL(l, n, "%s takes a number: %s(0) is the first", n->name, n->name);
	if (n->kind == Y_N_CALL)
		number = lower_constant(l, n->list[0], "the number");
	type = y_target_type(l->target, TYPES_PLAIN, name, &module, &other);
	found = y_runtimes_roots(l->target, n->name, roots);
	if (!found || !type)
		FAIL(l, n, "no %s was found in the target%s%s", runtime, y_runtimes_complaint(l->target) ? ": " : "",
		        y_runtimes_complaint(l->target) ? y_runtimes_complaint(l->target) : "");
	if (l->explain && (u64)number < found)
		fprintf(l->explain, "%s: %s * 0x%lx, number %ld of %u that were found in memory\n", n->name,
		        y_type_text(l->s, type), roots[number], number, found);
	*ret = constant(y_pointer_to(l->s, type), (u64)number < found ? roots[number] : 0);
	return true;
}

static struct value target_object(struct lower *l, const struct y_node *n)
{
	struct y_target_object o;

	if (!y_target_object(l->target, n->module, n->name, &o))
		no_such_name(l, n);
	if (o.other >= 0)
		FAIL(l, n, "%s and %s both have a name %s: MODULE`%s chooses", l->target->modules[o.module].path,
		        l->target->modules[o.other].path, n->name, n->name);
	if (o.several)
		FAIL(l, n, "several files of %s have a %s of their own: which one is meant cannot be said yet",
		        l->target->modules[o.module].path, n->name);
	if (!o.type) {
		l->untyped = n->name;
		l->untyped_module = o.module;
	}
	if (o.thread)
		return lower_thread_local(l, n, &o);
	if (l->explain)
		fprintf(l->explain, "%s: %s at 0x%lx of %s\n", n->name, o.type ? y_type_text(l->s, o.type) : "no type",
		        o.addr, l->target->modules[o.module].path);
	return (struct value){
	        .kind = V_TARGET, .type = o.type ? o.type : &y_void, .slot = Y_NONE, .module = o.module, .imm = o.addr};
}

static bool is_own(struct lower *l, const struct y_node *n)
{
	struct value v;
	u32 number;

	if (n->module)
		return false;
	for (u32 k = 0; k < OWN; k++)
		if (!strcmp(own_names[k], n->name))
			return true;
	return find_variable(l, n->name, &v) || find_global(l, n->name, &v) || find_map(l, n->name) >= 0 ||
	       find_function(l, n->name, &number);
}

bool lower_exported(struct lower *l, const struct y_node *n, struct value *ret)
{
	struct y_target_object o;

	if (n->kind != Y_N_NAME || is_own(l, n) || !y_target_place(l->target, n->module, n->name, &o) || !o.exported ||
	        o.other >= 0)
		return false;
	if (l->explain)
		fprintf(l->explain, "%s: at 0x%lx of %s\n", n->name, o.addr, l->target->modules[o.module].path);
	*ret = (struct value){.kind = V_TARGET, .type = &y_void, .slot = Y_NONE, .module = o.module, .imm = o.addr};
	return true;
}

struct value lower_name(struct lower *l, const struct y_node *n)
{
	const struct type *type;
	struct y_target_object o = {0};
	struct value v;
	s64 number;
	u32 i;

	if (n->module)
		return target_object(l, n);
	if (find_variable(l, n->name, &v) || find_global(l, n->name, &v))
		return v;
	i = (u32)find_map(l, n->name);
	if (i != UINT32_MAX)
		return (struct value){.kind = V_MAP, .imm = i, .type = &y_void};
	if (find_function(l, n->name, &i))
		FAIL(l, n, "%s is a function of the program: it is called, and has no address", n->name);
	for (u32 k = 0; k < OWN; k++)
		if (!strcmp(own_names[k], n->name))
			return own_name(l, n, k);
	if (lower_root(l, n, &v))
		return v;
	if (!strcmp(n->name, "NULL") || !strcmp(n->name, "nullptr"))
		return constant(y_pointer_to(l->s, &y_void), 0);
	if (!strcmp(n->name, "true") || !strcmp(n->name, "false"))
		return constant(&y_int, *n->name == 't');
	if ((!y_target_place(l->target, NULL, n->name, &o) || o.module) &&
	        y_target_enumerator(l->target, o.module ? o.module : UINT32_MAX, n->name, &number, &type))
		return constant(type->to, y_wrap(type_of_value(l, n, type->to), (u64)number));
	return target_object(l, n);
}

bool lower_package_name(struct lower *l, const struct y_node *n, struct value *ret)
{
	struct y_target_object o;
	struct y_node whole;

	if (n->a->kind != Y_N_NAME || is_own(l, n->a) || y_target_place(l->target, n->a->module, n->a->name, &o))
		return false;
	whole = *n->a;
	whole.name = y_format(l->s, "%s.%s", n->a->name, n->name);
	if (!y_target_place(l->target, whole.module, whole.name, &o))
		return false;
	*ret = target_object(l, &whole);
	return true;
}

/* --- $ --- */

static struct value capture(struct lower *l, const struct y_node *n)
{
	u32 slot;

	if (n->name[1])
		FAIL(l, n, "captures are $0 to $9");
	if (l->captures[0] == Y_NONE)
		FAIL(l, n, "$%s: nothing was matched before", n->name);
	slot = new_slot(l, Y_STR); /* the next match has captures of its own */
	emit_move(l, slot, l->captures[*n->name - '0']);
	return in_slot(&y_string_type, slot);
}

struct value lower_dollar(struct lower *l, const struct y_node *n)
{
	if (*n->name >= '0' && *n->name <= '9')
		return capture(l, n);
	if (!l->in_probe)
		FAIL(l, n, "$%s: only probes of functions have parameters", n->name);
	return lower_parameter(l, n);
}
