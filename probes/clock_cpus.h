/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of CPUs, for targets that switch often. A clock of a thread is a timer that the kernel arms at each switch to it and disarms at
 * each switch away (perf_swevent_start_hrtimer, kernel/events/core.c): a few hundred nanoseconds, but 9 to 14 us on a virtual machine
 * whose timer is the host's; a program that switched 436,000 times a second did so 78,000 times, and `finish_task_switch` had 85 % of its samples.
 * A CPU's clock is never disarmed. It ticks for whatever runs there, and BPF leaves out what is no target.
 */
#ifndef YRT_CLOCK_CPUS_H
#define YRT_CLOCK_CPUS_H

#include <stdbool.h>
#include <types.h>

struct clock_cpus {
	int *fds;
	u32 n;
};

/* A stopped clock for each CPU that is online, of so many ns, that runs a program at each tick. False: not permitted, none is left open. */
bool clock_cpus_open(struct clock_cpus *c, u64 tick_ns, int program);
void clock_cpus_start(const struct clock_cpus *c);
void clock_cpus_stop(const struct clock_cpus *c);
void clock_cpus_close(struct clock_cpus *c); /* also what was never opened */
u32 clock_cpus_online(void);

/*
 * What arming and disarming a thread's clock of so many ns takes here, on average: as tried on our own thread (1.5 ms at 17 us each) if it is the CPU's next timer,
 * else nothing to speak of. What is left of its period and what is left until the scheduler's next tick tell how often. 0: could not be tried.
 */
u64 clock_arming_ns(u64 tick_ns);

#endif
