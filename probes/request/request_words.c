/* SPDX-License-Identifier: Apache-2.0 */
/* The results of requests: the table, the slowest, the last line, and JSON. */

#include "probes/event.h"
#include "probes/event_command.h"
#include "probes/loss.h"
#include "probes/sampler.h"
#include "probes/stack_text.h"
#include "request_run.h"
#include "unwind/clean_text.h"
#include "unwind/profile/names.h"

#define ROUTES_SHOWN 20
#define SLOW_SHOWN   10
#define STACKS_SHOWN 3
#define PHASE_SHOWN  200 /* a part of the request's time */

static const struct request_summary *summary_of(const struct sampler_stats *st)
{
	return st->of_event;
}

static const char *milliseconds(u64 ns, char text[16])
{
	double ms = (double)ns / 1e6;

	snprintf(text, 16, "%.*f", ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
	return text;
}

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct request_summary *s = summary_of(st);
	const struct request_route *all = &s->table->all;
	char a[16], b[16], c[16];

	fprintf(out, "%lu requests in %.1f s", all->n, st->duration_s);
	if (s->watched)
		fprintf(out, ", watched for %.1f %% of it", 100 * s->watched);
	if (all->n)
		fprintf(out, ": median %s ms, 99 %% %s ms, most %s ms", milliseconds(request_quantile(all, 0.5), a),
		        milliseconds(request_quantile(all, 0.99), b), milliseconds(all->max_ns, c));
	fputs("; stacks", out);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct request_counts *c = &summary_of(st)->counts;
	u64 over = c->ended + c->left + c->full + c->cut;

	if (c->unpaired && !summary_of(st)->watched)
		fprintf(out, ", %lu requests had begun before", c->unpaired);
	if (c->begun > over)
		fprintf(out, ", %lu not over", c->begun - over);
	if (c->cut)
		fprintf(out, ", %lu took longer than they were watched for", c->cut);
	if (c->left)
		fprintf(out, ", %lu whose end was not seen", c->left);
	if (summary_of(st)->raised)
		fprintf(out, ", %lu ended by an exception", summary_of(st)->raised);
	if (c->full)
		fprintf(out, ", %lu not followed: too many at once", c->full);
	if (c->lost)
		fprintf(out, ", %lu not in the table: they came too fast", c->lost);
}

static void print_row(FILE *out, const struct request_route *r, const char *text)
{
	char t[5][16], errors[24] = "-";

	if (r->status[0] < r->n)
		snprintf(errors, sizeof(errors), "%lu", r->status[4] + r->status[5]);
	fprintf(out, "%9lu %6s %8s %8s %8s %8s", r->n, errors, milliseconds(request_quantile(r, 0.5), t[0]),
	        milliseconds(request_quantile(r, 0.95), t[1]), milliseconds(request_quantile(r, 0.99), t[2]),
	        milliseconds(r->max_ns, t[3]));
	for (u32 i = 0; i < REQUEST_TIMES; i++)
		fprintf(out, " %8s", milliseconds(r->n ? r->time[i] / r->n : 0, t[4]));
	fprintf(out, "  %s\n", text);
}

static void print_routes(FILE *out, const struct request_table *t)
{
	char clean[TEXT_CLEAN];

	fprintf(out, "%9s %6s %8s %8s %8s %8s", "requests", "errors", "p50 ms", "p95", "p99", "max");
	for (u32 i = 0; i < REQUEST_TIMES; i++)
		fprintf(out, " %8s", request_times[i]);
	fputs("  route\n", out);
	for (u32 i = 0; i < t->nroutes && i < ROUTES_SHOWN; i++) {
		text_clean(t->routes[i]->text, clean);
		print_row(out, t->routes[i], clean);
	}
	if (t->nroutes > ROUTES_SHOWN)
		fprintf(out, "%9s and %u routes more, in the page and in --stats\n", "", t->nroutes - ROUTES_SHOWN);
	if (t->nroutes != 1)
		print_row(out, &t->all, "all");
}

static void reason_of(const struct sampler_stats *st, u32 reason, char text[REASON_LEN])
{
	*text = '\0';
	st->event->reason(reason, text);
}

