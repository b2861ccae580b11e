/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/now.h"
#include "unwind/profile/collect.h"
#include "wait_births.h"
#include "wait_command.h"
#include "wait_list.h"
#include "wait_reason.h"
#include "wait_record.h"
#include "wait_shifts.h"
#include "wait_tasks.h"
#include "wait_visited.h"

struct wait {
	const struct event_host *host;
	struct wait_shifts shifts; /* of the probes at switches */
	struct bpf_link *on_exit;
	struct wait_list list;
	struct wait_visited visited;
	struct wait_births births;
	struct wait_tasks *tasks; /* NULL: those do not matter */
	u64 visited_ns, ended_ns;
	s64 cpu_at_start, cpu_at_end;
	u64 living_ns;      /* threads that live at the end: since they are watched */
	u64 settled_ns;     /* off the CPU, of waits that are not over */
	u64 run_queue_ns;   /* of threads that could run, of what is counted here */
	u64 seen[STOP_MAX]; /* time that was counted here, by why walks ended */
	u64 lost_ns;        /* long waits that nobody could walk */
	u64 under_way;      /* waits, at the end */
	u32 added;          /* object_added() that was seen */
	struct wait_summary summary;
};

static void prepare(struct object *o)
{
	const struct wait_options *options = object_of_event(o);

	bpf_map__set_max_entries(object_skeleton(o)->maps.wait_places, 1u << WAIT_PLACES_BITS);
	object_want(o, "on_switch");
	if (options && options->wakers)
		object_want(o, "on_waking");
	object_want(o, "on_thread_exit");
	object_want(o, "visit_threads");
}

static void destroy(void *event)
{
	struct wait *w = event;

	if (!w)
		return;
	wait_shifts_end(&w->shifts);
	bpf_link__destroy(w->on_exit);
	wait_list_close(&w->list);
	wait_visited_end(&w->visited);
	wait_births_free(&w->births);
	wait_tasks_destroy(w->tasks);
	free(w);
}

static struct error *attach_programs(struct wait *w)
{
	const struct wait_options *o = w->host->options->of_event;
	struct sample *skel = object_skeleton(w->host->object);
	bool limits = o && (o->min_ns || o->max_ns);
	struct error *err = wait_shifts_begin(&w->shifts, w->host->object, o && o->wakers,
	        limits || skel->bss->wait_unlimited || w->host->options->collect.times);
	if (err)
		return err;
	w->on_exit = bpf_program__attach(skel->progs.on_thread_exit);
	if (!w->on_exit)
		return error_errno(errno, "cannot attach to the scheduler's tracepoints");
	return wait_list_open(&w->list, skel->progs.visit_threads);
}

static struct error *create(const struct event_host *host, void **ret)
{
	const struct wait_options *o = host->options->of_event;
	struct sample *skel = object_skeleton(host->object);
	struct wait *w = calloc(1, sizeof(*w));
	struct error *err;

	if (!w)
		return &error_no_memory;
	w->host = host;
	skel->bss->wait_unlimited = !host->options->cpu_percent;
	skel->bss->wait_futexes = host->options->event == &lock_event;
	skel->bss->wait_min_ns = o ? o->min_ns : 0;
	skel->data->wait_max_ns = o && o->max_ns ? o->max_ns : ~0ull;
	err = wait_visited_begin(&w->visited, host);
	if (!err)
		err = attach_programs(w);
	if (!err && o && o->tasks)
		err = wait_tasks_create(host, &w->tasks);
	if (err)
		destroy(w);
	else
		*ret = w;
	return err;
}

static u64 wait_key(u32 tid, u64 switches)
{
	u64 words[] = {tid, switches};

	return XXH3_64bits(words, sizeof(words)) | 1;
}

static void see(struct wait *w, u32 stop, u64 ns, bool runnable)
{
	if (stop < STOP_MAX)
		w->seen[stop] += ns;
	if (runnable)
		w->run_queue_ns += ns;
}

/* Counts more of waits that have lasted until now, and are so many that are over. */
static struct error *count_more(struct wait *w, u32 epoch, u64 hash, u64 ns, u32 over)
{
	u64 each = object_skeleton(w->host->object)->data->time_value;
	struct time_record record = {.type = RECORD_TIME, .hash = hash, .span = ns};

