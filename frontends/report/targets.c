/* SPDX-License-Identifier: Apache-2.0 */
#include "targets.h"

#include <stdlib.h>
#include <unistd.h>

#include "probes/select_find.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/process/process.h"

#define LEAST  0.02 /* CPUs, had or wanted */
#define WAKES  20   /* a second, of a process that uses hardly any CPU */
#define A_WAKE 1e-4 /* what one counts for, in CPUs */

struct found {
	pid_t *pids;
	u32 n;
};

static struct error *note(void *ctx, pid_t pid)
{
	struct found *f = ctx;
	struct error *err = NULL;

	if (f->n >= COUNTERS_PROCESSES || pid == getpid() || process_in_kernel(pid))
		return NULL;
	err = grow(&f->pids, f->n, sizeof(*f->pids));
	if (!err)
		f->pids[f->n++] = pid;
	return err;
}

struct error *targets_everyone(pid_t **ret, u32 *n)
{
	struct found f = {0};
	struct error *err = each_process("/proc", note, &f);

	*ret = f.pids;
	*n = f.n;
	if (!err)
		return NULL;
	free(f.pids);
	*ret = NULL;
	return err;
}

struct activity {
	pid_t pid;
	double weight;
};

static int heavier(const void *a, const void *b)
{
	const struct activity *x = a, *y = b;

	return (x->weight < y->weight) - (x->weight > y->weight);
}

/* CPUs that a process had or wanted, and its wakes. */
static double activity_of(pid_t pid, const struct counters *before, const struct counters *after, double *wakes)
{
	double s = (double)(after->at_ns - before->at_ns) / 1e9, sum = 0;

	*wakes = 0;
	for (u32 i = 0; s > 0 && i < after->nthreads; i++) {
		const struct thread_counters *now = &after->threads[i], *then = counters_thread(before, now->tid);

		if (now->pid != pid || !then)
			continue;
		sum += (double)(now->run_ns - then->run_ns + now->queued_ns - then->queued_ns) / 1e9 / s;
		*wakes += (double)(now->voluntary - then->voluntary) / s;
	}
	return sum;
}

struct error *targets_busy(struct run_request *r, const struct counters *before, const struct counters *after)
{
	cleanup(free) struct activity *all = calloc(after->nprocesses + 1, sizeof(*all));
	u32 n = 0;

	if (!all)
		return &error_no_memory;
	for (u32 i = 0; i < after->nprocesses; i++) {
		double wakes, cpus = activity_of(after->processes[i].pid, before, after, &wakes);

		if (cpus >= LEAST || wakes >= WAKES)
			all[n++] = (struct activity){after->processes[i].pid, cpus + wakes * A_WAKE};
	}
	qsort(all, n, sizeof(*all), heavier);
	for (u32 i = 0; i < n && i < TARGETS_MOST; i++)
		if (!run_add_pid(r, all[i].pid))
			return &error_no_memory;
	return NULL;
}

pid_t targets_busiest(const struct counters *before, const struct counters *after)
{
	double most = 0, wakes;
	pid_t ret = 0;

	for (u32 i = 0; i < after->nprocesses; i++) {
		double cpus = activity_of(after->processes[i].pid, before, after, &wakes);

		if (cpus > most) {
			most = cpus;
			ret = after->processes[i].pid;
		}
	}
	return ret;
}
