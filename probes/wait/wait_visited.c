/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_visited.h"

#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/now.h"
#include "wait_outside.h"
#include "wait_record.h"

#define WAIT_DUE_MOST_NS 45000000ull
#define WALKS_NS         200000ull /* for walks, of each WAIT_VISIT_NS */

struct error *wait_visited_begin(struct wait_visited *v, const struct event_host *host)
{
	v->host = host;
	v->walker = wait_walker_create(host);
	return v->walker ? NULL : &error_no_memory;
}

void wait_visited_end(struct wait_visited *v)
{
	wait_walker_destroy(v->walker);
	table_free(&v->of_turn[0]);
	table_free(&v->of_turn[1]);
}

/* A value: ns that were counted << 16 | stop << 1 | runnable. */
bool wait_visited_get(const struct wait_visited *v, u64 key, struct wait_visit *ret)
{
	const u64 *value = table_get(&v->of_turn[v->turn], key);

	if (!value)
		value = table_get(&v->of_turn[!v->turn], key);
	if (!value)
		return false;
	*ret = (struct wait_visit){*value >> 16, *value >> 1 & 0x7fff, *value & 1};
	return true;
}

struct error *wait_visited_put(struct wait_visited *v, u64 key, const struct wait_visit *visit)
{
	return table_put(
	        &v->of_turn[v->turn], key, visit->counted << 16 | (u64)(visit->stop & 0x7fff) << 1 | visit->runnable);
}

struct error *wait_visited_take(struct wait_visited *v, const struct wait_thread *t, u64 key)
{
	const struct process *p = targets_find(v->host->targets, t->instance);
	struct wait_visit visit = {.runnable = wait_is_runnable(t->reason)}, before;
	u64 began = now_ns();
	bool found;

	if (!p || p->dead || wait_visited_get(v, key, &before))
		return NULL;
	v->taken++;
	found = wait_walk_thread(v->walker, p, t, key, &visit.stop);
	v->walked_ns += now_ns() - began;
	if (found)
		return wait_visited_put(v, key, &visit);
	v->moved++;
	return NULL;
}

void wait_visited_turn(struct wait_visited *v)
{
	v->turn = !v->turn;
	table_clear(&v->of_turn[v->turn]);
}

void wait_visited_tune(struct wait_visited *v)
{
	struct sample *skel = object_skeleton(v->host->object);
	u64 due = skel->data->wait_due_ns, most = skel->bss->wait_futexes ? WAIT_DUE_NS : WAIT_DUE_MOST_NS;

	if (v->walked_ns > 2 * WALKS_NS)
		due += due / 2;
	else if (v->walked_ns < WALKS_NS)
		due -= due / 64;
	skel->data->wait_due_ns = due < WAIT_DUE_NS ? WAIT_DUE_NS : due < most ? due : most;
	v->walked_ns = 0;
}