	collector_count(w->host->collector, epoch, hash, ns, over);
	record.ns = w->ended_ns ? w->ended_ns : now_ns();
	record.count = (u32)((ns + each / 2) / each);
	return w->host->options->collect.times ? collector_time(w->host->collector, &record, sizeof(record)) : NULL;
}

/* The same, of the pair if there is a waker. */
static struct error *count_with_waker(struct wait *w, u32 epoch, u64 hash, u64 waker, u64 ns, bool over)
{
	struct error *err;

	if (!waker)
		return count_more(w, epoch, hash, ns, over);
	err = collector_join(w->host->collector, epoch, hash, waker, hash ^ waker);
	return err ? err : count_more(w, epoch, hash ^ waker, ns, over);
}

static bool is_wanted(const struct wait *w, u64 ns)
{
	const struct wait_options *o = w->host->options->of_event;

	return !o || (ns >= o->min_ns && (!o->max_ns || ns <= o->max_ns));
}

/* Counts what was not counted yet of a wait that was visited and lasts for ns by now. */
static struct error *count_visited(struct wait *w, u32 epoch, u64 key, u64 waker, u64 ns, bool over)
{
	struct wait_visit v;
	struct error *err;
	u64 new;

	if (!wait_visited_get(&w->visited, key, &v)) {
		w->lost_ns += over && is_wanted(w, ns) ? ns : 0;
		return NULL;
	}
	new = ns - (v.counted < ns ? v.counted : 0);
	v.counted = is_wanted(w, ns) ? ns : v.counted;
	err = wait_visited_put(&w->visited, key, &v);
	if (err || !is_wanted(w, ns))
		return err;
	see(w, v.stop, new, v.runnable);
	return count_with_waker(w, epoch, key, waker, new, over);
}

/* The wait is over: what nobody took a stack of is lost. */
static struct error *record(void *event, const void *data, size_t size)
{
	struct wait_record r = {0};
	struct wait_pair pair;
	struct wait_visit v;
	struct wait *w = event;
	u32 epoch;
	u64 key;

	if (size < sizeof(pair))
		return NULL;
	memcpy(&pair, data, sizeof(pair));
	memcpy(&r, data, size < sizeof(r) ? size : sizeof(r));
	if (pair.pair)
		return collector_join(w->host->collector, pair.epoch, pair.hash, pair.waker, pair.both);
	epoch = object_epoch(w->host->object);
	key = wait_key(r.tid, r.switches);
	if (!r.hash && !r.switches && r.instance)
		return wait_births_add(&w->births, w->visited.walker, &r);
	if (wait_visited_get(&w->visited, key, &v))
		return count_visited(w, epoch, key, r.waker, r.ns, true);
	if (!r.hash)
		return count_visited(w, epoch, key, r.waker, r.ns, true);
	see(w, r.stop, r.ns, r.runnable); /* it ended in unknown code, and nobody walked it again */
	return count_with_waker(w, epoch, r.hash, r.waker, r.ns, true);
}

static struct error *visit_due(void *ctx, const struct wait_thread *t)
{
	struct wait *w = ctx;

	return t->flags & WAIT_DUE ? wait_visited_take(&w->visited, t, wait_key(t->tid, t->switches)) : NULL;
}

/* What waits: is counted until now, and may be counted again. */
static struct error *settle(struct wait *w, u32 epoch, const struct wait_thread *t)
{
	if (w->ended_ns)
		w->living_ns += w->ended_ns > t->begin_ns ? w->ended_ns - t->begin_ns : 0;
	if (w->ended_ns && t->flags & (WAIT_DUE | WAIT_OTHERS))
		w->settled_ns += t->ns;
	if (w->ended_ns && t->flags & (WAIT_DUE | WAIT_OTHERS | WAIT_KNOWN))
		w->under_way++;
	if (t->flags & WAIT_DUE && t->settled)
		return count_visited(w, epoch, wait_key(t->tid, t->switches), 0, t->ns, w->ended_ns != 0);
	if (!(t->flags & WAIT_KNOWN))
		return NULL;
	see(w, t->stop, t->ns * t->stands, wait_is_runnable(t->reason));
	w->settled_ns += t->ns;
	return count_more(w, epoch, t->hash, t->ns * t->stands, w->ended_ns ? t->stands : 0);
}

