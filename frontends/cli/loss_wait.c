/* SPDX-License-Identifier: Apache-2.0 */
/* What off-flame and wall-flame have to say of a run: the time of threads, on and off the CPU. */
#include <math.h>

#include "cli.h"
#include "probes/wait/wait.h"

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;

	fprintf(out, "%.3f s off the CPU in %lu waits", s->off_s, s->waits);
	if (s->run_queue_s >= 0.0005)
		fprintf(out, " (%.3f s of it on the run queue)", s->run_queue_s);
	if (s->wall_s > 0)
		fprintf(out, "; threads lived for %.3f s: %.3f s on, %.3f s off, %.3f s unknown", s->wall_s, s->on_s,
		        s->off_s, fmax(0, s->wall_s - s->on_s - s->off_s));
	fprintf(out, "; in %.1f s", st->duration_s);
	loss_complete(out, st);
}

static void wall_head(FILE *out, const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;

	fprintf(out, "threads lived for %.3f s: %.3f s on the CPU (%.3f s by samples), %.3f s off", s->wall_s, s->on_s,
	        s->sampled_s, s->off_s);
	if (s->run_queue_s >= 0.0005)
		fprintf(out, " (%.3f s of it on the run queue)", s->run_queue_s);
	fprintf(out, ", %.3f s unknown; %lu waits in %.1f s", s->wall_s - s->on_s - s->off_s, s->waits, st->duration_s);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;

	if (s->skipped)
		fprintf(out,
		        ", stacks of %.1f %% of the waits, chosen at random, stand for all that are shorter than 50 ms",
		        100.0 * (double)(s->waits > s->skipped ? s->waits - s->skipped : 0) / (double)s->waits);
	if (s->left_out_s > 0)
		fprintf(out, ", %.3f s in waits shorter or longer than asked for", s->left_out_s);
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I}", "wall_s", s->wall_s, "on_s", s->on_s,
	        "sampled_on_s", s->sampled_s, "off_s", s->off_s, "run_queue_s", s->run_queue_s, "left_out_s",
	        s->left_out_s, "waits", (json_int_t)s->waits, "waits_without_stack", (json_int_t)s->skipped,
	        "walked_from_outside", (json_int_t)s->visited, "moved", (json_int_t)s->moved);
}

const struct loss_words wait_words = {
        .event = &wait_event,
        .key = "off",
        .head = head,
        .losses = losses,
        .json = to_json,
};

const struct loss_words wall_words = {
        .event = &wall_event,
        .key = "off",
        .head = wall_head,
        .losses = losses,
        .json = to_json,
};
