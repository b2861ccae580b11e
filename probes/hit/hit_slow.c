/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_slow.h"

#include <stdlib.h>
#include <string.h>

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
		if (record->wait[i].began >= record->began && record->wait[i].began < record->began + record->ns)
			add_wait(&new, record->wait[i].ns, record->wait[i].reason);
	if (calls->n == SLOW_CALLS_MAX)
		free(calls->of[--at].text);
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
		free(calls->of[i].text);
	calls->n = 0;
}
