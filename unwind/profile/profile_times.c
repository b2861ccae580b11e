/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "grow.h"
#include "profile.h"

struct error *profile_add_time(struct profile *p, u32 node, u32 when)
{
	struct error *err = grow(&p->times, p->ntimes, sizeof(*p->times));

	if (!err)
		p->times[p->ntimes++] = (struct profile_time){node, when};
	return err;
}

struct error *profile_copy_times(struct profile *p, const struct profile *from, const u32 *map)
{
	struct error *err = NULL;

	for (u32 i = 0; i < from->ntimes && !err; i++)
		err = profile_add_time(p, map[from->times[i].node], from->times[i].when);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct profile_time *x = a, *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

void profile_sort_times(struct profile *p)
{
	if (p->ntimes)
		qsort(p->times, p->ntimes, sizeof(*p->times), compare);
}
