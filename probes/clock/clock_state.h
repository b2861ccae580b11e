/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef YRT_CLOCK_STATE_H
#define YRT_CLOCK_STATE_H

#define CLOCK_CPUS 1024 /* those above are never stopped */

enum clock_state { /* of a CPU's timer */
	CLOCK_TICKS,
	CLOCK_STOPPED,
	CLOCK_WANTED,  /* it is stopped, and a target has come to the CPU */
	CLOCK_ARRIVED, /* it ticks, and a new thread of a target has come since the last look */
};

#endif
