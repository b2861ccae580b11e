/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uprobes of hits, and what they cost the target: if that is more than a quarter of --max-cpu, they are placed in
 * shifts (uprobe_shifts.h), and hits of a shift stand for all of its period. Calls that begin in a shift are waited for
 * until the period ends.
 */
#ifndef YRT_HIT_SHIFTS_H
#define YRT_HIT_SHIFTS_H

#include "hit_find.h"
#include "probes/event.h"
#include "unwind/process/process.h"

struct hit_shifts;

struct error *hit_shifts_create(const struct event_host *host, struct hit_shifts **ret);
void hit_shifts_destroy(struct hit_shifts *h); /* NULL is fine */

struct hit_uprobe {
	const struct bpf_program *program;
	struct hit_place at;
	u64 cookie; /* of an exit: the number of the jump that says whether it is one (hit_latency_jump()); 0: always */
	bool exit;  /* calls end there, or begin another turn */
};

/* path: of the image, for the kernel. */
struct error *hit_shifts_place(struct hit_shifts *h, const struct process *p, const struct image *img, const char *path,
        const struct hit_uprobe *u);
/* To be called some ten times a second and more. */
void hit_shifts_steer(struct hit_shifts *h, u64 now);
/* The run has ended: keeps hit_shifts_part() as it is now. */
void hit_shifts_end(struct hit_shifts *h);
/* The fraction of the run in which hits were counted; 0: there were no shifts, all were. */
double hit_shifts_part(const struct hit_shifts *h);
/* What hits took of the target so far, in CPUs while they were counted; 0: little. */
double hit_shifts_taken(const struct hit_shifts *h);
/* Hits so far, with those that were not seen between shifts. */
double hit_shifts_hits(const struct hit_shifts *h);

#endif
