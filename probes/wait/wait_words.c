/* SPDX-License-Identifier: Apache-2.0 */
/* The last line of off-flame and wall-flame: the time of threads, on and off the CPU. */
#include <math.h>

#include "probes/event_command.h"
#include "probes/loss.h"
#include "probes/wait/wait.h"
#include "unwind/profile/locks.h"

/* Not below 0: the scheduler and the tracepoint read the clock at different moments of a switch. */
static double unknown_s(const struct wait_summary *s)
{
	return fmax(0, s->wall_s - s->on_s - s->off_s);
}

/* Three decimals of a second say little of less than ten milliseconds. */
static const char *seconds(u64 ns, char ret[LOSS_TIME])
{
	if (ns && ns < 10000000)
		return loss_time((double)ns, ret);
	snprintf(ret, LOSS_TIME, "%.3f s", (double)ns / 1e9);
	return ret;
}

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;
	char text[LOSS_TIME];

	fprintf(out, "%s off the CPU in %lu waits", seconds((u64)(s->off_s * 1e9), text), s->waits);
	if (s->run_queue_s >= 0.0005)
		fprintf(out, " (%.3f s of it on the run queue)", s->run_queue_s);
	if (s->wall_s > 0)
		fprintf(out, "; threads lived for %.3f s: %.3f s on, %.3f s off, %.3f s unknown", s->wall_s, s->on_s,
		        s->off_s, unknown_s(s));
	if (s->looks)
		fprintf(out, "; %.3f s of tasks without a thread, in %lu looks", s->tasks_s + s->unseen_tasks_s,
		        s->looks);
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
	fprintf(out, ", %.3f s unknown; %lu waits in %.1f s", unknown_s(s), s->waits, st->duration_s);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;

	if (s->skipped)
		fprintf(out, ", stacks of %.1f %% of the waits, chosen at random, stand for others shorter than 50 ms",
		        100.0 * (double)(s->waits > s->skipped ? s->waits - s->skipped : 0) / (double)s->waits);
	if (s->off_by >= 0.0005)
		fprintf(out, ": shares may be off by %.1f points", 100 * s->off_by);
	if (s->watched < 0.999)
		fprintf(out, ", switches were watched for %.0f %% of the time, in shifts", 100 * s->watched);
	if (s->left_out_s > 0)
		fprintf(out, ", %.3f s in waits shorter or longer than asked for", s->left_out_s);
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "tasks_s",
	        s->tasks_s, "wall_s", s->wall_s, "on_s", s->on_s, "sampled_on_s", s->sampled_s, "off_s", s->off_s,
	        "run_queue_s", s->run_queue_s, "left_out_s", s->left_out_s, "off_by", s->off_by, "waits",
	        (json_int_t)s->waits, "waits_without_stack", (json_int_t)s->skipped, "returns_not_reported",
	        (json_int_t)s->unseen, "walked_from_outside", (json_int_t)s->visited, "moved", (json_int_t)s->moved,
	        "looks", (json_int_t)s->looks, "watched", s->watched);
}

/* Waits for locks; others that are shown; others that are not. */
enum part { LOCKS, OTHERS, HIDDEN };

static u64 value_of(const struct sampler_stats *st, u32 kind, enum part part, u64 *waits)
{
	u64 value = st->collect.lock[kind].value, hidden = kind < LOCK_OTHERS ? 0 : st->collect.lock[kind].hidden,
	    hidden_waits = kind < LOCK_OTHERS ? 0 : st->collect.lock[kind].hidden_more;

	*waits = part == HIDDEN ? hidden_waits : st->collect.lock[kind].more - hidden_waits;
	if (part != HIDDEN && (kind < LOCK_OTHERS) != (part == LOCKS))
		return *waits = 0;
	return part == HIDDEN ? hidden : value - hidden;
}

static json_t *lock_json(const struct sampler_stats *st)
{
	json_t *ret = to_json(st), *all = json_object();

	for (u32 i = 0; ret && all && i < LOCK_KINDS; i++)
		json_object_set_new(all, lock_kind_words(i),
		        json_pack("{s:f, s:I, s:f, s:b}", "s", (double)st->collect.lock[i].value / 1e9, "waits",
		                (json_int_t)st->collect.lock[i].more, "hidden_s",
		                (double)st->collect.lock[i].hidden / 1e9, "contention", i < LOCK_OTHERS));
	json_object_set_new(ret, "kinds", all);
	return ret;
}

static u64 sum(const struct sampler_stats *st, enum part part, u64 *waits)
{
	u64 ns = 0, n;

	*waits = 0;
	for (u32 i = 0; i < LOCK_KINDS; i++) {
		ns += value_of(st, i, part, &n);
		*waits += n;
	}
	return ns;
}

/* " (mutexes 1.203 s in 12, ...)", if there are any. */
static void kinds(FILE *out, const struct sampler_stats *st, enum part part)
{
	const char *separator = " (";
	char text[LOSS_TIME];
	u64 ns, waits;

	for (u32 i = 0; i < LOCK_KINDS; i++) {
		ns = value_of(st, i, part, &waits);
		if (!ns)
			continue;
		fprintf(out, "%s%s %s in %lu", separator, lock_kind_words(i), seconds(ns, text), waits);
		separator = ", ";
	}
	if (*separator == ',')
		fputc(')', out);
}

static void lock_head(FILE *out, const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;
	u64 waits, ns = sum(st, LOCKS, &waits);
	char text[LOSS_TIME];

	fprintf(out, "%s of waiting for locks in %lu waits", seconds(ns, text), waits);
	if (s->looks)
		fprintf(out, " of threads and %lu looks at tasks", s->looks);
	kinds(out, st, LOCKS);
	fprintf(out, "; in %.1f s", st->duration_s);
	loss_complete(out, st);
}

static void lock_losses(FILE *out, const struct sampler_stats *st)
{
	const struct wait_summary *s = st->of_event;
	u64 waits, shown = sum(st, OTHERS, &waits), hidden = sum(st, HIDDEN, &waits);
	char text[LOSS_TIME];

	losses(out, st);
	if (s->run_queue_s >= 0.0005)
		fprintf(out, ", then %.3f s on the run queue", s->run_queue_s);
	if (shown) {
		fprintf(out, ", %s of other waits %samid work", seconds(shown, text), s->looks ? "" : "in futex() ");
		kinds(out, st, OTHERS);
	}
	if (hidden) {
		fprintf(out, ", %s that --all-waits shows", seconds(hidden, text));
		kinds(out, st, HIDDEN);
	}
}

const struct event_words lock_words = {
        .key = "lock",
        .says_idle = true,
        .head = lock_head,
        .losses = lock_losses,
        .json = lock_json,
};

const struct event_words wait_words = {
        .key = "off",
        .head = head,
        .losses = losses,
        .json = to_json,
};

const struct event_words wall_words = {
        .key = "off",
        .head = wall_head,
        .losses = losses,
        .json = to_json,
};
