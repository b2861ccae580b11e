/* SPDX-License-Identifier: Apache-2.0 */
#include "cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SHOWN 4

static double used(int who)
{
	struct rusage r;

	if (getrusage(who, &r))
		return 0;
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static double used_by_all(void)
{
	return used(RUSAGE_SELF) + used(RUSAGE_CHILDREN);
}

void cost_begin(struct cost *c)
{
	c->began_s = c->used_s = used_by_all();
}

void cost_add(struct cost *c, const char *name)
{
	double all = used_by_all();
	u32 i = 0;

	if (!*name)
		return;
	while (i < c->nparts && strcmp(c->part[i].name, name) != 0)
		i++;
	if (i == COST_PARTS)
		return;
	c->nparts += i == c->nparts;
	snprintf(c->part[i].name, sizeof(c->part[i].name), "%s", name);
	c->part[i].cpu_s += all - c->used_s;
	c->used_s = all;
}

static int by_cpu(const void *left, const void *right)
{
	const struct cost_part *a = left, *b = right;

	return (a->cpu_s < b->cpu_s) - (a->cpu_s > b->cpu_s);
}

void cost_most(struct cost *c, char *ret, size_t size)
{
	size_t at = 0;

	*ret = '\0';
	qsort(c->part, c->nparts, sizeof(*c->part), by_cpu);
	for (u32 i = 0; i < c->nparts && i < SHOWN && at < size && (!i || c->part[i].cpu_s >= 0.01); i++)
		at += (size_t)snprintf(
		        ret + at, size - at, "%s%s %.2f s", i ? ", " : "", c->part[i].name, c->part[i].cpu_s);
}
