/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of a run: processes by instance number, followed through fork, exec, exit and new mappings. */
#ifndef YRT_TARGETS_H
#define YRT_TARGETS_H

#include <types.h>

#include "mmap_watch.h"
#include "object.h"
#include "select.h"
#include "unread.h"
#include "unwind/process/process.h"
#include "unwind/table.h"

struct targets {
	struct object *object;
	struct modules *modules;
	struct mmap_watch *watch; /* NULL: what processes had mapped that are gone is not known */
	bool follow;
	bool everyone;                     /* object_options.everyone */
	const struct selection *selection; /* NULL: those that were added, and what follow says */
	void (*warn)(void *ctx, struct error *err);
	void *ctx;
	struct process **processes;
	u32 nprocesses;
	struct table by_pid;    /* those that are alive, and some that are not */
	struct table by_number; /* their places in processes, by number + 1 */
	u32 alive;
	pid_t between;  /* ran another program already when it was looked at: its record is still to come. 0: none */
	bool announced; /* BPF knows of those that were added until now, and is given each from here on */
	u32 recognised; /* runtimes that any of them has, or may have once it has started: bit n is id n */
	u32 runtimes;   /* of processes that were forgotten: bit n is id n */
	u32 seen;       /* processes so far */
	struct unread_list unread; /* of them; with everyone */
};

void targets_free(struct targets *t);
/* A process to be sampled: recognises it and passes it to BPF. */
struct error *targets_add(struct targets *t, pid_t pid, u32 number);
/* BPF's programs are loaded: passes them those that were added. */
struct error *targets_announce(struct targets *t);
/* Adds a process if it is selected, no target yet, and yrt may look at it; otherwise nothing happens. */
struct error *targets_offer(struct targets *t, pid_t pid);
/* The runtimes that were recognised in any of them so far: bit n is id n. */
u32 targets_runtimes(const struct targets *t);
struct process *targets_find(const struct targets *t, u32 number);
/* The one that has this pid now; NULL: none. */
struct process *targets_alive(const struct targets *t, pid_t pid);
/* What BPF reported: RECORD_FORK, RECORD_EXEC, RECORD_EXIT, RECORD_UNKNOWN. */
struct error *targets_record(struct targets *t, const struct process_record *record);
/* A process mapped code (0: any may have): looks at its maps again. Others than targets are ignored. */
struct error *targets_mapped(struct targets *t, pid_t pid);
/* Looks again at those with a runtime that is only starting. */
struct error *targets_starting(struct targets *t);
/*
 * Finds targets that ended without a RECORD_EXIT: the record is lost if the ring is full, and none is sent while yrt
 * attaches.
 */
struct error *targets_reap(struct targets *t);
/* All have ended, and none of them is about to be seen as another program. */
bool targets_are_over(const struct targets *t);
/* Tries again those that could not be looked into. */
struct error *targets_retry(struct targets *t);
/* Forgets those that are gone and that no record can name any more. */
void targets_sweep(struct targets *t);
/* The same for those that were gone at the last such call: records that name them have been processed by now. */
void targets_sweep_old(struct targets *t);

#endif
