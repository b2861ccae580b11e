/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_slow.h"

#include <stdlib.h>
#include <string.h>

#include "hit_callee.h"
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

void slow_stack_put(struct slow_stack *of, u32 n, struct slow_stack stack)
{
	for (u32 i = 0; i < n; i++)
		if (of[i].ns < stack.ns) {
			struct slow_stack shorter = of[i];

			of[i] = stack;
			stack = shorter;
		}
}

static void add_stack(struct slow_call *call, const struct latency_wait *wait)
{
	if (wait->hash)
		slow_stack_put(call->stack, SLOW_STACKS, (struct slow_stack){.ns = wait->ns, .hash = wait->hash});
}

/* What it ran has the time that it did not wait, by ticks. */
static void add_ran(struct slow_call *call, const struct latency_record *record)
{
	u64 all = 0;

	for (u32 i = 0; i < record->nticks && i < LATENCY_WAITS; i++)
		all += latency_is_within(record, &record->tick[i]) ? record->tick[i].ns : 0;
	for (u32 i = 0; i < record->nticks && i < LATENCY_WAITS; i++) {
		struct latency_wait tick = record->tick[i];

		if (!all || !latency_is_within(record, &tick))
			continue;
		tick.ns = (u64)((double)call->ran_ns * (double)tick.ns / (double)all);
		add_stack(call, &tick);
	}
}

static void add(struct slow_call *call, const struct latency_record *record)
{
	u64 waited = 0;

	for (u32 i = 0; i < record->nwaits && i < LATENCY_WAITS; i++)
		if (latency_is_within(record, &record->wait[i])) {
			waited += record->wait[i].ns;
			add_wait(call, record->wait[i].ns, record->wait[i].reason);
			add_stack(call, &record->wait[i]);
		}
	call->ran_ns = record->ns > waited ? record->ns - waited : 0;
	call->ran_most = record->nwaits == LATENCY_WAITS;
	add_ran(call, record);
}

static void free_call(struct slow_call *call)
{
	for (u32 i = 0; i < SLOW_STACKS; i++)
		free(call->stack[i].text);
	for (u32 i = 0; i < SLOW_AWAITS; i++)
		free(call->await[i].text);
	free(call->text);
}

static bool is_text_of(const struct slow_stack *stack, const char *text)
{
	return stack->ns && stack->text && !strcmp(stack->text, text);
}

/* Stacks that differ by addresses only are one. Those behind the i-th have no text yet, or another one. */
static void join_stack(struct slow_call *call, u32 i)
{
	struct slow_stack one = call->stack[i];
	u32 k = 0;

	while (k < SLOW_STACKS && (k == i || !is_text_of(&call->stack[k], one.text)))
		k++;
	if (k == SLOW_STACKS)
		return;
	one.ns += call->stack[k].ns;
	free(call->stack[k].text);
	for (u32 n = 0; n < 2; n++) {
		u32 gone = n ? (i < k ? i : k) : (i < k ? k : i);

		memmove(&call->stack[gone], &call->stack[gone + 1], (SLOW_STACKS - gone - 1) * sizeof(one));
		call->stack[SLOW_STACKS - 1] = (struct slow_stack){0};
	}
	slow_stack_put(call->stack, SLOW_STACKS, one);
}

void slow_calls_name(struct slow_calls *calls, struct collector *c)
{
	u32 node;

	for (u32 i = 0; i < calls->n; i++)
		for (u32 k = SLOW_STACKS; k-- > 0;) {
			struct slow_stack *stack = &calls->of[i].stack[k];

			if (!stack->ns || stack->text || !collector_find(c, stack->hash, &node))
				continue;
			stack->text = stack_text(collector_profile(c), node);
			if (stack->text)
				join_stack(&calls->of[i], k);
		}
}

u64 slow_calls_least(const struct slow_calls *calls)
{
	return calls->n < SLOW_CALLS_MAX ? 0 : calls->of[calls->n - 1].ns;
}

struct error *slow_calls_add(struct slow_calls *calls, struct hit_function *function, const char *text,
        const struct latency_record *record, u64 began_ns, struct slow_call **ret)
{
	struct slow_call new = {.ns = record->ns, .tgid = record->tgid, .tid = record->tid};
	u32 at = calls->n;

	*ret = NULL;
	if (record->ns <= slow_calls_least(calls))
		return NULL;
	new.text = text ? strdup(text) : hit_call_text(function, record);
	if (!new.text)
		return &error_no_memory;
	new.at_ns = record->began > began_ns ? record->began - began_ns : 0;
	new.raised = !function->img && record->happened != CALLEE_RETURNS;
	memcpy(new.comm, record->comm, sizeof(new.comm));
	new.comm[sizeof(new.comm) - 1] = '\0';
	add(&new, record);
	if (calls->n == SLOW_CALLS_MAX)
		free_call(&calls->of[--at]);
	else
		calls->n++;
	for (; at && calls->of[at - 1].ns < new.ns; at--)
		calls->of[at] = calls->of[at - 1];
	calls->of[at] = new;
	*ret = &calls->of[at];
	return NULL;
}

void slow_calls_free(struct slow_calls *calls)
{
	for (u32 i = 0; i < calls->n; i++)
		free_call(&calls->of[i]);
	calls->n = 0;
}
