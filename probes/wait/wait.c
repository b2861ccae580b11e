/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <types.h>
#include <unistd.h>
#include <xxhash.h>

#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/error.h"
#include "unwind/now.h"
#include "unwind/profile/collect.h"
#include "unwind/table.h"
#include "wait_command.h"
#include "wait_outside.h"
#include "wait_reason.h"
#include "wait_record.h"
#include "wait_shifts.h"
#include "wait_tasks.h"

/*
 * Threads that wait, as the BPF program visit_threads reports them: of the whole machine, whose threads the kernel
 * lists one by one (a microsecond each), or of a few processes only (Linux 6.1, kernel/bpf/task_iter.c).
 */

struct wait_list {
	const struct bpf_program *program;
	struct bpf_link *all;
	bool whole_only; /* the kernel cannot list those of a process */
};

/* What it returns ends the list, unless it is NULL. */
typedef struct error *wait_each(void *ctx, const struct wait_thread *t);

#define SINGLE_MAX 8 /* more processes are looked for among all */

static struct error *cannot_list(void)
{
	return error_errno(errno, "cannot list threads by BPF");
}

/* wait_list_close() in any case. */
static struct error *wait_list_open(struct wait_list *l, const struct bpf_program *program)
{
	l->program = program;
	l->all = bpf_program__attach_iter(program, NULL);
	return l->all ? NULL : cannot_list();
}

static void wait_list_close(struct wait_list *l)
{
	bpf_link__destroy(l->all);
}

static struct error *read_threads(const struct bpf_link *link, wait_each *each, void *ctx)
{
	static struct wait_thread buffer[32];
	int fd = bpf_iter_create(bpf_link__fd(link));
	struct error *err = NULL;
	size_t have = 0, i;
	ssize_t got = 1;

	if (fd < 0)
		return cannot_list();
	while (!err && got) {
		got = read(fd, (char *)buffer + have, sizeof(buffer) - have);
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			break;
		have += got > 0 ? (size_t)got : 0;
		for (i = 0; !err && (i + 1) * sizeof(*buffer) <= have; i++) {
			buffer[i].comm[sizeof(buffer[i].comm) - 1] = '\0';
			err = each(ctx, &buffer[i]);
		}
		have -= i * sizeof(*buffer);
		memmove(buffer, &buffer[i], have);
	}
	if (!err && got < 0)
		err = cannot_list();
	close(fd);
	return err;
}

/* All threads of targets. */
static struct error *wait_list_all(const struct wait_list *l, wait_each *each, void *ctx)
{
	return read_threads(l->all, each, ctx);
}

static struct bpf_link *link_process(const struct wait_list *l, pid_t pid)
{
	union bpf_iter_link_info info = {.task.pid = (u32)pid};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info, .link_info_len = sizeof(info));

	return bpf_program__attach_iter(l->program, &options);
}

/* The same, cheaper where there are few targets. While threads end a list may lack others: for what is done again. */
static struct error *wait_list_some(struct wait_list *l, const struct targets *targets, wait_each *each, void *ctx)
{
	struct error *err = NULL;

	if (l->whole_only || targets->alive > SINGLE_MAX)
		return wait_list_all(l, each, ctx);
	for (u32 i = 0; !err && i < targets->nprocesses; i++) {
		const struct process *p = targets->processes[i];
		struct bpf_link *link;

		if (p->dead)
			continue;
		link = link_process(l, p->pid);
		if (!link) {
			l->whole_only = true;
			return wait_list_all(l, each, ctx);
		}
		err = read_threads(link, each, ctx);
		bpf_link__destroy(link);
	}
	return err;
}

/*
 * Waits that user space took the stacks of, by thread and its count of switches: why the walk ended, and how much of
 * them was counted. Those of this turn and of the last are known; to count a wait that lasts makes it one of this turn.
 */

struct event_host;
struct wait_thread;
struct wait_walker;

struct wait_visit {
	u64 counted; /* ns */
	u32 stop;
	bool runnable;
};

struct wait_visited { /* starts as zeroes */
	const struct event_host *host;
	struct wait_walker *walker;
	struct table of_turn[2];
	u32 turn;
	u64 taken, moved; /* waits; those that were over before their stacks were taken */
	u64 walked_ns;    /* how long that took since the last wait_visited_tune() */
};

#define WAIT_DUE_MOST_NS 45000000ull
#define WALKS_NS         200000ull /* for walks, of each WAIT_VISIT_NS */

/* wait_visited_end() in any case. */
static struct error *wait_visited_begin(struct wait_visited *v, const struct event_host *host)
{
	v->host = host;
	v->walker = wait_walker_create(host);
	return v->walker ? NULL : &error_no_memory;
}

static void wait_visited_end(struct wait_visited *v)
{
	wait_walker_destroy(v->walker);
	table_free(&v->of_turn[0]);
	table_free(&v->of_turn[1]);
}

