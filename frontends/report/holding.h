/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What those do who have what others wait for: facts of rules with `holder`.
 *
 *	holder		text: who it is, and what it does besides
 *	holder.line	text: where it does that: "order (shop.py:18)"; "": not seen
 *	holder.work	text: what that is: "ask_service (shop.py:14)", "its own work"; "": not seen
 *	holder.meanwhile	text: ", while one is in ask_service (shop.py:14)"; "": it does many things
 *	holder.same	1: it does that itself, and nobody on its behalf
 *	holder.part	0 to 1: the part of its time that this takes
 *	holder.used	0 to 1: the part of its time that matches the rule's `used`
 *	holder.used.low, holder.used.high	its 95 % interval
 *	holder.threads	of them, on average
 *	holder.cpu	0 to 1: the part of the program's CPU time that it takes
 */
#ifndef YRT_REPORT_HOLDING_H
#define YRT_REPORT_HOLDING_H

#include "evidence.h"
#include "match.h"

/* What holders compute. */
struct holding {
	const struct evidence_view *view; /* NULL: nothing, or that was not measured */
	struct match match;
};

/* v: of the rule, NULL: not measured; m: what matches in it. match_free() of ret is the caller's. */
struct error *holding_facts(const struct rule *r, struct evidence *e, const struct evidence_view *v,
        const struct match *m, struct holding *ret);
void holding_forget(struct evidence *e);

#endif
