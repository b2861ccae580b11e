/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sampler_internal.h"
#include "select_find.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

/* The end of a run: what it waits for. */

#define TABLES_MS      5000
#define TABLES_POLL_US 2000

/* Is there a process with tables in the making that its stacks wait for? */
static bool awaits_tables(const struct sampler *s)
{
	for (u32 i = 0; i < s->targets.nprocesses; i++)
		if (s->targets.processes[i]->unfinished &&
		        collector_waits(s->collector, s->targets.processes[i]->number))
			return true;
	return false;
}

/*
 * The last samples of a short run are most of it: it ends some seconds later, so that they have the tables of files
 * that were loaded last. Not with -a, where there is always one more.
 */
static struct error *sampler_await_tables(struct sampler *s)
{
	u64 until = now_ns() + TABLES_MS * 1000000ull;
	struct error *err = NULL;

	while (!err && !s->options.everyone && awaits_tables(s) && now_ns() < until) {
		usleep(TABLES_POLL_US);
		err = targets_starting(&s->targets);
		if (!err)
			err = collector_settle(s->collector, now_ns(), false);
	}
	return err;
}

#define POLL_PERIODS        2 /* of the clock between two looks for records, at least POLL_MS */
#define POLL_MAX_MS         100
#define SEEK_MS             1000 /* look for processes that are selected by now */
#define REAP_MS             1000 /* look for processes that are gone without a record */
#define RECORDS_AT_ONCE     1024
#define RING_RECORDS        (1u << 17) /* more than fit into it */
#define TAKE_NS             100000000ull
#define EAGER_S             2
#define RESCAN_MS           10  /* look for new code at most so often */
#define STARTING_MS         100 /* look at runtimes that are only starting */
#define STARTING_LOADING_MS 5   /* so often in a process that is loading files */
#define STARTING_MANY       32  /* processes: more make it rarer */
#define SWEEP_S             10  /* processes that are gone cost memory */
#define LOADING_MS          200 /* a process that has loaded a file may load more: */
#define LOADING_POLL_MS     2   /* it is looked at so often then; with slow clocks so many times a period: */
#define LOADING_POLL_SHARES 8
#define LOADING_REST_SHARES 2 /* at the end */
#define LOADING_BACKOFF     2 /* after a share of the time since the last file */
#define LOADING_POLL_MAX_MS 50
/* A nice value: what a program does before its files are known is seen less well; what it drops at once has no name. */
#define HIGH_PRIORITY -20
#define BACKLOG_MAX   (8u << 20) /* bytes of stacks that may wait for symbols */

static void keep_failure(struct sampler *s, struct error *err)
{
	if (s->failed)
		error_free(err);
	else
		s->failed = err;
}

/* What follows is on samples, or is not. The clock of a thread is a system call: it is read where that changes only. */
static void account(struct sampler *s, bool on_samples)
{
	u64 now;

	if (on_samples == s->on_samples)
		return;
	now = thread_cpu_ns();
	s->samples_ns += on_samples ? 0 : now - s->on_samples_ns;
	s->on_samples_ns = now;
	s->on_samples = on_samples;
}

/* The upper half is the event's own: which of its records it is. */
static u32 type_of(const void *data)
{
	u32 type;

	memcpy(&type, data, sizeof(type));
	return type & UINT16_MAX;
}

/* A process that begins, or has new code, is sent to BPF at once; what else there is waits until there is time. */
void sampler_record(void *ctx, const void *data, size_t size)
{
	struct sampler *s = ctx;
	struct error *err = NULL;
	u32 type = size >= sizeof(type) ? type_of(data) : 0;

	if (type == RECORD_TIME) {
		err = collector_time(s->collector, data, size);
		if (err)
			keep_failure(s, err);
		return;
	}
	if (type == RECORD_EVENT && s->ops->urgent && s->ops->urgent(s->event, data, size)) {
		s->urgent = true;
		return;
	}
	if (type == RECORD_STACK && (backlog_bytes(&s->backlog) || !collector_ready(s->collector, data, size)))
		collector_prefetch(s->collector, data, size);
	if (type == RECORD_STACK || type == RECORD_DEFERRED || type == RECORD_EXIT || type == RECORD_EVENT)
		err = backlog_put(&s->backlog, data, size) ? NULL : &error_no_memory;
	else if (size >= sizeof(struct process_record)) {
		account(s, false);
		err = targets_record(&s->targets, data);
	}
	if (err)
		keep_failure(s, err);
}

