/* SPDX-License-Identifier: Apache-2.0 */
/* The last line of io-flame and net-flame: all calls and their bytes, exactly. */
#include "probes/event_command.h"
#include "probes/loss.h"
#include "probes/io/io.h"

static void print_bytes(FILE *out, u64 n, const char *word)
{
	fputs(", ", out);
	loss_bytes(out, (double)n);
	fprintf(out, " %s", word);
}

static void head(FILE *out, const struct sampler_stats *st)
{
	const struct io_summary *s = st->of_event;

	fprintf(out, "%lu calls took %.3f s", s->calls, (double)s->ns / 1e9);
	print_bytes(out, s->in_bytes, s->net ? "received" : "read");
	print_bytes(out, s->out_bytes, s->net ? "sent" : "written");
	fprintf(out, "; in %.1f s", st->duration_s);
	loss_complete(out, st);
}

static void losses(FILE *out, const struct sampler_stats *st)
{
	const struct io_summary *s = st->of_event;

	if (s->skipped)
		fprintf(out, ", stacks of %.3g %% of the calls, chosen by size, stand for all",
		        100.0 * (double)(s->calls - s->skipped) / (double)s->calls);
	if (s->begun)
		fprintf(out, ", %lu connects were not waited for: their time is not known", s->begun);
	if (s->later)
		fprintf(out, ", %lu of the calls are requests of io_uring or io_submit(), from begin to end", s->later);
	if (s->async)
		fprintf(out, ", io_uring_enter() or io_submit() was called %lu times for what is not seen", s->async);
	if (s->full)
		fprintf(out, ", of %s only the first %lu have names", s->net ? "peers" : "files", s->objects);
}

static json_t *to_json(const struct sampler_stats *st)
{
	const struct io_summary *s = st->of_event;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "calls", (json_int_t)s->calls, "ns",
	        (json_int_t)s->ns, "in_bytes", (json_int_t)s->in_bytes, "out_bytes", (json_int_t)s->out_bytes,
	        "calls_without_stack", (json_int_t)s->skipped, "async_calls", (json_int_t)s->async, "async_requests",
	        (json_int_t)s->later, "connects_not_waited_for", (json_int_t)s->begun, "objects",
	        (json_int_t)s->objects);
}

const struct event_words io_words = {
        .key = "io",
        .head = head,
        .losses = losses,
        .json = to_json,
};

const struct event_words net_words = {
        .key = "io",
        .head = head,
        .losses = losses,
        .json = to_json,
};
