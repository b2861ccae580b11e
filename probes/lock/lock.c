/* SPDX-License-Identifier: Apache-2.0 */
#include "lock.h"

#include "probes/wait/wait.h"
#include "probes/wait/wait_reason.h"

/* All of wait_event but for what it is called; wait.c asks for futexes alone if this is the run's event. */
static void prepare(struct object *o)
{
	wait_event.prepare(o);
}

static struct error *create(const struct event_host *host, void **ret)
{
	return wait_event.create(host, ret);
}

static void destroy(void *event)
{
	wait_event.destroy(event);
}

static struct error *start(void *event, bool at_exec)
{
	return wait_event.start(event, at_exec);
}

static struct error *poll(void *event, u64 now)
{
	return wait_event.poll(event, now);
}

static struct error *drain(void *event, u32 epoch)
{
	return wait_event.drain(event, epoch);
}

static struct error *stop(void *event)
{
	return wait_event.stop(event);
}

static struct error *record(void *event, const void *data, size_t size)
{
	return wait_event.record(event, data, size);
}

static void stats(void *event, struct sampler_stats *st)
{
	wait_event.stats(event, st);
}

const struct event_ops lock_event = {
        .name = "lock",
        .command = "lock-flame",
        .summary = "time that threads of a process wait for locks, by the stack that waits",
        .view = "time that %s waits for locks, by the stack that waits",
        .unit = "nanoseconds",
        .more = "waits",
        .waits = true,
        .slots = 2,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .drain = drain,
        .stop = stop,
        .stats = stats,
        .record = record,
        .reason = wait_reason_text,
        .kind = wait_kind,
        .leads_to_program = wait_leads_to_program,
};
