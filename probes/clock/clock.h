/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock: one timer per CPU (perf's cpu-clock), which interrupts whatever runs there. BPF ignores ticks of threads
 * that are no targets, and of idle.
 *
 * Why not a timer per thread, which costs an idle target nothing?
 * - The kernel gives each such timer a whole first period of the thread's own CPU time (perf_event_alloc() in
 *   kernel/events/core.c sets period_left to attr.sample_period, also of inherited events; PERF_EVENT_IOC_PERIOD resets
 *   it to 0, so a random first period cannot be set). So each thread loses half a sample on average, and a thread that
 *   never runs for a whole period loses everything: a pool of 200 threads showed 7 of 93 samples. Samples of other
 *   threads cannot make up for that.
 * - The kernel arms and disarms it at each context switch, which takes up to 17 us on a virtual machine.
 * - Each thread needs a file descriptor.
 *
 * The timer of a CPU knows no threads: any moment of any target is as likely to be sampled as any other, however many
 * threads share the work and however short they live. Three things make that exact:
 * - The first tick comes after a random part of a period, on average half of one: create() starts the timers, and
 *   start() lets BPF take their ticks a random time later.
 * - A CPU ticks 1.05 to 1.25 times per sampling period, and gets another random period every 16 ticks or so
 *   (PERF_EVENT_IOC_PERIOD starts the timer anew, at a moment that no target knows). So programs with a period of their
 *   own do not resonate: without that, a ring of 2,000 threads had 10 samples of one and none of the next. A tick
 *   stands for the time since the one before (tick_time() in clock.bpf.h), which is independent of what runs. In each
 *   sampling period of targets' CPU time BPF takes the tick that passes a random moment (take_tick()).
 * - Idle time does not count. Some CPUs do not tick while they are idle, others are late when they wake up. A tick that
 *   was due before the task came to the CPU is ignored (was_due_before()), and one that follows missing ticks stands
 *   for its task's time only (tick_time()). Without that, pools of threads had 7 % too many samples on a quiet machine.
 *
 * The kernel charges a thread from when it is woken, not from when the CPU switches to it, and charges interrupts to
 * the thread that they hit. So threads that run for some microseconds at a time get fewer samples than the scheduler's
 * CPU time demands (on a virtual machine up to 10 us less per wake-up: the interrupt that wakes the thread still runs
 * in idle's context).
 *
 * Where no target runs, a CPU's timer is stopped (clock.c). The cost is an interrupt per tick where others run
 * beside a target (1 us, up to 20 us on a virtual machine; an idle CPU wakes up). Also, a target that does not keep a
 * CPU busy gets a number of samples that varies as random choice does (1 / sqrt(n)).
 *
 * Hardware cycles are not used, even with a PMU: they do not measure time (frequency scaling), and in perf's frequency
 * mode a CPU that is mostly idle ticks too often. So kernel code that runs with interrupts off is charged to where they
 * are enabled.
 */
#ifndef YRT_CLOCK_H
#define YRT_CLOCK_H

#include "probes/event.h" /* clock_event */

#endif
