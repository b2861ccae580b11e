/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen and what was not: a line for people, JSON for programs. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "unwind/cleanup.h"

static const char *const lost_words[] = {
#define X(id, word) [id] = word,
	LOST_CAUSES(X)
#undef X
};

u64 total_lost(const struct sampler_stats *st)
{
	u64 sum = st->lost_clock + st->lost_short + st->collect.unmatched;

	for (u32 i = 0; i < LOST_MAX; i++)
		sum += st->probe.lost[i];
	return sum;
}

static void print_truncated(FILE *out, const struct sampler_stats *st)
{
	u64 truncated = 0;
	const char *separator = " (";

	for (u32 i = 0; i < STOP_MAX; i++)
		truncated += stop_is_complete(i) ? 0 : st->probe.stop[i];
	fprintf(out, ", %lu truncated", truncated);
	for (u32 i = 0; i < STOP_MAX; i++) {
		if (stop_is_complete(i) || !st->probe.stop[i])
			continue;
		fprintf(out, "%s%s %lu", separator, stop_word(i), st->probe.stop[i]);
		separator = ", ";
	}
	if (truncated)
		fputc(')', out);
}

static void print_bytes(FILE *out, double bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
	u32 i = 0;

	for (; bytes >= 1000 && i < 4; i++)
		bytes /= 1000;
	fprintf(out, bytes < 100 && i ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

/* What is exact, and how far the rest may be off: a share of one half has the largest error. */
static void print_alloc(FILE *out, const struct sampler_stats *st)
{
	const struct alloc_summary *a = &st->alloc;

	print_bytes(out, a->bytes);
	fprintf(out, " (exact) by %lu threads in %.1f s; shares by %lu samples (standard error at most %.1f points): %.2f %% complete",
		a->threads, st->duration_s, a->samples, a->samples ? 50 / sqrt(a->effective) : 50,
		st->probe.weights ? 100.0 * (double)st->complete / (double)st->probe.weights : 100.0);
}

static void print_alloc_losses(FILE *out, const struct sampler_stats *st)
{
	const struct alloc_summary *a = &st->alloc;

	if (a->unseen >= 1 && a->bytes > 0)
		fprintf(out, ", no stack seen for %.2f %% of the bytes", 100 * a->unseen / a->bytes);
	if (a->slowed > 0)
		fprintf(out, ", at a cost of about %.1f %% of the program's CPU time", 100 * a->slowed);
	if (a->slowed > 0 && a->placed < 0.99)
		fprintf(out, ", watched for %.0f %% of the time to keep it so low", 100 * a->placed);
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
	if (a->census)
		fprintf(out, ", bytes by class and size from %lu buffers", a->probe.buffers);
}

char *loss_line(const struct sampler_stats *st)
{
	u64 taken = st->probe.weights;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (st->by_alloc)
		print_alloc(out, st);
	else
		fprintf(out, "%lu samples of %.0f expected in %.1f s: %.2f %% complete", taken, st->expected_samples, st->duration_s,
			taken ? 100.0 * (double)st->complete / (double)taken : 100.0);
	print_truncated(out, st);
	fprintf(out, ", %lu lost", total_lost(st));
	if (st->collect.filtered)
		fprintf(out, ", %lu left out as asked", st->collect.filtered);
	if (st->by_alloc)
		print_alloc_losses(out, st);
	if (st->collect.unresolved)
		fprintf(out, ", %.2f %% of frames unnamed", 100.0 * (double)st->collect.unresolved / (double)st->collect.frames);
	if (st->collect.approx)
		fprintf(out, ", %.2f %% of leaves approximate (~)",
			100.0 * (double)st->collect.approx / (double)st->collect.counted);
	if (st->halvings)
		fprintf(out, ", rate halved %u times", st->halvings);
	fprintf(out, "; %.1f us a sample, %.2f %% of a CPU", st->bpf_ns_per_sample / 1000, st->cpu_percent);
	fclose(out);
	return text;
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

static json_t *alloc_json(const struct alloc_summary *a)
{
	return json_pack("{s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:b, s:b, s:b, s:f, s:I, s:s, s:I}",
		"bytes", a->bytes,
		"unseen_bytes", a->unseen,
		"threads", (json_int_t)a->threads,
		"samples", (json_int_t)a->samples,
		"samples_without_class", (json_int_t)a->unclassed,
		"interval", (json_int_t)a->interval,
		"sampled_bytes", (json_int_t)a->probe.bytes,
		"refills", (json_int_t)a->probe.refills,
		"outside", (json_int_t)a->probe.slow,
		"traps", (json_int_t)a->probe.traps,
		"stale_traps", (json_int_t)a->probe.stale,
		"left_out", (json_int_t)a->probe.skipped,
		"watchpoints", (json_int_t)a->set,
		"late", (json_int_t)a->late,
		"refused", (json_int_t)a->refused,
		"effective_samples", a->effective,
		"slowed", a->slowed,
		"placed", a->placed,
		"realtime", (int)a->realtime,
		"debug_registers", (int)a->watching,
		"census", (int)a->census,
		"census_trust", a->trust,
		"buffers", (json_int_t)a->probe.buffers,
		"sites", a->sites ? a->sites : "",
		"strange", (json_int_t)a->probe.strange);
}

static json_t *to_json(const struct sampler_stats *st)
{
	json_t *lost = lost_counts(st);
	json_t *root;

	if (st->lost_clock)
		json_object_set_new(lost, "clock", json_integer((json_int_t)st->lost_clock));
	if (st->lost_short)
		json_object_set_new(lost, "short_lived", json_integer((json_int_t)st->lost_short));
	if (st->collect.unmatched)
		json_object_set_new(lost, "unmatched", json_integer((json_int_t)st->collect.unmatched));
	root = json_pack("{s:I, s:I, s:o, s:o, s:f, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:f, s:f, s:f}",
		"samples", (json_int_t)st->probe.weights,
		"complete", (json_int_t)st->complete,
		"truncated", truncated_counts(st),
		"lost", lost,
		"expected_samples", st->expected_samples,
		"shown_samples", (json_int_t)st->collect.counted,
		"frames", (json_int_t)st->probe.frames,
		"unresolved_frames", (json_int_t)st->collect.unresolved,
		"unique_stacks", (json_int_t)st->collect.stacks,
		"bpf_ns_per_sample", st->bpf_ns_per_sample,
		"cpu_percent", st->cpu_percent,
		"max_rss_kb", (json_int_t)st->max_rss_kb,
		"map_kb", (json_int_t)st->map_kb,
		"first_sample_ms", st->first_sample_ms,
		"armed_ms", st->armed_ms,
		"duration_s", st->duration_s);
	json_object_update_new(root, json_pack("{s:I, s:I, s:f, s:I, s:s}",
		"approximate_leaves", (json_int_t)st->collect.approx,
		"filtered_samples", (json_int_t)st->collect.filtered,
		"target_cpu_s", st->target_cpu_s,
		"rate_halved", (json_int_t)st->halvings,
		"clock", st->source));
	if (st->by_alloc)
		json_object_set_new(root, "alloc", alloc_json(&st->alloc));
	return root;
}

char *stats_text(const struct sampler_stats *st)
{
	json_t *root = to_json(st);
	char *text = json_dumps(root, JSON_COMPACT);

	json_decref(root);
	return text;
}

struct error *stats_write(const struct sampler_stats *st, const char *path)
{
	FILE *out = !strcmp(path, "-") ? stdout : fopen(path, "we");
	json_t *root;
	bool failed;

	if (!out) {
		struct error *err = error_errno(errno, "cannot write the statistics to %s", path);

		err->kind = err == &error_no_memory ? err->kind : ERROR_OUTPUT;
		return err;
	}
	root = to_json(st);
	failed = json_dumpf(root, out, JSON_INDENT(2)) || fputc('\n', out) == EOF || fflush(out);
	json_decref(root);
	if (out != stdout && fclose(out))
		failed = true;
	return failed ? error_new(ERROR_OUTPUT, "cannot write the statistics to %s: %s", path, strerror(errno)) : NULL;
}
