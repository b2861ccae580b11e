/* SPDX-License-Identifier: Apache-2.0 */
/* What probe and latency have to say; of latency how long calls took, as a histogram, in the last line and as JSON. */
#include <string.h>

#include "probes/event_command.h"
#include "probes/loss.h"
#include "probes/stack_text.h"
#include "probes/hit/hit.h"
#include "probes/hit/hit_arguments.h"
#include "probes/hit/hit_slow.h"
#include "probes/hit/latency_times.h"
#include "probes/wait/wait_reason.h"
#include "unwind/clean_text.h"

#define BAR         48u
#define SHOWN       10u /* of the longest calls */
#define STACKS      3   /* of each */
#define STACK_SHOWN 20  /* what took this part of the call is shown with its stack */

#define PROGRESS_LEAST 0.4 /* of a target beside its probes: below, the number of its calls is not known */

static void say_unseen(FILE *out, const struct hit_unseen *unseen)
{
	if (unseen->threads)
		fprintf(out, ", calls of up to %u threads not seen: they began while others were being watched",
		        unseen->threads);
	if (!unseen->changes)
		return;
	fprintf(out, ", calls of at most %.1f ms", (double)unseen->ns / 1e6);
	if (unseen->of_ns)
		fprintf(out, " (%.2f %% of the time)", 100.0 * (double)unseen->ns / (double)unseen->of_ns);
	fprintf(out, " not seen: a function got new code (%u times)", unseen->changes);
}

static void add_unseen(json_t *to, const struct hit_unseen *unseen)
{
	json_object_set_new(to, "unwatched_threads", json_integer((json_int_t)unseen->threads));
	json_object_set_new(to, "code_changes", json_integer((json_int_t)unseen->changes));
	json_object_set_new(to, "unseen_ns", json_integer((json_int_t)unseen->ns));
	json_object_set_new(to, "unseen_of_ns", json_integer((json_int_t)unseen->of_ns));
}

static void hit_losses(FILE *out, const struct sampler_stats *st)
{
	say_unseen(out, &((const struct hit_summary *)st->of_event)->unseen);
}

static json_t *hit_json(const struct sampler_stats *st)
{
	json_t *ret = json_object();

	const struct hit_summary *summary = st->of_event;
	json_t *calls = json_array();
	char text[TEXT_CLEAN];

	add_unseen(ret, &summary->unseen);
	for (u32 i = 0; i < summary->ncalls; i++) {
		text_clean(summary->calls[i].text, text);
		json_array_append_new(
		        calls, json_pack("{s:s, s:I}", "call", text, "hits", (json_int_t)summary->calls[i].calls));
	}
	json_object_set_new(ret, "calls", calls);
	return ret;
}

/* Calls by their arguments, the most frequent. */
static void hit_print(FILE *out, const struct sampler_stats *st)
{
	const struct hit_summary *summary = st->of_event;
	char text[TEXT_CLEAN];

	for (u32 i = 0; i < summary->ncalls && i < SHOWN; i++) {
		text_clean(summary->calls[i].text, text);
		fprintf(out, "%10lu  %s\n", summary->calls[i].calls, text);
	}
	if (summary->ncalls > SHOWN)
		fprintf(out, "%10s  and %u more in the page and in --stats\n", "", summary->ncalls - SHOWN);
}

const struct event_words hit_words = {.key = "probe", .print = hit_print, .losses = hit_losses, .json = hit_json};

static void print_wide_time(FILE *out, int width, u64 ns)
{
	char text[32];

	if (ns < 10000)
		snprintf(text, sizeof(text), "%lu ns", ns);
	else if (ns < 10000000)
		snprintf(text, sizeof(text), "%.4g us", (double)ns / 1e3);
	else if (ns < 10000000000)
		snprintf(text, sizeof(text), "%.4g ms", (double)ns / 1e6);
	else
		snprintf(text, sizeof(text), "%.4g s", (double)ns / 1e9);
	fprintf(out, "%*s", width, text);
}

static void print_time(FILE *out, u64 ns)
{
	print_wide_time(out, 0, ns);
}

static void times_of(const struct latency_of *of, struct latency_times *ret)
{
	latency_times(&of->counts, &of->price, of->probed > 0 ? of->probed : 1, ret);
}

/* Calls that the target would have made without the probes if it waits for nothing but a CPU. 0: not known. */
static u64 calls_most(const struct latency_of *of)
{
	return of->progress < PROGRESS_LEAST ? 0 : (u64)((double)of->counts.returned / of->progress);
}

static void print_known(FILE *out, u64 ns, u64 known)
{
	if (ns < known)
		fprintf(out, "under %lu us", known / 1000);
	else
		print_time(out, ns);
}

