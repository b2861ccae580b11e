/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_callees.h"

#include <bpf/libbpf.h>
#include <math.h>
#include <stdlib.h>

#include "hit_awaits.h"
#include "hit_callee.h"
#include "hit_callees_internal.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "probes/thread_watch.h"
#include "sample.skel.h"
#include "unwind/now.h"

#define WATCHED_MAX 8192 /* functions of all targets */
#define PACE_LEAST  0.02 /* of its progress that a program makes in a shift */
#define WEIGHT_MOST 20.0 /* of the periods that a shift is a part of */
#define OWN_MEMORY  8    /* shifts */
#define SHIFT_NS    20000000ull
#define PERIOD_NS   1000000000ull /* so long calls are waited for that began in a shift; and a period of turns */
#define PERIODS     12            /* of a run, at least */
#define DRAINS      4             /* as long as calls are waited for, at least, is a period: see period_of() */
#define WAIT_NS     2000000ull    /* for calls that are under way */
#define STEER_NS    100000000ull
#define LOOK_NS     10000000ull /* hits counted for so long: enough to know their rate */
#define SHARE       0.1         /* of --max-cpu: a hit here costs the target more than its own time */
#define CREDIT_NS   5e9         /* the budget of so long is there from the start: */
#define CREDIT_PART 4           /* of a run whose end is known this part of it, and the rest until its end */
#define EACH_MAX    100
#define MEMORY      4 /* looks that a mean goes back, about */

void hit_callees_prepare(struct object *o, const struct hit_options *options)
{
	object_want(o, "on_callee");
	bpf_map__set_max_entries(object_skeleton(o)->maps.callees, WATCHED_MAX);
	if (options->returns)
		bpf_map__set_max_entries(object_skeleton(o)->maps.callee_lines, CALLEE_LINES);
	if (options->returns && options->over_ns)
		hit_awaits_prepare(o);
}

struct error *hit_callees_create(const struct event_host *host, const struct hit_options *options,
        struct hit_latency *latency, struct hit_arguments *arguments, struct hit_callees **ret)
{
	struct hit_callees *c = calloc(1, sizeof(*c));

	if (!c)
		return &error_no_memory;
	c->host = host;
	c->options = options;
	c->latency = latency;
	c->arguments = arguments;
	c->each = c->weight = 1;
	*ret = c;
	return NULL;
}

void hit_callees_destroy(struct hit_callees *c)
{
	if (!c)
		return;
	for (u32 i = 0; i < c->nforms; i++)
		hit_callees_close(c, &c->forms[i]);
	for (u32 i = 0; i < c->nchanging; i++)
		thread_watch_close(c->changing[i].watch);
	free(c->changing);
	for (u32 i = 0; i < HIT_SPECS_MAX; i++)
		error_free(c->refused[i].why);
	pace_free(&c->pace);
	free(c->forms);
	free(c->looked);
	free(c);
}

static void read_counts(const struct hit_callees *c, struct callee_counts *ret)
{
	struct object *o = c->host->object;

	error_free(object_sum(o, object_skeleton(o)->maps.callee_counters, (u64 *)ret, sizeof(*ret)));
}

/* The most functions that one process has. */
static u32 most(const struct hit_callees *c)
{
	u32 ret = 0, n;

	for (u32 i = 0; i < c->nforms; i++) {
		n = 0;
		for (u32 k = 0; k < c->nforms; k++)
			n += c->forms[k].process == c->forms[i].process;
		ret = n > ret ? n : ret;
	}
	return ret;
}

/* Functions that are watched at a time. */
static u32 at_once(const struct hit_callees *c)
{
	u32 each = 1;

	for (u32 i = 0; i < c->nforms; i++)
		each = hit_callees_registers(c, &c->forms[i]) > each ? hit_callees_registers(c, &c->forms[i]) : each;
	return THREAD_WATCHES / each;
}

static u32 groups(const struct hit_callees *c)
{
	return (most(c) + at_once(c) - 1) / at_once(c);
}

u32 hit_callees_turns(const struct hit_callees *c)
{
	return groups(c);
}

