/* SPDX-License-Identifier: Apache-2.0 */
/* A dump as it is shown: its threads with their named stacks, equal stacks grouped, and who waits for whom. */
#ifndef YRT_DUMP_VIEW_H
#define YRT_DUMP_VIEW_H

#include <stdio.h>

#include "probes/threads/dump.h"
#include "probes/threads/logical.h"
#include "unwind/profile/profile.h"

struct view_thread {
	const struct dump_thread *t;
	char *name; /* as the runtime or the kernel calls it; hostile */
	char *own;  /* its innermost frame outside libraries: "sum_of (dies.c:18)"; hostile; NULL if it has none */
	u32 top;    /* outermost node of its stack in the profile; 0: it has none */
	u64 stack;  /* the same for equal stacks */
	bool waits; /* what it waits for is in t->wait */
	bool owned; /* and held by a thread of this dump: */
	u32 owner;  /* its index */
	bool deadlocked;
	u32 same,
	        still; /* of the dumps before this one, so many in a row had the same stack; and it had not run since */
};

/* What waits without a thread. */
struct view_task {
	const struct dump_task *t;
	u32 top, number; /* as of a thread; its number in the profile, from 1 on */
	u64 stack;
	u32 awaits;   /* 1 + index of the task that it waits for; 0: none is known */
	u32 awaiter;  /* 1 + index of one that waits for it */
	u32 awaiters; /* how many do */
};

struct dump_view {
	const char *target;           /* hostile */
	const struct core_file *core; /* that it is of; NULL: of processes */
	const struct crash *crash;    /* of the thread that was killed; NULL: none was */
	char *verdict;                /* what it died of, a sentence; hostile; NULL: no thread was killed */
	const struct profile *profile;
	struct view_thread *threads; /* those with equal stacks side by side, the most frequent stack first */
	u32 nthreads;
	u32 nstacks;
	struct view_task *tasks; /* as the threads are */
	u32 ntasks, ntask_stacks;
	const char *language; /* of which alone it has the frames; NULL: it has all */
	bool logical;         /* tasks were asked for */
	bool partial;         /* there may be more of them */
	u32 dumps;            /* that were taken (--repeat) */
};

/* What was seen of a thread in the dumps before. */
struct history;
struct history *history_create(void); /* NULL: out of memory */
void history_free(struct history *h);
struct error *history_add(struct history *h, const struct dump_list *list);

/* list: named by dump_name(); it, the dump and the target must outlive the view. */
struct error *view_make(struct dump *d, const struct dump_list *list, const struct history *h, struct dump_view *ret);
void view_free(struct dump_view *v);

/* Index behind the last thread with the same stack as thread i. */
u32 view_group_end(const struct dump_view *v, u32 i);
/* The nodes of the stack whose outermost one is top, leaf first: malloc'd; *n of them. NULL: out of memory. */
u32 *view_frames(const struct dump_view *v, u32 top, u32 *n);
/* The same for all that have the same path below a node. */
u64 view_path_hash(const struct profile *p, u32 node);
/* The name of a function without the place that a profile's names have behind it, which is shown separately. */
#define VIEW_NAME 4096
void view_name(const struct profile_function *f, char ret[VIEW_NAME]);
/* The last part of its file's path: "" if unknown. */
const char *view_file(const struct profile_function *f);
/* What a thread that waits waits for: "monitor 0x7f… (a java.lang.Object)"; hostile. */
#define VIEW_WAIT 256
void view_wait(const struct view_thread *t, char ret[VIEW_WAIT]);
/* "sleeping", "running"; of a core, whether it was in a system call; static. */
const char *view_state(const struct dump_thread *t);

/* Who waits for whom, and deadlocks; in dump_waits.c, as view_wait(). */
struct error *view_waits(struct dump *d, struct dump_view *v);

/* Fills v->verdict, of a core's crash, and each thread's own; in dump_verdict.c. */
struct error *view_verdict(struct dump_view *v);

/* Fills v->tasks; in dump_tasks.c, as the next ones. */
struct error *view_tasks(const struct dump_list *list, struct dump_view *v);
struct error *dump_tasks_text(const struct dump_view *v,
        struct error *(*put_stack)(const struct dump_view *v, u32 top, FILE *out), FILE *out);

struct error *dump_write_text(const struct dump_view *v, FILE *out);
struct error *dump_write_json(const struct dump_view *v, FILE *out);

#endif
