/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of several servers in one run: of nginx or Envoy, and of languages' frameworks, which are calls. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/hit/hit_latency.h"
#include "probes/sampler.h"
#include "probes/wait/wait_reason.h"
#include "probes/wait/wait_record.h"
#include "request_calls.h"
#include "request_rules.h"
#include "request_run.h"

extern const struct event_ops request_event;

struct both {
	const struct event_host *host;
	void *native, *calls;
	bool started;
	struct request_summary summary;
};

static void prepare(struct object *o)
{
	request_event.prepare(o);
	request_calls_event.prepare(o);
}

static void destroy(void *event)
{
	struct both *b = event;

	if (!b)
		return;
	request_calls_event.destroy(b->calls);
	if (b->native)
		request_event.destroy(b->native);
	free(b);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct both *b = calloc(1, sizeof(*b));
	struct error *err;

	if (!b)
		return &error_no_memory;
	b->host = host;
	err = request_event.create(host, &b->native);
	if (!err)
		err = request_calls_event.create(host, &b->calls);
	if (err) {
		destroy(b);
		return err;
	}
	request_calls_use(b->calls, request_table_of(b->native));
	*ret = b;
	return NULL;
}

/* One of them is enough. */
static struct error *missing(const struct both *b)
{
	return request_serves(b->native) || request_calls_serve(b->calls) ? NULL : request_rules_none();
}

static struct error *start(void *event, bool at_exec)
{
	struct both *b = event;
	struct error *err = request_event.start(b->native, at_exec);

	if (!err)
		err = request_calls_event.start(b->calls, at_exec);
	if (!err && !at_exec && !b->host->options->selection)
		err = missing(b);
	b->started = !err;
	return err;
}

static struct error *poll(void *event, u64 now)
{
	struct both *b = event;
	struct error *err = request_event.poll(b->native, now);

	return err ? err : request_calls_event.poll(b->calls, now);
}

static u64 due(void *event)
{
	return request_calls_event.due(((struct both *)event)->calls);
}

static struct error *drain(void *event, u32 epoch)
{
	struct both *b = event;
	struct error *err = request_event.drain(b->native, epoch);

	return err ? err : request_calls_event.drain(b->calls, epoch);
}

static struct error *stop(void *event)
{
	struct both *b = event;
	struct error *err = request_event.stop(b->native), *more = request_calls_event.stop(b->calls);

	if (err)
		error_free(more);
	else
		err = more;
	more = b->started ? missing(b) : NULL;
	if (more)
		b->host->options->warn(b->host->options->ctx, more);
	return err;
}

static struct error *finish(void *event)
{
	return drain(event, 0);
}

static struct error *record(void *event, const void *data, size_t size)
{
	struct both *b = event;
	u32 type;

	memcpy(&type, data, sizeof(type));
	return type & REQUEST_ENDED ? request_event.record(b->native, data, size)
	                            : request_calls_event.record(b->calls, data, size);
}

static bool urgent(void *event, const void *data, size_t size)
{
	return request_calls_event.urgent(((struct both *)event)->calls, data, size);
}

/* The smaller part of those that were watched in shifts; 0: none was. */
static double least_part(double a, double b)
{
	return !a || (b && b < a) ? b : a;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct both *b = event;
	const struct request_summary *more;

	request_event.stats(b->native, st);
	b->summary = *(const struct request_summary *)st->of_event;
	request_calls_event.stats(b->calls, st);
	more = st->of_event;
	for (size_t i = 0; i < sizeof(more->counts) / sizeof(u64); i++)
		((u64 *)&b->summary.counts)[i] += ((const u64 *)&more->counts)[i];
	b->summary.raised = more->raised;
	b->summary.watched = least_part(b->summary.watched, more->watched);
	st->of_event = &b->summary;
}

const struct event_ops request_both_event = {
        .name = "request",
        .command = "requests",
        .topic = TOPIC_CALLS,
        .unit = "nanoseconds",
        .slots = 4,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .due = due,
        .drain = drain,
        .stop = stop,
        .finish = finish,
        .record = record,
        .urgent = urgent,
        .stats = stats,
        .reason = request_reason,
        .kind = request_kind,
        .queued = WAIT_FOR_CPU,
        .leads_to_program = request_leads_to_program,
        .command_line = &request_command,
        .words = &request_words,
};
