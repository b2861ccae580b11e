/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_windows.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "alloc_cold.h"
#include "alloc_counters.h"
#include "alloc_cpu.h"
#include "alloc_group.h"
#include "alloc_marks.h"
#include "alloc_progress.h"
#include "alloc_waits.h"
#include "alloc_weigh.h"
#include "probes/map_each.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/uprobe.h"
#include "probes/uprobe_cost.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/table.h"
#include "unwind/thread_start.h"

#define A_MS         1000000ull
#define PERIOD_MS    80
#define PERIOD_MAX   2000.0
#define PERIOD_PART  16   /* of the time since the start, where that is shorter: a short program has windows, too, */
#define PERIOD_LEAST 20.0 /* ms, but this */
#define WINDOW_MS    20   /* at most, where hits are not cheap enough to stay */
#define SOON_MS      1    /* between two looks while the budget is used */
#define LATER_MS     10   /* and while it is not */
#define IDLE_MS      50   /* and while no target has run for */
#define IDLE_NS      1e9
#define CREDIT_NS    10e6   /* of the budget is there from the start, and can be saved */
#define DEBT_NS      1e6    /* of alloc, or 1/1000 of the time since the start: a short program has windows, too */
#define LEAST_NS     200e3  /* of it for a window */
#define ENOUGH       4096   /* pairs: what an exception costs is known for now */
#define PAIRS_LEAST  200    /* that say something */
#define PAIRS_EVERY  4      /* windows, where not even half of the time between hits are exceptions; else each */
#define GUESS_NS     1000.0 /* an exception, until it was measured */
#define STEPPED_NS   5000.0 /* two of them */
#define PROGRAM_NS   100    /* of a program that finds no target */
#define TAIL_WINDOWS 8      /* times as long as a window that follows blocks */
#define TAIL_MS      50     /* at most */
#define STACKS       128    /* in a window, about */
#define FOLLOWING    4      /* windows of a program that waits: all but one of them follow blocks */
#define BURST_COST   16     /* times as much as is allotted to a window, it may take until the program waits, */
#define BURST_NS     12e6   /* or this */
#define QUIET        0.5    /* of its own CPU time, that hits may take of a program that uses little */
#define QUIET_NS     10e9   /* that its own use is a mean of, about */
#define SLICES       1024   /* before they get their weights */
#define MEMORY_NS    500e6  /* that a mean goes back, about */
#define ALONE_DENSE  2      /* each so many windows is one with landmarks alone, where hits are dense, */
#define ALONE_SPARSE 4      /* and where they are not, */
#define ALONE_FROM   12     /* and only after this many windows that count */
#define KEPT         4096   /* windows that tell how slow code is behind a hit */

struct look {
	u64 at, cpu;                  /* ns */
	struct alloc_waited waited;   /* set by look_whole(), */
	struct alloc_counted counted; /* too */
	struct alloc_progress progress;
	struct alloc_counters counters;
};

struct counted { /* of a stack, in a slice, or with weights */
	u64 hash;
	double bytes, calls;
	u32 epoch, slice;
};

struct alloc_windows {
	struct alloc_windows_options options;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, ending, is_open, paired;
	bool following; /* the window does */
	bool alone;     /* it has landmarks alone */
	u64 interval;   /* of windows that count */
	struct alloc_group *groups;
	u32 ngroups;
	struct alloc_cpu cpu;
	struct look begun, last, opened, closed; /* closed: the end of the last window, or of the time without */
	struct look closed_alone;                /* the same of windows with landmarks alone */
	double budget;                           /* ns that are left of it */
	double cpu_rate;                         /* of a CPU, that targets use: a mean of late */
	double own_rate;                         /* the same without hits, over a longer time */
	double exception_ns, stepped_ns;         /* that a hit costs, besides BPF's program */
	double trap_ns;                          /* the same of a debug register */
	bool measured, in_target, stepped_measured;
	bool dense; /* hits of the last window were */
	u64 ran;    /* when a look last found that a target had run */
	struct alloc_counters *counters;
	bool waits_known, waited; /* waited: in the last window; it needs no landmarks */
	enum alloc_clock clock;   /* by which slices were weighed */
	double allotted;          /* ns, that hits of this window may cost */
	double length;            /* ns, of the last window */
	u64 open_ns;
	u32 windows, turn;
	double exact_calls, exact_bytes; /* before the first window */
	double cost;                     /* ns, of all hits */
	double own, all, stood_for;      /* ns: of windows, the program's own, with hits; what they stood for */
	struct alloc_slice *slices;      /* that have no weight yet */
	u32 nslices;
	struct alloc_marks *marks;
	struct alloc_departures leaving;    /* from windows that have ended */
	struct alloc_slice *with, *without; /* windows of all uprobes and landmarks; with these alone */
	struct alloc_mark_hits hits_before; /* of landmarks, when the window began */
	u32 nwith, nwithout, choice;        /* choice: of landmarks, in the last of the latter */
	struct counted *seen;               /* in them */
	u32 nseen;
	struct alloc_sums calls, bytes; /* of slices that have one */
	struct counted *counted[2];     /* by epoch, with their weights */
	u32 ncounted[2];
	struct table by_hash[2]; /* places there, + 1 */
};

