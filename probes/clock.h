/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock: perf events on the threads of targets, inherited by the threads (and with -s the processes) they make.
 *
 * A clock for each thread runs only while the thread does: an idle target costs nothing. An interrupt costs a virtual machine
 * 20 us and more, so a clock ticks little more often than samples are wanted: 1.05 to 1.25 times, another number in each run,
 * and BPF takes the tick that passes a random moment of each period (sample.bpf.c), so that programs with a period of their
 * own do not come out wrong. Threads that live shorter than a sampling period would be seen by no tick, for a clock begins
 * with a whole one: where such threads come and go, all clocks tick finely, twice a period or 400 times a second.
 * Where targets switch so often that arming their threads' clocks takes 2 % of their time, and twice what clocks of CPUs would, the CPUs have
 * clocks instead (clock_cpus.h), until the end: how often is told by what the kernel counts of a thread, since its start. Samples are then those of a wall clock:
 * right on average, with the scatter of a random choice.
 */
#ifndef YRT_CLOCK_H
#define YRT_CLOCK_H

#include <sys/types.h>
#include <types.h>

#include "object.h"
#include "unwind/error.h"

struct clock_options {
	double frequency; /* samples a second of CPU time */
	bool follow;	  /* also processes that targets make */
	struct object *object; /* whose program runs at each tick */
};

struct clock;

struct error *clock_create(const struct clock_options *options, struct clock **ret);
void clock_destroy(struct clock *c);
/* All threads of a process. on_exec: start when it executes a program. */
struct error *clock_attach(struct clock *c, pid_t pid, bool on_exec);
struct error *clock_start(struct clock *c);
/*
 * Clocks that tick otherwise, because threads have become short-lived, or are so no longer, or switch often: when it is outdated (ask any number
 * of times a second), replace, attach all processes again (until no new ones have come), and then replaced. An error
 * of attaching goes to replaced: the clocks that there were go on then, for good.
 * A new period for the clocks that there are (PERF_EVENT_IOC_PERIOD) would not do: the kernel hands the events of a thread to
 * the next one that it made, and those of a thread that is gone can not be changed, though later threads inherit from them.
 */
bool clock_outdated(struct clock *c, u64 now);
void clock_replace(struct clock *c);
struct error *clock_attach_again(struct clock *c, pid_t pid);
struct error *clock_replaced(struct clock *c, struct error *failed);
void clock_stop(struct clock *c);
/* CPU time of all that was attached and inherited, as the scheduler counted. */
u64 clock_cpu_ns(const struct clock *c);
/* It is CPUs that have the clocks: how many samples a target gets is a matter of chance. */
bool clock_by_cpu(const struct clock *c);
/* "cpu-clock" or "cycles": what ticks. */
const char *clock_source(const struct clock *c);

#endif
