/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock: perf events on the threads of targets, inherited by the threads (and with -s the processes) they make.
 *
 * A clock for each thread runs only while the thread does: an idle target costs nothing. It ticks `thin` times as often as
 * samples are wanted, and BPF takes the tick that passes a random moment of each period (sample.bpf.c), so that neither
 * programs with a period of their own nor threads that live shorter than a sampling period come out wrong.
 */
#ifndef YRT_CLOCK_H
#define YRT_CLOCK_H

#include <sys/types.h>
#include <types.h>

#include "object.h"
#include "unwind/error.h"

struct clock_options {
	double frequency; /* samples a second of CPU time */
	u32 thin;
	bool follow;	  /* also processes that targets make */
	struct object *object; /* whose program runs at each tick */
};

struct clock;

/* CPU time between two ticks. */
u64 clock_tick_ns(double frequency, u32 thin);
/* How many ticks make a sample at this rate. */
u32 clock_thinning(double frequency);

struct error *clock_create(const struct clock_options *options, struct clock **ret);
void clock_destroy(struct clock *c);
/* All threads of a process. on_exec: start when it executes a program. */
struct error *clock_attach(struct clock *c, pid_t pid, bool on_exec);
struct error *clock_start(struct clock *c);
void clock_stop(struct clock *c);
/* CPU time of all that was attached and inherited, as the scheduler counted. */
u64 clock_cpu_ns(const struct clock *c);
/* "cpu-clock" or "cycles": what ticks. */
const char *clock_source(const struct clock *c);

#endif