static void print_times(FILE *out, const struct latency_times *t, const struct latency_price *price)
{
	fputs(": mean ", out);
	print_known(out, t->mean, t->known);
	fputs(", median ", out);
	print_known(out, t->median, t->known);
	if (t->median >= t->known) {
		fputs(" (", out);
		print_known(out, t->median_low, t->known);
		fputs(" to ", out);
		print_time(out, t->median_high);
		putc(')', out);
	}
	fputs(", 99 % ", out);
	print_known(out, t->part_99, t->known);
	fputs(", most ", out);
	print_known(out, t->most, t->known);
	if (t->known) {
		fprintf(out, ", without the probes' %.1f us", (double)price->middle / 1000);
	} else {
		fputs(", with the probes' time", out);
	}
}

static void print_calls(FILE *out, const struct latency_of *of, double duration_s)
{
	const struct latency_stats *s = &of->counts;
	u64 most = calls_most(of);
	struct latency_times times;

	fprintf(out, "%s%lu calls in %.1f s", most || !s->returned ? "" : "at least ", s->returned, duration_s);
	if (most > s->returned + s->returned / 100)
		fprintf(out, " (up to %lu without the probes if it never waits)", most);
	times_of(of, &times);
	if (s->returned)
		print_times(out, &times, &of->price);
}

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct latency_summary *summary = st->of_event;
	u64 calls = 0, slow = 0;

	for (u32 i = 0; i < summary->n; i++) {
		calls += summary->of[i].counts.returned;
		slow += summary->of[i].counts.slow;
	}
	if (summary->n == 1)
		print_calls(out, &summary->of[0], st->duration_s);
	else
		fprintf(out, "%lu calls of %u functions in %.1f s", calls, summary->n, st->duration_s);
	fprintf(out, "; stacks of %lu slow ones", slow);
	loss_complete(out, st);
}

static void print_lost(FILE *out, const struct latency_stats *s)
{
	if (s->raised)
		fprintf(out, ", %lu of the calls were left by an exception", s->raised);
	if (s->left)
		fprintf(out, ", %lu calls left without a return (exception, longjmp, compiled code)", s->left);
	if (s->left > s->returned)
		fputs(": how long they took is not known; `yrt flame` has the time of code that a JIT compiled, "
		      "`yrt requests` of nginx that of its requests",
		        out);
	if (s->lost)
		fprintf(out, ", %lu calls left by a tail call to where returns are not known", s->lost);
	if (s->entered > s->returned + s->left + s->lost)
		fprintf(out, ", %lu calls not over", s->entered - s->returned - s->left - s->lost);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct latency_summary *summary = st->of_event;

	if (summary->n == 1)
		print_lost(out, &summary->of[0].counts);
	say_unseen(out, &summary->unseen);
}

/* known: shorter times than that are only known to be shorter. */
static void draw_row(FILE *out, u64 from, u64 known, u64 calls, u64 most)
{
	u64 width = (calls * BAR + most - 1) / most;
	char bar[BAR + 1];

	memset(bar, '#', width);
	bar[width] = '\0';
	if (from < known)
		fprintf(out, "under %3lu us", known / 1000);
	else
		print_wide_time(out, 12, from);
	fprintf(out, "  %10lu  %s\n", calls, bar);
}

