/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen and what was lost: a line of text, and JSON for programs. */
#include "loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "event_command.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"

static const char *const lost_words[] = {
#define X(id, word) [id] = word,
        LOST_CAUSES(X)
#undef X
};

/* Three digits, with the largest unit that is not more; the smallest has no parts. */
static void scaled(double value, double base, const char *const *units, char *ret, size_t room)
{
	u32 i = 0;

	for (; value >= base && units[i + 1]; i++)
		value /= base;
	snprintf(ret, room, "%.*f %s", !i || value >= 100 ? 0 : value < 10 ? 2 : 1, value, units[i]);
}

const char *loss_amount(double bytes, char ret[LOSS_AMOUNT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", NULL};

	scaled(bytes, 1024, units, ret, LOSS_AMOUNT);
	return ret;
}

const char *loss_time(double ns, char ret[LOSS_TIME])
{
	static const char *const units[] = {"ns", "us", "ms", "s", NULL};

	scaled(ns, 1000, units, ret, LOSS_TIME);
	return ret;
}

double loss_estimate(double count)
{
	double digit = count < 1000 ? 1 : pow(10, floor(log10(count)) - 2);

	return round(count / digit) * digit;
}

void loss_bytes(FILE *out, double bytes)
{
	char text[LOSS_AMOUNT];

	fputs(loss_amount(bytes, text), out);
}

u64 total_lost(const struct sampler_stats *st)
{
	u64 sum = st->lost_clock + st->collect.unmatched;

	for (u32 i = 0; i < LOST_MAX; i++)
		sum += st->probe.lost[i];
	return sum;
}

/* A number of the event's unit. */
static void print_amount(FILE *out, const struct sampler_stats *st, u64 n)
{
	if (!strcmp(st->event->unit, "nanoseconds"))
		fprintf(out, "%.3f s", (double)n / 1e9);
	else if (!strcmp(st->event->unit, "bytes") && n)
		loss_bytes(out, (double)n);
	else
		fprintf(out, "%lu", n);
}

static void print_truncated(FILE *out, const struct sampler_stats *st)
{
	u64 truncated = 0;
	const char *separator = " (";

	for (u32 i = 0; i < STOP_MAX; i++)
		truncated += stop_is_complete(i) ? 0 : st->probe.stop[i];
	fputs(", ", out);
	print_amount(out, st, truncated);
	fputs(" truncated", out);
	for (u32 i = 0; i < STOP_MAX; i++) {
		if (stop_is_complete(i) || !st->probe.stop[i])
			continue;
		fprintf(out, "%s%s ", separator, stop_word(i));
		print_amount(out, st, st->probe.stop[i]);
		separator = ", ";
	}
	if (truncated)
		fputc(')', out);
}

#define IDLE_TOLD 3 /* rules */

/* The rule that hid most, of those that hid less than most (or as much, behind it). 0: none. */
static u32 next_idle(const struct collect_stats *st, u64 most, u32 behind)
{
	u32 best = 0;

	for (u32 i = 1; i <= st->nidle_by; i++) {
		u64 value = st->idle_by[i].value;

		if (value && (value < most || (value == most && i > behind)) &&
		        (!best || value > st->idle_by[best].value))
			best = i;
	}
	return best;
}

/* " (4.2 s in select, 1.0 s in accept, 0.3 s in others; --idle shows it)" */
static void print_idle(FILE *out, const struct sampler_stats *st)
{
	const struct collect_stats *c = &st->collect;
	u64 most = ~0ull, rest = c->idle;
	u32 i = 0;

	print_amount(out, st, c->idle);
	fputs(" hidden as idle (", out);
	for (u32 told = 0; told < IDLE_TOLD && (i = next_idle(c, most, i)); told++) {
		most = c->idle_by[i].value;
		rest -= most;
		print_amount(out, st, most);
		fprintf(out, " in %s%s", c->idle_by[i].rule, rest ? ", " : "; ");
	}
	if (rest && rest != c->idle) {
		print_amount(out, st, rest);
		fputs(" in others; ", out);
	}
	fputs("--idle shows it)", out);
}

static const struct event_words *words_of(const struct sampler_stats *st)
{
	static const struct event_words none;

	return st->event->words ? st->event->words : &none;
}

void loss_complete(FILE *out, const struct sampler_stats *st)
{
	if (st->probe.weights)
		fprintf(out, ": %.2f %% complete", 100.0 * (double)st->complete / (double)st->probe.weights);
}

char *loss_line(const struct sampler_stats *st)
{
	const struct event_words *words = words_of(st);
	u64 taken = st->probe.weights;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (words->head) {
		words->head(out, st);
	} else {
		fprintf(out, "%lu %s", taken, st->event->unit);
		if (st->expected >= 0.5)
			fprintf(out, " of %.0f expected", st->expected);
		fprintf(out, " in %.1f s", st->duration_s);
		loss_complete(out, st);
	}
	print_truncated(out, st);
	fputs(", ", out);
	print_amount(out, st, total_lost(st));
	fputs(" lost", out);
	if (st->collect.filtered) {
		fputs(", ", out);
		print_amount(out, st, st->collect.filtered);
		fputs(" left out as asked", out);
	}
	if (st->collect.idle && !words->says_idle) {
		fputs(", ", out);
		print_idle(out, st);
	}
	if (words->losses)
		words->losses(out, st);
	if (st->collect.unresolved)
		fprintf(out, ", %.2f %% of frames unnamed",
		        100.0 * (double)st->collect.unresolved / (double)st->collect.frames);
	if (st->collect.guessed)
		fprintf(out, ", %.2f %% of samples with guessed callers (?)",
		        100.0 * (double)st->collect.guessed / (double)st->collect.counted);
	if (st->collect.approx)
		fprintf(out, ", %.2f %% of leaves approximate (~)",
		        100.0 * (double)st->collect.approx / (double)st->collect.counted);
	if (st->collect.below_approx)
		fprintf(out, ", %.2f %% of samples in or below an approximate frame",
		        100.0 * (double)st->collect.below_approx / (double)st->collect.counted);
	if (st->unread->n)
		fprintf(out, ", %u of %u processes could not be looked into", st->unread->n, st->processes);
	if (st->halvings)
		fprintf(out, ", rate halved %u times", st->halvings);
	if (st->probed > 0)
		fprintf(out, ", probed %.1f %% of the time", 100 * st->probed);
	fprintf(out, "; %.1f us a sample, %.2f %% of a CPU, at most %lu MB", st->bpf_ns_per_sample / 1000,
	        st->cpu_percent, (st->max_rss_kb + 1023) / 1024);
	fclose(out);
	return text;
}

static json_t *unread_processes(const struct unread_list *l)
{
	json_t *array = json_array();

	for (u32 i = 0; i < l->kept; i++) {
		cleanup(free) char *name = clean_text(l->first[i].comm), *why = clean_text(l->first[i].why);

		json_array_append_new(
		        array, json_pack("{s:i, s:s*, s:s*}", "pid", (int)l->first[i].pid, "name", name, "why", why));
	}
	return array;
}

static json_t *truncated_counts(const struct sampler_stats *st)
{
	json_t *object = json_object();

	for (u32 i = 0; i < STOP_MAX; i++)
		if (st->probe.stop[i] && !stop_is_complete(i))
			json_object_set_new(object, stop_word(i), json_integer((json_int_t)st->probe.stop[i]));
	return object;
}

static json_t *lost_counts(const struct sampler_stats *st)
{
	json_t *object = json_object();

	for (u32 i = 0; i < LOST_MAX; i++)
		if (st->probe.lost[i])
			json_object_set_new(object, lost_words[i], json_integer((json_int_t)st->probe.lost[i]));
	return object;
}

/* What hid waits: {"select": 4200000000}; "": rules that are not told apart. */
static json_t *idle_to_json(const struct collect_stats *st)
{
	json_t *ret = json_object();

	for (u32 i = 0; i <= st->nidle_by; i++)
		if (st->idle_by[i].value)
			json_object_set_new(ret, st->idle_by[i].rule, json_integer((json_int_t)st->idle_by[i].value));
	return ret;
}

json_t *stats_json(const struct sampler_stats *st)
{
	json_t *lost = lost_counts(st);
	json_t *root;

	if (st->lost_clock)
		json_object_set_new(lost, "clock", json_integer((json_int_t)st->lost_clock));
	if (st->collect.unmatched)
		json_object_set_new(lost, "unmatched", json_integer((json_int_t)st->collect.unmatched));
	root = json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:f, s:f, s:f}",
	        "processes", (json_int_t)st->processes, "unread_processes", (json_int_t)st->unread->n, "samples",
	        (json_int_t)st->probe.weights, "complete", (json_int_t)st->complete, "truncated", truncated_counts(st),
	        "lost", lost, "expected_samples", st->expected, "shown_samples", (json_int_t)st->collect.counted,
	        "frames", (json_int_t)st->probe.frames, "unresolved_frames", (json_int_t)st->collect.unresolved,
	        "unique_stacks", (json_int_t)st->collect.stacks, "bpf_ns_per_sample", st->bpf_ns_per_sample,
	        "cpu_percent", st->cpu_percent, "max_rss_kb", (json_int_t)st->max_rss_kb, "map_kb",
	        (json_int_t)st->map_kb, "first_sample_ms", st->first_sample_ms, "armed_ms", st->armed_ms, "duration_s",
	        st->duration_s);
	json_object_update_new(root, json_pack("{s:I, s:f, s:I}", "walker_loads", (json_int_t)st->walkers.loads,
	                                     "walker_load_s", (double)st->walkers.ns / 1e9, "first_sample_at_ns",
	                                     (json_int_t)st->probe.first_ns)); /* CLOCK_MONOTONIC */
	json_object_update_new(
	        root, json_pack("{s:I, s:I, s:I}", "sampling_rss_kb", (json_int_t)st->sampling_rss_kb, "bpf_ns",
	                      (json_int_t)st->bpf_ns, "bpf_other_ns", (json_int_t)st->bpf_other_ns));
	json_object_update_new(root,
	        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:f}", "event", st->event->name, "unit",
	                st->event->unit, "guessed_samples", (json_int_t)st->collect.guessed, "approximate_leaves",
	                (json_int_t)st->collect.approx, "samples_below_approximate",
	                (json_int_t)st->collect.below_approx, "filtered_samples", (json_int_t)st->collect.filtered,
	                "idle_samples", (json_int_t)st->collect.idle, "target_cpu_s", st->target_cpu_s, "rate_halved",
	                (json_int_t)st->halvings, "probed", st->probed));
	json_object_set_new(root, "idle_by", idle_to_json(&st->collect));
	if (st->unread->kept)
		json_object_set_new(root, "unread", unread_processes(st->unread));
	if (st->command_status >= 0 && WIFSIGNALED(st->command_status))
		json_object_set_new(root, "program_signal", json_integer(WTERMSIG(st->command_status)));
	else if (st->command_status >= 0)
		json_object_set_new(root, "program_exit_code", json_integer(WEXITSTATUS(st->command_status)));
	if (words_of(st)->json)
		json_object_set_new(root, words_of(st)->key, words_of(st)->json(st));
	return root;
}

char *stats_text(const struct sampler_stats *st)
{
	json_t *root = stats_json(st);
	char *text = json_dumps(root, JSON_COMPACT);

	json_decref(root);
	return text;
}
