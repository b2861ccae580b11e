/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: options in; a profile, what was lost, and statistics out. Prints nothing and ends nothing, so commands, watch
 * and reports use it, also several times one after the other. The same process can do one run at a time.
 */
#ifndef YRT_RUN_H
#define YRT_RUN_H

#include <signal.h>

#include "sampler.h"
#include "unwind/profile/profile.h"

struct run_request {
	struct sampler_options sampler; /* .event and .of_event by run_choose() */
	void *own;                      /* what .of_event is; owned */
	pid_t *pids;                    /* owned */
	int npids;
	int nasked;           /* of them: the others are children that were found (sampler.follow), which may be gone */
	char *const *command; /* a program to start instead, NULL-terminated; not owned. NULL: none */
	bool second;          /* what the event counts beside its value is what the profile counts */
	bool idle;            /* waits by design are shown, as asked */
	volatile sig_atomic_t *stop; /* ends it early, and keeps what there is */
	/*
	 * Of several targets this one can not be sampled, the others are; asked: it is none that was found. Owns err.
	 * NULL: it is freed.
	 */
	void (*refused)(void *ctx, struct error *err, bool asked);
	/* All targets are there, and sampling begins. May be NULL. */
	void (*begins)(void *ctx);
	void (*ended)(void *ctx); /* no more samples. May be NULL */
	                          /* ctx is sampler.ctx. */
};

struct run_result {
	struct sampler *sampler; /* owned, and owner of the profile and of what stats refers to */
	struct profile *profile; /* finished; its meta has unit, target, times, loss and statistics, but no title */
	struct sampler_stats stats;
	char *loss, *stats_text; /* of loss.h; owned */
	u32 runtimes;            /* as sampler_runtimes() */
	enum error_kind refused; /* of a target of several that is there; 0: none */
};

/* What a run has unless asked otherwise: CPU time at 99 Hz, inlined functions, the cache. Free with run_free(). */
void run_defaults(struct run_request *ret);
/* The event, with its own options zeroed. */
struct error *run_choose(struct run_request *r, const struct event_ops *event);
/* An option of the event (event_command.h); *taken: it is one. */
struct error *run_option(struct run_request *r, int key, const char *argument, bool *taken);
/* Adds a pid unless it is there already. False: out of memory. */
bool run_add_pid(struct run_request *r, pid_t pid);
/* For -s (sampler.follow): adds the children that the processes have now, and theirs. */
struct error *run_add_children(struct run_request *r);
/* The targets, or the command, become those of a sampler. *refused: as run_result.refused. */
struct error *run_attach(struct sampler *s, const struct run_request *r, enum error_kind *refused);
void run_free(struct run_request *r);

/*
 * Runs. An error leaves nothing, or what was gathered until then: ret->profile says which. Free ret with
 * run_result_free() in either case.
 */
struct error *run_profile(struct run_request *r, struct run_result *ret);
void run_result_free(struct run_result *r);

#endif