static struct sample *skeleton(const struct alloc_windows *w)
{
	return object_skeleton(w->options.host->object);
}

void alloc_windows_prepare(struct object *o)
{
	struct sample *skel = object_skeleton(o);

	object_want(o, "on_alloc_pair");
	object_want(o, "on_alloc_mark");
	object_want(o, "on_alloc_counter");
	object_want(o, "visit_allocating");
	uprobe_prepare(skel->progs.on_alloc_pair);
	uprobe_prepare(skel->progs.on_alloc_mark);
	uprobe_prepare(skel->progs.on_alloc_counter);
}

struct error *alloc_windows_create(const struct alloc_windows_options *options, struct alloc_windows **ret)
{
	struct alloc_windows *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	*ret = w;
	if (!w)
		return &error_no_memory;
	w->options = *options;
	w->exception_ns = GUESS_NS;
	w->stepped_ns = STEPPED_NS;
	w->budget = CREDIT_NS;
	w->following = true;
	w->waits_known = true;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	w->counters = alloc_counters_create(skeleton(w)->maps.alloc_counter_at, skeleton(w)->maps.alloc_threads,
	        skeleton(w)->progs.visit_allocating);
	return w->counters ? alloc_marks_create(skeleton(w)->progs.on_alloc_mark, &w->marks) : &error_no_memory;
}

static void look(struct alloc_windows *w, struct look *ret)
{
	struct object *o = w->options.host->object;

	ret->at = now_ns();
	ret->cpu = alloc_cpu_sum(&w->cpu, o);
	error_free(object_sum(o, skeleton(w)->maps.alloc_progressed, (u64 *)&ret->progress, sizeof(ret->progress)));
	error_free(object_sum(o, skeleton(w)->maps.alloc_counted, (u64 *)&ret->counters, sizeof(ret->counters)));
}

/* How often the program has waited, and what its allocator has counted: of many threads that takes milliseconds. */
static void look_at_threads(struct alloc_windows *w, struct look *ret)
{
	alloc_counters_read(w->counters, &ret->counted);
	ret->waited = (struct alloc_waited){0};
	for (u32 i = 0; i < w->cpu.nprobed && w->waits_known; i++)
		w->waits_known = alloc_waits_count(w->cpu.probed[i], &ret->waited);
}

/* Where a window ends. */
static void look_whole(struct alloc_windows *w, struct look *ret)
{
	look(w, ret);
	look_at_threads(w, ret);
}

static double exceptions(const struct alloc_windows *w, const struct look *from, const struct look *to)
{
	const struct alloc_progress *a = &from->progress, *b = &to->progress;
	u64 stepped = b->stepped - a->stepped, hits = b->hits - a->hits + b->pairs - a->pairs;

	return (double)stepped * w->stepped_ns + (double)(hits - stepped) * w->exception_ns;
}

static double cost(const struct alloc_windows *w, const struct look *from, const struct look *to)
{
	return exceptions(w, from, to) + (double)(to->progress.bpf_ns - from->progress.bpf_ns) +
	       (double)(to->progress.traps - from->progress.traps) * w->trap_ns;
}

/* A function of yrt's own is the last resort: its caches are warm. */
static void measure_here(struct alloc_windows *w, bool emulated)
{
	u64 ns = w->ngroups ? uprobe_cost(w->groups[0].program, emulated, true, NULL) : 0;

	if (ns > PROGRAM_NS)
		*(emulated ? &w->exception_ns : &w->stepped_ns) = (double)(ns - PROGRAM_NS);
}

/* From the pairs since then, if there are enough: what an exception costs changes with the machine's load. */
static void learn(struct alloc_windows *w, const struct look *since, const struct look *now)
{
	u64 paired = now->progress.paired - since->progress.paired;

	if (paired < PAIRS_LEAST)
		return;
	w->exception_ns = (double)(now->progress.pair_ns - since->progress.pair_ns) / (double)paired;
	w->measured = w->in_target = true;
}

