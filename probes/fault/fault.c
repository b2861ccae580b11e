/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_events.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/skeleton.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/profile/names.h"

struct fault {
	const struct event_host *host;
	struct fault_events events;
	bool at_exec, stopped;
	u64 before;   /* that targets had when it began */
	u64 expected; /* at the end */
};

static void prepare(struct object *o)
{
	object_want(o, "on_fault");
	skeleton_fit_fault(object_skeleton(o));
}

static void destroy(void *event)
{
	struct fault *f = event;

	if (f)
		fault_events_close(&f->events);
	free(f);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct fault *f = calloc(1, sizeof(*f));
	struct error *err;

	if (!f)
		return &error_no_memory;
	f->host = host;
	err = fault_events_open(object_program(host->object, "on_fault"), &f->events);
	if (err)
		destroy(f);
	else
		*ret = f;
	return err;
}

/* ru_minflt and ru_majflt of a process; 0 if it is gone. */
static u64 faults_of(pid_t pid)
{
	cleanup(fclose) FILE *file = NULL;
	char path[64], line[1024], *end;
	u64 minor, major;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file) || !(end = strrchr(line, ')')) ||
	        sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %lu %*u %lu", &minor, &major) != 2)
		return 0;
	return minor + major;
}

static u64 faults_of_living(const struct fault *f)
{
	const struct targets *t = f->host->targets;
	u64 sum = 0;

	for (u32 i = 0; i < t->nprocesses; i++)
		sum += t->processes[i]->dead ? 0 : faults_of(t->processes[i]->pid);
	return sum;
}

static struct error *start(void *event, bool at_exec)
{
	struct fault *f = event;

	f->at_exec = at_exec;
	f->before = faults_of_living(f);
	object_take_ticks(f->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return NULL;
}

static u64 count_expected(const struct fault *f)
{
	const struct sample *skel = object_skeleton(f->host->object);
	u64 ended = skel->bss->ended_faults, now = ended + faults_of_living(f),
	    before = f->at_exec ? skel->bss->exec_faults : f->before;

	return now > before ? now - before : 0;
}

static struct error *stop(void *event)
{
	struct fault *f = event;

	f->expected = count_expected(f);
	f->stopped = true;
	object_take_ticks(f->host->object, TICKS_IGNORED);
	return NULL;
}

static void stats(void *event, struct sampler_stats *st)
{
	const struct fault *f = event;

	st->expected = (double)(f->stopped ? f->expected : count_expected(f));
}

static void reason(u32 reason, char *text)
{
	static const char *const words[FAULT_MEMORIES] = {[FAULT_UNKNOWN] = "memory",
	        [FAULT_STACK] = "stack",
	        [FAULT_HEAP] = "heap",
	        [FAULT_ANONYMOUS] = "anonymous memory",
	        [FAULT_FILE] = "file",
	        [FAULT_SHARED] = "shared memory"};
	u32 memory = reason & ~FAULT_MAJOR;

	snprintf(text, REASON_LEN, "page fault: %s%s",
	        memory < FAULT_MEMORIES && words[memory] ? words[memory] : "memory",
	        reason & FAULT_MAJOR ? ", from disk" : "");
}

const struct event_ops fault_event = {
        .name = "fault",
        .command = "fault-flame",
        .topic = TOPIC_MEMORY,
        .summary = "page faults by stack and kind of memory",
        .view = "page faults of %s by stack and kind of memory",
        .unit = "faults",
        .slots = 4, /* what a fault interrupts may be in the middle of another one's walk */
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .stop = stop,
        .halve = event_halve_by_weight,
        .stats = stats,
        .reason = reason,
};
