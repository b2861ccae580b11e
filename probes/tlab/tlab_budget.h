/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a target may be sampled so that it loses at most a share of its CPU time. The cost of a sample differs a
 * lot: a debug register's trap, and an interrupt to the own CPU, take below 1 us on bare metal, and 15 us each on some
 * virtual machines, where both leave the guest. So the cost is measured, and the rate follows.
 */
#ifndef YRT_TLAB_BUDGET_H
#define YRT_TLAB_BUDGET_H

#include <types.h>

#define TLAB_BUDGET_LEAST 40.0 /* samples a second, whatever they cost */

/* Counters since the start. */
struct tlab_spent {
	u64 at_ns;         /* CLOCK_MONOTONIC */
	u64 target_cpu_ns; /* CPU time of all targets */
	u64 samples;
	u64 walk_ns;   /* in the programs, for samples */
	u64 thread_ns; /* CPU time of the watchpoint threads of watchpoints */
	u64 traps;     /* of debug registers */
	u64 requests;  /* to watchpoint threads: an interrupt and two switches of threads each */
	u64 sites;     /* uprobes hit, sampled or not */
	u64 placed_ns; /* while they were placed */
};

struct tlab_budget {
	double share; /* of the target's CPU time; 0: no limit */
	u64 trap_ns;  /* what a trap or an interrupt costs */
	u64 site_ns;  /* what a uprobe that is hit costs, its program without a sample included */
	struct tlab_spent last;
	bool begun;
	double sample_ns, sites_ns, cpu_ns; /* of a sample; of all sites and of the targets a second: means of late */
	double placed_ns;                   /* of all sites in a second in which they are placed */
};

/* Samples a second that it allows from now on; to be called every some 100 ms. */
double tlab_budget_rate(struct tlab_budget *b, const struct tlab_spent *now);
/* The part of time that sites may be placed, so that half of the share is left for samples; 1: always. now: what it is.
 */
double tlab_budget_duty(const struct tlab_budget *b, double now);
/* The share of the targets' CPU time that was spent between two looks, as estimated. */
double tlab_budget_share(const struct tlab_budget *b, const struct tlab_spent *from, const struct tlab_spent *to);

#endif