static void print_stacks(FILE *out, const struct sampler_stats *st, const struct request_slow *s)
{
	char ms[16], why[REASON_LEN];

	for (u32 i = 0; i < s->nstacks && i < STACKS_SHOWN; i++) {
		const struct request_stack *at = &s->record.stack[s->order[i]];

		fprintf(out, "%14s ms  ", milliseconds(at->ns, ms));
		if (s->stack[s->order[i]]) {
			stack_text_print(out, s->stack[s->order[i]]);
			continue;
		}
		reason_of(st, at->reason, why);
		fprintf(out, "%s (no stack was taken)\n", why);
	}
}

/* How many phases it had; 0: none is known. */
static u32 phases_of(const struct request_slow *s)
{
	u32 n = 0;
	bool known = false;

	for (; n < REQUEST_PHASES && s->record.phase[n].ns; n++)
		known |= s->record.phase[n].checker != REQUEST_NOT_KNOWN;
	return known ? n : 0;
}

/* What it spent in which phase. */
static void print_phases(FILE *out, const struct request_slow *s)
{
	char clean[TEXT_CLEAN], ms[16];
	u32 n = 0;

	for (u32 i = 0; i < phases_of(s); i++) {
		if (!s->phase[i] || s->record.phase[i].ns < s->record.ns / PHASE_SHOWN)
			continue;
		text_clean(s->phase[i], clean);
		fprintf(out, "%s%s %s ms", n++ ? ", " : "                 phases: ", clean,
		        milliseconds(s->record.phase[i].ns, ms));
	}
	if (n)
		putc('\n', out);
}

/* The upstreams that nginx asked, as its own log has them. */
static void print_attempts(FILE *out, const struct request_record *r)
{
	char clean[TEXT_CLEAN];

	for (u32 i = 0; i < r->nattempts && i < REQUEST_ATTEMPTS; i++) {
		const struct request_attempt *at = &r->attempt[i];

		text_clean(at->peer, clean);
		fprintf(out, "%17s upstream %s", "", *clean ? clean : "(no name)");
		if (at->status)
			fprintf(out, "  %lu", at->status);
		if (at->response >= 0)
			fprintf(out, "  %ld ms", at->response);
		if (at->connect >= 0)
			fprintf(out, ", connected after %ld ms", at->connect);
		if (at->header >= 0)
			fprintf(out, ", header after %ld ms", at->header);
		putc('\n', out);
	}
	if (r->nattempts > REQUEST_ATTEMPTS)
		fprintf(out, "%17s and %u upstreams more\n", "", r->nattempts - REQUEST_ATTEMPTS);
}

static void print_slow(FILE *out, const struct sampler_stats *st, const struct request_table *t)
{
	char clean[TEXT_CLEAN], ms[16];

	if (t->nslow)
		fputs("slowest requests:\n", out);
	for (u32 i = 0; i < t->nslow && i < SLOW_SHOWN; i++) {
		const struct request_record *r = &t->slow[i]->record;
		const u64 times[REQUEST_TIMES] = {r->cpu, r->queue, r->blocked, r->idle, r->others};

		text_clean(t->slow[i]->text, clean);
		fprintf(out, "%9s ms  %s", milliseconds(r->ns, ms), *clean ? clean : "(no text)");
		if (r->status)
			fprintf(out, "  %u", r->status);
		fprintf(out, "  (process %u", r->tgid);
		for (u32 k = 0; k < REQUEST_TIMES; k++)
			if (times[k] >= 10000)
				fprintf(out, ", %s %s ms", request_times[k], milliseconds(times[k], ms));
		fputs(")\n", out);
		print_phases(out, t->slow[i]);
		print_attempts(out, r);
		print_stacks(out, st, t->slow[i]);
	}
}

static void print(FILE *out, const struct sampler_stats *st)
{
	const struct request_table *t = summary_of(st)->table;

	if (!t->nroutes)
		return;
	print_routes(out, t);
	print_slow(out, st, t);
}

static json_t *times_json(const u64 time[REQUEST_TIMES])
{
	json_t *object = json_object();

	for (u32 i = 0; i < REQUEST_TIMES; i++)
		json_object_set_new(object, request_times[i], json_integer((json_int_t)time[i]));
	return object;
}

