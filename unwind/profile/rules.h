/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions on a stack say about it: rules of waits by design (idle.h) and of locks (locks.h). */
#ifndef YRT_RULES_H
#define YRT_RULES_H

#include "names.h"

struct rule_stack {
	struct names *names;
	const struct profile *profile; /* where names puts functions */
	const struct process *p;
	const struct frame *frames; /* leaf first */
	u32 n;
	const char *comm; /* what the kernel calls its thread, COMM_LEN bytes */
	bool scripts;     /* it has frames of a language */
	bool whole;       /* its outermost frames are there */
};

static inline bool rule_is_code(const struct frame *f)
{
	return (frame_kind(f) == FRAME_NATIVE || frame_kind(f) == FRAME_SCRIPT) && !(frame_flags(f) & FRAME_AWAITED);
}

/* Is frames[i], with depth frames of its kind inside it, what the rule says of functions? */
struct error *rule_matches(const struct rule_stack *s, u32 i, u32 depth, const struct idle_rule *rule, bool *ret);

#endif