static struct error *take_record(struct sampler *s, const void *data, size_t size, u32 type)
{
	if (type == RECORD_STACK)
		return collector_stack(s->collector, data, size);
	if (type == RECORD_DEFERRED)
		return collector_deferred(s->collector, data, size);
	if (type == RECORD_EVENT)
		return s->ops->record ? s->ops->record(s->event, data, size) : NULL;
	return size >= sizeof(struct process_record) ? targets_record(&s->targets, data) : NULL;
}

/* Takes one record from the backlog. False: there is none, or it waits for symbols, if it may. */
static bool take_next(struct sampler *s, bool may_wait)
{
	size_t size;
	const void *data = backlog_first(&s->backlog, &size);
	struct error *err;
	u32 type;

	if (!data || s->failed)
		return false;
	type = type_of(data);
	while (type == RECORD_STACK && !collector_ready(s->collector, data, size)) {
		if (may_wait)
			return false;
		name_reader_wait(s->reader);
	}
	account(s, type == RECORD_STACK || type == RECORD_EVENT);
	err = take_record(s, data, size, type);
	backlog_drop(&s->backlog);
	if (err)
		keep_failure(s, err);
	return true;
}

/* Between any two stacks a process may have begun. */
static void take_some(struct sampler *s)
{
	u64 until = now_ns() + TAKE_NS;
	bool more = true;

	for (u32 n = 0; n < RECORDS_AT_ONCE && more && now_ns() < until; n++) {
		object_consume(s->object, RECORDS_AT_ONCE, sampler_record, s);
		if (s->urgent)
			break;
		more = take_next(s, backlog_bytes(&s->backlog) < BACKLOG_MAX);
	}
	account(s, false);
	s->behind = more;
}

/* What is in the ring by now: where programs start faster than they can be looked at there is always more. */
void sampler_take_all(struct sampler *s)
{
	object_consume(s->object, RING_RECORDS, sampler_record, s);
	while (take_next(s, false))
		;
	account(s, false);
}

static void on_mapped(void *ctx, pid_t pid)
{
	struct sampler *s = ctx;
	struct error *err = targets_mapped(&s->targets, pid);

	if (!err && pid && s->options.selection)
		err = targets_offer(&s->targets, pid);
	if (!pid)
		s->sought_ns = 0;
	if (err)
		keep_failure(s, err);
}

static void on_count(void *ctx, u32 epoch, u64 hash, const struct stack_count *count)
{
	collector_count(((struct sampler *)ctx)->collector, epoch, hash, count->value, count->more);
}

/* Moves the counts into the profile. Stacks that arrive meanwhile are of the new counts, or known already. */
static struct error *drain(struct sampler *s)
{
	struct error *err;
	u32 epoch;

	collector_forget(s->collector, !object_epoch(s->object));
	epoch = object_flip(s->object);
	sampler_take_all(s);
	err = object_drain(s->object, epoch, on_count, s);
	if (!err && s->ops->drain)
		err = s->ops->drain(s->event, epoch);
	s->stacks_at_drain = collector_stats(s->collector)->stacks;
	if (!err)
		err = collector_settle(s->collector, now_ns(), false);
	collector_place_times(s->collector);
	targets_sweep(&s->targets);
	return err;
}

/* Files come in bursts: a program begins, or imports what imports more. Code that a JIT makes is none. */
static bool is_loading(struct sampler *s, u64 now)
{
	if (s->modules->nmodules != s->modules_known && s->modules_known) {
		s->loading_until_ns = now + LOADING_MS * 1000000ull;
		s->loaded_ns = now;
	}
	s->modules_known = s->modules->nmodules;
	return now < s->loading_until_ns;
}