static void place_pairs(struct alloc_windows *w)
{
	for (u32 i = 0; i < w->ngroups; i++)
		alloc_group_place_pair(&w->groups[i], skeleton(w)->progs.on_alloc_pair);
	w->paired = true;
}

static void wait_until(struct alloc_windows *w, u64 when)
{
	struct timespec ts = now_timespec(when);

	while (!w->ending && now_ns() < when)
		pthread_cond_timedwait(&w->changed, &w->lock, &ts);
}

/* False: the end came first. */
static bool wait_for_breakpoints(struct alloc_windows *w)
{
	while (!w->ending && alloc_departures_hit(&w->leaving))
		wait_until(w, now_ns() + SOON_MS * A_MS);
	return !w->ending;
}

static void wait_for(struct alloc_windows *w, struct alloc_departures *d)
{
	pthread_mutex_unlock(&w->lock);
	alloc_departures_join(d);
	pthread_mutex_lock(&w->lock);
}

static void take_pairs_away(struct alloc_windows *w)
{
	for (u32 i = 0; i < w->ngroups; i++)
		alloc_depart(&w->leaving, &w->groups[i].second, &w->groups[i].last_second);
	w->paired = false;
}

static struct error *add_count(struct alloc_windows *w, u32 epoch, u64 hash, double bytes, double calls)
{
	u64 *place = hash ? table_get(&w->by_hash[epoch], hash) : NULL;
	struct error *err;

	if (!place && hash) {
		err = grow(&w->counted[epoch], w->ncounted[epoch], sizeof(**w->counted));
		if (!err)
			err = table_put(&w->by_hash[epoch], hash, w->ncounted[epoch] + 1);
		if (err)
			return err;
		w->counted[epoch][w->ncounted[epoch]++] = (struct counted){.hash = hash};
		place = table_get(&w->by_hash[epoch], hash);
	}
	if (!place)
		return NULL;
	w->counted[epoch][*place - 1].bytes += bytes;
	w->counted[epoch][*place - 1].calls += calls;
	return NULL;
}

/* A count of this slice. */
static struct error *keep(void *ctx, const void *of, const void *value)
{
	struct alloc_windows *w = ctx;
	const struct alloc_count_key *key = of;
	const struct alloc_count *count = value;
	struct error *err = grow(&w->seen, w->nseen, sizeof(*w->seen));

	if (!err)
		w->seen[w->nseen++] = (struct counted){.hash = key->hash,
		        .bytes = (double)count->bytes,
		        .calls = (double)count->calls,
		        .epoch = key->epoch & 1,
		        .slice = w->nslices};
	error_free(err);
	return NULL;
}

static void fit(const struct alloc_windows *w, struct alloc_cold *ret)
{
	u64 stepped = w->last.progress.stepped, hits = w->last.progress.hits;
	double part = hits ? (double)stepped / (double)hits : 0;
	double exception = part * w->stepped_ns + (1 - part) * w->exception_ns;

	alloc_cold_fit(w->with, w->nwith, w->without, w->nwithout, exception, ret);
}

/* Gives slices their weights. */
static void settle(struct alloc_windows *w)
{
	struct alloc_cold cold;

	if (!w->nslices)
		return;
	fit(w, &cold);
	w->clock = alloc_weigh(w->slices, w->nslices, &cold, &w->calls, &w->bytes);
	for (u32 i = 0; i < w->nseen; i++) {
		const struct counted *c = &w->seen[i];
		double weight = w->slices[c->slice].weight;

		error_free(add_count(w, c->epoch, c->hash, weight * c->bytes, weight * c->calls));
	}
	w->nslices = w->nseen = 0;
}

/* Stacks cost, too: as many as a picture needs. */
static void choose_interval(struct alloc_windows *w, double bytes)
{
	double least = fmax(w->options.interval, 1);

	w->interval = (u64)fmin(fmax(bytes / STACKS, least), 1e9);
	skeleton(w)->data->alloc_interval = w->interval;
}

/* Threads that have ended took theirs along. */
static double less(u64 more, u64 than)
{
	return more > than ? (double)(more - than) : 0;
}

