/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of sampling, by the clock or another event: from targets to a profile and its statistics. What was gathered
 * is kept, whatever happens to the targets.
 */
#ifndef YRT_SAMPLER_H
#define YRT_SAMPLER_H

#include <signal.h>
#include <types.h>

#include "event.h"
#include "unwind/profile/collect.h"
#include "unwind/error.h"
#include "unread.h"
#include "walker_loads.h"

struct sampler;

struct sampler_options {
	const struct event_ops *event;
	const void *of_event; /* its own options; NULL if it has none */
	double frequency;     /* samples a second of CPU time of each thread, or what the event makes of it */
	double duration_s;    /* 0: until stopped or all targets are gone */
	u32 depth;            /* frames of a stack at most */
	double cpu_percent;   /* of one CPU, that yrt and its probes may take; past it the rate halves. 0: no limit */
	bool follow;          /* processes that targets make */
	bool no_idle;         /* without waits by design (event_ops.idle) */
	bool everyone;        /* every process that runs, but yrt itself */
	const struct selection
	        *selection; /* these processes, also those that start later; NULL: those that are attached */
	void (*awaited)(void *ctx, pid_t pid); /* of a selection: the run begins when its first process, this, is there;
	                                          NULL: at once */
	bool no_user, no_kernel;
	bool measure; /* have the kernel measure BPF run time */
	const char *cache_dir;
	struct collect_options collect;
	u32 features; /* enum feature of runtime.h, besides those that follow from others */
	void (*warn)(void *ctx, struct error *err);                 /* something that does not end the run; owns err */
	void (*progress)(void *ctx, double elapsed_s, u64 samples); /* about ten times a second; may be NULL */
	double snapshot_s; /* so often all that was seen is moved into the profile, and snapshot is called */
	struct error *(*snapshot)(void *ctx, struct sampler *s); /* an error ends the run; may be NULL */
	void *ctx;
};

struct sampler_stats { /* all weighted: after the rate was halved a sample counts for two */
	struct probe_stats probe;
	struct collect_stats collect;
	u64 samples, complete; /* in the unit of the event */
	double expected; /* that samples should be, by another count: of the clock the CPU time of the targets times the
	                    frequency; 0: none */
	u64 lost_clock;  /* never taken: the clock's ticks did not come */
	double bpf_ns_per_sample;
	u64 bpf_ns;          /* of the programs that take samples */
	u64 bpf_other_ns;    /* of the programs that follow processes, if the kernel measured */
	double cpu_percent;  /* of one CPU: yrt itself and its BPF programs */
	u64 max_rss_kb;      /* until now: with the names and lines that come after the last sample */
	u64 sampling_rss_kb; /* until the last sample */
	u64 map_kb;
	double first_sample_ms; /* after sampling was armed; < 0: none */
	double armed_ms;        /* from the start of yrt until armed */
	double duration_s;
	double target_cpu_s;
	struct walkers_stats walkers;
	u32 halvings;       /* of the rate, to keep the budget */
	double probed;      /* fraction of the run with uprobes attached, if less than 1 to keep the budget; else 0 */
	int command_status; /* how the started program ended, as waitpid() reports; -1: it runs, or none was started */
	const struct event_ops *event;
	const void *of_event;             /* what only the event knows, valid until it is asked again; NULL: nothing */
	u32 processes;                    /* targets so far */
	u32 runtimes;                     /* as sampler_runtimes() */
	const struct unread_list *unread; /* of them, valid as long as the sampler */
};

struct error *sampler_create(const struct sampler_options *options, struct sampler **ret);
void sampler_destroy(struct sampler *s);
/* A running process. only: there will be no other, so the walkers that it needs are all that are needed. */
struct error *sampler_attach(struct sampler *s, pid_t pid, bool only);
/* Starts a program, to be sampled from its exec on. Its exit ends the run. argv is NULL-terminated. */
struct error *sampler_start_command(struct sampler *s, char *const *argv);
/* Samples until the duration is over, all targets are gone, or *stop is set. */
struct error *sampler_run(struct sampler *s, volatile sig_atomic_t *stop);
/* Until now, while it runs. */
void sampler_stats(struct sampler *s, struct sampler_stats *ret);
/* Owned by the sampler. */
struct profile *sampler_profile(struct sampler *s);
/* The runtimes that were recognised in targets so far: bit n is id n. */
u32 sampler_runtimes(const struct sampler *s);
/* "nginx (pid 42)" of the first target, and how many more. */
const char *sampler_target(const struct sampler *s);

#endif
