/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time of all targets. */
#include <errno.h>
#include <stdlib.h>

#include "cpu_time.h"
#include "map_each.h"
#include "object_internal.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define CPU_TRIES 16
#define SETTLE_MS 300

struct cpu {
	u32 tgid;
	bool unsettled; /* the kernel does not give the sum of its threads anymore, or not yet */
	u64 ns;
};

struct cpu_list {
	struct cpu *list;
	u32 n;
};

static void cleanup_cpu_list(struct cpu_list *l)
{
	free(l->list);
}

static struct error *add_cpu(struct cpu_list *l, struct cpu cpu)
{
	struct error *err = grow(&l->list, l->n, sizeof(*l->list));

	if (!err)
		l->list[l->n++] = cpu;
	return err;
}

static struct error *living_cpu(void *list, const void *key, const void *value)
{
	u32 tgid = *(const u32 *)key;

	return add_cpu(list, (struct cpu){.tgid = tgid, .ns = cpu_of_process((pid_t)tgid)});
}

/* Nobody can ask the kernel for it once the process was waited for, a while before on_free() counts it. */
static struct error *ending_cpu(void *list, const void *key, const void *value)
{
	const struct process_ending *ending = value;
	u64 now = ending->is_final ? 0 : cpu_of_process((pid_t)ending->tgid);

	return add_cpu(list,
	        (struct cpu){ending->tgid, !now && !ending->is_final, now > ending->cpu_ns ? now : ending->cpu_ns});
}

static void list_cpu(struct cpu_list *l, const struct bpf_map *map, map_take *add)
{
	error_free(map_each(map, false, add, l, "the processes"));
}

static int by_process(const void *a, const void *b)
{
	const struct cpu *x = a, *y = b;

	return x->tgid != y->tgid ? (x->tgid > y->tgid ? 1 : -1) : (x->ns > y->ns) - (x->ns < y->ns);
}

/* A process that ended meanwhile is in the list twice. */
static u64 sum_cpu(struct cpu_list *l)
{
	u64 sum = 0;

	if (l->n)
		qsort(l->list, l->n, sizeof(*l->list), by_process);
	for (u32 i = 0; i < l->n; i++)
		if (i + 1 == l->n || l->list[i + 1].tgid != l->list[i].tgid)
			sum += l->list[i].ns;
	return sum;
}

static bool any_unsettled(const struct cpu_list *l)
{
	for (u32 i = 0; i < l->n; i++)
		if (l->list[i].unsettled)
			return true;
	return false;
}

static u64 ended_cpu(const struct object *o)
{
	return *(volatile u64 *)&o->skel->bss->ended_ns;
}

/*
 * Processes move from the map of those that live to that of those that end, and from there to the sum of those that are
 * gone. In this order none is missed, but for one that is gone since the sum was read: its sum is too small.
 */
static u64 try_cpu(const struct object *o, u64 ended)
{
	cleanup(cpu_list) struct cpu_list l = {};

	list_cpu(&l, o->skel->maps.processes, living_cpu);
	list_cpu(&l, o->skel->maps.endings, ending_cpu);
	return ended + sum_cpu(&l);
}

s64 object_cpu_ns(const struct object *o)
{
	u64 ended = ended_cpu(o), before, sum, most = 0;
	u32 tries = 0;

	if (o->options.everyone)
		return (s64)(cpu_of_machine() - cpu_of_process(getpid()));
	do {
		before = ended;
		sum = try_cpu(o, before);
		most = sum > most ? sum : most;
		ended = ended_cpu(o);
	} while (ended != before && ++tries < CPU_TRIES);
	return (s64)(most - o->outside_ns);
}

s64 object_final_cpu_ns(struct object *o)
{
	cleanup(cpu_list) struct cpu_list l = {};
	u32 nliving, tries = 0;
	u64 ended;

	if (o->options.everyone)
		return object_cpu_ns(o);
	o->skel->bss->keep_ended = 1;
	list_cpu(&l, o->skel->maps.processes, living_cpu);
	nliving = l.n;
	do {
		usleep(tries ? 1000 : 0);
		l.n = nliving;
		ended = ended_cpu(o);
		list_cpu(&l, o->skel->maps.endings, ending_cpu);
	} while ((ended != ended_cpu(o) || any_unsettled(&l)) && ++tries < SETTLE_MS);
	return (s64)(ended + sum_cpu(&l) - o->outside_ns);
}