/* A value: ns that were counted << 16 | stop << 1 | runnable. */
static bool wait_visited_get(const struct wait_visited *v, u64 key, struct wait_visit *ret)
{
	const u64 *value = table_get(&v->of_turn[v->turn], key);

	if (!value)
		value = table_get(&v->of_turn[!v->turn], key);
	if (!value)
		return false;
	*ret = (struct wait_visit){*value >> 16, *value >> 1 & 0x7fff, *value & 1};
	return true;
}

static struct error *wait_visited_put(struct wait_visited *v, u64 key, const struct wait_visit *visit)
{
	return table_put(
	        &v->of_turn[v->turn], key, visit->counted << 16 | (u64)(visit->stop & 0x7fff) << 1 | visit->runnable);
}

/* Takes the stack of a wait that has none. What ran meanwhile is visited again if it waits long again. */
static struct error *wait_visited_take(struct wait_visited *v, const struct wait_thread *t, u64 key)
{
	const struct process *p = targets_find(v->host->targets, t->instance);
	struct wait_visit visit = {.runnable = wait_is_runnable(t->reason)}, before;
	u64 began = now_ns();
	bool found;

	if (!p || p->dead || wait_visited_get(v, key, &before))
		return NULL;
	v->taken++;
	found = wait_walk_thread(v->walker, p, t, key, &visit.stop);
	v->walked_ns += now_ns() - began;
	if (found)
		return wait_visited_put(v, key, &visit);
	v->moved++;
	return NULL;
}

static void wait_visited_turn(struct wait_visited *v)
{
	v->turn = !v->turn;
	table_clear(&v->of_turn[v->turn]);
}

/* Sets when waits are due (wait_due_ns): the later the more there are, so that walks take some 1 % of a CPU. */
static void wait_visited_tune(struct wait_visited *v)
{
	struct sample *skel = object_skeleton(v->host->object);
	u64 due = skel->data->wait_due_ns, most = skel->bss->wait_futexes ? WAIT_DUE_NS : WAIT_DUE_MOST_NS;

	if (v->walked_ns > 2 * WALKS_NS)
		due += due / 2;
	else if (v->walked_ns < WALKS_NS)
		due -= due / 64;
	skel->data->wait_due_ns = due < WAIT_DUE_NS ? WAIT_DUE_NS : due < most ? due : most;
	v->walked_ns = 0;
}

/*
 * What threads wait for a CPU before they first run. They have no stack then, and the waits of others, which stand for
 * short ones without a stack, would show something else: so they are shown as the run queue, below their process.
 */

struct collector;
struct wait_record;
struct wait_walker;

struct wait_births {
	struct table ns, waits; /* by the hash of a stack that was handed over */
};

static void wait_births_free(struct wait_births *b)
{
	table_free(&b->ns);
	table_free(&b->waits);
}

static u64 hash_of(const struct wait_thread *t)
{
	return XXH3_64bits_withSeed(t->comm, sizeof(t->comm), t->instance) | 1;
}

static struct error *wait_births_add(struct wait_births *b, struct wait_walker *w, const struct wait_record *r)
{
	struct wait_thread t = {.tgid = r->tgid,
	        .tid = r->tid,
	        .instance = r->instance,
	        .reason = wait_reason(WAIT_RUNNABLE, WAIT_NO_FILE, -1)};
	const u64 *ns, *waits;
	struct error *err;
	u64 hash;

	memcpy(t.comm, r->comm, sizeof(t.comm) - 1);
	hash = hash_of(&t);
	ns = table_get(&b->ns, hash);
	waits = table_get(&b->waits, hash);
	if (!ns)
		wait_put_birth(w, &t, hash);
	err = table_put(&b->ns, hash, (ns ? *ns : 0) + r->ns);
	return err ? err : table_put(&b->waits, hash, (waits ? *waits : 0) + 1);
}

/* All stacks that were handed over have been taken: counts them, and returns how many ns there were. */
static u64 wait_births_drain(struct wait_births *b, struct collector *c, u32 epoch)
{
	u64 ret = 0;

	for (size_t i = 0; i < b->ns.capacity; i++) {
		const struct table_entry *entry = &b->ns.entries[i];
		const u64 *waits = entry->key ? table_get(&b->waits, entry->key) : NULL;

		if (!waits)
			continue;
		collector_count(c, epoch, entry->key, entry->value, *waits);
		ret += entry->value;
	}
	table_clear(&b->ns);
	table_clear(&b->waits);
	return ret;
}

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

/* Time of waits under one stack. */
struct waited {
	u32 epoch, stop;
	u64 ns, queued; /* of that on the run queue, at the end */
	u64 over;       /* waits that are */
	bool runnable;  /* all of it, as the stack says */
};

static void see(struct wait *w, u32 stop, u64 ns)
{
	if (stop < STOP_MAX)
		w->seen[stop] += ns;
}

/* Counts more of waits that have lasted until so long ago. */
static struct error *count_more(struct wait *w, u32 epoch, u64 hash, u64 ns, u64 over, u64 ago)
{
	u64 each = object_skeleton(w->host->object)->data->time_value;
	struct time_record record = {.type = RECORD_TIME, .hash = hash, .span = ns};