/*
 * A wakeup for each new stack costs more than looking often, and few targets drop what they have just run. With those
 * that do it is a race against the target, which has the CPU: this thread is to get it first then.
 */
static void keep_up(struct sampler *s, u64 now)
{
	u64 gone = collector_stats(s->collector)->gone;

	if (gone != s->gone)
		s->eager_until_ns = now + EAGER_S * 1000000000ull;
	s->gone = gone;
	object_eager(s->object, now < s->eager_until_ns);
}

static void set_high_priority(struct sampler *s, bool high)
{
	if (high == s->high_priority)
		return;
	if (high)
		s->priority = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, high ? HIGH_PRIORITY : s->priority);
	if (s->reader) /* names of a script are lost with its process, if its stacks wait for too long */
		setpriority(PRIO_PROCESS, (id_t)name_reader_tid(s->reader), high ? HIGH_PRIORITY / 2 : s->priority);
	s->high_priority = high;
}

static struct error *offer(void *ctx, pid_t pid)
{
	return targets_offer(&((struct sampler *)ctx)->targets, pid);
}

/* Programs that start are seen by their mappings; what joins a cgroup, or changes its name, is found by looking. */
static struct error *seek(struct sampler *s, u64 now)
{
	if (!s->options.selection || s->ops->attach || now - s->sought_ns < SEEK_MS * 1000000ULL)
		return NULL;
	s->sought_ns = now;
	object_consume(s->object, RING_RECORDS, sampler_record, s);
	return each_process("/proc", offer, s);
}

static struct error *reap(struct sampler *s, u64 now)
{
	if (now - s->reaped_ns < REAP_MS * 1000000ull)
		return NULL;
	s->reaped_ns = now;
	return targets_reap(&s->targets);
}

/* Without one that is missing everything else is still seen. */
static void add_walkers(struct sampler *s)
{
	struct error *err = walkers_want(s->walkers, s->targets.recognised);

	if (err)
		s->options.warn(s->options.ctx, err);
}

/* Of the whole machine thousands of processes come and go. */
static void sweep(struct sampler *s, u64 now)
{
	if (!s->options.everyone || s->ops->stack || backlog_bytes(&s->backlog) ||
	        now - s->swept_ns < SWEEP_S * 1000000000ull)
		return;
	s->swept_ns = now;
	targets_sweep_old(&s->targets);
}

static double period_ms(const struct sampler_options *o)
{
	return o->frequency > 0 ? 1e3 / o->frequency : 0;
}

/*
 * What comes rarely need not be looked for often: on a whole machine that is sampled slowly, polling costs most. What
 * cannot wait wakes us: new processes, unknown code, stacks of processes that may end soon (is_urgent() of
 * event.bpf.h).
 */
int sampler_poll_ms(const struct sampler_options *o)
{
	double ms = period_ms(o) * POLL_PERIODS;

	return ms < POLL_MS ? POLL_MS : ms > POLL_MAX_MS ? POLL_MAX_MS : (int)ms;
}

/* With slow clocks less and less often, if no file follows: of a machine's many small programs most need few. */
static int loading_poll_ms(const struct sampler *s, u64 now)
{
	double period = period_ms(&s->options), least = period / LOADING_POLL_SHARES,
	       most = period / LOADING_REST_SHARES;
	double ms = (double)(now - s->loaded_ns) / 1e6 / LOADING_BACKOFF;

	if (least < LOADING_POLL_MS)
		return LOADING_POLL_MS;
	ms = ms < least ? least : ms > most ? most : ms;
	return ms > LOADING_POLL_MAX_MS ? LOADING_POLL_MAX_MS : (int)ms;
}

