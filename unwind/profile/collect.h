/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector: takes stacks as probes send them, names them and merges them into a profile while the target lives,
 * and adds counts by hash. Memory is bounded by the number of distinct call paths.
 */
#ifndef YRT_COLLECT_H
#define YRT_COLLECT_H

#include <signal.h>
#include <types.h>

#include "idle.h"
#include "names.h"
#include "profile.h"
#include "shared/record.h"

struct collect_options {
	struct names_options names;
	bool processes;    /* a node a process at the root, below those of its container (containers.h) */
	bool times;        /* when each sample was taken (profile.times) */
	bool threads;      /* a node a thread at the root, or below its process */
	bool native_only;  /* leave out frames of scripts (c-flame) */
	bool scripts_only; /* leave out native frames, but those of names.view's own code; with no_kernel */
	bool no_kernel;    /* leave out kernel frames */
	const u32 *tids;   /* only stacks of these threads, whose hashes are by thread; 0: of all */
	u32 ntids;
	bool lock_only;      /* only stacks of threads that hold the lock of a VM (FRAME_LOCK) */
	const char *include; /* only stacks with a frame that matches this extended regular expression; NULL: all */
	const char *exclude; /* no stack with such a frame */
	/*
	 * Time of a wait (names.reason_kind: KIND_WAITING) after its end, when the thread could go on but had no CPU:
	 * the reason of that. It is counted under the stack's stack_queued(). 0: none is.
	 */
	u32 queued;
	/* Leaves out waits by design: what a reason says by itself. NULL: they are shown. */
	enum idle_chance (*idle)(u32 reason);
	bool locks;                /* waits are in futex(2): each stack shows what for (locks.h) */
	bool (*futex)(u32 reason); /* Is this a wait in futex(2)? Its stack shows what for, too. NULL: none is */
	bool all_waits;            /* and those that are for no lock are shown, whatever they are for */
	/*
	 * Takes each whole stack, instead of the counts by hash, and calls collector_place(). NULL: samples are
	 * counted.
	 */
	struct error *(*stack)(void *ctx, const struct stack_record *record, const struct frame *frames, u32 n);
	/* Sees each whole stack, whatever becomes of it. NULL: nobody does. */
	struct error *(*seen)(void *ctx, const struct stack_record *record, const struct frame *frames, u32 n);
	void *stack_ctx; /* of both */
};

static inline bool collect_wants_thread(const struct collect_options *o, u32 tid)
{
	u32 i = 0;

	while (i < o->ntids && o->tids[i] != tid)
		i++;
	return !o->ntids || i < o->ntids;
}

struct collector;

#define COLLECT_IDLE_RULES 32
#define COLLECT_IDLE_NAME  96 /* a longer name is cut */

struct collect_stats {
	u64 counted;  /* in the profile; this and all that follows in the unit of the event */
	u64 filtered; /* left out by include, exclude and lock_only */
	u64 idle;     /* left out as waits by design */
	struct {
		char rule[COLLECT_IDLE_NAME]; /* idle.h; the first one, "", has what others hid */
		u64 value;
	} idle_by[COLLECT_IDLE_RULES];
	u32 nidle_by; /* but for the first */
	struct {
		u64 value, more, hidden, hidden_more;
	} lock[LOCK_KINDS];     /* of counted and idle, by what for; hidden: of idle */
	u64 unmatched;          /* counted by BPF, but the stack never arrived */
	u64 frames;             /* of counted samples, weighted */
	u64 unresolved;         /* of them without any name */
	u64 guessed;            /* counted samples with a frame that was found by a guess (FRAME_GUESS) */
	u64 approx;             /* counted samples whose leaf a runtime gives only approximately */
	u64 below_approx;       /* counted samples with such a frame anywhere: what lies in or below one */
	u64 stacks;             /* distinct stacks that arrived */
	u64 deferred[STOP_MAX]; /* samples that were walked to the end later, by why they first were not */
	u64 gone; /* frames of scripts in them whose functions were not there any more when they were to be named */
};

/* The word of a stop reason in statistics and pictures. */
const char *stop_word(u32 stop);

/* find: the process of an instance number, NULL if unknown. */
struct error *collector_create(const struct modules *modules, const struct collect_options *options,
        struct process *(*find)(void *ctx, u32 number), void *ctx, struct collector **ret);
void collector_destroy(struct collector *c);
/*
 * Is everything loaded that naming this record's frames needs? If not, another thread is reading it (names.h): ask
 * again later.
 */
bool collector_ready(struct collector *c, const struct stack_record *record, size_t size);
/*
 * Lets runtimes look now at the objects of a record's frames that will only be named later, because they may be gone by
 * then: a function that lives as long as a request.
 */
void collector_prefetch(struct collector *c, const struct stack_record *record, size_t size);
/* One chunk of a stack, checked: size is what arrived. Out of memory is an error; a broken record is dropped. */
struct error *collector_stack(struct collector *c, const struct stack_record *record, size_t size);
/* Where a stack belongs in the profile, with one more frame inside its leaf (NULL: none): *ret is the node. */
#define COLLECTOR_FILTERED 0xffffffffu /* nowhere: include or exclude */
struct error *collector_place(struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n,
        const struct frame *inside, u32 *ret);
/* The same of what waits without a thread: under task_function() in place of a thread. */
struct error *collector_place_task(struct collector *c, const struct stack_record *record, const char *name, u32 number,
        const struct frame *frames, u32 n, u32 *ret);
/*
 * Joins a stack with that of its waker: both are shown as one, the waker's inside the stack's leaf, from leaf to root
 * (STACK_OF_WAKER). Where the waker's stack is unknown, the stack stands alone.
 */
struct error *collector_join(struct collector *c, u32 epoch, u64 hash, u64 waker, u64 both);
/* Counts come under the epoch (0 or 1) of their stack's record, or the one after that. */
void collector_count(struct collector *c, u32 epoch, u64 hash, u64 value, u64 more);
/* The node of a stack that came in this epoch or the one before. False: it is not known, or left out. */
bool collector_find(const struct collector *c, u64 hash, u32 *ret);
/* This stack of the other epoch will be counted in this one, too, without being sent again. */
struct error *collector_carry(struct collector *c, u32 epoch, u64 hash);
/* Forgets the hashes of this epoch: BPF sends every stack again in the other one. */
void collector_forget(struct collector *c, u32 epoch);
const struct collect_stats *collector_stats(const struct collector *c);
/* The moment (now_ns()) that times are counted from. */
void collector_begin(struct collector *c, u64 ns);
/* A sample was taken; size is what arrived. */
struct error *collector_time(struct collector *c, const struct time_record *record, size_t size);
/* Finds the places of samples whose stacks are known by now: before collector_forget(). */
void collector_place_times(struct collector *c);
/* A piece of the stack of a walk that is to be done again (deferred.h). */
struct error *collector_deferred(struct collector *c, const struct deferred_record *record, size_t size);
/* Do some of this process wait? */
bool collector_waits(const struct collector *c, u32 number);
/* Does those again whose processes are known better by now. all: none is kept for later. */
struct error *collector_settle(struct collector *c, u64 now_ns, bool all);
/*
 * Call when no more stacks come: adds inlined functions and lines of native code, if wanted. *stop (may be NULL) ends
 * only requests to debuginfod.
 */
struct error *collector_finish(struct collector *c, volatile sig_atomic_t *stop);
/* Owned by the collector; collector_finish() makes it another one. */
struct profile *collector_profile(struct collector *c);

#endif