static void warn(struct hit_callees *c)
{
	struct error *err;

	if (c->warned)
		return;
	c->warned = true;
	if (groups(c) > 1)
		err = error_new(ERROR_INTERNAL,
		        "%u functions, of which the debug registers hold %u at once: they are watched in turns, and "
		        "their calls stand for others",
		        most(c), at_once(c));
	else
		err = error_hint(error_new(ERROR_INTERNAL,
		                         "hits cost the target %.0f %% of a CPU: functions are watched in shifts, and "
		                         "their calls stand for the others",
		                         100 * c->spent),
		        "--max-cpu 0 counts all calls");
	c->host->options->warn(c->host->options->ctx, err);
}

static double hits_ns(const struct hit_callees *c, const struct callee_counts *counts)
{
	return (double)counts->walk_ns + (double)counts->traps * (double)c->cost_ns;
}

/* How long calls have counted since it was asked last. */
static u64 open_since(const struct hit_callees *c, u64 now)
{
	u64 until = c->latency && c->shift_over ? c->shift_over : now;

	return c->opened_ns && until > c->opened_ns ? until - c->opened_ns : 0;
}

/* ns of CPU that hits may have taken before functions are watched in shifts. */
static double credit_of(const struct hit_callees *c, double budget)
{
	return budget * CREDIT_NS / (c->host->options->duration_s > 0 ? CREDIT_PART : 1);
}

/* Of a CPU, while there are shifts. Those of a short run are so many that their calls can stand for all. */
static double budget_of_shifts(const struct hit_callees *c, double budget)
{
	double run = c->host->options->duration_s * 1e9;

	return run > 0 ? budget * (1 + CREDIT_NS / run) : budget;
}

/* What hits cost while functions are watched, and so for which part of the time they can be. */
static void steer(struct hit_callees *c, u64 now)
{
	double budget = c->host->options->cpu_percent / 100 * SHARE, ns, spent;
	struct callee_counts counts, was = c->counts;
	u64 open = c->open_ns + open_since(c, now);
	u32 each = groups(c) < 2 ? 1 : c->latency ? 2 * groups(c) : groups(c); /* calls end between shifts */

	if (now - c->steered_ns < STEER_NS || open < LOOK_NS)
		return;
	read_counts(c, &counts);
	ns = hits_ns(c, &counts) - hits_ns(c, &was);
	c->debt = fmax(0, c->debt + ns - budget * (double)(now - c->steered_ns));
	spent = ns / (double)open;
	c->spent = spent > c->spent ? spent : c->spent + (spent - c->spent) / MEMORY;
	c->counts = counts;
	c->steered_ns = now;
	c->open_ns = 0;
	c->opened_ns = c->opened_ns ? now : 0;
	if (budget && (c->each > 1 || c->debt > credit_of(c, budget)))
		each = (u32)fmax(each, fmin(EACH_MAX, ceil(c->spent / budget_of_shifts(c, budget))));
	if (each > 1)
		warn(c);
	c->each = each;
}

static void close_all(struct hit_callees *c)
{
	for (u32 i = 0; i < c->nforms; i++)
		hit_callees_close(c, &c->forms[i]);
	c->open_ns += open_since(c, now_ns());
	c->opened_ns = 0;
}

/* If registers are too few for all, none tells when exceptions end calls: those count as left then. */
static void save_registers(struct hit_callees *c)
{
	for (u32 i = 0; c->latency && !c->scarce && i < c->nforms; i++)
		if (hit_callees_registers_of(c, c->forms[i].process) > THREAD_WATCHES) {
			close_all(c);
			c->scarce = true;
		}
}

/* The functions of each process make groups. */
static u32 group_of(const struct hit_callees *c, u32 form)
{
	u32 n = 0;

	for (u32 k = 0; k < form; k++)
		n += c->forms[k].process == c->forms[form].process;
	return n % groups(c);
}

static struct error *open_group(struct hit_callees *c, u32 group)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < c->nforms; i++)
		if (group_of(c, i) == group)
			err = hit_callees_open(c, &c->forms[i]);
	c->opened_ns = c->opened_ns ? c->opened_ns : now_ns();
	return err;
}

