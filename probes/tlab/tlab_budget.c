/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_budget.h"

#include <math.h>

#include "probes/uprobe_shifts.h"

#define DUTY_LEAST 0.1
#define GUESS_NS   15000.0 /* a sample without its trap and interrupt, until some are measured */
#define REQUEST_EXITS                                                                                                  \
	6        /* an interrupt, and what two switches of threads write to debug registers: as dear as a trap each */
#define MEMORY 8 /* looks that a mean goes back, about */

static double mean(double old, double now)
{
	return old + (now - old) / MEMORY;
}

static double spent_on_samples(const struct tlab_budget *b, const struct tlab_spent *from, const struct tlab_spent *to)
{
	u64 leaves = to->traps - from->traps + REQUEST_EXITS * (to->requests - from->requests);

	return (double)(to->walk_ns - from->walk_ns + to->thread_ns - from->thread_ns) +
	       (double)leaves * (double)b->trap_ns;
}

static void learn(struct tlab_budget *b, const struct tlab_spent *now)
{
	double seconds = (double)(now->at_ns - b->last.at_ns) / 1e9;
	double cpu = now->target_cpu_ns > b->last.target_cpu_ns
	                     ? (double)(now->target_cpu_ns - b->last.target_cpu_ns) / seconds
	                     : 0;
	double sites = (double)(now->sites - b->last.sites) * (double)b->site_ns;
	double placed = (double)(now->placed_ns - b->last.placed_ns) / 1e9;
	u64 samples = now->samples - b->last.samples;

	if (samples)
		b->sample_ns = mean(b->sample_ns, spent_on_samples(b, &b->last, now) / (double)samples);
	b->cpu_ns = b->begun ? mean(b->cpu_ns, cpu) : cpu;
	b->sites_ns = b->begun ? mean(b->sites_ns, sites / seconds) : sites / seconds;
	if (placed > 0)
		b->placed_ns = b->placed_ns ? mean(b->placed_ns, sites / placed) : sites / placed;
	b->begun = true;
}

double tlab_budget_rate(struct tlab_budget *b, const struct tlab_spent *now)
{
	if (!b->last.at_ns)
		b->sample_ns = GUESS_NS + (1 + REQUEST_EXITS) * (double)b->trap_ns;
	else if (now->at_ns > b->last.at_ns)
		learn(b, now);
	b->last = *now;
	if (!b->share)
		return INFINITY;
	return b->begun ? fmax((b->share * b->cpu_ns - b->sites_ns) / b->sample_ns, TLAB_BUDGET_LEAST)
	                : TLAB_BUDGET_LEAST;
}

double tlab_budget_duty(const struct tlab_budget *b, double now)
{
	double duty = b->placed_ns ? b->share * b->cpu_ns / 2 / b->placed_ns : 1;

	return b->share ? uprobe_shifts_duty(duty, now, DUTY_LEAST) : 1;
}

double tlab_budget_share(const struct tlab_budget *b, const struct tlab_spent *from, const struct tlab_spent *to)
{
	double cpu = (double)(to->target_cpu_ns - from->target_cpu_ns);

	if (to->target_cpu_ns <= from->target_cpu_ns) /* gone, with its clock */
		return 0;
	return (spent_on_samples(b, from, to) + (double)(to->sites - from->sites) * (double)b->site_ns) / cpu;
}
