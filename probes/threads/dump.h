/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of every thread once, while all keep running, or from a core file. Threads off the CPU are walked from user
 * space, by the walkers of every runtime. If one ran meanwhile (by the kernel's count of its context switches), it is
 * walked again. Threads on a CPU are sampled by the clock.
 */
#ifndef YRT_DUMP_H
#define YRT_DUMP_H

#include "crash.h"
#include "thread.h"
#include "unwind/profile/collect.h"
#include "unwind/runtime.h"

struct dump;

struct dump_options {
	struct collect_options collect;
	u32 depth; /* frames of a stack at most */
	bool no_user, no_kernel;
	const char *core; /* a core file in place of processes; root: as core_open() takes it */
	const char *root;
	bool logical; /* also what waits without a thread (runtime_tasks.h) */
	const char *cache_dir;
	void (*warn)(void *ctx, struct error *err); /* something that does not end it; owns err */
	void *ctx;
	volatile sig_atomic_t *stop; /* as collector_finish() takes it */
};

enum dump_how {
	DUMP_WALKED,  /* its stack is that of one moment */
	DUMP_TORN,    /* it ran whenever its stack was read: what lies inside may be of several moments */
	DUMP_SAMPLED, /* it runs: the stack that it had most often in some samples */
	DUMP_UNSEEN,  /* it ran, but not when samples were taken: no stack */
	DUMP_EXITING, /* it had no user stack any more */
};

struct dump_thread {
	struct thread_record at; /* when it was walked */
	struct process *process;
	struct frame *frames; /* as walked, not named; NULL if sampled */
	u32 nframes;
	char *syscall; /* that it is in, as syscall_text() has it; NULL: none */
	u32 stop;      /* enum stop_reason */
	u32 left_out;  /* frames in the middle, of a stack that is deeper than the limit; 0: none */
	u32 period;    /* these are the same so many frames again and again; 0: they are not */
	bool waits;    /* what it waits for is known: */
	struct runtime_wait wait;
	char *lock;   /* the mutex that it waits for, as lock-flame calls it; NULL: it is none; hostile */
	u32 attempts; /* walks that it took */
	enum dump_how how;
	bool open; /* to be walked, or walked but not yet known to have stood still */
};

struct dump_list {
	struct dump_thread *items; /* by tid */
	u32 n;
	struct dump_task *tasks; /* logical.h */
	u32 ntasks;
	bool partial; /* there may be more tasks: a runtime could not list its own, and warned */
};

struct error *dump_create(const struct dump_options *options, struct dump **ret);
void dump_destroy(struct dump *d);
/* A running process: recognises it. Not with a core, whose process is there from the beginning. */
struct error *dump_add(struct dump *d, pid_t pid);
/* All threads as they are now; those that exit are left out. Free with dump_list_free(), before the dump. */
struct error *dump_take(struct dump *d, struct dump_list *ret);
void dump_list_free(struct dump_list *list);
/*
 * Each of these threads of one list seems to wait for the next. They were read one after the other, so a lock that is
 * handed round may look so. *still: it is true now, of all of them at one moment. Of a core it always is.
 */
struct error *dump_waits_still(struct dump *d, const struct dump_thread *const *threads, u32 n, bool *still);
/*
 * Names the stacks of a list, each under a node of its thread at the root of dump_profile(), and takes samples of those
 * on a CPU. To be called once, for the last list taken.
 */
struct error *dump_name(struct dump *d, struct dump_list *list);
/* Owned by the dump. Complete after dump_name(). */
struct profile *dump_profile(struct dump *d);
/* "nginx (pid 42)" of the first process, and how many more; for people. */
const char *dump_target(struct dump *d);
/* What it was taken from; NULL: running processes. */
const struct core_file *dump_core(const struct dump *d);
/* How the thread of this list, which was named, died; false: it is not the one that was killed. */
bool dump_crash(const struct dump *d, const struct dump_list *list, const struct dump_thread *t, struct crash *ret);

#endif
