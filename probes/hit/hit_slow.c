/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_slow.h"

#include <stdlib.h>
#include <string.h>

#include "probes/stack_text.h"

static void add_wait(struct slow_call *call, u64 ns, u32 reason)
{
	u32 i = 0, at;

	while (i < call->nwaits && call->wait[i].reason != reason)
		i++;
	if (i == call->nwaits)
		call->wait[call->nwaits++] = (struct slow_call_wait){.reason = reason};
	call->wait[i].ns += ns;
	for (at = i; at && call->wait[at - 1].ns < call->wait[at].ns; at--) {
		struct slow_call_wait longer = call->wait[at];

		call->wait[at] = call->wait[at - 1];
		call->wait[at - 1] = longer;
	}
}

static void add_stack(struct slow_call *call, const struct latency_wait *wait)
{
	struct slow_call_stack stack = {.ns = wait->ns, .hash = wait->hash};

	for (u32 i = 0; i < SLOW_STACKS && stack.hash; i++)
		if (call->stack[i].ns < stack.ns) {
			struct slow_call_stack shorter = call->stack[i];

			call->stack[i] = stack;
			stack = shorter;
		}
}

static void free_call(struct slow_call *call)
{
	for (u32 i = 0; i < SLOW_STACKS; i++)
		free(call->stack[i].text);
	free(call->text);
}

void slow_calls_name(struct slow_calls *calls, struct collector *c)
{
	u32 node;

	for (u32 i = 0; i < calls->n; i++)
		for (u32 k = 0; k < SLOW_STACKS && calls->of[i].stack[k].ns; k++) {
			struct slow_call_stack *stack = &calls->of[i].stack[k];

			if (!stack->text && collector_find(c, stack->hash, &node))
				stack->text = stack_text(collector_profile(c), node);
		}
}

u64 slow_calls_least(const struct slow_calls *calls)
{
	return calls->n < SLOW_CALLS_MAX ? 0 : calls->of[calls->n - 1].ns;
}

struct error *slow_calls_add(struct slow_calls *calls, struct hit_function *function, const char *text,
        const struct latency_record *record, u64 began_ns)
{
	struct slow_call new = {.ns = record->ns, .tgid = record->tgid, .tid = record->tid};
	u32 at = calls->n;

	if (record->ns <= slow_calls_least(calls))
		return NULL;
	new.text = text ? strdup(text) : hit_call_text(function, record);
	if (!new.text)
		return &error_no_memory;
	new.at_ns = record->began > began_ns ? record->began - began_ns : 0;
	memcpy(new.comm, record->comm, sizeof(new.comm));
	new.comm[sizeof(new.comm) - 1] = '\0';
	for (u32 i = 0; i < record->nwaits && i < LATENCY_WAITS; i++)
		if (record->wait[i].began >= record->began && record->wait[i].began < record->began + record->ns) {
			add_wait(&new, record->wait[i].ns, record->wait[i].reason);
			add_stack(&new, &record->wait[i]);
		}
	if (calls->n == SLOW_CALLS_MAX)
		free_call(&calls->of[--at]);
	else
		calls->n++;
	for (; at && calls->of[at - 1].ns < new.ns; at--)
		calls->of[at] = calls->of[at - 1];
	calls->of[at] = new;
	return NULL;
}

void slow_calls_free(struct slow_calls *calls)
{
	for (u32 i = 0; i < calls->n; i++)
		free_call(&calls->of[i]);
	calls->n = 0;
}
