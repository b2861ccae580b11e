/* SPDX-License-Identifier: Apache-2.0 */
/* What leak says of a run: the curve of memory, the verdict, the stacks that matter. */
#include "leak.h"
#include "probes/event_command.h"
#include "probes/loss.h"

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;

	fprintf(out, "watched %lu blocks", s->counters.watched);
	if (s->in_shifts)
		fprintf(out, " for up to %.1f s each", s->watch_s);
	fprintf(out, ": %lu freed, %lu not; %s%lu calls in %.1f s", s->counters.freed, s->left,
	        s->in_shifts ? "about " : "", s->calls, st->duration_s);
	if (*s->from)
		fprintf(out, ", from %s", s->from);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;

	if (s->counters.full)
		fprintf(out, ", no room to watch %lu blocks", s->counters.full);
	if (s->counters.left)
		fprintf(out, ", %lu blocks were freed by what yrt does not know", s->counters.left);
}

static void print_line(FILE *out, const struct leak_summary *s, const char *word, bool heap)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	u64 least = UINT64_MAX, most = 0, value;

	for (u32 i = 0; i < s->npoints; i++) {
		value = heap ? s->curve[i].heap : s->curve[i].rss;
		least = value < least ? value : least;
		most = value > most ? value : most;
	}
	fprintf(out, "yrt: %s ", word);
	for (u32 i = 0; i < s->npoints; i++) {
		value = heap ? s->curve[i].heap : s->curve[i].rss;
		if (s->npoints <= 64 || i % 2 == 0)
			fputs(bars[most > least ? (value - least) * 7 / (most - least) : 0], out);
	}
	fputs(" from ", out);
	loss_bytes(out, (double)(heap ? s->curve[0].heap : s->curve[0].rss));
	fputs(" to ", out);
	loss_bytes(out, (double)(heap ? s->curve[s->npoints - 1].heap : s->curve[s->npoints - 1].rss));
	fputc('\n', out);
}

static void print(FILE *out, const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;

	if (s->npoints) {
		print_line(out, s, "resident ", false);
		print_line(out, s, "anonymous", true);
	}
	if (s->left)
		fprintf(out, "yrt: left at the end%s:\n%s", s->in_shifts ? " of the time that they were watched" : "",
		        s->report ? s->report : "");
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;
	json_t *curve = json_array();

	for (u32 i = 0; i < s->npoints; i++)
		json_array_append_new(curve, json_pack("[f, I, I]", (double)s->curve[i].ns / 1e9,
		                                     (json_int_t)s->curve[i].rss, (json_int_t)s->curve[i].heap));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:o}", "calls",
	        (json_int_t)s->calls, "bytes", (json_int_t)s->bytes, "watched", (json_int_t)s->counters.watched,
	        "freed", (json_int_t)s->counters.freed, "left", (json_int_t)s->left, "left_bytes",
	        (json_int_t)s->left_bytes, "failed", (json_int_t)s->counters.failed, "no_room",
	        (json_int_t)s->counters.full, "not_freed_by_free", (json_int_t)s->counters.left, "growing_stacks",
	        (json_int_t)s->grows, "from", s->from, "in_shifts", (int)s->in_shifts, "curve", curve);
}

const struct event_words leak_words = {
        .key = "leak",
        .head = head,
        .losses = losses,
        .json = to_json,
        .print = print,
};
