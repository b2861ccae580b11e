/* SPDX-License-Identifier: Apache-2.0 */
/* What leak --growth says of a run: the curve of memory, the stacks that matter, and how much they explain. */
#include "growth_event.h"
#include "leak_words.h"
#include "probes/event_command.h"
#include "probes/loss.h"

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct growth_summary *s = st->of_event;
	const char *still = s->left.at_their_end ? "at the end" : "still";

	loss_bytes(out, (double)s->left.touched_bytes);
	fprintf(out, " touched and %s in memory of %lu page faults, ", still, s->counters.faults);
	loss_bytes(out, (double)s->left.mapped_bytes);
	fprintf(out, " %s mapped of ", still);
	loss_bytes(out, (double)s->counters.mapped_bytes);
	fprintf(out, " by %lu calls, in %.1f s", s->counters.mapped, st->duration_s);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct growth_summary *s = st->of_event;

	if (s->part > 1)
		fprintf(out, ", one page of %lu was taken", s->part);
	if (s->counters.full || s->no_room)
		fprintf(out, ", no room for %lu pages and %lu mappings", s->counters.full, s->no_room);
	if (s->counters.missed)
		fprintf(out, ", %lu calls that changed mappings were missed", s->counters.missed);
	if (s->left.at_their_end && s->left.ended > 1)
		fprintf(out, ", as it was when each of %lu programs ended", s->left.ended);
	else if (s->left.at_their_end)
		fputs(", as it was when the program ended", out);
	else if (s->left.ended)
		fprintf(out, ", %lu processes have ended, with all they had", s->left.ended);
}

static void print(FILE *out, const struct sampler_stats *st)
{
	const struct growth_summary *s = st->of_event;

	leak_print_curves(out, &s->memory);
	fputs(s->report ? s->report : "", out);
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct growth_summary *s = st->of_event;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o}", "faults",
	        (json_int_t)s->counters.faults, "touched_bytes", (json_int_t)s->left.touched_bytes, "touched_pages",
	        (json_int_t)s->left.touched, "mapping_calls", (json_int_t)s->counters.mapped, "mapped_bytes",
	        (json_int_t)s->counters.mapped_bytes, "unmapping_calls", (json_int_t)s->counters.unmapped,
	        "still_mapped_bytes", (json_int_t)s->left.mapped_bytes, "unmapped_unseen_bytes",
	        (json_int_t)s->left.unseen_bytes, "one_page_of", (json_int_t)s->part, "no_room_pages",
	        (json_int_t)s->counters.full, "missed_calls", (json_int_t)s->counters.missed, "ended_processes",
	        (json_int_t)s->left.ended, "growing_stacks", (json_int_t)s->grows, "at_their_end",
	        (int)s->left.at_their_end, "curve", leak_curve_json(&s->memory));
}

const struct event_words growth_words = {
        .key = "growth",
        .head = head,
        .losses = losses,
        .json = to_json,
        .print = print,
};