static struct error *carry(struct wait *w, u32 epoch, const struct wait_thread *t)
{
	u64 key = t->flags & WAIT_DUE ? wait_key(t->tid, t->switches) : t->hash;

	return t->flags & (WAIT_DUE | WAIT_KNOWN) ? collector_carry(w->host->collector, !epoch, key) : NULL;
}

struct settling {
	struct wait *wait;
	u32 epoch;
};

static struct error *settle_and_carry(void *ctx, const struct wait_thread *t)
{
	const struct settling *s = ctx;
	struct error *err = settle(s->wait, s->epoch, t);

	return err ? err : carry(s->wait, s->epoch, t);
}

struct error *wait_look(void *event)
{
	struct wait *w = event;

	return wait_list_all(&w->list, visit_due, w);
}

void wait_begins(void *event)
{
	struct wait *w = event;

	w->cpu_at_start =
	        object_cpu_ns(w->host->object); /* yrt may wait for a CPU here: time on it lies inside the run */
	if (w->tasks)
		wait_tasks_start(w->tasks);
}

static struct error *start(void *event, bool at_exec)
{
	struct wait *w = event;
	struct error *err = at_exec ? NULL : wait_look(w);

	if (err)
		return err;
	object_take_ticks(w->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	wait_begins(w);
	return NULL;
}

/* Threads that sleep since before they are watched, and waits that were left out by chance and last. */
static struct error *poll(void *event, u64 now)
{
	struct wait *w = event;
	struct sample *skel = object_skeleton(w->host->object);
	struct error *err = w->tasks ? wait_tasks_poll(w->tasks, now, false) : NULL;

	if (!err)
		err = wait_shifts_poll(&w->shifts, now, wait_look, w);
	if (err)
		return err;
	if (wait_shifts_pauses(&w->shifts) || w->added != object_added(w->host->object)) /* threads may sleep */
		skel->bss->wait_sampled = 1;
	w->added = object_added(w->host->object);
	if (now - w->visited_ns < WAIT_VISIT_NS ||
	        (w->visited_ns && !skel->bss->wait_sampled && now - skel->bss->taken_ns > 4 * WAIT_VISIT_NS))
		return NULL;
	w->visited_ns = now;
	skel->bss->wait_sampled = 0;
	err = wait_list_some(&w->list, w->host->targets, visit_due, w);
	wait_visited_tune(&w->visited);
	return err;
}

/* The earlier one; 0: never. */
static u64 first(u64 a, u64 b)
{
	return !a || (b && b < a) ? b : a;
}

static u64 due(void *event)
{
	const struct wait *w = event;
	bool sampled = object_skeleton(w->host->object)->bss->wait_sampled;

	return first(first(w->tasks ? wait_tasks_due(w->tasks) : 0, sampled ? w->visited_ns + WAIT_VISIT_NS : 0),
	        wait_shifts_due(&w->shifts));
}

static struct error *drain(void *event, u32 epoch)
{
	struct wait *w = event;
	struct sample *skel = object_skeleton(w->host->object);
	struct settling settling = {w, epoch};
	struct error *err = wait_list_all(&w->list, visit_due, w);

	if (err)
		return err;
	w->host->take_all(w->host->ctx);
	wait_visited_turn(&w->visited);
	skel->bss->wait_settling = 1;
	see(w, STOP_ROOT, wait_births_drain(&w->births, w->host->collector, epoch), true);
	err = wait_list_all(&w->list, settle_and_carry, &settling);
	skel->bss->wait_settling = 0;
	if (!err && w->tasks)
		wait_tasks_drain(w->tasks, epoch);
	return err;
}

static struct error *stop(void *event)
{
	struct wait *w = event;