/* Rows between others that have no calls are one line. */
static void draw(FILE *out, const struct latency_of *of)
{
	struct latency_times t;
	u64 most = 0;

	times_of(of, &t);
	for (u32 i = 0; i < t.nrows; i++)
		most = most > t.row[i].calls ? most : t.row[i].calls;
	for (u32 i = 0; i < t.nrows; i++) {
		draw_row(out, t.row[i].from, t.known, t.row[i].calls, most);
		if (i + 1 < t.nrows && t.row[i + 1].from > t.row[i].to)
			fprintf(out, "%12s\n", "...");
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

	fprintf(out, "\t\t%swaited ", call->await[0].ns ? "its thread " : "");
	print_time(out, waited(call));
	for (u32 i = 0; i < call->nwaits; i++) {
		wait_reason_text(call->wait[i].reason, reason);
		fprintf(out, "%s%s", i ? ", " : ": ", reason);
		if (call->nwaits == 1)
			break;
		putc(' ', out);
		print_time(out, call->wait[i].ns);
	}
	fprintf(out, "; ran %s", call->ran_most ? "up to " : "");
	print_time(out, call->ran_ns);
	putc('\n', out);
}

/* Those with a large part of a call that took ns. */
static void print_stacks(FILE *out, const char *what, const struct slow_stack *of, u32 n, u64 ns)
{
	for (u32 i = 0; i < n && of[i].ns; i++) {
		if (!of[i].text || of[i].ns < ns / STACK_SHOWN)
			continue;
		fprintf(out, "\t\t%s ", what);
		print_time(out, of[i].ns);
		fputs("  ", out);
		stack_text_print(out, of[i].text);
	}
}

static void list(FILE *out, const struct slow_calls *slow)
{
	char clean[TEXT_CLEAN];

	if (slow->n)
		fputs("longest calls:\n", out);
	for (u32 i = 0; i < slow->n && i < SHOWN; i++) {
		const struct slow_call *call = &slow->of[i];

		print_wide_time(out, 12, call->ns);
		fprintf(out, "  at %.3f s  ", (double)call->at_ns / 1e9);
		text_clean(call->comm, clean);
		fprintf(out, "%s (%u)  ", clean, call->tid);
		text_clean(call->text, clean);
		fprintf(out, "%s%s\n", clean, call->raised ? ": left by an exception" : "");
		print_stacks(out, "suspended", call->await, SLOW_AWAITS, call->ns);
		if (call->nwaits)
			print_waits(out, call);
		print_stacks(out, " ", call->stack, STACKS, call->ns);
	}
	if (slow->n > SHOWN)
		fprintf(out, "\t\tand %u more in the page and in --stats\n", slow->n - SHOWN);
}

static void latency_print(FILE *out, const struct sampler_stats *st)
{
	const struct latency_summary *summary = st->of_event;

	for (u32 i = 0; i < summary->n; i++) {
		const struct latency_of *of = &summary->of[i];

		if (summary->n > 1) {
			fprintf(out, "%s%s: ", i ? "\n" : "", of->what);
			print_calls(out, of, st->duration_s);
			print_lost(out, &of->counts);
			putc('\n', out);
		}
		draw(out, of);
		list(out, of->slow);
	}
	if (summary->n > 1)
		putc('\n', out);
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

static json_t *stacks_json(const struct slow_stack *of, u32 n)
{
	json_t *list = json_array();
	char clean[TEXT_CLEAN];

	for (u32 i = 0; i < n && of[i].ns; i++) {
		text_clean(of[i].text ? of[i].text : "", clean);
		json_array_append_new(list, json_pack("{s:I, s:s}", "ns", (json_int_t)of[i].ns, "frames", clean));
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
		        list, json_pack("{s:I, s:I, s:I, s:i, s:i, s:b, s:s, s:s, s:o, s:o, s:o}", "ns",
		                      (json_int_t)call->ns, "ran_ns", (json_int_t)call->ran_ns, "at_ns",
		                      (json_int_t)call->at_ns, "pid", (int)call->tgid, "tid", (int)call->tid, "raised",
		                      call->raised, "thread", thread, "call", text, "waits", waits_json(call), "stacks",
		                      stacks_json(call->stack, SLOW_STACKS), "suspended",
		                      stacks_json(call->await, SLOW_AWAITS)));
	}
	return list;
}

static json_t *function_json(const struct latency_of *of)
{
	const struct latency_stats *s = &of->counts;
	json_t *buckets = json_array(), *root;
	struct latency_times t;

	times_of(of, &t);
	for (u32 i = 0; i < t.nrows; i++)
		json_array_append_new(
		        buckets, json_pack("{s:I, s:I, s:I}", "from_ns", (json_int_t)t.row[i].from, "to_ns",
		                         (json_int_t)t.row[i].to, "calls", (json_int_t)t.row[i].calls));
	root = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "entered", (json_int_t)s->entered,
	        "returned", (json_int_t)s->returned, "unpaired", (json_int_t)s->unpaired, "left", (json_int_t)s->left,
	        "lost", (json_int_t)s->lost, "slow", (json_int_t)s->slow, "sum_ns", (json_int_t)s->sum_ns, "max_ns",
	        (json_int_t)s->max_ns, "histogram", buckets, "longest", slow_json(of->slow));
	json_object_set_new(root, "without_probes",
	        json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "known", t.known != 0, "under_ns",
	                (json_int_t)t.known, "price_ns", (json_int_t)of->price.middle, "mean_ns", (json_int_t)t.mean,
	                "median_ns", (json_int_t)t.median, "median_low_ns", (json_int_t)t.median_low, "median_high_ns",
	                (json_int_t)t.median_high, "calls_most", (json_int_t)calls_most(of)));
	json_object_set_new(root, "raised", json_integer((json_int_t)s->raised));
	return root;
}

/* Of one -e its figures; of several a list of them. */
static json_t *to_json(const struct sampler_stats *st)
{
	const struct latency_summary *summary = st->of_event;
	json_t *root, *list = json_array();

	for (u32 i = 0; i < summary->n; i++) {
		json_t *one = function_json(&summary->of[i]);

		json_object_set_new(one, "function", json_string(summary->of[i].what));
		json_array_append_new(list, one);
	}
	if (summary->n == 1) {
		root = json_incref(json_array_get(list, 0));
		json_decref(list);
	} else {
		root = json_pack("{s:o}", "functions", list);
	}
	add_unseen(root, &summary->unseen);
	return root;
}

const struct event_words latency_words = {
        .key = "latency",
        .print = latency_print,
        .head = head,
        .losses = losses,
        .json = to_json,
};
