/* SPDX-License-Identifier: Apache-2.0 */
#include "wall.h"

#include <stdlib.h>

#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/wait/wait.h"
#include "probes/wait/wait_command.h"
#include "probes/wait/wait_reason.h"
#include "probes/wait/wait_record.h"
#include "sample.skel.h"

struct wall {
	void *clock, *wait; /* of their events */
	double each_ns;     /* wall time that a sample of the clock stands for */
	struct wait_summary summary;
};

static void prepare(struct object *o)
{
	clock_event.prepare(o);
	wait_event.prepare(o);
}

static void destroy(void *event)
{
	struct wall *w = event;

	if (!w)
		return;
	if (w->clock)
		clock_event.destroy(w->clock);
	wait_event.destroy(w->wait);
	free(w);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct sample *skel = object_skeleton(host->object);
	struct wall *w = calloc(1, sizeof(*w));
	struct error *err = w ? clock_event.create(host, &w->clock) : &error_no_memory;

	if (!err)
		err = wait_event.create(host, &w->wait);
	if (err) {
		destroy(w);
		return err;
	}
	skel->bss->clock_value = skel->data->time_value = skel->bss->period_ns;
	skel->bss->clock_reason = wait_reason(WAIT_RUNNING, WAIT_NO_FILE, -1);
	w->each_ns = (double)skel->bss->period_ns;
	*ret = w;
	return NULL;
}

/* The clock begins at a random moment; waits count from there. */
static struct error *start(void *event, bool at_exec)
{
	struct wall *w = event;
	struct error *err = at_exec ? NULL : wait_look(w->wait);

	if (!err)
		err = clock_event.start(w->clock, at_exec);
	if (!err)
		wait_begins(w->wait);
	return err;
}

static struct error *poll(void *event, u64 now)
{
	struct wall *w = event;
	struct error *err = clock_event.poll(w->clock, now);

	return err ? err : wait_event.poll(w->wait, now);
}

static struct error *drain(void *event, u32 epoch)
{
	return wait_event.drain(((struct wall *)event)->wait, epoch);
}

static struct error *stop(void *event)
{
	struct wall *w = event;
	struct error *err = wait_event.stop(w->wait);

	return err ? err : clock_event.stop(w->clock);
}

static struct error *record(void *event, const void *data, size_t size)
{
	return wait_event.record(((struct wall *)event)->wait, data, size);
}

static void halve(void *event)
{
	clock_event.halve(((struct wall *)event)->clock);
}

static void stats(void *event, struct sampler_stats *st)
{
	struct sampler_stats on = *st;
	struct wall *w = event;

	on.probe.weights = st->probe.clocked;
	clock_event.stats(w->clock, &on);
	wait_event.stats(w->wait, st);
	w->summary = *(const struct wait_summary *)st->of_event;
	w->summary.sampled_s = (double)st->probe.clocked * w->each_ns / 1e9;
	st->lost_clock = (u64)((double)on.lost_clock * w->each_ns);
	st->of_event = &w->summary;
}

const struct event_ops wall_event = {
        .name = "wall",
        .command = "wall-flame",
        .topic = TOPIC_WAITING,
        .summary = "wall-clock time by stack: what threads run and what they wait for",
        .view = "wall-clock time of %s by stack: what threads run and what they wait for",
        .unit = "nanoseconds",
        .more = "waits",
        .slots = 3, /* a tick may interrupt what wait_event needs */
        .rated = true,
        .timed = true,
        .waits = true,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .drain = drain,
        .stop = stop,
        .halve = halve,
        .stats = stats,
        .record = record,
        .reason = wait_reason_text,
        .kind = wait_kind,
        .queued = WAIT_FOR_CPU,
        .idle = wait_idle,
        .futex = wait_is_for_futex,
        .leads_to_program = wait_leads_to_program,
        .command_line = &wall_command,
        .words = &wall_words,
};
