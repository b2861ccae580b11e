/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_callee_ends.h"

#include "hit_callee.h"

#define RETURNS_MAX 2 /* that have a register each: one more watches for exceptions */

/* Its returns are too many for the registers, or none is known: watch its reference count for the ends of calls. */
static bool by_references(const struct runtime_callee *callee)
{
	return callee->references && (!callee->nexits || callee->nexits > RETURNS_MAX);
}

bool callee_ends_in_tail_calls(const struct runtime_callee *callee)
{
	if (callee->counter || by_references(callee))
		return false;
	for (u32 i = 0; i < callee->nexits && i < RUNTIME_CALL_EXITS; i++)
		if (!callee->exits[i].tail)
			return false;
	return callee->nexits > 0 && callee->nexits <= RUNTIME_CALL_EXITS;
}

struct callee_end callee_end_of(const struct runtime_callee *c, u32 i)
{
	if (c->counter)
		return (struct callee_end){c->counter, 4, CALLEE_FALLS};
	if (by_references(c))
		return i ? (struct callee_end){c->raises, 8, CALLEE_RAISES}
		         : (struct callee_end){c->references, 4, CALLEE_GONE};
	if (i == c->nexits)
		return (struct callee_end){c->raises, 8, CALLEE_RAISES};
	return (struct callee_end){c->exits[i].at, c->exits[i].bytes,
	        c->exits[i].tail && !callee_ends_in_tail_calls(c) ? CALLEE_LEFT : CALLEE_RETURN};
}

u32 callee_ends_of(const struct runtime_callee *callee, bool raises)
{
	u32 exits = callee->nexits < RUNTIME_CALL_EXITS ? callee->nexits : RUNTIME_CALL_EXITS;
	u32 n = callee->counter ? 1 : by_references(callee) ? 2 : exits + (callee->raises ? 1 : 0);

	return n - (!raises && !callee->counter && callee->raises ? 1 : 0);
}

/* Java's. Compiled code often returns at fewer places. */
static bool may_be_compiled(const struct runtime_callee *callee)
{
	return callee->code_to && !callee->executed;
}

bool callee_ends_unseen(const struct runtime_callee *callee)
{
	return !callee->counter && !by_references(callee) && callee->nexits > RUNTIME_CALL_EXITS;
}

struct error *callee_check_ends(const struct runtime_callee *callee)
{
	if (callee->makes && callee->place.own != RUNTIME_OWN_FRAME)
		return error_hint(error_new(ERROR_UNSUPPORTED, "%s makes a %s: its calls return at once", callee->name,
		                          callee->makes),
		        "yrt probe shows its calls");
	if (callee->counter || by_references(callee))
		return NULL;
	if (!callee->nexits)
		return error_hint(error_new(ERROR_UNSUPPORTED, "where calls of %s end is not known", callee->name),
		        "yrt probe shows its calls");
	if (callee->nexits > RUNTIME_CALL_EXITS)
		return error_hint(
		        error_new(ERROR_UNSUPPORTED, "%s%s returns at %u places: debug registers can watch %u of them",
		                callee->executed ? "compiled code of " : "", callee->name, callee->nexits,
		                RUNTIME_CALL_EXITS),
		        "measure a function that it calls, or its caller%s",
		        may_be_compiled(callee) ? "; or this one again once it is compiled" : "");
	return NULL;
}