static struct alloc_slice slice_of(const struct alloc_windows *w, const struct look *closed, const struct look *now)
{
	const struct alloc_progress *a = &w->opened.progress, *b = &now->progress, *c = &closed->progress;
	struct alloc_slice s = {.hits = (double)(b->hits - a->hits + b->pairs - a->pairs),
	        .pairs = (double)(b->pairs - a->pairs),
	        .gaps = (double)(b->gaps - a->gaps),
	        .gap_ns = (double)(b->gap_ns - a->gap_ns),
	        .cpu_ns = (double)(now->cpu - w->opened.cpu),
	        .bpf_ns = (double)(b->bpf_ns - a->bpf_ns),
	        .stands_for = fmax((double)(now->cpu - closed->cpu) - cost(w, closed, now), 0),
	        .behind = (double)(b->hits - c->hits),
	        .calls = (double)(now->counters.calls - w->opened.counters.calls),
	        .bytes = (double)(now->counters.bytes - w->opened.counters.bytes),
	        .marks = (double)(b->marks - a->marks),
	        .waits = less(now->waited.voluntary, w->opened.waited.voluntary),
	        .waits_behind = less(now->waited.voluntary, closed->waited.voluntary),
	        .ousted_behind = less(now->waited.others, closed->waited.others),
	        .ready_behind = less(now->waited.ready, closed->waited.ready),
	        .ns = (double)(now->at - w->opened.at),
	        .ns_behind = (double)(now->at - closed->at),
	        .is_counted = w->opened.counted.known && closed->counted.known && now->counted.sure,
	        .counted = now->counted.bytes - closed->counted.bytes,
	        .own_counted =
	                now->counted.bytes - now->counted.first - (w->opened.counted.bytes - w->opened.counted.first),
	        .rounded = (double)(b->rounded - a->rounded),
	        .squares = (double)(b->squares - a->squares) * ALLOC_UNIT * ALLOC_UNIT,
	        .largest = (double)skeleton(w)->bss->alloc_largest};

	s.exception_ns = s.hits ? exceptions(w, &w->opened, now) / s.hits : w->exception_ns;
	return s;
}

/* Copies a window that tells how slow code is behind a hit. */
static void keep_slice(struct alloc_slice **all, u32 *n, const struct alloc_slice *s)
{
	struct error *err = *n < KEPT && s->choice ? grow(all, *n, sizeof(**all)) : NULL;

	if (!err && *n < KEPT && s->choice)
		(*all)[(*n)++] = *s;
	error_free(err);
}

static void end_slice(struct alloc_windows *w, const struct look *now)
{
	struct error *err = grow(&w->slices, w->nslices, sizeof(*w->slices));
	struct alloc_slice s = slice_of(w, &w->closed, now);
	double own = alloc_slice_own(&s);

	error_free(err);
	if (err)
		return;
	error_free(map_each(skeleton(w)->maps.alloc_window_counts, true, keep, w, "counts of a window"));
	s.choice = w->choice;
	w->slices[w->nslices++] = s;
	keep_slice(&w->with, &w->nwith, &s);
	w->dense = s.gaps * s.exception_ns > s.gap_ns / 2;
	w->waited = s.waits > 0 && w->cpu_rate < ALLOC_WAITS_BUSY &&
	            alloc_waits_often(&w->begun.waited, &now->waited, (double)(now->at - w->begun.at));
	w->own += own;
	w->stood_for += s.stands_for;
	w->all += own + s.bpf_ns + s.hits * s.exception_ns;
	if (w->nslices == SLICES)
		settle(w);
	choose_interval(w, s.bytes);
}

/* Of a window with landmarks alone. */
static void end_alone(struct alloc_windows *w, const struct look *now)
{
	struct alloc_slice s = slice_of(w, &w->closed_alone, now);
	struct alloc_mark_hits hits;
	double own = s.gaps > s.hits / 2 ? (s.gap_ns - s.gaps * s.exception_ns) * s.hits / s.gaps
	                                 : s.cpu_ns - s.bpf_ns - s.hits * s.exception_ns;

	error_free(object_sum(w->options.host->object, skeleton(w)->maps.alloc_marks_hit, (u64 *)&hits, sizeof(hits)));
	for (u32 i = 0; i < ALLOC_MARKS; i++)
		hits.of[i] -= w->hits_before.of[i];
	s.choice = w->choice;
	keep_slice(&w->without, &w->nwithout, &s);
	alloc_marks_learn(w->marks, &hits, fmax(own, 1), w->exception_ns);
	w->choice = alloc_marks_choice(w->marks);
	w->closed_alone = *now;
}

/* The end of the time in which every call was seen. */
static void begin_windows(struct alloc_windows *w, const struct look *now)
{
	w->exact_calls = (double)now->counters.calls;
	w->exact_bytes = (double)now->counters.bytes;
	skeleton(w)->bss->alloc_window = 1;
	skeleton(w)->bss->alloc_most = 2 * STACKS;
	choose_interval(w, w->exact_bytes);
}

