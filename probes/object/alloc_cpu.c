/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_cpu.h"

#include "unwind/grow.h"

static u64 ns_of(const struct timespec *ts)
{
	return (u64)ts->tv_sec * 1000000000ull + (u64)ts->tv_nsec;
}

u64 alloc_cpu_sum(struct alloc_cpu *c)
{
	struct timespec ts;
	u64 sum = 0;

	for (u32 i = 0; i < c->n; i++) {
		if (!clock_gettime(c->of[i].id, &ts))
			c->of[i].last = ns_of(&ts);
		sum += c->of[i].last > c->of[i].first ? c->of[i].last - c->of[i].first : 0;
	}
	return sum;
}

struct error *alloc_cpu_add(struct alloc_cpu *c, pid_t pid)
{
	struct alloc_cpu_clock clock = {.pid = pid};
	struct timespec ts;
	struct error *err;

	for (u32 i = 0; i < c->n; i++)
		if (c->of[i].pid == pid)
			return NULL;
	if (clock_getcpuclockid(pid, &clock.id) || clock_gettime(clock.id, &ts))
		return NULL;
	clock.first = clock.last = ns_of(&ts);
	err = grow(&c->of, c->n, sizeof(*c->of));
	if (!err)
		c->of[c->n++] = clock;
	return err;
}