/* What the event waits for, or the end, may be due earlier. */
static int until_due(const struct sampler *s, u64 now, int ms)
{
	u64 due = s->ops->due ? s->ops->due(s->event) : 0, end = s->began_ns + (u64)(s->options.duration_s * 1e9);

	if (s->options.duration_s > 0 && (!due || end < due))
		due = end;
	if (!due || due >= now + (u64)ms * 1000000ull)
		return ms;
	return due > now ? (int)((due - now + 999999) / 1000000) : 0;
}

static struct error *poll_event(struct sampler *s, u64 now)
{
	s->urgent = false;
	return s->ops->poll(s->event, now); /* what it takes does not become less with fewer samples */
}

/* Of many processes each look takes longer. */
static u32 starting_ms(const struct sampler *s, bool loading)
{
	u32 ms = loading ? STARTING_LOADING_MS * (1 + s->targets.alive / STARTING_MANY) : STARTING_MS;

	return ms < STARTING_MS ? ms : STARTING_MS;
}

static struct error *poll_once(struct sampler *s)
{
	struct epoll_event events[16];
	u64 now = now_ns();
	bool loading = is_loading(s, now);
	int ms = loading ? loading_poll_ms(s, now) : sampler_poll_ms(&s->options), n;

	set_high_priority(s, loading || s->ops->waits || s->command || s->options.follow || s->options.everyone ||
	                             now < s->eager_until_ns);
	n = epoll_wait(s->epoll, events, 16, s->behind ? 0 : until_due(s, now, ms));
	now = now_ns();
	if (n < 0 && errno != EINTR)
		return error_errno(errno, "cannot wait for samples");
	if (s->watch && now - s->watch_ns > (u64)(ms < RESCAN_MS ? ms : RESCAN_MS) * 1000000) {
		mmap_watch_consume(s->watch, now, on_mapped, s);
		s->watch_ns = now;
	}
	if (!s->failed && now - s->starting_ns > starting_ms(s, loading) * 1000000ULL) {
		s->failed = targets_starting(&s->targets);
		s->starting_ns = now;
	}
	if (!s->failed)
		s->failed = seek(s, now);
	if (!s->failed)
		s->failed = reap(s, now);
	if (!s->failed)
		s->failed = targets_retry(&s->targets);
	add_walkers(s);
	take_some(s);
	keep_up(s, now);
	sweep(s, now);
	if (!s->failed)
		s->failed = collector_settle(s->collector, now, false);
	if (!s->failed && s->ops->poll)
		s->failed = poll_event(s, now);
	if (s->failed)
		return TAKE(s->failed);
	if (!s->ops->stack &&
	        collector_stats(s->collector)->stacks - s->stacks_at_drain > object_counts_capacity(s->object) * 3 / 4)
		return drain(s);
	return sampler_keep_budget(s, now);
}

static bool waits_for_more(const struct sampler *s)
{
	return s->options.everyone || (s->options.selection && !s->ops->attach);
}

static bool is_over(struct sampler *s, volatile sig_atomic_t *stop)
{
	if (*stop || (targets_are_over(&s->targets) && !waits_for_more(s)))
		return true;
	if (s->command && command_has_ended(s->command))
		return true;
	return s->options.duration_s > 0 && now_ns() - s->began_ns >= s->options.duration_s * 1e9;
}

static void show_progress(struct sampler *s, double *last)
{
	double elapsed = (double)(now_ns() - s->began_ns) / 1e9;
	struct probe_stats probe;

	if (!s->options.progress || elapsed - *last < 0.1 || object_stats(s->object, &probe))
		return;
	*last = elapsed;
	s->options.progress(s->options.ctx, elapsed, probe.weights);
}

static struct error *take_snapshot(struct sampler *s)
{
	u64 now = now_ns();
	struct error *err;

	if (!s->options.snapshot || now - s->snapshot_ns < s->options.snapshot_s * 1e9)
		return NULL;
	s->snapshot_ns = now;
	err = drain(s);
	return err ? err : s->options.snapshot(s->options.ctx, s);
}

static void begin(struct sampler *s, u64 now)
{
	s->cpu_at_begin = process_cpu_ns();
	s->began_ns = s->budget_ns = s->snapshot_ns = now;
	collector_begin(s->collector, now);
}

