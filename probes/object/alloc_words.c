/* SPDX-License-Identifier: Apache-2.0 */
/* The last line of alloc: all calls and their bytes. */
#include "alloc.h"
#include "probes/event_command.h"
#include "probes/loss.h"

static void totals(FILE *out, const struct alloc_estimate *e)
{
	char low[32], high[32];

	if (!e->windows && !e->samples) {
		loss_bytes(out, e->bytes);
		fprintf(out, " by %.0f calls", e->calls);
		return;
	}
	fputs("about ", out);
	loss_bytes(out, e->bytes);
	fprintf(out, " (%s-%s) by %.0f calls (%.0f-%.0f)%s", loss_amount(e->bytes_low, low),
	        loss_amount(e->bytes_high, high), loss_estimate(e->calls), loss_estimate(e->calls_low),
	        loss_estimate(e->calls_high), e->windows ? ", in windows" : "");
}

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct alloc_summary *s = st->of_event;

	totals(out, &s->estimate);
	fprintf(out, " in %.1f s, %lu stacks", st->duration_s, s->counters.taken);
	if (s->interval)
		fprintf(out, ", of blocks below %lu bytes by chance", s->interval);
	if (*s->from)
		fprintf(out, ", from %s", s->from);
	if (*s->sampled)
		fprintf(out, ", from %lu samples of %s", s->estimate.samples, s->sampled);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct alloc_summary *s = st->of_event;
	const struct alloc_estimate *e = &s->estimate;

	if (s->counters.strange)
		fprintf(out, ", %lu calls asked for more than there is", s->counters.strange);
	if (s->missed)
		fprintf(out, ", %u processes ended before their calls could be seen", s->missed);
	if (s->unknown)
		fprintf(out, ", %u places in its code allocate sizes that are not known: not seen", s->unknown);
	if (e->windows && e->clock == ALLOC_CLOCK_COUNTER)
		fprintf(out,
		        ", hits took %.1f %% of its CPU time in %u windows (weighed by the allocator's own count of "
		        "bytes)",
		        100 * e->share, e->windows);
	else if (e->windows && e->clock == ALLOC_CLOCK_WAITS)
		fprintf(out,
		        ", hits took %.1f %% of its CPU time in %u windows (weighed by how often it waits, and by "
		        "time)",
		        100 * e->share, e->windows);
	else if (e->windows)
		fprintf(out,
		        ", hits took %.1f %% of its CPU time in %u windows (weighed by CPU time without hits, %.2f us "
		        "each by %s, and %.2f (%.2f-%.2f) more behind it by %s; %.0f %% of windows was its own)",
		        100 * e->share, e->windows, e->exception_ns / 1000, e->in_target ? "pairs" : "yrt itself",
		        e->cold_ns / 1000, e->cold_low / 1000, e->cold_high / 1000,
		        e->marks ? "functions that it passes rarely" : "a guess", 100 * e->own);
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct alloc_summary *s = st->of_event;
	const struct alloc_estimate *e = &s->estimate;

	return json_pack("{s:I, s:I, s:[f, f], s:[f, f], s:i, s:f, s:f, s:f, s:[f, f, f], s:i, s:I, s:I, s:I, s:I, "
	                 "s:s, s:b, s:i, s:i, s:b, s:b, s:I, s:s}",
	        "calls", (json_int_t)e->calls, "bytes", (json_int_t)e->bytes, "calls_interval", e->calls_low,
	        e->calls_high, "bytes_interval", e->bytes_low, e->bytes_high, "windows", (int)e->windows, "hits_share",
	        e->share, "exception_ns", e->exception_ns, "windows_own", e->own, "cold_ns", e->cold_ns, e->cold_low,
	        e->cold_high, "landmarks", (int)e->marks, "stacks", (json_int_t)s->counters.taken, "inner_calls",
	        (json_int_t)s->counters.inner, "impossible_calls", (json_int_t)s->counters.strange, "interval",
	        (json_int_t)s->interval, "from", s->from, "in_shifts", e->windows > 0, "unknown_places",
	        (int)s->unknown, "missed_processes", (int)s->missed, "by_waits", e->clock == ALLOC_CLOCK_WAITS,
	        "by_counter", e->clock == ALLOC_CLOCK_COUNTER, "own_samples", (json_int_t)e->samples, "sampled",
	        s->sampled);
}

const struct event_words alloc_words = {
        .key = "alloc",
        .head = head,
        .losses = losses,
        .json = to_json,
};