static void count_now(struct alloc_windows *w, bool open)
{
	__atomic_store_n(&skeleton(w)->data->alloc_open, open, __ATOMIC_SEQ_CST);
}

/* Of a CPU: what hits may take of a program that uses this much of one. */
static double budget_rate(const struct alloc_windows *w, double cpu_rate)
{
	return fmax(w->options.share * cpu_rate, fmin(w->options.share * w->options.cpu_least, QUIET * w->own_rate));
}

/* What a burst took of a program that waits is paid back, else few of them would be twice the program's own time. */
static double debt_most(const struct alloc_windows *w, u64 now)
{
	double quiet = w->cpu_rate < ALLOC_WAITS_BUSY ? BURST_NS : 0;
	double debt = w->options.open ? CREDIT_NS : fmin(fmax((double)(now - w->begun.at) / 1000, DEBT_NS), CREDIT_NS);

	return fmax(debt, quiet);
}

static void spend(struct alloc_windows *w, struct look *now)
{
	double cpu, took, time, memory;

	look(w, now);
	learn(w, &w->opened, now);
	cpu = (double)(now->cpu - w->last.cpu);
	took = cost(w, &w->last, now);
	time = (double)(now->at - w->last.at);
	w->ran = cpu > 0 ? now->at : w->ran;
	w->cost += took;
	w->cpu_rate += (cpu - w->cpu_rate * time) / fmax(MEMORY_NS, time);
	memory = fmax(fmin((double)(now->at - w->begun.at), QUIET_NS), 1);
	w->own_rate = fmax(w->own_rate + (cpu - took - w->own_rate * time) / memory, 0);
	if (time > 0)
		w->budget += budget_rate(w, cpu / time) * time - took;
	w->budget = fmin(fmax(w->budget, -debt_most(w, now->at)), CREDIT_NS);
	w->last = *now;
}

/* A window that follows blocks is none of those that stand for others. */
static bool counts_nothing(const struct alloc_windows *w)
{
	return w->alone || (w->options.open && w->following && skeleton(w)->bss->alloc_window);
}

/* The tail of a window: for a multiple of its length, if that is not dear. */
static void follow_to_end(struct alloc_windows *w, const struct look *from)
{
	u64 end = from->at + (u64)fmin(w->length * TAIL_WINDOWS, TAIL_MS * (double)A_MS);
	struct look now = *from;

	for (u32 i = 0; i < w->ngroups; i++)
		if (!w->groups[i].tail)
			alloc_depart(&w->leaving, &w->groups[i].uprobe, &w->groups[i].last);
	while (!w->ending && now.at < end && cost(w, from, &now) < w->allotted / 2) {
		wait_until(w, now.at + SOON_MS * A_MS);
		look(w, &now);
	}
	w->options.close(w->options.ctx);
}

/* Else the window had no CPU: the next one stands for what lies before it, too. */
static bool did_run(const struct alloc_windows *w, const struct look *now)
{
	return now->cpu > w->opened.cpu || now->progress.hits > w->opened.progress.hits;
}

static void close_window(struct alloc_windows *w)
{
	struct look now;

	count_now(w, false);
	look_whole(w, &now);
	w->open_ns += now.at - w->opened.at;
	w->length = (double)(now.at - w->opened.at);
	take_pairs_away(w);
	alloc_marks_leave(w->marks, &w->leaving);
	if (w->alone)
		end_alone(w, &now);
	else if (w->following && w->options.close) {
		follow_to_end(w, &now);
		look(w, &now);
	}
	for (u32 i = 0; i < w->ngroups; i++)
		alloc_depart(&w->leaving, &w->groups[i].uprobe, &w->groups[i].last);
	w->is_open = false;
	spend(w, &now);
	if (!skeleton(w)->bss->alloc_window) {
		begin_windows(w, &now);
		w->closed = now;
	} else if (!counts_nothing(w) && did_run(w, &now)) {
		end_slice(w, &now);
		w->closed = now;
	}
	w->windows += skeleton(w)->bss->alloc_window;
	if (!w->measured && now.progress.hits > now.progress.stepped)
		measure_here(w, true);
	if (!w->stepped_measured && now.progress.stepped)
		measure_here(w, false);
	w->stepped_measured |= now.progress.stepped > 0;
	w->measured = true;
}

