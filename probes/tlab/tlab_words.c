/* SPDX-License-Identifier: Apache-2.0 */
/* What java-alloc has to say of a run. */
#include <math.h>

#include "probes/event_command.h"
#include "probes/loss.h"
#include "probes/tlab/tlab_event.h"

static void print_bytes(FILE *out, double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	u32 i = 0;

	for (; bytes >= 1024 && i < 4; i++)
		bytes /= 1024;
	fprintf(out, bytes < 100 && i ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

/* What is exact, and how far the rest may be off: a share of one half has the largest error. */
static void print_alloc(FILE *out, const struct sampler_stats *st)
{
	const struct tlab_summary *a = st->of_event;

	print_bytes(out, a->bytes);
	fprintf(out, " (exact) by %lu threads in %.1f s; shares by %lu samples (standard error at most %.1f points)",
	        a->threads, st->duration_s, a->samples, a->samples ? 50 / sqrt(a->effective) : 50);
	loss_complete(out, st);
}

static void print_alloc_losses(FILE *out, const struct sampler_stats *st)
{
	const struct tlab_summary *a = st->of_event;

	if (a->unseen >= 1 && a->bytes > 0)
		fprintf(out, ", no stack seen for %.2f %% of the bytes", 100 * a->unseen / a->bytes);
	if (a->slowed > 0)
		fprintf(out, ", at a cost of about %.1f %% of the program's CPU time", 100 * a->slowed);
	if (a->slowed > 0 && a->placed < 0.99)
		fprintf(out, ", watched for %.0f %% of the time to bound that", 100 * a->placed);
	if (a->unclassed)
		fprintf(out, ", %lu without class", a->unclassed);
	if (a->late + a->refused)
		fprintf(out, ", %lu of %lu watchpoints late, %lu refused", a->late, a->set + a->late, a->refused);
	if (a->probe.skipped)
		fprintf(out, ", %lu left out in bursts", a->probe.skipped);
	if (a->probe.strange)
		fprintf(out, ", %lu events that make no sense", a->probe.strange);
	if (!a->watching)
		fputs(", without debug registers: stacks only of what needed a new buffer", out);
	if (a->trust > 0)
		fprintf(out, ", weighed by what %lu buffers held", a->probe.buffers);
	if (a->survey)
		fprintf(out, ", bytes by class and size from %lu buffers", a->probe.buffers);
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct tlab_summary *a = st->of_event;

	return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, "
	                 "s:b, s:b, s:b, s:f, s:I, s:s, s:I}",
	        "bytes", a->bytes, "unseen_bytes", a->unseen, "threads", (json_int_t)a->threads, "samples",
	        (json_int_t)a->samples, "samples_without_class", (json_int_t)a->unclassed, "interval",
	        (json_int_t)a->interval, "sampled_bytes", (json_int_t)a->probe.bytes, "refills",
	        (json_int_t)a->probe.refills, "outside", (json_int_t)a->probe.slow, "traps", (json_int_t)a->probe.traps,
	        "stale_traps", (json_int_t)a->probe.stale, "left_out", (json_int_t)a->probe.skipped, "watchpoints",
	        (json_int_t)a->set, "late", (json_int_t)a->late, "refused", (json_int_t)a->refused, "effective_samples",
	        a->effective, "slowed", a->slowed, "placed", a->placed, "realtime", (int)a->realtime, "debug_registers",
	        (int)a->watching, "survey", (int)a->survey, "survey_trust", a->trust, "buffers",
	        (json_int_t)a->probe.buffers, "sites", a->sites ? a->sites : "", "strange",
	        (json_int_t)a->probe.strange);
}

const struct event_words tlab_words = {
        .key = "alloc",
        .head = print_alloc,
        .losses = print_alloc_losses,
        .json = to_json,
};
