/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of `perf script`, for its readers (FlameGraph, flamescope, Hotspot, speedscope …): a sample's line "comm
 * pid/tid [cpu] seconds: period event:" (perf-script(1), its default fields), its frames from the leaf on, an empty
 * line. Each CPU sample has a line of its own; in other profiles each stack has one, whose period is its count.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "samples.h"
#include "text.h"
#include "unwind/cleanup.h"

#define RECORDS_MOST (1u << 20) /* if there are more samples, a stack is one record, too */

static void put_head(
        FILE *out, const struct samples *s, const struct samples_thread *t, u64 ns, u64 period, const char *event)
{
	char name[SAMPLES_NAME];

	fprintf(out, "%s %u/%u [000] %" PRIu64 ".%06" PRIu64 ": %" PRIu64 " %s: \n", samples_name(t, false, name),
	        t->pid ? t->pid : t->tid, t->tid, ns / 1000000000, ns / 1000 % 1000000, period, event);
}

static const char *place_of(const struct profile *p, const struct profile_function *f)
{
	if (f->flags & FRAME_INLINED)
		return "inlined";
	if (f->kind == KIND_KERNEL)
		return "[kernel.kallsyms]";
	return f->image ? p->images[f->image].path : *f->module ? f->module : "[unknown]";
}

/*
 * "checkout app.lua:12" of "checkout (app.lua:12)": FlameGraph's stackcollapse-perf.pl cuts names at a bracket; then
 * functions of one name would be one.
 */
static void without_brackets(char *name)
{
	size_t n = strlen(name);
	char *open = strrchr(name, '(');

	if (!n || name[n - 1] != ')' || !open || open == name || open[-1] != ' ' || !strchr(open, ':'))
		return;
	memmove(open, open + 1, strlen(open + 1) + 1);
	name[n - 2] = '\0';
}

static void put_frames(FILE *out, const struct profile *p, u32 node)
{
	char name[TEXT_CLEAN], place[TEXT_CLEAN];

	for (; samples_is_code(p, node); node = p->nodes[node].parent) {
		const struct profile_function *f = &p->functions[p->nodes[node].function];

		text_clean(text_name(f), name);
		without_brackets(name);
		text_clean(place_of(p, f), place);
		fprintf(out, "\t%16" PRIx64 " %s (%s)\n", f->address, name, place);
	}
	putc('\n', out);
}

static void put_samples(FILE *out, const struct profile *p, const struct samples *s)
{
	double period = text_period_ns(&p->meta);
	const char *event = period ? "cpu-clock" : text_unit(&p->meta);

	bool each = period && p->nodes[0].total <= RECORDS_MOST;

	for (u32 i = 0; i < s->n && !ferror(out); i++) {
		const struct sample_of *sample = &s->list[i];
		u64 n = each ? sample->count : 1;

		for (u64 k = 0; k < n && !ferror(out); k++) {
			put_head(out, s, &s->threads[sample->thread], sample->ns + text_scaled(k, s->step_ns),
			        period     ? text_scaled(sample->count / n, period)
			        : s->timed ? text_scaled(sample->count, s->step_ns)
			                   : sample->count,
			        event);
			put_frames(out, p, sample->node);
		}
	}
}

static struct error *write_perf(const struct profile *p, FILE *out)
{
	cleanup(order) struct order *order = NULL;
	cleanup(samples) struct samples s = {0};
	struct error *err = order_create(p, &order);

	if (!err)
		err = samples_create(p, order, &s);
	if (err)
		return err;
	samples_sort_by_time(&s);
	put_samples(out, p, &s);
	return text_finish(out, "text of perf script");
}

const struct format format_perf = {
        .name = "perf",
        .extension = ".perf",
        .description = "as perf script prints it",
        .threads = true,
        .processes = PROCESSES_EACH,
        .write = write_perf,
};
