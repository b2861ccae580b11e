/* SPDX-License-Identifier: Apache-2.0 */
/* The last line of alloc: all calls and their bytes. */
#include "alloc.h"
#include "probes/event_command.h"
#include "probes/loss.h"

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct alloc_summary *s = st->of_event;

	fputs(s->in_shifts ? "about " : "", out);
	loss_bytes(out, (double)s->counters.bytes);
	fprintf(out, " by %lu calls in %.1f s, %lu stacks", s->counters.calls, st->duration_s, s->counters.taken);
	if (s->interval > 1)
		fprintf(out, ", of blocks below %lu bytes by chance", s->interval);
	if (*s->from)
		fprintf(out, ", from %s", s->from);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct alloc_summary *s = st->of_event;

	if (s->counters.strange)
		fprintf(out, ", %lu calls asked for more than there is", s->counters.strange);
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct alloc_summary *s = st->of_event;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b}", "calls", (json_int_t)s->counters.calls, "bytes",
	        (json_int_t)s->counters.bytes, "stacks", (json_int_t)s->counters.taken, "inner_calls",
	        (json_int_t)s->counters.inner, "impossible_calls", (json_int_t)s->counters.strange, "interval",
	        (json_int_t)s->interval, "from", s->from, "in_shifts", (int)s->in_shifts);
}

const struct event_words alloc_words = {
        .key = "alloc",
        .head = head,
        .losses = losses,
        .json = to_json,
};
