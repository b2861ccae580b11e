/* SPDX-License-Identifier: Apache-2.0 */
/* What leak says of a run: the curve of memory, the verdict, the stacks that matter. */
#include "leak.h"

#include <math.h>

#include "leak_words.h"
#include "probes/event_command.h"
#include "probes/loss.h"

#define FRAGMENTED 0.1 /* of the heap, that became free */
#define GROWN      0.1 /* of what was in use */
#define MORE       0.01
#define SMALL      16 /* such a part of memory (1/SMALL) in a heap says nothing: another allocator has the rest */
#define LONGER     4  /* times as long a run watches more blocks, and each for longer */

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;

	fprintf(out, "watched %lu blocks: %lu freed, ", s->counters.watched, s->counters.freed);
	if (s->in_windows)
		fprintf(out,
		        "%lu seen in a window only, %lu looked at again, %lu by debug registers; %lu outlived; about "
		        "%.0f",
		        s->cut, s->looked_at, s->registers, s->outlived, loss_estimate(s->estimate.calls));
	else
		fprintf(out, "%lu not; %lu", s->left, s->calls);
	fprintf(out, " calls in %.1f s", st->duration_s);
	if (*s->from)
		fprintf(out, ", from %s", s->from);
	if (*s->sampled)
		fprintf(out, ", from %lu samples of %s", s->estimate.samples, s->sampled);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;

	if (s->counters.full)
		fprintf(out, ", no room to watch %lu blocks", s->counters.full);
	if (s->counters.left && !s->in_windows)
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

static void print_amounts(FILE *out, const char *word, double from, double to)
{
	fprintf(out, "%s from ", word);
	loss_bytes(out, from);
	fputs(" to ", out);
	loss_bytes(out, to);
}

/* Is it a leak at all? Memory in use says so, by the allocators' own books. */
static void print_heap(FILE *out, const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;
	const struct leak_heap_point *first = s->heap, *last = &s->heap[s->nheap - 1], *middle = &s->heap[s->nheap / 2];
	double used, more, late, run, half;

	if (s->nheap < 2 || (s->npoints && last->in_use + last->free < s->curve[s->npoints - 1].heap / SMALL))
		return;
	run = (double)(last->ns - first->ns);
	half = (double)(last->ns - middle->ns);
	used = (double)last->in_use - (double)first->in_use;
	more = (double)last->free - (double)first->free;
	late = (double)last->in_use - (double)middle->in_use;
	fputs("yrt: ", out);
	print_amounts(out, "in use", (double)first->in_use, (double)last->in_use);
	print_amounts(out, ", free in the heap", (double)first->free, (double)last->free);
	if (more > FRAGMENTED * (double)(first->in_use + first->free) && used < more / 4)
		fputs(": it is free memory that grows, not what is in use", out);
	else if (s->nheap >= 4 && used > GROWN * (double)first->in_use && late * run < used * half / 4)
		fputs(late > MORE * (double)last->in_use
		                ? ": it grew fast at first, and grows still; a run that begins now tells what"
		                : ": it grew, and does so no more",
		        out);
	else if (s->in_windows && !s->grows && used > MORE * (double)first->in_use && late > used / 4) {
		fputs(": it grows, and what makes it grow was not seen for long enough", out);
		if (!s->no_registers)
			fprintf(out, "; -d %.0f may tell", LONGER * round(st->duration_s));
	}
	fputc('\n', out);
}

void leak_print_curves(FILE *out, const struct leak_summary *s)
{
	if (!s->npoints)
		return;
	print_line(out, s, "resident ", false);
	print_line(out, s, "anonymous", true);
}

static void print(FILE *out, const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;

	leak_print_curves(out, s);
	print_heap(out, st);
	if (s->in_windows && s->no_registers)
		fprintf(out, "yrt: without debug registers: %s\n", s->no_registers);
	if (s->left || s->in_windows)
		fprintf(out, "yrt: left at the end%s:\n%s", s->in_windows ? ", as windows and debug registers say" : "",
		        s->report && *s->report ? s->report : "  nothing that outlives what was watched\n");
}

static json_t *heap_json(const struct leak_summary *s)
{
	json_t *heap = json_array();

	for (u32 i = 0; i < s->nheap; i++)
		json_array_append_new(heap, json_pack("[f, I, I]", (double)s->heap[i].ns / 1e9,
		                                    (json_int_t)s->heap[i].in_use, (json_int_t)s->heap[i].free));
	return heap;
}

json_t *leak_curve_json(const struct leak_summary *s)
{
	json_t *curve = json_array();

	for (u32 i = 0; i < s->npoints; i++)
		json_array_append_new(curve, json_pack("[f, I, I]", (double)s->curve[i].ns / 1e9,
		                                     (json_int_t)s->curve[i].rss, (json_int_t)s->curve[i].heap));
	return curve;
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct leak_summary *s = st->of_event;

	return json_pack(
	        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:o, s:o, s:I, s:I, s:I, s:I, s:f, "
	        "s:f, s:f, s:i, s:f, s:f, s:b, s:f, s:f}",
	        "calls", (json_int_t)s->calls, "bytes", (json_int_t)s->bytes, "watched",
	        (json_int_t)s->counters.watched, "freed", (json_int_t)s->counters.freed, "left", (json_int_t)s->left,
	        "left_bytes", (json_int_t)s->left_bytes, "failed", (json_int_t)s->counters.failed, "no_room",
	        (json_int_t)s->counters.full, "not_freed_by_free", (json_int_t)s->counters.left, "growing_stacks",
	        (json_int_t)s->grows, "from", s->from, "in_windows", (int)s->in_windows, "curve", leak_curve_json(s),
	        "heap", heap_json(s), "in_a_window", (json_int_t)s->cut, "looked_at_again", (json_int_t)s->looked_at,
	        "in_registers", (json_int_t)s->registers, "outlived", (json_int_t)s->outlived, "watched_s", s->watch_s,
	        "growth_low", s->grows_low, "growth_high", s->grows_high, "windows", (int)s->estimate.windows,
	        "hits_share", s->estimate.share, "exception_ns", s->estimate.exception_ns, "by_counter",
	        s->estimate.clock == ALLOC_CLOCK_COUNTER, "calls_estimate", s->estimate.calls, "bytes_estimate",
	        s->estimate.bytes);
}

const struct event_words leak_words = {
        .key = "leak",
        .head = head,
        .losses = losses,
        .json = to_json,
        .print = print,
};
