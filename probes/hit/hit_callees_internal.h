/* SPDX-License-Identifier: Apache-2.0 */
/* What hit_callees.c, which watches in shifts, shares with hit_callees_find.c, _place.c and _words.c. */
#ifndef YRT_HIT_CALLEES_INTERNAL_H
#define YRT_HIT_CALLEES_INTERNAL_H

#include "hit_callees.h"
#include "hit_inlining.h"
#include "hit_pace.h"
#include "probes/thread_watch.h"
#include "unwind/runtime_calls.h"

#define CHANGES_MAX 64

struct form { /* a function as it exists in a process */
	u32 process, spec;
	struct runtime_callee callee;
	bool seen;                                  /* by this look */
	u64 since;                                  /* it may have been called unseen from then on; 0: it was not */
	double covered;                             /* progress (hit_pace.h) that its calls stand for so far */
	double own;                                 /* of that, by shifts alone, and */
	double own_ns;                              /* how long these were, of late */
	struct thread_watch *watch[THREAD_WATCHES]; /* its entry, then its exits where calls are measured; NULL: it is
	                                               not its turn, or another form has the same bytecode: */
	u32 which[THREAD_WATCHES];                  /* struct callee_key; not 0: that form's register serves it */
};

struct changing { /* a word that is written as a function gets other code */
	u32 process;
	u64 addr;
	struct thread_watch *watch;
};

struct looked {
	u32 process;
	u64 next_ns, last_ns;
	u32 n;                                  /* looks since it has a runtime */
	bool found;                             /* by this look: the whole name of what a part was asked for */
	char of[HIT_SPECS_MAX][NAME_MAX_BYTES]; /* the whole name, where a part was asked for; "" until it is known */
};

struct hit_callees {
	const struct event_host *host;
	const struct hit_options *options;
	struct form *forms;
	u32 nforms;
	struct looked *looked;
	u32 nlooked;
	struct hit_latency *latency;     /* NULL: calls are counted */
	struct hit_arguments *arguments; /* NULL: they are not told */
	u32 found[HIT_SPECS_MAX];
	const char *unseen_why[HIT_SPECS_MAX];
	u64 calls[HIT_SPECS_MAX]; /* of forms that are not watched any more */
	u32 adding, adding_for;   /* process and spec of a look */
	u64 cost_ns;              /* of a trap, without the program; 0: not measured yet */
	double spent;             /* of a CPU, while functions are watched: a mean of late */
	double debt;
	struct callee_counts counts; /* as of */
	u64 steered_ns, open_ns, opened_ns;
	u32 each;    /* 1: all are watched all the time */
	bool scarce; /* registers */
	u64 shift_begin, shift_end, next_shift,
	        shift_over; /* over: since when calls do not count any more; 0: they do */
	u64 drain_ns;       /* for which calls of a shift are waited for, of late */
	struct pace pace;
	u32 weight;       /* of calls, until the next shift */
	u64 calls_before; /* the shift */
	s64 begun;        /* calls that were under way before the shift */
	u64 began, ended, polled;
	struct hit_unseen unseen;
	struct hit_inlined_all inlined; /* at the end */
	u64 since;                      /* of functions that a look finds */
	struct changing *changing;
	u32 nchanging;
	struct callee_change changes[CHANGES_MAX]; /* to be looked at */
	u32 nchanges;
	bool warned;
	bool refused_late;
	bool unread[HIT_SPECS_MAX]; /* said: no arguments of it */
	struct refused {            /* by a look: functions whose calls cannot be measured */
		struct error *why;  /* of the first */
		u32 n, of;
		bool said;
	} refused[HIT_SPECS_MAX];
};

/* --- hit_callees_find.c --- */

/* Looks for functions where that is due. As hit_callees_poll(). */
struct error *hit_callees_look(struct hit_callees *c, u64 now);
/* At functions that got other code, as hit_callees_record() was told. */
struct error *hit_callees_look_at_changes(struct hit_callees *c);
/* Changes that nobody has told yet: they came behind the last look, or poll. */
void hit_callees_suspect_changes(struct hit_callees *c);

/* --- hit_callees_place.c --- */

/* Debug registers that it takes. */
u32 hit_callees_registers(const struct hit_callees *c, const struct form *f);
/* That a process's functions take. */
u32 hit_callees_registers_of(const struct hit_callees *c, u32 process);
bool hit_callees_is_open(const struct form *f);
struct error *hit_callees_open(struct hit_callees *c, struct form *f);
void hit_callees_close(struct hit_callees *c, struct form *f);
/* Is it a function of the process that gets other code when this word is written? */
bool hit_callees_is_of(const struct form *f, u32 process, u64 changes);
/* Has a register that is left tell when this function gets other code. What does not work is found by later looks. */
struct error *hit_callees_watch_changes(struct hit_callees *c, const struct form *f);
bool hit_callees_is_changing(const struct hit_callees *c, const struct form *f);
/* Where functions get other code is not watched any more if they are gone, or need the registers themselves. */
void hit_callees_trim_changing(struct hit_callees *c, bool all);

/* --- hit_callees_words.c --- */

/* Forms that get other code together have one that is the first of them. */
bool hit_callees_is_first(const struct hit_callees *c, u32 form);
/* Once for an -e: which ends of calls of a function that was added are not seen. */
void hit_callees_say_ends(const struct hit_callees *c, const struct runtime_callee *callee);
/* At the end: what was not seen, and how sure the number of calls is. */
void hit_callees_say(struct hit_callees *c);

#endif
