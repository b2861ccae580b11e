/* SPDX-License-Identifier: Apache-2.0 */
#include "request_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/hit/hit_latency.h"
#include "probes/sampler.h"
#include "probes/wait/wait_reason.h"
#include "probes/wait/wait_record.h"
#include "request_run.h"
#include "unwind/cleanup.h"

struct calls {
	const struct event_host *host;
	const struct hit_options *options;
	void *hit; /* latency_event's */
	struct request_table own, *table;
	struct request_summary summary;
	u64 told; /* calls that BPF had room to report */
};

static void destroy(void *event)
{
	struct calls *c = event;

	if (!c)
		return;
	latency_event.destroy(c->hit);
	request_table_free(&c->own);
	free(c);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct calls *c = calloc(1, sizeof(*c));
	struct error *err;

	if (!c)
		return &error_no_memory;
	c->host = host;
	c->options = host->options->of_event;
	c->table = &c->own;
	c->own.over_ns = c->options->listed_ns;
	err = latency_event.create(host, &c->hit);
	if (err)
		destroy(c);
	else
		*ret = c;
	return err;
}

void request_calls_use(void *event, struct request_table *table)
{
	((struct calls *)event)->table = table;
}

bool request_calls_serve(const void *event)
{
	return hit_found_any(((const struct calls *)event)->hit);
}

/* The shortest makes room. */
static void add_stack(struct request_record *to, u64 hash, u64 ns, u32 reason)
{
	u32 least = 0;

	for (u32 i = 0; i < REQUEST_STACKS; i++)
		if (to->stack[i].ns < to->stack[least].ns)
			least = i;
	if (to->stack[least].ns < ns)
		to->stack[least] = (struct request_stack){.hash = hash, .ns = ns, .reason = reason};
}

/* Of a call, whose thread's waits these are: those before it are of calls around it. */
static void add_waits(struct request_record *to, const struct latency_record *from)
{
	for (u32 i = 0; i < from->nwaits && i < LATENCY_WAITS; i++) {
		const struct latency_wait *wait = &from->wait[i];

		if (!latency_is_within(from, wait))
			continue;
		*(wait_is_runnable(wait->reason) ? &to->queue : &to->blocked) += wait->ns;
		add_stack(to, wait->hash, wait->ns, wait->reason);
	}
}

/* What it ran has the time that it did not wait, by ticks. */
static void add_ran(struct request_record *to, const struct latency_record *from)
{
	u64 all = 0;

	for (u32 i = 0; i < from->nticks && i < LATENCY_WAITS; i++)
		all += latency_is_within(from, &from->tick[i]) ? from->tick[i].ns : 0;
	for (u32 i = 0; i < from->nticks && i < LATENCY_WAITS && all; i++)
		if (latency_is_within(from, &from->tick[i]))
			add_stack(to, from->tick[i].hash,
			        (u64)((double)to->cpu * (double)from->tick[i].ns / (double)all),
			        wait_reason(WAIT_RUNNING, WAIT_NO_FILE, -1));
}

/* Which of its thread's times are the call's. shared: the thread may have been in other calls. */
static void settle_times(struct request_record *to, bool shared)
{
	u64 waited = to->queue + to->blocked;

	to->cpu = to->ns > waited ? to->ns - waited : 0;
	if (!shared)
		return;
	to->others = to->cpu + to->queue;
	to->idle = to->blocked;
	to->cpu = to->queue = to->blocked = 0;
}

/* May it be among the slowest? Then it is worth to be described. */
static bool is_slow(const struct request_table *t, u64 ns)
{
	return ns >= t->over_ns && (t->nslow < REQUEST_SLOW_MAX || ns > t->slow[t->nslow - 1]->record.ns);
}

/* Where a coroutine was suspended, in place of what its thread did. */
static struct error *add_awaits(
        const struct hit_latency *l, const struct latency_record *record, struct request_slow *slow)
{
	struct slow_stack await[SLOW_AWAITS] = {0};
	struct error *err = hit_latency_awaits(l, record, await);

	memset(slow->record.stack, 0, sizeof(slow->record.stack));
	for (u32 i = 0; i < SLOW_AWAITS && i < REQUEST_STACKS; i++) {
		slow->record.stack[i] = (struct request_stack){.ns = await[i].ns, .reason = REQUEST_WAITS};
		slow->stack[i] = await[i].text;
	}
	request_slow_order(slow);
	return err;
}

