/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report is made of: facts, and profiles by the name of their event ("clock", "wall", …). Measured now
 * (measure.h), or read: recordings, or a folder that --keep wrote (counters.json and NAME.yrt).
 */
#ifndef YRT_REPORT_EVIDENCE_H
#define YRT_REPORT_EVIDENCE_H

#include "facts.h"
#include "unwind/profile/profile.h"

#define EVIDENCE_VIEWS 16
#define EVIDENCE_STEPS 32

struct evidence_view {
	char *name;
	struct profile *profile; /* finished; owned */
};

struct evidence_step {
	char *text;   /* "CPU is at 12 %, 8 threads wait, so: where they wait" */
	bool missing; /* it could not be done: what was not looked at, and why */
};

struct evidence { /* zeroed at first */
	struct facts facts;
	struct evidence_view view[EVIDENCE_VIEWS];
	u32 nviews;
	struct evidence_step step[EVIDENCE_STEPS];
	u32 nsteps;
	char *target; /* "nginx (pid 42)" */
	u32 runtimes; /* bit n: that of id n was seen */
	bool refused; /* no view is permitted: counters alone */
	u64 start_unix_ns;
	char root[32];  /* where the program's files are: "/proc/42/root"; "": as this process sees them */
	bool elsewhere; /* in another root that is gone, or in several: its files cannot be read */
};

/* Takes the profile over, also on failure. Its name is that of its event; one of the same name is an error. */
struct error *evidence_add(struct evidence *e, const char *path, struct profile *p);
/* The same in place of one of its name, if it has seen more samples; else it is dropped. *better: it has. */
struct error *evidence_replace(struct evidence *e, const char *path, struct profile *p, bool *better);
const struct profile *evidence_view(const struct evidence *e, const char *name);
void evidence_step(struct evidence *e, bool missing, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A file without a byte: folded text of no stacks to other readers, but no run leaves such a thing. */
bool evidence_is_empty(const char *path);
/* A recording, counters.json, or a folder of both. Empty recordings become steps that are missing. */
struct error *evidence_read(struct evidence *e, const char *path);
/* counters.json of a folder; recordings are there already. */
struct error *evidence_write_counters(const struct evidence *e, const char *folder);
/* Facts that follow from the views: evidence.c has the list. */
void evidence_conclude(struct evidence *e);
/* Seconds that the programs of a view ran for in the kernel, by its statistics. */
double evidence_taken(const struct profile *p);
void evidence_free(struct evidence *e);

#endif
