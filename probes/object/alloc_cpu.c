/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_cpu.h"

#include <stdlib.h>

#include "probes/cpu_time.h"
#include "probes/object.h"
#include "probes/targets.h"
#include "unwind/binary/proc_path.h"
#include "unwind/grow.h"

static bool is_probed(const struct alloc_cpu *c, pid_t pid)
{
	for (u32 i = 0; i < c->nprobed; i++)
		if (c->probed[i] == pid)
			return true;
	return false;
}

static struct alloc_cpu_other *other_of(struct alloc_cpu *c, pid_t pid)
{
	for (u32 i = 0; i < c->nothers; i++)
		if (c->others[i].pid == pid)
			return &c->others[i];
	return NULL;
}

struct error *alloc_cpu_add(struct alloc_cpu *c, pid_t pid)
{
	struct alloc_cpu_other *other = other_of(c, pid);
	struct error *err;

	if (is_probed(c, pid))
		return NULL;
	err = grow(&c->probed, c->nprobed, sizeof(*c->probed));
	if (err)
		return err;
	c->probed[c->nprobed++] = pid;
	if (other)
		other->pid = 0;
	return NULL;
}

struct error *alloc_cpu_leave_out(struct alloc_cpu *c, const struct targets *t)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++) {
		const struct process *p = t->processes[i];
		u64 now;

		if (p->dead || is_probed(c, p->pid) || other_of(c, p->pid))
			continue;
		now = cpu_of_process(p->pid);
		err = grow(&c->others, c->nothers, sizeof(*c->others));
		if (!err)
			c->others[c->nothers++] = (struct alloc_cpu_other){.pid = p->pid, .first = now, .last = now};
	}
	return err;
}

void alloc_cpu_forget(struct alloc_cpu *c, void (*ended)(void *ctx, pid_t pid), void *ctx)
{
	for (u32 i = c->nprobed; i-- > 0;)
		if (process_is_gone(c->probed[i])) {
			ended(ctx, c->probed[i]);
			c->probed[i] = c->probed[--c->nprobed];
		}
}

static u64 sum_of_others(struct alloc_cpu *c)
{
	u64 sum = 0, now;

	for (u32 i = 0; i < c->nothers; i++) {
		struct alloc_cpu_other *o = &c->others[i];

		now = o->pid ? cpu_of_process(o->pid) : 0;
		if (now < o->last)
			o->pid = 0;
		else
			o->last = now;
		sum += o->last - o->first;
	}
	return sum;
}

u64 alloc_cpu_sum(struct alloc_cpu *c, const struct object *o)
{
	s64 now = object_cpu_ns(o) - (s64)sum_of_others(c);

	if (now > (s64)c->most)
		c->most = (u64)now;
	return c->most;
}

void alloc_cpu_free(struct alloc_cpu *c)
{
	free(c->probed);
	free(c->others);
}
