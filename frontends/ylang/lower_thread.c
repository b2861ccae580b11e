/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local variables, and loops over threads. */
#include "lower.h"

static u32 read_word(struct lower *l, const struct y_node *n, u32 base, u64 offset, enum y_type type)
{
	u32 dst = new_slot(l, type);
	struct y_insn *i = emit(l, n, Y_OP_LOAD, type);

	i->dst = dst;
	i->a = base;
	i->imm = offset;
	return dst;
}

/* Of the thread that a probe is in, or that a loop is at. */
static u32 thread_pointer(struct lower *l, const struct y_node *n)
{
	struct y_insn *i;
	u32 dst;
	u64 at;

	if (l->thread_pointer != Y_NONE)
		return l->thread_pointer;
	if (!l->in_probe)
		FAIL(l, n,
		        "%s is a thread-local variable: each thread has its own. A probe has that of its thread; "
		        "_foreach (_thread t) { … } goes through all threads",
		        n->name);
	at = y_target_thread_pointer(l->target);
	if (!at)
		FAIL(l, n, "%s is a thread-local variable, and this kernel does not say where a thread's are", n->name);
	dst = new_slot(l, Y_U64);
	i = emit(l, n, Y_OP_CONTEXT, Y_U64);
	i->dst = dst;
	i->a = (u32)at;
	i->imm = Y_THREAD_POINTER;
	return dst;
}

struct value lower_thread_local(struct lower *l, const struct y_node *n, const struct y_target_object *o)
{
	struct y_thread_local place;
	const char *why = y_target_thread_local(l->target, o, &place);
	u32 base;

	if (why)
		FAIL(l, n, "%s is a thread-local variable of %s: %s", n->name, l->target->modules[o->module].path, why);
	base = thread_pointer(l, n);
	if (place.vector)
		base = read_word(l, n, read_word(l, n, base, sizeof(u64), Y_U64), place.vector, Y_U64);
	if (l->explain)
		fprintf(l->explain, "%s: %s at %ld from %s of %s\n", n->name,
		        o->type ? y_type_text(l->s, o->type) : "no type", (long)place.offset,
		        place.vector ? "the thread's block" : "the thread's pointer",
		        l->target->modules[o->module].path);
	return (struct value){.kind = V_TARGET, .type = o->type ? o->type : &y_void, .slot = base, .imm = place.offset};
}

/* The body, for the thread of a link; one that has ended has no number. */
static void one_thread(struct lower *l, const struct y_node *n, u32 tid, u32 next)
{
	u32 inside = new_block(l), outer[] = {l->break_to, l->continue_to};

	emit_branch(l, emit_binary(l, NULL, Y_OP_LT, Y_I32, emit_const(l, Y_I32, 0), tid), inside, next);
	place_block(l, inside);
	l->continue_to = next;
	lower_statement(l, n->d);
	l->break_to = outer[0];
	l->continue_to = outer[1];
}

/* Through both of the C library's circles of threads. */
void lower_foreach_thread(struct lower *l, const struct y_node *n)
{
	u32 circle = new_block(l), test = new_block(l), inside = new_block(l), next = new_block(l),
	    around = new_block(l), second = new_block(l), end = new_block(l);
	u32 head = new_slot(l, Y_U64), link = new_slot(l, Y_U64), tid, outer = l->thread_pointer, last = l->break_to;
	struct variable *variables = l->variables;
	struct y_thread_lists lists;
	const char *why = y_target_threads(l->target, &lists);

	if (why)
		FAIL(l, n, "its threads are not known: %s", why);
	emit_move(l, head, emit_const(l, Y_U64, lists.heads[0]));
	place_block(l, circle);
	emit_move(l, link, read_word(l, n, head, 0, Y_U64));
	place_block(l, test);
	emit_branch(l, emit_binary(l, NULL, Y_OP_NE, Y_U64, link, head), inside, around);
	place_block(l, inside);
	emit(l, n, Y_OP_LOOP, Y_VOID);
	l->thread_pointer = emit_binary(l, NULL, Y_OP_SUB, Y_U64, link, emit_const(l, Y_U64, lists.link));
	tid = read_word(l, n, l->thread_pointer, lists.tid, Y_I32);
	declare_variable(l, n->list[0]->name, &y_int, tid);
	l->break_to = end;
	one_thread(l, n, tid, next);
	l->break_to = last;
	l->variables = variables;
	place_block(l, next);
	emit_move(l, link, read_word(l, n, link, 0, Y_U64));
	emit_jump(l, test);
	place_block(l, around);
	emit_branch(l, emit_binary(l, NULL, Y_OP_EQ, Y_U64, head, emit_const(l, Y_U64, lists.heads[0])), second, end);
	place_block(l, second);
	emit_move(l, head, emit_const(l, Y_U64, lists.heads[1]));
	emit_jump(l, circle);
	place_block(l, end);
	l->thread_pointer = outer;
}
