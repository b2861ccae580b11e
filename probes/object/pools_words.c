/* SPDX-License-Identifier: Apache-2.0 */
/* What pools says of a run: its pools, and what they have in them. */
#include "pools.h"
#include "probes/event_command.h"
#include "probes/loss.h"

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct pool_summary *s = st->of_event;

	fprintf(out, "%lu pools made, %lu destroyed, %lu reset, %lu alive; ", s->counters.made, s->counters.destroyed,
	        s->counters.reset, s->alive);
	loss_bytes(out, (double)s->bytes);
	fprintf(out, " in the %lu that are %g s old or more; %s%.0f blocks in %.1f s, %lu stacks", s->older, s->older_s,
	        s->estimate.windows ? "about " : "", s->estimate.calls, st->duration_s, s->calls.taken);
	if (*s->from)
		fprintf(out, ", from %s", s->from);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct pool_summary *s = st->of_event;

	if (s->counters.full)
		fprintf(out, ", no room for %lu pools or stacks", s->counters.full);
	if (s->counters.unmatched)
		fprintf(out, ", %lu blocks were freed that no stack is known for", s->counters.unmatched);
	if (s->estimate.windows)
		fprintf(out, ", hits took %.1f %% of its CPU time in %u windows, bytes are estimates",
		        100 * s->estimate.share, s->estimate.windows);
}

static void print(FILE *out, const struct sampler_stats *st)
{
	const struct pool_summary *s = st->of_event;

	if (s->report && *s->report)
		fprintf(out, "yrt: pools at the end:\n%s", s->report);
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct pool_summary *s = st->of_event;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:s, s:b}", "made",
	        (json_int_t)s->counters.made, "destroyed", (json_int_t)s->counters.destroyed, "reset",
	        (json_int_t)s->counters.reset, "freed_blocks", (json_int_t)s->counters.freed, "unmatched_blocks",
	        (json_int_t)s->counters.unmatched, "alive", (json_int_t)s->alive, "older", (json_int_t)s->older,
	        "older_bytes", (json_int_t)s->bytes, "blocks", s->estimate.calls, "stacks", (json_int_t)s->calls.taken,
	        "no_room", (json_int_t)s->counters.full, "from", s->from, "in_windows", s->estimate.windows > 0);
}

const struct event_words pools_words = {
        .key = "pools",
        .head = head,
        .losses = losses,
        .json = to_json,
        .print = print,
};