	collector_count(w->host->collector, epoch, hash, ns, over);
	record.ns = (w->ended_ns ? w->ended_ns : now_ns()) - ago;
	record.count = (u32)((ns + each / 2) / each);
	return w->host->options->collect.times ? collector_time(w->host->collector, &record, sizeof(record)) : NULL;
}

/*
 * Of the pair if there is a waker. Time on the run queue has a stack of its own, and is no part of waiting for a lock.
 */
static struct error *count_waited(struct wait *w, u64 hash, u64 waker, const struct waited *t)
{
	bool locks = object_skeleton(w->host->object)->bss->wait_futexes;
	struct error *err = waker ? collector_join(w->host->collector, t->epoch, hash, waker, hash ^ waker) : NULL;

	see(w, t->stop, locks ? t->ns - t->queued : t->ns);
	w->run_queue_ns += t->runnable ? t->ns : t->queued;
	if (!err)
		err = count_more(w, t->epoch, hash ^ waker, t->ns - t->queued, t->over, t->queued);
	if (err || locks || !t->queued)
		return err;
	return count_more(w, t->epoch, stack_queued(hash), t->queued, 0, 0);
}

static bool is_wanted(const struct wait *w, u64 ns)
{
	const struct wait_options *o = w->host->options->of_event;

	return !o || (ns >= o->min_ns && (!o->max_ns || ns <= o->max_ns));
}

/* Counts what was not counted yet of a wait that was visited, and has lasted for t->ns by now. */
static struct error *count_visited(struct wait *w, u64 key, u64 waker, struct waited *t)
{
	struct wait_visit v;
	struct error *err;
	u64 before;

	if (!wait_visited_get(&w->visited, key, &v)) {
		w->lost_ns += t->over && is_wanted(w, t->ns) ? t->ns : 0;
		return NULL;
	}
	before = v.counted < t->ns ? v.counted : 0;
	v.counted = is_wanted(w, t->ns) ? t->ns : v.counted;
	err = wait_visited_put(&w->visited, key, &v);
	if (err || !is_wanted(w, t->ns))
		return err;
	t->ns -= before;
	t->queued = v.runnable ? 0 : t->queued < t->ns ? t->queued : t->ns;
	t->runnable = v.runnable;
	t->stop = v.stop;
	return count_waited(w, key, waker, t);
}

/* The wait is over: what nobody took a stack of is lost. */
static struct error *record(void *event, const void *data, size_t size)
{
	struct wait_record r = {0};
	struct wait_pair pair;
	struct wait_visit v;
	struct wait *w = event;
	struct waited t;
	u64 key;

	if (size < sizeof(pair))
		return NULL;
	memcpy(&pair, data, sizeof(pair));
	memcpy(&r, data, size < sizeof(r) ? size : sizeof(r));
	if (pair.pair)
		return collector_join(w->host->collector, pair.epoch, pair.hash, pair.waker, pair.both);
	t = (struct waited){object_epoch(w->host->object), r.stop, r.ns, r.queued, 1, r.runnable};
	key = wait_key(r.tid, r.switches);
	if (!r.hash && !r.switches && r.instance)
		return wait_births_add(&w->births, w->visited.walker, &r);
	if (!r.hash || wait_visited_get(&w->visited, key, &v))
		return count_visited(w, key, r.waker, &t);
	return count_waited(w, r.hash, r.waker, &t); /* it ended in unknown code, and nobody walked it again */
}

static struct error *visit_due(void *ctx, const struct wait_thread *t)
{
	struct wait *w = ctx;

	return t->flags & WAIT_DUE ? wait_visited_take(&w->visited, t, wait_key(t->tid, t->switches)) : NULL;
}

/* What waits: is counted until now, and may be counted again. */
static struct error *settle(struct wait *w, u32 epoch, const struct wait_thread *t)
{
	struct waited waited = {epoch, t->stop, t->ns, t->queued, w->ended_ns != 0, t->runnable};

	if (w->ended_ns)
		w->living_ns += w->ended_ns > t->begin_ns ? w->ended_ns - t->begin_ns : 0;
	if (w->ended_ns && t->flags & (WAIT_DUE | WAIT_OTHERS))
		w->settled_ns += t->ns;
	if (w->ended_ns && t->flags & (WAIT_DUE | WAIT_OTHERS | WAIT_KNOWN))
		w->under_way++;
	if (t->flags & WAIT_DUE && t->settled)
		return count_visited(w, wait_key(t->tid, t->switches), 0, &waited);
	if (!(t->flags & WAIT_KNOWN))
		return NULL;
	w->settled_ns += t->ns;
	waited.ns *= t->stands;
	waited.queued *= t->stands;
	waited.over *= t->stands;
	return count_waited(w, t->hash, 0, &waited);
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
	u64 born;

	if (err)
		return err;
	w->host->take_all(w->host->ctx);
	wait_visited_turn(&w->visited);
	skel->bss->wait_settling = 1;
	born = wait_births_drain(&w->births, w->host->collector, epoch);
	w->run_queue_ns += born;
	see(w, STOP_ROOT, born);
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
        .queued = WAIT_FOR_CPU,
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
        .locks = true,
        .command_line = &lock_command,
        .words = &lock_words,
        OPERATIONS,
};