/* Landmarks alone: what they are passed by says how often that is so. */
static void open_alone(struct alloc_windows *w)
{
	w->following = !w->options.open; /* the next one does: this is in place of one that counts */
	alloc_marks_next(w->marks);
	alloc_marks_place(w->marks);
	error_free(object_sum(w->options.host->object, skeleton(w)->maps.alloc_marks_hit, (u64 *)&w->hits_before,
	        sizeof(w->hits_before)));
	look(w, &w->opened);
	w->is_open = true;
}

static void open_window(struct alloc_windows *w)
{
	if (!wait_for_breakpoints(w))
		return;
	w->alone = !w->waited && w->windows >= ALONE_FROM && (!w->options.open || w->following) &&
	           ++w->turn % (w->dense ? ALONE_DENSE : ALONE_SPARSE) == 0 && alloc_marks_any(w->marks);
	if (w->alone) {
		open_alone(w);
		return;
	}
	if (w->dense || w->windows % PAIRS_EVERY == 0)
		w->paired = true;
	w->following = !w->options.open || (w->waited ? w->windows % FOLLOWING != 0 : !w->following);
	for (u32 i = 0; i < w->ngroups; i++) /* a process may have ended; else its group is in the next window */
		if (w->following || !w->groups[i].following)
			error_free(alloc_group_place(&w->groups[i]));
	if (w->paired)
		place_pairs(w);
	if (w->choice && !counts_nothing(w))
		alloc_marks_place(w->marks);
	look_at_threads(w, &w->opened);
	w->is_open = true;
	if (w->own > 0)
		skeleton(w)->data->alloc_each = (u32)fmin(fmax(w->stood_for / w->own, 1) * ALLOC_EACH, 1e9);
	if (w->options.open)
		w->options.open(w->options.ctx, w->following);
	/* Where calls are followed, their stacks are the smaller part of the cost. */
	if (w->options.open && w->interval)
		skeleton(w)->data->alloc_interval = w->following ? fmax(w->options.interval, 1) : w->interval;
	look(w, &w->opened); /* right before, else its time has hits that do not count */
	count_now(w, true);
}

static double random_part(void)
{
	u32 number = 0;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (u32)now_ns();
	return number / 0x1p32;
}

static double period_of(const struct alloc_windows *w)
{
	double ran = (double)(w->last.at - w->begun.at) / PERIOD_PART;

	return w->options.open ? PERIOD_MS * (double)A_MS
	                       : fmin(fmax(ran, PERIOD_LEAST * A_MS), PERIOD_MS * (double)A_MS);
}

/* Until a window is due: at a random moment of a period after which the budget allows one. */
static void wait_for_window(struct alloc_windows *w)
{
	double rate = fmax(budget_rate(w, w->cpu_rate), 1e-6), ns;
	double period = period_of(w), want = fmax(rate * period, LEAST_NS);

	ns = fmin(fmax((want - w->budget) / rate, period), PERIOD_MAX * (double)A_MS);
	wait_until(w, now_ns() + (u64)(random_part() * 2 * fmax(ns - w->length, ns / 8)));
	spend(w, &(struct look){0});
	w->allotted = fmin(fmax(want, w->budget), 2 * want);
}

/* A program that waits most of the time is seen until it waits again: what a burst does is more than half of it. */
static bool is_in_burst(struct alloc_windows *w, double cost)
{
	double most = fmax(BURST_COST * w->allotted, counts_nothing(w) ? 0 : BURST_NS);
	struct look now;

	if (!w->waits_known || w->alone || w->cpu_rate > ALLOC_WAITS_BUSY || cost > most || cost <= 0)
		return false;
	look_whole(w, &now);
	return now.waited.voluntary <= w->opened.waited.voluntary &&
	       alloc_waits_often(&w->begun.waited, &now.waited, (double)(now.at - w->begun.at));
}

static bool is_over(struct alloc_windows *w, const struct look *now)
{
	double spent = cost(w, &w->opened, now);
	bool over;

	if (!skeleton(w)->bss->alloc_window)
		return w->budget < 0;
	over = spent >= w->allotted / (w->alone                   ? 4
	                                      : counts_nothing(w) ? 2
	                                                          : 1) ||
	       (now->at - w->opened.at >= WINDOW_MS * A_MS &&
	               (w->budget < CREDIT_NS * 0.9 || (w->options.open && !w->following)));
	return over && !is_in_burst(w, spent);
}

static u64 until_look(const struct alloc_windows *w)
{
	if (w->budget < CREDIT_NS / 2)
		return SOON_MS * A_MS;
	return (w->last.at - w->ran > IDLE_NS ? IDLE_MS : LATER_MS) * A_MS;
}

