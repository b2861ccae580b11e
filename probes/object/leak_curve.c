/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_curve.h"

#include <stdio.h>

#include "probes/targets.h"
#include "unwind/cleanup.h"

static void add_process(pid_t pid, struct leak_point *point)
{
	cleanup(fclose) FILE *file = NULL;
	char path[64], line[256];
	u64 kb;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "VmRSS: %lu", &kb) == 1)
			point->rss += kb << 10;
		else if (sscanf(line, "RssAnon: %lu", &kb) == 1)
			point->heap += kb << 10;
	}
}

void leak_curve_add(struct leak_summary *s, const struct targets *t, u64 since_ns, u64 *step_ns)
{
	struct leak_point point = {.ns = since_ns};

	for (u32 i = 0; i < t->nprocesses; i++)
		if (!t->processes[i]->dead)
			add_process(t->processes[i]->pid, &point);
	if (!point.rss)
		return;
	if (s->npoints == LEAK_CURVE) {
		for (u32 i = 0; i < LEAK_CURVE / 2; i++)
			s->curve[i] = s->curve[2 * i];
		s->npoints /= 2;
		*step_ns *= 2;
	}
	s->curve[s->npoints++] = point;
}