	/* first of all, or threads that end meanwhile have waited but not lived */
	w->ended_ns = object_skeleton(w->host->object)->bss->wait_end_ns = now_ns();
	object_take_ticks(w->host->object, TICKS_IGNORED);
	w->cpu_at_end = object_final_cpu_ns(w->host->object);
	return w->tasks ? wait_tasks_poll(w->tasks, w->ended_ns, true) : NULL;
}

static void add_tasks(struct wait *w, struct sampler_stats *st)
{
	const struct wait_tasks_summary *t = wait_tasks_summary(w->tasks);

	for (u32 i = 0; i < STOP_MAX; i++) {
		st->probe.stop[i] += t->stop[i];
		st->complete += stop_is_complete(i) ? t->stop[i] : 0;
		st->probe.weights += t->stop[i];
	}
	st->probe.weights += t->unseen_ns;
	st->collect.unmatched += t->unseen_ns;
	w->summary.looks = t->looks;
	w->summary.tasks_s = (double)t->ns / 1e9;
	w->summary.unseen_tasks_s = (double)t->unseen_ns / 1e9;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct wait *w = event;
	s64 cpu = w->cpu_at_end ? w->cpu_at_end : object_cpu_ns(w->host->object);
	struct wait_stats sum;

	error_free(object_sum(
	        w->host->object, object_skeleton(w->host->object)->maps.wait_counters, (u64 *)&sum, sizeof(sum)));
	for (u32 i = 0; i < STOP_MAX; i++) {
		st->probe.stop[i] += w->seen[i];
		st->complete += stop_is_complete(i) ? w->seen[i] : 0;
		st->probe.weights += w->seen[i];
	}
	st->probe.weights += w->lost_ns;
	st->collect.unmatched += w->lost_ns;
	if (w->tasks)
		add_tasks(w, st);
	st->target_cpu_s = cpu > w->cpu_at_start ? (double)(cpu - w->cpu_at_start) / 1e9 : 0;
	w->summary.on_s = st->target_cpu_s;
	w->summary.off_s = (double)(sum.off_ns + w->settled_ns) / 1e9;
	w->summary.wall_s = (double)(sum.wall_ns + w->living_ns) / 1e9;
	w->summary.run_queue_s = (double)(sum.run_queue_ns + w->run_queue_ns) / 1e9;
	w->summary.left_out_s = (double)sum.left_out_ns / 1e9;
	w->summary.waits = sum.waits + w->under_way;
	w->summary.skipped = sum.skipped + sum.unwatched;
	if (sum.estimated_ns && w->summary.off_s > 0)
		w->summary.off_by = sqrt((double)sum.squares) * (1 << WAIT_SQUARE_BITS) / (w->summary.off_s * 1e9);
	w->summary.visited = w->visited.taken;
	w->summary.moved = w->visited.moved;
	w->summary.watched = wait_shifts_share(&w->shifts, w->ended_ns ? w->ended_ns : now_ns());
	w->summary.unseen = sum.unseen;
	st->of_event = &w->summary;
}

/* What both events do. */
#define OPERATIONS                                                                                                     \
	.unit = "nanoseconds", .more = "waits", .waits = true, .slots = 2, .prepare = prepare, .create = create,       \
	.destroy = destroy, .start = start, .poll = poll, .due = due, .drain = drain, .stop = stop, .stats = stats,    \
	.record = record, .reason = wait_reason_text, .kind = wait_kind, .leads_to_program = wait_leads_to_program

const struct event_ops wait_event = {
        .name = "wait",
        .command = "off-flame",
        .topic = TOPIC_WAITING,
        .summary = "time off the CPU by stack, and what each wait is for",
        .view = "time off the CPU of %s by stack, and what each wait is for",
        .idle = wait_idle,
        .futex = wait_is_for_futex,
        .command_line = &wait_command,
        .words = &wait_words,
        OPERATIONS,
};

const struct event_ops lock_event = {
        .name = "lock",
        .command = "lock-flame",
        .topic = TOPIC_WAITING,
        .summary = "time waiting for locks, by stack and lock",
        .view = "time that %s waits for locks, by stack and lock",
        .command_line = &lock_command,
        .words = &lock_words,
        OPERATIONS,
};