/* A window that is closed late costs the target. Without that privilege it may be. */
static void be_prompt(void)
{
	struct sched_param param = {.sched_priority = 1};

	pthread_setschedparam(pthread_self(), SCHED_RR, &param);
}

static void *work(void *arg)
{
	struct alloc_windows *w = arg;
	struct look now;

	be_prompt();
	pthread_mutex_lock(&w->lock);
	while (!w->ending) {
		if (!w->is_open) {
			wait_for_window(w);
			if (w->ending)
				break;
			open_window(w);
		}
		wait_until(w, now_ns() + until_look(w));
		spend(w, &now);
		if (w->paired && now.progress.paired >= ENOUGH && !skeleton(w)->bss->alloc_window) {
			take_pairs_away(w);
		}
		if (!w->ending && is_over(w, &now))
			close_window(w);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static struct error *add(
        struct alloc_windows *w, const struct process *p, const char *path, const struct alloc_window_place *place)
{
	struct error *err = alloc_groups_add(&w->groups, &w->ngroups, p, path, place);

	return err ? err : alloc_cpu_add(&w->cpu, p->pid);
}

struct error *alloc_windows_add(
        struct alloc_windows *w, const struct process *p, const char *path, const struct alloc_window_place *place)
{
	struct error *err;

	pthread_mutex_lock(&w->lock);
	err = add(w, p, path, place);
	pthread_mutex_unlock(&w->lock);
	return err;
}

struct error *alloc_windows_see(struct alloc_windows *w, const struct process *p, const struct frame *frames, u32 n)
{
	struct error *err;

	if (!w->options.share)
		return NULL;
	pthread_mutex_lock(&w->lock);
	err = alloc_marks_see(w->marks, p, frames, n);
	pthread_mutex_unlock(&w->lock);
	return err;
}

void alloc_windows_set_trap(struct alloc_windows *w, u64 ns)
{
	pthread_mutex_lock(&w->lock);
	w->trap_ns = (double)ns;
	pthread_mutex_unlock(&w->lock);
}

struct forgetting {
	struct alloc_windows *w;
	struct alloc_departures leaving;
};

static void forget_process(void *ctx, pid_t pid)
{
	struct forgetting *f = ctx;

	for (u32 i = f->w->ngroups; i-- > 0;) {
		struct alloc_group *g = &f->w->groups[i];

		if (g->pid != pid)
			continue;
		alloc_group_forget(g, &f->leaving);
		*g = f->w->groups[--f->w->ngroups];
	}
}

/* Uprobes of a process that has ended are not tried again. */
static struct error *place_new(struct alloc_windows *w)
{
	struct error *err = NULL, *one;

	for (u32 i = 0; i < w->ngroups; i++) {
		if (w->groups[i].placed || (w->groups[i].following && !w->following))
			continue;
		w->groups[i].placed = true;
		one = alloc_group_place(&w->groups[i]);
		if (one && kill(w->groups[i].pid, 0) && errno == ESRCH)
			w->groups[i].n = 0;
		else if (one && !err) {
			err = one;
			continue;
		}
		error_free(one);
	}
	return err;
}

struct error *alloc_windows_place(struct alloc_windows *w)
{
	struct forgetting ended = {.w = w};
	struct error *err;

	pthread_mutex_lock(&w->lock);
	err = alloc_cpu_leave_out(&w->cpu, w->options.host->targets);
	alloc_cpu_forget(&w->cpu, forget_process, &ended);
	if (w->ngroups && !w->running && !w->begun.at) {
		look_whole(w, &w->begun);
		w->last = w->opened = w->closed = w->begun;
		w->ran = w->begun.at;
		w->is_open = true;
	}
	if (!err && w->is_open && !w->alone)
		err = place_new(w);
	if (!err && w->ngroups && w->options.share && !w->running) {
		place_pairs(w);
		w->running = thread_start(&w->thread, NULL, work, w) == 0;
	}
	wait_for(w, &ended.leaving);
	pthread_mutex_unlock(&w->lock);
	return err;
}

/* What comes after the last window, the last window stands for. */
static void stand_for_rest(struct alloc_windows *w)
{
	struct alloc_slice *s = w->nslices ? &w->slices[w->nslices - 1] : NULL;
	struct look now;
	double before;

	if (!s)
		return;
	look_whole(w, &now);
	before = s->stands_for;
	s->stands_for += fmax((double)(now.cpu - w->closed.cpu) - cost(w, &w->closed, &now), 0);
	s->behind += (double)(now.progress.hits - w->closed.progress.hits);
	s->waits_behind += less(now.waited.voluntary, w->closed.waited.voluntary);
	s->ousted_behind += less(now.waited.others, w->closed.waited.others);
	s->ready_behind += less(now.waited.ready, w->closed.waited.ready);
	s->ns_behind += (double)(now.at - w->closed.at);
	if (now.counted.bytes > w->closed.counted.bytes || before <= 0)
		s->counted += now.counted.bytes - w->closed.counted.bytes;
	else
		s->counted *= s->stands_for / before; /* who has ended has taken the counter along */
	w->closed = now;
}

void alloc_windows_end(struct alloc_windows *w)
{
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (w->running)
		pthread_join(w->thread, NULL);
	w->running = false;
	pthread_mutex_lock(&w->lock);
	if (w->is_open && skeleton(w)->bss->alloc_window)
		close_window(w);
	for (u32 i = 0; i < w->ngroups; i++) {
		alloc_depart(&w->leaving, &w->groups[i].second, &w->groups[i].last_second);
		alloc_depart(&w->leaving, &w->groups[i].uprobe, &w->groups[i].last);
	}
	wait_for(w, &w->leaving);
	stand_for_rest(w);
	w->is_open = false;
	pthread_mutex_unlock(&w->lock);
}

void alloc_windows_destroy(struct alloc_windows *w)
{
	if (!w)
		return;
	alloc_windows_end(w);
	for (u32 i = 0; i < w->ngroups; i++)
		close(w->groups[i].file);
	free(w->groups);
	alloc_cpu_free(&w->cpu);
	alloc_marks_destroy(w->marks);
	alloc_counters_destroy(w->counters);
	free(w->slices);
	free(w->with);
	free(w->without);
	free(w->seen);
	for (u32 i = 0; i < 2; i++) {
		free(w->counted[i]);
		table_free(&w->by_hash[i]);
	}
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

struct error *alloc_windows_drain(struct alloc_windows *w, u32 epoch,
        void (*count)(void *ctx, u32 epoch, u64 hash, u64 bytes, u64 calls), void *ctx)
{
	struct look now;

	epoch &= 1;
	pthread_mutex_lock(&w->lock);
	if (w->is_open && skeleton(w)->bss->alloc_window && !counts_nothing(w)) {
		look_whole(w, &now);
		end_slice(w, &now);
		w->opened = w->closed = now;
	}
	settle(w);
	for (u32 i = 0; i < w->ncounted[epoch]; i++) {
		const struct counted *c = &w->counted[epoch][i];

		count(ctx, epoch, c->hash, (u64)llround(c->bytes), (u64)llround(c->calls));
	}
	w->ncounted[epoch] = 0;
	table_clear(&w->by_hash[epoch]);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void estimate(double exact, const struct alloc_sums *s, double *ret, double *low, double *high)
{
	*ret = exact + s->sum;
	*low = exact + alloc_sums_low(s);
	*high = exact + alloc_sums_high(s);
}

/* Slices that have no weight get one for this alone. */
static void sum_up(struct alloc_windows *w, struct alloc_estimate *ret)
{
	struct alloc_sums calls = w->calls, bytes = w->bytes;
	struct alloc_cold cold;

	fit(w, &cold);
	ret->clock = w->nslices ? alloc_weigh(w->slices, w->nslices, &cold, &calls, &bytes) : w->clock;
	ret->cold_ns = cold.ns;
	ret->cold_low = cold.low;
	ret->cold_high = cold.high;
	ret->marks = cold.measured ? alloc_marks_count(w->marks) : 0;
	estimate(w->exact_calls, &calls, &ret->calls, &ret->calls_low, &ret->calls_high);
	estimate(w->exact_bytes, &bytes, &ret->bytes, &ret->bytes_low, &ret->bytes_high);
}

void alloc_windows_estimate(struct alloc_windows *w, struct alloc_estimate *ret)
{
	struct look now;

	pthread_mutex_lock(&w->lock);
	look(w, &now);
	if (!skeleton(w)->bss->alloc_window) {
		w->exact_calls = (double)now.counters.calls;
		w->exact_bytes = (double)now.counters.bytes;
	}
	*ret = (struct alloc_estimate){.windows = w->windows,
	        .part = now.at > w->begun.at ? (double)w->open_ns / (double)(now.at - w->begun.at) : 0,
	        .share = now.cpu > w->begun.cpu ? w->cost / (double)(now.cpu - w->begun.cpu) : 0,
	        .exception_ns = w->exception_ns,
	        .in_target = w->in_target,
	        .own = w->all > 0 ? w->own / w->all : 1};
	sum_up(w, ret);
	pthread_mutex_unlock(&w->lock);
}
