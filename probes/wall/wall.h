/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall-clock time of threads: the clock's samples of what they run (clock.h), and each wait (wait.h), in nanoseconds.
 * Off the CPU the sums are exact. On the CPU a sample stands for a sampling period, so their sum is near the
 * scheduler's; both are printed. With --timeline a thread has a sample for each period of wall-clock time: waits are
 * divided into periods.
 */
#ifndef YRT_WALL_H
#define YRT_WALL_H

#include "probes/event.h" /* wall_event */

#endif
