/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a run: what it waits for. */
#include "sampler_internal.h"

#include <unistd.h>

#include "unwind/now.h"

#define TABLES_MS      5000
#define TABLES_POLL_US 2000

/* Is there a process with tables in the making that its stacks wait for? */
static bool awaits_tables(const struct sampler *s)
{
	for (u32 i = 0; i < s->targets.nprocesses; i++)
		if (s->targets.processes[i]->unfinished &&
		        collector_waits(s->collector, s->targets.processes[i]->number))
			return true;
	return false;
}

struct error *sampler_await_tables(struct sampler *s)
{
	u64 until = now_ns() + TABLES_MS * 1000000ull;
	struct error *err = NULL;

	while (!err && !s->options.everyone && awaits_tables(s) && now_ns() < until) {
		usleep(TABLES_POLL_US);
		err = targets_starting(&s->targets);
		if (!err)
			err = collector_settle(s->collector, now_ns(), false);
	}
	return err;
}
