/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_owed.h"

#include <stdlib.h>

#include "unwind/grow.h"

#define PART_MOST 2.0 /* of what a thread lacks */

struct error *wait_owed_add(struct wait_owed *o, const struct wait_thread *t)
{
	struct error *err = grow(&o->all, o->n, sizeof(*o->all));

	if (err)
		return err;
	o->all[o->n] = (struct wait_owes){.tgid = t->tgid, .owed = t->owed, .rest = t->rest};
	o->all[o->n++].rest.ns = 0;
	return NULL;
}

static int by_process(const void *a, const void *b)
{
	const struct wait_owes *x = a, *y = b;

	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

/* Of one process. */
static void share(struct wait_owes *all, u32 n, s64 sum)
{
	double part, lacking = 0;

	for (u32 i = 0; i < n; i++)
		sum += all[i].owed;
	for (u32 i = 0; i < n; i++)
		if (all[i].rest.hash && all[i].owed > 0)
			lacking += (double)all[i].owed;
	if (sum <= 0 || lacking <= 0)
		return;
	part = (double)sum / lacking < PART_MOST ? (double)sum / lacking : PART_MOST;
	for (u32 i = 0; i < n; i++)
		if (all[i].rest.hash && all[i].owed > 0)
			all[i].rest.ns = (s64)((double)all[i].owed * part);
}

void wait_owed_share(struct wait_owed *o, s64 (*of_ended)(void *ctx, u32 tgid), void *ctx)
{
	if (!o->n)
		return;
	qsort(o->all, o->n, sizeof(*o->all), by_process);
	for (u32 i = 0, n; i < o->n; i += n) {
		for (n = 1; i + n < o->n && o->all[i + n].tgid == o->all[i].tgid; n++)
			;
		share(o->all + i, n, of_ended(ctx, o->all[i].tgid));
	}
}

void wait_owed_free(struct wait_owed *o)
{
	free(o->all);
	*o = (struct wait_owed){0};
}
