/* SPDX-License-Identifier: Apache-2.0 */
/* The results of latency: how long calls took, as a histogram, in the last line and as JSON. */
#include <string.h>

#include "probes/event_command.h"
#include "probes/loss.h"
#include "probes/hit/hit_slow.h"
#include "probes/wait/wait_reason.h"
#include "unwind/clean_text.h"

#define BAR   48u
#define SHOWN 10u /* of the longest calls */

static const struct latency_stats *counts_of(const struct sampler_stats *st)
{
	const struct latency_summary *summary = st->of_event;

	return &summary->counts;
}

static const struct slow_calls *slow_of(const struct sampler_stats *st)
{
	const struct latency_summary *summary = st->of_event;

	return summary->slow;
}

static void print_time(FILE *out, u64 ns)
{
	if (ns < 10000)
		fprintf(out, "%lu ns", ns);
	else if (ns < 10000000)
		fprintf(out, "%.4g us", (double)ns / 1e3);
	else
		fprintf(out, "%.4g ms", (double)ns / 1e6);
}

/* The middle of the bucket that the call of this rank is in. */
static u64 quantile(const struct latency_stats *s, double part)
{
	u64 rank = (u64)(part * (double)s->returned), seen = 0, ns;
	u32 i = 0;

	while (i < LATENCY_BUCKETS - 1 && (seen += s->bucket[i]) <= rank)
		i++;
	ns = (latency_least(i) + latency_least(i + 1)) / 2;
	return ns < s->max_ns ? ns : s->max_ns;
}

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct latency_stats *s = counts_of(st);

	fprintf(out, "%lu calls in %.1f s", s->returned, st->duration_s);
	if (s->returned) {
		fputs(": mean ", out);
		print_time(out, s->sum_ns / s->returned);
		fputs(", median ", out);
		print_time(out, quantile(s, 0.5));
		fputs(", 99 % ", out);
		print_time(out, quantile(s, 0.99));
		fputs(", most ", out);
		print_time(out, s->max_ns);
	}
	fprintf(out, "; stacks of %lu slow ones", s->slow);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct latency_stats *s = counts_of(st);

	if (s->left)
		fprintf(out, ", %lu calls left without a return (exception, longjmp)", s->left);
	if (s->lost)
		fprintf(out, ", %lu calls left by a jump to where returns are not known", s->lost);
	if (s->entered > s->returned + s->left + s->lost)
		fprintf(out, ", %lu calls not over", s->entered - s->returned - s->left - s->lost);
}

static void draw(FILE *out, const struct sampler_stats *st)
{
	const struct latency_stats *s = counts_of(st);
	u32 first = LATENCY_BUCKETS, last = 0;
	u64 most = 0;

	for (u32 i = 0; i < LATENCY_BUCKETS; i++) {
		if (!s->bucket[i])
			continue;
		first = first < i ? first : i;
		last = i;
		most = most > s->bucket[i] ? most : s->bucket[i];
	}
	for (u32 i = first; i <= last && most; i++) {
		u64 n = s->bucket[i], width = (n * BAR + most - 1) / most;
		char bar[BAR + 1];

		memset(bar, '#', width);
		bar[width] = '\0';
		fprintf(out, "%12.1f us  %10lu  %s\n", (double)latency_least(i) / 1e3, n, bar);
	}
}

static u64 waited(const struct slow_call *call)
{
	u64 sum = 0;

	for (u32 i = 0; i < call->nwaits; i++)
		sum += call->wait[i].ns;
	return sum;
}

static void print_waits(FILE *out, const struct slow_call *call)
{
	char reason[REASON_LEN];

	fputs("\t\twaited ", out);
	print_time(out, waited(call));
	for (u32 i = 0; i < call->nwaits; i++) {
		wait_reason_text(call->wait[i].reason, reason);
		fprintf(out, "%s%s", i ? ", " : ": ", reason);
		if (call->nwaits == 1)
			break;
		putc(' ', out);
		print_time(out, call->wait[i].ns);
	}
	putc('\n', out);
}

static void list(FILE *out, const struct sampler_stats *st)
{
	const struct slow_calls *slow = slow_of(st);
	char clean[TEXT_CLEAN];

	if (slow->n)
		fputs("longest calls:\n", out);
	for (u32 i = 0; i < slow->n && i < SHOWN; i++) {
		const struct slow_call *call = &slow->of[i];

		fprintf(out, "%12.1f us  at %.3f s  ", (double)call->ns / 1e3, (double)call->at_ns / 1e9);
		text_clean(call->comm, clean);
		fprintf(out, "%s (%u)  ", clean, call->tid);
		text_clean(call->text, clean);
		fprintf(out, "%s\n", clean);
		if (call->nwaits)
			print_waits(out, call);
	}
	if (slow->n > SHOWN)
		fprintf(out, "\t\tand %u more in the page and in --stats\n", slow->n - SHOWN);
}

static void latency_print(FILE *out, const struct sampler_stats *st)
{
	draw(out, st);
	list(out, st);
}

static json_t *waits_json(const struct slow_call *call)
{
	json_t *list = json_array();
	char reason[REASON_LEN];

	for (u32 i = 0; i < call->nwaits; i++) {
		wait_reason_text(call->wait[i].reason, reason);
		json_array_append_new(
		        list, json_pack("{s:s, s:I}", "reason", reason, "ns", (json_int_t)call->wait[i].ns));
	}
	return list;
}

static json_t *slow_json(const struct slow_calls *slow)
{
	json_t *list = json_array();
	char thread[TEXT_CLEAN], text[TEXT_CLEAN];

	for (u32 i = 0; i < slow->n; i++) {
		const struct slow_call *call = &slow->of[i];

		text_clean(call->comm, thread);
		text_clean(call->text, text);
		json_array_append_new(
		        list, json_pack("{s:I, s:I, s:i, s:i, s:s, s:s, s:o}", "ns", (json_int_t)call->ns, "at_ns",
		                      (json_int_t)call->at_ns, "pid", (int)call->tgid, "tid", (int)call->tid, "thread",
		                      thread, "call", text, "waits", waits_json(call)));
	}
	return list;
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct latency_stats *s = counts_of(st);
	json_t *buckets = json_array(), *root;

	for (u32 i = 0; i < LATENCY_BUCKETS; i++)
		if (s->bucket[i])
			json_array_append_new(
			        buckets, json_pack("{s:I, s:I, s:I}", "from_ns", (json_int_t)latency_least(i), "to_ns",
			                         (json_int_t)latency_least(i + 1), "calls", (json_int_t)s->bucket[i]));
	root = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "entered", (json_int_t)s->entered,
	        "returned", (json_int_t)s->returned, "unpaired", (json_int_t)s->unpaired, "left", (json_int_t)s->left,
	        "lost", (json_int_t)s->lost, "slow", (json_int_t)s->slow, "sum_ns", (json_int_t)s->sum_ns, "max_ns",
	        (json_int_t)s->max_ns, "histogram", buckets, "longest", slow_json(slow_of(st)));
	return root;
}

const struct event_words latency_words = {
        .key = "latency",
        .print = latency_print,
        .head = head,
        .losses = losses,
        .json = to_json,
};
