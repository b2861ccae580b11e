/* SPDX-License-Identifier: Apache-2.0 */
/* Matches stacks with rules (runtime_rules.h): of waits by design (idle.h) and of locks (locks.h). */
#ifndef YRT_RULES_H
#define YRT_RULES_H

#include "names.h"
#include "runtime_rules.h"

struct rule_stack {
	struct names *names;
	const struct profile *profile; /* where names puts functions */
	const struct process *p;
	const struct frame *frames; /* leaf first */
	u32 n;
	const char *comm; /* what the kernel calls its thread, COMM_LEN bytes */
	bool whole;       /* its outermost frames are there */
};

struct rule_found {
	const struct stack_rule *rule, *table; /* NULL: none */
	u32 frame;                             /* that it names */
};

bool rule_sees_scripts(const struct rule_stack *s);
/*
 * The rule of a table that says RULE_IDLE, RULE_SERVES or RULE_LOCK: of locks the first one that matches, of the others
 * that of the innermost frame, up to frames of other languages than ops (NULL: of any).
 */
struct error *rule_find(const struct rule_stack *s, const struct stack_rule *table, const struct runtime_ops *ops,
        enum rule_says says, struct rule_found *ret);
/* The same by the tables of the languages in its process, one after the other. */
struct error *rule_find_of_languages(const struct rule_stack *s, enum rule_says says, struct rule_found *ret);
/* Has a thread that waits so begun something (begun=)? */
struct error *rule_has_begun(const struct rule_stack *s, const struct rule_found *found, bool *ret);

#endif
