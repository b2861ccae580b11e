/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A condition that watch waits for: "cpu > 80% for 5s", "load > 4", "rss > 2g for 30s".
 *
 *	cpu	CPU time of all targets together, of the machine where that is the target; 100 % is one CPU. A target
 *		counts from the first look at it on
 *	load	the machine's load average of a minute
 *	rss	memory of all targets together in bytes, of the machine what is not available; k, m, g
 *	exit(COMMAND)	what a shell command exits with, which runs at each look
 */
#ifndef YRT_WHEN_H
#define YRT_WHEN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"
#include "unwind/table.h"

enum when_metric { WHEN_CPU, WHEN_LOAD, WHEN_RSS, WHEN_EXIT, WHEN_METRICS };

struct when {
	enum when_metric metric;
	char *command; /* of WHEN_EXIT */
	bool below;    /* '<' */
	double limit;
	double for_s;
	u64 since_ns; /* it has held since then; 0: it does not hold */
	/* at the last look */
	u64 looked_ns;
	u64 machine_ns;   /* CPU time of the machine */
	struct table cpu; /* CPU time of each target */
	double value;
};

/* An error shows the grammar. */
struct error *when_parse(const char *text, struct when *ret);
void when_free(struct when *w);
/*
 * Looks at the targets (everyone: at the machine) now. *holds: the condition has held for as long as it says; of cpu
 * and rss never without a target. An error: its command cannot run. *stop ends the command.
 */
struct error *when_look(
        struct when *w, const pid_t *pids, int n, bool everyone, volatile sig_atomic_t *stop, bool *holds);
/* Forgets since when it held. */
void when_restart(struct when *w);
/* What the last look found: "81.5 %", "2100m". */
#define WHEN_VALUE 32
void when_show(const struct when *w, char ret[WHEN_VALUE]);

#endif