/* The time before the first process is there is not sampled. */
static void await_first(struct sampler *s)
{
	if (!s->awaiting)
		return;
	s->awaiting = !s->targets.seen;
	begin(s, now_ns());
	if (!s->awaiting)
		s->options.awaited(s->options.ctx, s->targets.processes[0]->pid);
}

static struct error *arm(struct sampler *s)
{
	struct error *err;

	malloc_trim(0);
	if (!s->options.everyone)
		modules_make_later(s->modules, TABLES_OLDEST_FIRST);
	set_high_priority(s, s->command || s->options.follow || s->options.everyone);
	err = s->ops->start(s->event, s->command); /* may take seconds, as to find functions in a large file */
	s->armed_ns = object_taken_ns(s->object);
	if (!s->armed_ns)
		s->armed_ns = now_ns();
	begin(s, s->armed_ns);
	s->awaiting = s->options.awaited && !s->targets.seen;
	s->loading_until_ns = s->command ? s->armed_ns + LOADING_MS * 1000000ull : 0;
	s->loaded_ns = s->armed_ns;
	return err || !s->command ? err : command_go(s->command);
}

static void warn_exited(struct sampler *s)
{
	s->options.warn(
	        s->options.ctx, error_new(ERROR_NO_PROCESS, "%s exited after %.1f s; the samples until then are kept",
	                                sampler_target(s), (double)(now_ns() - s->began_ns) / 1e9));
}

struct error *sampler_run(struct sampler *s, volatile sig_atomic_t *stop)
{
	struct error *err = sampler_load(s), *late;
	double last = 0;

	if (err) /* nothing has begun */
		return err;
	err = arm(s);
	while (!err && !is_over(s, stop)) {
		err = poll_once(s);
		await_first(s);
		if (!err)
			err = take_snapshot(s);
		show_progress(s, &last);
	}
	if (!err && !s->targets.alive && !s->command && !waits_for_more(s))
		warn_exited(s);
	if (!err && s->awaiting)
		err = selection_never_matched(s->options.selection, "/proc");
	s->ended_ns = now_ns();
	late = s->ops->stop(s->event);
	sampler_take_all(s);
	if (!late)
		late = drain(s);
	if (!late)
		late = sampler_await_tables(s);
	if (!late)
		late = collector_settle(s->collector, now_ns(), true);
	if (!late && s->ops->finish)
		late = s->ops->finish(s->event);
	s->sampling_rss_kb = sampler_peak_rss_kb();
	s->cpu_at_end = process_cpu_ns();
	s->cpu_end_ns = now_ns();
	set_high_priority(s, false);
	*stop = 0; /* one more Ctrl-C is for what takes long now */
	if (!late)
		late = collector_finish(s->collector, stop);
	if (!err)
		return late;
	error_free(late);
	return err;
}

struct profile *sampler_profile(struct sampler *s)
{
	return collector_profile(s->collector);
}

u32 sampler_runtimes(const struct sampler *s)
{
	return targets_runtimes(&s->targets);
}

/* The first one; a program that was started is only one once it executes. */
static const struct process *first_target(const struct sampler *s)
{
	const struct process *first = s->targets.processes[0];

	for (u32 i = 1; s->command && i < s->targets.nprocesses; i++)
		if (s->targets.processes[i]->pid == first->pid)
			first = s->targets.processes[i];
	return first;
}

const char *sampler_target(const struct sampler *s)
{
	struct sampler *w = (struct sampler *)s;
	const struct process *first;
	u32 others;

	if (s->options.everyone)
		return "the whole machine";
	if (s->options.selection)
		return s->options.selection->text;
	if (s->targets.nprocesses == 0)
		return "";
	first = first_target(s);
	others = s->targets.nprocesses - 1 - (first != s->targets.processes[0]);
	snprintf(w->target, sizeof(w->target), others ? "%s (pid %d) and %u more" : "%s (pid %d)", first->comm,
	        first->pid, others);
	return s->target;
}