/* Calls that begin in a shift are waited for until the next one. */
static bool is_under_way(const struct hit_callees *c)
{
	struct callee_counts counts;

	if (!c->latency)
		return false;
	read_counts(c, &counts);
	return counts.under_way > c->begun;
}

/* The function that is furthest behind. */
static u32 next_form(const struct hit_callees *c)
{
	u32 ret = 0;

	for (u32 i = 1; i < c->nforms; i++)
		if (c->forms[i].covered < c->forms[ret].covered)
			ret = i;
	return ret;
}

/* With it a shift's calls stand for all until now, and for half of what comes before the next one of this function. */
static u32 weight_of(const struct hit_callees *c, const struct form *f, u64 length)
{
	double own = f->own_ns > 0 ? f->own / f->own_ns * (double)length : pace_expect(&c->pace, (double)length, true);
	double ahead = pace_expect(&c->pace, (double)length * c->each, false) / 2;

	own = fmax(own, 2 * ahead / c->each * PACE_LEAST);
	return own > 0 && f->own_ns > 0 ? (u32)fmin(fmax(round((c->pace.done + own + ahead - f->covered) / own), 1),
	                                          WEIGHT_MOST * c->each)
	                                : c->each;
}

static struct error *begin_shift(struct hit_callees *c, u64 length)
{
	struct sample *skel = object_skeleton(c->host->object);
	u32 next = next_form(c);
	struct callee_counts counts;
	struct error *err;

	read_counts(c, &counts);
	pace_step(&c->pace, now_ns(), hits_ns(c, &counts), false);
	c->begun = counts.under_way;
	c->weight = weight_of(c, &c->forms[next], length);
	skel->bss->callee_shift++;
	skel->data->callee_each = c->weight;
	skel->bss->callee_closed = 1;
	c->shift_over = 0;
	c->opened_ns = now_ns();
	err = open_group(c, group_of(c, next));
	read_counts(c, &counts);
	pace_step(&c->pace, now_ns(), hits_ns(c, &counts), false);
	c->calls_before = counts.calls;
	c->shift_begin = now_ns();
	c->shift_end = c->shift_begin + length;
	skel->bss->callee_closed = 0;
	return err;
}

/* Calls that begin from now on do not count. */
static void end_shift(struct hit_callees *c)
{
	struct callee_counts counts;
	double progress, done = c->pace.done;

	object_skeleton(c->host->object)->bss->callee_closed = 1;
	c->shift_over = now_ns();
	read_counts(c, &counts);
	progress = pace_step(&c->pace, c->shift_over, hits_ns(c, &counts), true);
	pace_saw(&c->pace, (double)(counts.calls - c->calls_before), progress, c->weight);
	for (u32 i = 0; i < c->nforms; i++) {
		struct form *f = &c->forms[i];

		if (c->pace.changed) {
			f->own = f->own_ns = 0;
			f->covered = done - (done - f->covered) * c->pace.changed;
		}
		if (!hit_callees_is_open(f))
			continue;
		f->covered += progress * c->weight;
		f->own += progress - f->own / OWN_MEMORY;
		f->own_ns += (double)(c->shift_over - c->shift_begin) - f->own_ns / OWN_MEMORY;
	}
}

/*
 * From one shift to the next. A shift is not over before its calls are: periods that were not much longer than that
 * would see the program at times that depend on its calls.
 */
static u64 period_of(const struct hit_callees *c)
{
	u64 ret = SHIFT_NS * c->each / groups(c), run = (u64)(c->host->options->duration_s * 1e9) / PERIODS, drains;

	if (c->latency && groups(c) > 1 && ret < PERIOD_NS)
		ret = PERIOD_NS;
	ret = run && run < ret ? run : ret;
	drains = DRAINS * c->drain_ns < PERIOD_NS ? DRAINS * c->drain_ns : PERIOD_NS;
	return drains > ret ? drains : ret;
}

/* Calls of the shift are over, or are not waited for any longer. */
static void end_wait(struct hit_callees *c, u64 now)
{
	u64 waited = now > c->shift_over ? now - c->shift_over : 0;

	c->drain_ns = waited > c->drain_ns ? waited : c->drain_ns - (c->drain_ns - waited) / MEMORY;
	close_all(c);
}