static json_t *route_json(const struct request_route *r, const char *text)
{
	json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "route", text, "requests",
	        (json_int_t)r->n, "sum_ns", (json_int_t)r->sum_ns, "max_ns", (json_int_t)r->max_ns, "p50_ns",
	        (json_int_t)request_quantile(r, 0.5), "p95_ns", (json_int_t)request_quantile(r, 0.95), "p99_ns",
	        (json_int_t)request_quantile(r, 0.99), "time_ns", times_json(r->time));
	json_t *status = json_array();

	for (u32 i = 0; i < REQUEST_CLASSES; i++)
		json_array_append_new(status, json_integer((json_int_t)r->status[i]));
	json_object_set_new(object, "status", status);
	json_object_set_new(object, "errors", json_integer((json_int_t)(r->status[4] + r->status[5])));
	return object;
}

static json_t *routes_json(const struct request_table *t)
{
	json_t *list = json_array();
	char clean[TEXT_CLEAN];

	for (u32 i = 0; i < t->nroutes; i++) {
		text_clean(t->routes[i]->text, clean);
		json_array_append_new(list, route_json(t->routes[i], clean));
	}
	return list;
}

static json_t *stacks_json(const struct sampler_stats *st, const struct request_slow *s)
{
	json_t *list = json_array();
	char clean[TEXT_CLEAN], why[REASON_LEN];

	for (u32 i = 0; i < s->nstacks; i++) {
		const struct request_stack *at = &s->record.stack[s->order[i]];

		reason_of(st, at->reason, why);
		text_clean(s->stack[s->order[i]] ? s->stack[s->order[i]] : "", clean);
		json_array_append_new(
		        list, json_pack("{s:I, s:s, s:s}", "ns", (json_int_t)at->ns, "reason", why, "frames", clean));
	}
	return list;
}

static json_t *phases_json(const struct request_slow *s)
{
	json_t *list = json_array();
	char clean[TEXT_CLEAN];

	for (u32 i = 0; i < phases_of(s); i++) {
		text_clean(s->phase[i] ? s->phase[i] : "not known", clean);
		json_array_append_new(
		        list, json_pack("{s:s, s:I}", "phase", clean, "ns", (json_int_t)s->record.phase[i].ns));
	}
	return list;
}

static json_t *attempts_json(const struct request_record *r)
{
	json_t *list = json_array();
	char clean[TEXT_CLEAN];

	for (u32 i = 0; i < r->nattempts && i < REQUEST_ATTEMPTS; i++) {
		const struct request_attempt *at = &r->attempt[i];

		text_clean(at->peer, clean);
		json_array_append_new(
		        list, json_pack("{s:s, s:I, s:I, s:I, s:I}", "peer", clean, "status", (json_int_t)at->status,
		                      "response_ms", (json_int_t)at->response, "connect_ms", (json_int_t)at->connect,
		                      "header_ms", (json_int_t)at->header));
	}
	return list;
}

static json_t *slow_json(const struct sampler_stats *st, const struct request_table *t)
{
	json_t *list = json_array();
	char clean[TEXT_CLEAN];

	for (u32 i = 0; i < t->nslow; i++) {
		const struct request_record *r = &t->slow[i]->record;
		const u64 times[REQUEST_TIMES] = {r->cpu, r->queue, r->blocked, r->idle, r->others};

		text_clean(t->slow[i]->text, clean);
		json_array_append_new(
		        list, json_pack("{s:s, s:i, s:I, s:i, s:i, s:o, s:o, s:o, s:o}", "request", clean, "status",
		                      (int)r->status, "ns", (json_int_t)r->ns, "pid", (int)r->tgid, "tid", (int)r->tid,
		                      "time_ns", times_json(times), "stacks", stacks_json(st, t->slow[i]), "upstreams",
		                      attempts_json(r), "phases", phases_json(t->slow[i])));
	}
	return list;
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct request_summary *s = summary_of(st);
	const struct request_counts *c = &s->counts;

	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "watched",
	        s->watched ? s->watched : 1, "begun", (json_int_t)c->begun, "ended", (json_int_t)c->ended, "unpaired",
	        (json_int_t)c->unpaired, "cut", (json_int_t)c->cut, "left", (json_int_t)c->left, "full",
	        (json_int_t)c->full, "lost", (json_int_t)c->lost, "hits", (json_int_t)c->hits, "over_ns",
	        (json_int_t)s->over_ns, "loop_ns", (json_int_t)c->loop_ns, "routes", routes_json(s->table), "slowest",
	        slow_json(st, s->table));
}

const struct event_words request_words = {
        .key = "requests",
        .print = print,
        .head = head,
        .losses = losses,
        .json = to_json,
};