static struct error *add(struct calls *c, struct hit_function *f, const struct latency_record *record)
{
	struct request_record to = {.tgid = record->tgid, .tid = record->tid, .began = record->began, .ns = record->ns};
	const char *text = hit_text_of(c->hit, record);
	bool is_route = text && c->options->key[f->spec], shared = f->suspends || record->carried;
	const char *spec = c->options->spec[f->spec].text;
	/* the same request may pass a server in front, too: "python: GET /", by "python:flask.app.Flask.wsgi_app" */
	int kind = c->table != &c->own && strchr(spec, ':') ? (int)strcspn(spec, ":") : 0;
	cleanup(free) char *native = NULL;
	struct request_slow *slow;
	struct error *err;

	if (f->img && !is_route && is_slow(c->table, record->ns))
		text = native = hit_call_text(f, record);
	c->told++;
	add_waits(&to, record);
	settle_times(&to, shared);
	add_ran(&to, record);
	if (record->carried) /* as its carrier may have been in other calls */
		memset(to.stack, 0, sizeof(to.stack));
	snprintf(to.path, sizeof(to.path), "%.*s%s%s", kind, spec, kind ? ": " : "", is_route ? text : f->name);
	err = request_table_add(c->table, &to, is_route ? NULL : text, &slow);
	return err || !slow || !f->suspends ? err : add_awaits(hit_latency_of(c->hit), record, slow);
}

static struct error *record(void *event, const void *data, size_t size)
{
	struct calls *c = event;
	struct hit_function *f =
	        size == sizeof(struct latency_record) ? hit_latency_function(hit_latency_of(c->hit), data) : NULL;

	return f ? add(c, f, data) : latency_event.record(c->hit, data, size);
}

static void stats(void *event, struct sampler_stats *st)
{
	struct calls *c = event;
	struct request_counts *to = &c->summary.counts;
	const struct latency_summary *calls = hit_latency_summary(hit_latency_of(c->hit));
	u64 slow = 0;

	*to = (struct request_counts){0};
	c->summary.raised = 0;
	for (u32 i = 0; i < calls->n; i++) {
		const struct latency_stats *of = &calls->of[i].counts;

		to->begun += of->entered;
		to->ended += of->returned;
		to->unpaired += of->unpaired;
		to->left += of->left + of->lost;
		c->summary.raised += of->raised;
		slow += of->slow;
	}
	st->probed = c->summary.watched = hit_watched(c->hit);
	if (!st->probed) /* else calls stand for others */
		to->lost = slow > c->told ? slow - c->told : 0;
	request_table_sort(c->table);
	c->summary.table = c->table;
	c->summary.over_ns = c->options->listed_ns;
	st->of_event = &c->summary;
}

static void prepare(struct object *o)
{
	latency_event.prepare(o);
}

static struct error *start(void *event, bool at_exec)
{
	return latency_event.start(((struct calls *)event)->hit, at_exec);
}

static struct error *poll(void *event, u64 now)
{
	struct calls *c = event;

	request_table_name(c->table, c->host->collector);
	return latency_event.poll(c->hit, now);
}

static struct error *drain(void *event, u32 epoch)
{
	struct calls *c = event;

	request_table_name(c->table, c->host->collector);
	return NULL;
}

static struct error *finish(void *event)
{
	return drain(event, 0);
}

static struct error *stop(void *event)
{
	return latency_event.stop(((struct calls *)event)->hit);
}

static u64 due(void *event)
{
	return latency_event.due(((struct calls *)event)->hit);
}

static bool urgent(void *event, const void *data, size_t size)
{
	return latency_event.urgent(((struct calls *)event)->hit, data, size);
}

const struct event_ops request_calls_event = {
        .name = "request",
        .command = "requests",
        .topic = TOPIC_CALLS,
        .unit = "nanoseconds",
        .more = "calls",
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
        .halve = event_halve_by_weight,
        .record = record,
        .urgent = urgent,
        .stats = stats,
        .reason = request_reason,
        .kind = request_kind,
        .queued = WAIT_FOR_CPU,
        .leads_to_program = wait_leads_to_program,
        .command_line = &request_command,
        .words = &request_words,
};
