/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sampler, as the files that implement it see it: sampler_create.c, sampler.c (the run), sampler_account.c.
 */
#ifndef YRT_SAMPLER_INTERNAL_H
#define YRT_SAMPLER_INTERNAL_H

#include "sampler.h"

#include "backlog.h"
#include "command.h"
#include "mmap_watch.h"
#include "object.h"
#include "targets.h"
#include "walker_loads.h"

struct sampler {
	struct sampler_options options;
	struct object *object;
	struct arena *arena;
	struct modules *modules;
	struct collector *collector;
	const struct event_ops *ops;
	void *event; /* what ops made */
	struct event_host host;
	struct mmap_watch *watch;   /* NULL: not permitted */
	struct name_reader *reader; /* NULL: of an event that counts stacks itself */
	struct backlog backlog;     /* stacks that wait for their names, and exits behind them */
	struct targets targets;
	struct walkers *walkers; /* NULL: nothing is loaded yet */
	bool loading;            /* it has begun */
	u32 loaded;              /* with these walkers */
	u32 guessed;             /* what the files of the one process are named after; 0: nothing */
	struct command *command;
	int epoll;
	u64 sought_ns, reaped_ns, created_ns, armed_ns, ended_ns, budget_ns, budget_bpf_ns, budget_own_ns, watch_ns,
	        starting_ns, snapshot_ns, swept_ns;
	u64 began_ns; /* armed_ns, or when the process that was awaited was there */
	bool awaiting;
	u64 cpu_at_begin, cpu_at_end; /* at_end: 0: it runs still */
	u64 cpu_end_ns;               /* when that was */
	u64 samples_ns;               /* that the main thread spent on records of samples, until on_samples_ns */
	u64 on_samples_ns;            /* CPU time when that began, or ended */
	bool on_samples;
	u64 stacks_at_drain;
	bool behind; /* stacks wait, not for symbols */
	bool urgent; /* the event is to be polled before more stacks are taken */
	u64 gone;    /* collect_stats.gone when last looked at */
	u64 eager_until_ns, loading_until_ns;
	u64 loaded_ns; /* when the last file was loaded */
	bool high_priority;
	int priority; /* before that */
	u32 modules_known;
	u64 sampling_rss_kb;
	u32 halvings;
	u32 over_looks; /* in a row, at which samples had cost too much */
	char target[128];
	struct error *failed; /* of a callback; ends the run */
};

/* What the sampler's epoll waits for. */
enum { TAG_RING, TAG_MMAP, TAG_NAMES, TAG_WALKERS };

/* Loads the programs, once targets are known: with the walkers that these need. */
struct error *sampler_load(struct sampler *s);
/* How often it looks for records. */
#define POLL_MS 20 /* at fast clocks */
int sampler_poll_ms(const struct sampler_options *o);
/* Takes a record of BPF, or of an event. ctx: the sampler. */
void sampler_record(void *ctx, const void *data, size_t size);
/* All records that wait. */
void sampler_take_all(struct sampler *s);

u64 sampler_peak_rss_kb(void);
/*
 * Halves the rate if samples took too much in the last second. Reading processes, tables and names does not count:
 * fewer samples would not make it less.
 */
struct error *sampler_keep_budget(struct sampler *s, u64 now);

#endif
