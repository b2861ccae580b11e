/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include <stdlib.h>

#include "grow.h"

#define SAMPLES_MOST (1u << 28)
#define COUNT_MOST   (1u << 20) /* samples of one record: halvings of the rate, a long wait */

static struct error *find_stack(struct timeline *t, u64 hash, u32 *ret)
{
	const u64 *known = table_get(&t->index, hash);
	struct error *err;

	if (known) {
		*ret = (u32)*known;
		return NULL;
	}
	err = grow(&t->stacks, t->nstacks, sizeof(*t->stacks));
	if (!err)
		err = table_put(&t->index, hash, t->nstacks);
	if (err)
		return err;
	t->stacks[t->nstacks] = (struct timeline_stack){.hash = hash, .node = TIMELINE_UNKNOWN};
	*ret = t->nstacks++;
	return NULL;
}

/* Of sample i of a record, which ends so long after the start. */
static u32 when_of(const struct time_record *record, u64 end, u32 i)
{
	u64 before = (u64)((double)record->span * ((double)i + 0.5) / (double)record->count);

	return (u32)((end > before ? end - before : 0) / PROFILE_TIME_STEP_NS);
}

struct error *timeline_add(struct timeline *t, const struct time_record *record)
{
	u64 end = record->ns > t->start_ns ? record->ns - t->start_ns : 0;
	struct error *err = NULL;
	u32 stack = UINT32_MAX;

	if (record->hash && end / PROFILE_TIME_STEP_NS < UINT32_MAX)
		err = find_stack(t, record->hash, &stack);
	for (u32 i = 0; !err && stack < t->nstacks && i < record->count && i < COUNT_MOST; i++) {
		if (t->nsamples == SAMPLES_MOST)
			break;
		err = grow(&t->samples, t->nsamples, sizeof(*t->samples));
		if (!err)
			t->samples[t->nsamples++] = (struct timeline_sample){stack, when_of(record, end, i)};
	}
	return err;
}

void timeline_place(struct timeline *t, u32 (*find)(void *ctx, u64 hash), void *ctx)
{
	for (u32 i = 0; i < t->nstacks; i++) {
		u32 node = find(ctx, t->stacks[i].hash);

		if (node != TIMELINE_UNKNOWN)
			t->stacks[i].node = node;
	}
}

struct error *timeline_finish(struct timeline *t, struct profile *p)
{
	struct error *err = NULL;

	for (u32 i = 0; i < t->nsamples && !err; i++) {
		u32 node = t->stacks[t->samples[i].stack].node;

		if (node < p->nnodes)
			err = profile_add_time(p, node, t->samples[i].when);
	}
	timeline_free(t);
	if (!err)
		profile_sort_times(p);
	return err;
}

void timeline_free(struct timeline *t)
{
	table_free(&t->index);
	free(t->stacks);
	free(t->samples);
	*t = (struct timeline){.start_ns = t->start_ns};
}
