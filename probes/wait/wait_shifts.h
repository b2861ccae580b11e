/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context switches are watched all the time, or in shifts.
 *
 * A BPF program makes each switch 0.1 to 0.2 us slower, whatever it does. Where waits that are skipped would take more
 * than 0.7 % of a CPU, it is attached for a shift of some 40 ms, and taken away for a pause that is up to 15
 * times as long. What begins in a shift stands for the pause, too. In a pause the scheduler's own counters tell how
 * long each thread waits, and user space, which looks at threads 50 times a second, which waits last
 * (wait_bulk.bpf.h): so sums are exact, and so are long waits.
 */
#ifndef YRT_WAIT_SHIFTS_H
#define YRT_WAIT_SHIFTS_H

#include <stdbool.h>
#include <types.h>

#include "unwind/error.h"

struct bpf_link;
struct object;

struct wait_shifts {
	const struct object *object;
	bool wakers, always;                    /* always: no pauses */
	struct bpf_link *on_switch, *on_waking; /* NULL in a pause */
	u64 since_ns, until_ns;                 /* of the shift or pause */
	u64 late_ns;                            /* by how much the last pause was too long */
	u64 skipped;                            /* waits, until the last shift ended */
	u32 factor;                             /* of the next shift: wait_factor */
	u64 watched_ns, paused_ns;              /* until since_ns */
};

/* Attaches the probes; wait_shifts_end() in any case. wakers: also that of wake-ups. */
struct error *wait_shifts_begin(struct wait_shifts *s, const struct object *o, bool wakers, bool always);
void wait_shifts_end(struct wait_shifts *s);
/* look(ctx) has to visit all threads: a pause begins. */
struct error *wait_shifts_poll(struct wait_shifts *s, u64 now, struct error *(*look)(void *ctx), void *ctx);
bool wait_shifts_pauses(const struct wait_shifts *s);
u64 wait_shifts_due(const struct wait_shifts *s); /* 0: nothing is skipped */
/* The part of time that switches were watched until now. */
double wait_shifts_share(const struct wait_shifts *s, u64 now);

#endif