static struct error *shift(struct hit_callees *c, u64 now)
{
	u64 period;

	if (c->opened_ns && now < c->shift_end)
		return NULL;
	if (c->opened_ns && !c->shift_over)
		end_shift(c);
	if (c->opened_ns && now < c->shift_over + PERIOD_NS && is_under_way(c))
		return NULL;
	if (c->opened_ns)
		end_wait(c, now);
	if (now < c->next_shift)
		return NULL;
	period = period_of(c);
	if (c->next_shift && now - c->next_shift >= period) {
		c->next_shift += (now - c->next_shift) / period * period + period;
		return NULL;
	}
	c->next_shift = (c->next_shift ?: now) + period;
	return begin_shift(c, period * groups(c) / c->each);
}

/* Until now all calls were seen. */
static void begin_shifts(struct hit_callees *c, u64 now)
{
	struct callee_counts counts;

	close_all(c);
	read_counts(c, &counts);
	pace_skip(&c->pace, now, hits_ns(c, &counts));
	for (u32 i = 0; i < c->nforms; i++)
		c->forms[i].covered = c->pace.done;
}

static struct error *keep_watching(struct hit_callees *c, u64 now)
{
	struct error *err;

	if (!c->nforms)
		return NULL;
	save_registers(c);
	hit_callees_trim_changing(c, c->each > 1);
	if (c->each > 1) {
		if (c->opened_ns && c->shift_end == UINT64_MAX)
			begin_shifts(c, now);
		return shift(c, now);
	}
	if (c->opened_ns && c->shift_end != UINT64_MAX)
		close_all(c);
	c->shift_end = UINT64_MAX;
	c->shift_over = 0;
	c->weight = 1;
	object_skeleton(c->host->object)->data->callee_each = 1;
	object_skeleton(c->host->object)->bss->callee_closed = 0;
	err = open_group(c, 0);
	for (u32 i = 0; !err && i < c->nforms; i++)
		err = hit_callees_watch_changes(c, &c->forms[i]);
	return err;
}

struct error *hit_callees_poll(struct hit_callees *c, u64 now)
{
	struct error *err = hit_callees_look_at_changes(c);

	c->polled = now;
	if (!err)
		err = hit_callees_look(c, now);
	if (!c->began) {
		c->began = now;
		c->cost_ns = thread_watch_cost();
	}
	steer(c, now_ns());
	return err ? err : keep_watching(c, now_ns());
}

u64 hit_callees_due(const struct hit_callees *c)
{
	if (c->each == 1 || !c->nforms)
		return 0;
	return !c->opened_ns ? c->next_shift : c->shift_end > now_ns() ? c->shift_end : now_ns() + WAIT_NS;
}

u32 hit_callees_found(const struct hit_callees *c, u32 spec)
{
	return c->found[spec];
}

/* New code that could not be watched before the end. */
static void count_unwatched(struct hit_callees *c, u64 now)
{
	hit_callees_suspect_changes(c);
	error_free(hit_callees_look_at_changes(c));
	for (u32 i = 0; i < c->nforms && c->each == 1; i++) {
		c->unseen.changes += c->forms[i].since != 0;
		c->unseen.ns += c->forms[i].since ? now - c->forms[i].since : 0;
		c->unseen.of_ns += hit_callees_is_first(c, i) ? now - c->began : 0;
	}
}

void hit_callees_end(struct hit_callees *c)
{
	u64 now = now_ns();

	c->ended = now;
	if (c->opened_ns && c->shift_end != UINT64_MAX && !c->shift_over)
		end_shift(c);
	close_all(c);
	count_unwatched(c, now);
	hit_callees_trim_changing(c, true);
	hit_callees_say(c);
}

double hit_callees_hits(const struct hit_callees *c)
{
	struct callee_counts counts;

	read_counts(c, &counts);
	return (double)counts.stand_for;
}

double hit_callees_part(const struct hit_callees *c)
{
	return c->each > 1 ? 1.0 / c->each : 0;
}

struct hit_unseen hit_callees_unseen(const struct hit_callees *c)
{
	return c->unseen;
}
