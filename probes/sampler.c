/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backlog.h"
#include "command.h"
#include "mmap_watch.h"
#include "object.h"
#include "select_find.h"
#include "skeleton.h"
#include "targets.h"
#include "walker_loads.h"
#include "unwind/process/prefetch.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

#define POLL_MS             20
#define SEEK_MS             1000 /* look for processes that are selected by now */
#define RECORDS_AT_ONCE     1024
#define EAGER_S             2
#define RESCAN_MS           10  /* look for new code at most so often */
#define STARTING_MS         100 /* look at runtimes that are only starting */
#define STARTING_LOADING_MS 5   /* so often in a process that is loading files */
#define LOADING_MS          200 /* a process that has loaded a file may load more: */
#define LOADING_POLL_MS     2   /* it is looked at so often then */
/* A priority: what a program does before its files are known is seen less well, what it drops at once is not named. */
#define HURRY          -20
#define BUDGET_EVERY_S 1.0
#define BACKLOG_MAX    (8u << 20) /* bytes of stacks that may wait for symbols */

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
	struct command *command;
	int epoll;
	u64 sought_ns, created_ns, armed_ns, ended_ns, budget_ns, budget_used_ns, watch_ns, starting_ns, snapshot_ns;
	u64 cpu_at_arming, cpu_at_end; /* at_end: 0: it runs still */
	u64 cpu_end_ns;                /* when that was */
	u64 stacks_at_drain;
	bool behind; /* stacks wait, not for symbols */
	u64 gone;    /* collect_stats.gone when last looked at */
	u64 eager_until_ns, loading_until_ns;
	bool hurried;
	int priority; /* before that */
	u32 modules_known;
	u64 sampling_rss_kb;
	u32 halvings;
	char target[128];
	struct error *failed; /* of a callback; ends the run */
};

static void on_record(void *ctx, const void *data, size_t size);
static void take_all(struct sampler *s);

enum { TAG_RING, TAG_MMAP, TAG_NAMES, TAG_WALKERS };

static u64 own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static struct process *find_process(void *ctx, u32 number)
{
	struct sampler *s = ctx;

	return targets_find(&s->targets, number);
}

static void keep_failure(struct sampler *s, struct error *err)
{
	if (s->failed)
		error_free(err);
	else
		s->failed = err;
}

static struct error *stack_of_event(void *ctx, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct sampler *s = ctx;

	return s->ops->stack(s->event, record, frames, n);
}

static struct error *create_parts(struct sampler *s)
{
	const struct sampler_options *o = &s->options;
	struct object_options object = {.depth = o->depth,
	        .no_kernel = o->no_kernel,
	        .no_user = o->no_user,
	        .by_thread = o->collect.threads,
	        .times = o->collect.times,
	        .everyone = o->everyone,
	        .measure = o->measure,
	        .event = o->event,
	        .of_event = o->of_event,
	        .cache_dir = o->cache_dir};
	struct error *err = object_create(&object, &s->object);

	if (!err)
		err = arena_create(object_slabs(s->object), &s->arena);
	if (!err)
		err = modules_create(s->arena, o->cache_dir, &s->modules);
	if (err)
		return err;
	s->modules->features = o->features | (o->collect.lock_only ? FEATURE_LOCK : 0) |
	                       (o->collect.names.expand & EXPAND_LOOP ? FEATURE_AWAITERS : 0);
	s->modules->complain = o->warn;
	s->modules->complain_ctx = o->ctx;
	s->options.collect.stack = s->ops->stack ? stack_of_event : NULL;
	s->options.collect.stack_ctx = s;
	s->options.collect.names.reason = s->ops->reason;
	s->options.collect.names.reason_kind = s->ops->kind;
	s->options.collect.idle = o->no_idle ? s->ops->idle : NULL;
	s->options.collect.names.leads_to_program = s->ops->leads_to_program;
	err = s->ops->stack ? NULL : name_reader_create(&s->reader);
	if (err)
		return err;
	s->options.collect.names.reader = s->reader;
	return collector_create(s->modules, &o->collect, find_process, s, &s->collector);
}

static struct error *create_poll(struct sampler *s)
{
	struct epoll_event read = {.events = EPOLLIN | EPOLLET, .data.u64 = TAG_NAMES};
	struct error *err = mmap_watch_create(&s->watch);

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || (s->reader && epoll_ctl(s->epoll, EPOLL_CTL_ADD, name_reader_fd(s->reader), &read))) {
		error_free(err);
		return error_errno(errno, "cannot wait for samples");
	}
	if (err == &error_no_memory)
		return err;
	if (err)
		s->options.warn(s->options.ctx, err);
	return s->watch ? mmap_watch_poll(s->watch, s->epoll, TAG_MMAP) : NULL;
}

static void put_of_event(void *ctx, const void *data, size_t size)
{
	on_record(ctx, data, size);
}

static void take_all_for_event(void *ctx)
{
	take_all(ctx);
}

static struct error *create_event(struct sampler *s)
{
	s->host = (struct event_host){.options = &s->options,
	        .object = s->object,
	        .targets = &s->targets,
	        .collector = s->collector,
	        .put = put_of_event,
	        .take_all = take_all_for_event,
	        .ctx = s};
	return s->ops->create(&s->host, &s->event);
}

struct error *sampler_create(const struct sampler_options *options, struct sampler **ret)
{
	struct sampler *s = calloc(1, sizeof(*s));
	struct error *err;

	if (!s)
		return &error_no_memory;
	s->options = *options;
	s->epoll = -1;
	s->created_ns = now_ns();
	s->ops = options->event;
	err = create_parts(s);
	if (!err)
		err = create_poll(s);
	if (err) {
		sampler_destroy(s);
		return err;
	}
	s->targets = (struct targets){.object = s->object,
	        .modules = s->modules,
	        .watch = s->watch,
	        .follow = options->follow,
	        .everyone = options->everyone,
	        .selection = options->selection,
	        .warn = options->warn,
	        .ctx = options->ctx};
	*ret = s;
	return NULL;
}

/* Of whatever runs or is only to come nobody knows yet what it will be, and it may be over before a load is. */
static u32 choose_walkers(const struct sampler *s)
{
	if (s->options.everyone || (s->options.selection && !s->targets.nprocesses) ||
	        (s->command && s->options.follow))
		return WALKERS_ALL;
	return s->targets.recognised | (s->command ? modules_runtimes(s->modules) : 0);
}

static struct error *watch_fd(struct sampler *s, int fd, u64 tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) ? error_errno(errno, "cannot wait for samples") : NULL;
}

/* Loads the programs, once targets are known: with the walkers that these need. */
static struct error *load(struct sampler *s)
{
	u32 walkers = choose_walkers(s);
	struct error *err = s->walkers ? NULL : object_load(s->object, walkers);

	if (err || s->walkers)
		return err;
	err = walkers_create(s->object, walkers, &s->walkers);
	if (!err)
		err = watch_fd(s, walkers_fd(s->walkers), TAG_WALKERS);
	if (!err)
		err = watch_fd(s, object_ring_fd(s->object), TAG_RING);
	if (!err)
		err = create_event(s);
	if (!err)
		err = targets_mapped(&s->targets, 0); /* a JIT has gone on meanwhile */
	return err ? err : targets_announce(&s->targets);
}

void sampler_destroy(struct sampler *s)
{
	if (!s)
		return;
	command_destroy(s->command);
	s->ops->destroy(s->event);
	walkers_destroy(s->walkers);
	mmap_watch_destroy(s->watch);
	collector_destroy(s->collector);
	name_reader_destroy(s->reader);
	backlog_free(&s->backlog);
	targets_free(&s->targets);
	modules_destroy(s->modules);
	arena_destroy(s->arena);
	object_destroy(s->object);
	if (s->epoll >= 0)
		close(s->epoll);
	error_free(s->failed);
	free(s);
}

struct error *sampler_attach(struct sampler *s, pid_t pid)
{
	struct error *err = targets_add(&s->targets, pid, object_new_instance(s->object)), *refused;

	if (!err && !s->ops->attach)
		return NULL;
	refused = load(s); /* who may not load programs is told that first */
	if (err && refused)
		error_free(TAKE(err));
	if (err || refused)
		return err ? err : refused;
	return s->ops->attach(s->event, pid, !s->options.follow);
}

struct error *sampler_start_command(struct sampler *s, char *const *argv)
{
	pid_t pid;
	struct error *err = command_create(argv, &s->command);

	if (err)
		return err;
	pid = command_pid(s->command);
	if (s->reader && !s->options.no_kernel)
		name_reader_expect_kernel(s->reader);
	err = prefetch_prepare(s->modules, argv);
	return err ? err : targets_add(&s->targets, pid, object_new_instance(s->object));
}

/* A process that begins, or has new code, is told to BPF at once; what else there is waits until there is time for it.
 */
static void on_record(void *ctx, const void *data, size_t size)
{
	struct sampler *s = ctx;
	struct error *err = NULL;
	u32 type = 0;

	if (size >= sizeof(type))
		memcpy(&type, data, sizeof(type));
	if (type == RECORD_TIME) {
		err = collector_time(s->collector, data, size);
		if (err)
			keep_failure(s, err);
		return;
	}
	if (type == RECORD_STACK && (backlog_bytes(&s->backlog) || !collector_ready(s->collector, data, size)))
		collector_glance(s->collector, data, size);
	if (type == RECORD_STACK || type == RECORD_DEFERRED || type == RECORD_EXIT || type == RECORD_EVENT)
		err = backlog_put(&s->backlog, data, size) ? NULL : &error_no_memory;
	else if (size >= sizeof(struct process_record))
		err = targets_record(&s->targets, data);
	if (err)
		keep_failure(s, err);
}

static void gather(struct sampler *s, u32 most)
{
	object_consume(s->object, most, on_record, s);
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
	memcpy(&type, data, sizeof(type));
	while (type == RECORD_STACK && !collector_ready(s->collector, data, size)) {
		if (may_wait)
			return false;
		name_reader_wait(s->reader);
	}
	err = take_record(s, data, size, type);
	backlog_drop(&s->backlog);
	if (err)
		keep_failure(s, err);
	return true;
}

/* Between any two stacks a process may have begun. */
static void take_some(struct sampler *s)
{
	bool more = true;

	for (u32 n = 0; n < RECORDS_AT_ONCE && more; n++) {
		gather(s, RECORDS_AT_ONCE);
		more = take_next(s, backlog_bytes(&s->backlog) < BACKLOG_MAX);
	}
	s->behind = more;
}

static void take_all(struct sampler *s)
{
	do
		gather(s, 0);
	while (take_next(s, false));
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
	take_all(s);
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

static u64 peak_rss_kb(void)
{
	cleanup(fclose) FILE *file = fopen("/proc/self/status", "re");
	char line[128];
	u64 kb = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %lu", &kb) == 1)
			break;
	return kb;
}

static u64 bpf_ns(struct sampler *s, const struct probe_stats *probe)
{
	u64 others, measured = object_run_time(s->object, &others);

	if (measured)
		return measured + others;
	return probe->timed ? probe->timed_ns / probe->timed * probe->samples : 0;
}

static double cpu_percent(struct sampler *s, const struct probe_stats *probe, u64 until_ns)
{
	u64 own = s->cpu_at_end ? s->cpu_at_end : own_cpu_ns();
	double used = (double)(own - s->cpu_at_arming) + (double)bpf_ns(s, probe);

	if (s->cpu_end_ns) /* what was on its way was named after the last sample */
		until_ns = s->cpu_end_ns;
	return until_ns > s->armed_ns ? 100 * used / (double)(until_ns - s->armed_ns) : 0;
}

/* By what the last second took: a dear beginning must not halve the rate again and again. */
static struct error *keep_budget(struct sampler *s, u64 now)
{
	struct walkers_stats walkers;
	struct probe_stats probe;
	struct error *err;
	double percent;
	u64 used;

	if (!s->options.cpu_percent || !s->ops->halve || now - s->budget_ns < BUDGET_EVERY_S * 1e9)
		return NULL;
	err = object_stats(s->object, &probe);
	if (err)
		return err;
	walkers_stats(s->walkers, &walkers);
	used = own_cpu_ns() - walkers.cpu_ns + bpf_ns(s, &probe);
	percent = 100.0 * (double)(used - s->budget_used_ns) / (double)(now - s->budget_ns);
	s->budget_ns = now;
	s->budget_used_ns = used;
	if (now - s->armed_ns > 2 * BUDGET_EVERY_S * 1e9 && percent > s->options.cpu_percent && s->halvings < 10) {
		object_halve(s->object);
		s->ops->halve(s->event);
		s->halvings++;
		s->options.warn(s->options.ctx,
		        error_new(ERROR_INTERNAL,
		                "yrt took more than %g %% of a CPU: it samples half as often from here on",
		                s->options.cpu_percent));
	}
	return NULL;
}

/* Files come in bursts: a program begins, or imports what imports more. Code that a JIT makes is none. */
static bool is_loading(struct sampler *s, u64 now)
{
	if (s->modules->nmodules != s->modules_known && s->modules_known)
		s->loading_until_ns = now + LOADING_MS * 1000000ull;
	s->modules_known = s->modules->nmodules;
	return now < s->loading_until_ns;
}

/*
 * A wakeup for each new stack costs more than looking often, and few targets drop what they have just run. With those
 * that do it is a race against the target, which has the CPU: this thread is to get it first then (set_hurry()).
 */
static void keep_up(struct sampler *s, u64 now)
{
	u64 gone = collector_stats(s->collector)->gone;

	if (gone != s->gone)
		s->eager_until_ns = now + EAGER_S * 1000000000ull;
	s->gone = gone;
	object_eager(s->object, now < s->eager_until_ns);
}

static void set_hurry(struct sampler *s, bool hurry)
{
	if (hurry == s->hurried)
		return;
	if (hurry)
		s->priority = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, hurry ? HURRY : s->priority);
	if (s->reader) /* names of a script are lost with its process, if its stacks wait for too long */
		setpriority(PRIO_PROCESS, (id_t)name_reader_tid(s->reader), hurry ? HURRY / 2 : s->priority);
	s->hurried = hurry;
}

static struct error *offer(void *ctx, pid_t pid)
{
	return targets_offer(&((struct sampler *)ctx)->targets, pid);
}

/* Programs that start are told by their mappings; what joins a cgroup or takes another name later is found by looking.
 */
static struct error *seek(struct sampler *s, u64 now)
{
	if (!s->options.selection || s->ops->attach || now - s->sought_ns < SEEK_MS * 1000000ULL)
		return NULL;
	s->sought_ns = now;
	gather(s, 0);
	return each_process("/proc", offer, s);
}

/* Without one that is missing everything else is still seen. */
static void add_walkers(struct sampler *s)
{
	struct error *err = walkers_want(s->walkers, s->targets.recognised);

	if (err)
		s->options.warn(s->options.ctx, err);
}

static struct error *poll_once(struct sampler *s)
{
	struct epoll_event events[16];
	bool loading = is_loading(s, now_ns());
	u64 now;
	int n;

	set_hurry(s, loading || s->command || s->options.follow || s->options.everyone || now_ns() < s->eager_until_ns);
	n = epoll_wait(s->epoll, events, 16, s->behind ? 0 : loading ? LOADING_POLL_MS : POLL_MS);
	now = now_ns();
	if (n < 0 && errno != EINTR)
		return error_errno(errno, "cannot wait for samples");
	if (s->watch && now - s->watch_ns > (loading ? LOADING_POLL_MS : RESCAN_MS) * 1000000ULL) {
		mmap_watch_consume(s->watch, now, on_mapped, s);
		s->watch_ns = now;
	}
	if (!s->failed && now - s->starting_ns > (loading ? STARTING_LOADING_MS : STARTING_MS) * 1000000ULL) {
		s->failed = targets_starting(&s->targets);
		s->starting_ns = now;
	}
	if (!s->failed)
		s->failed = seek(s, now);
	add_walkers(s);
	take_some(s);
	keep_up(s, now);
	if (!s->failed)
		s->failed = collector_settle(s->collector, now, false);
	if (s->failed)
		return TAKE(s->failed);
	if (s->ops->poll) {
		struct error *err = s->ops->poll(s->event, now);

		if (err)
			return err;
	}
	if (!s->ops->stack &&
	        collector_stats(s->collector)->stacks - s->stacks_at_drain > object_counts_capacity(s->object) * 3 / 4)
		return drain(s);
	return keep_budget(s, now);
}

static bool waits_for_more(const struct sampler *s)
{
	return s->options.everyone || (s->options.selection && !s->ops->attach);
}

static bool is_over(struct sampler *s, volatile sig_atomic_t *stop)
{
	if (*stop || (!s->targets.alive && !waits_for_more(s)))
		return true;
	if (s->command && command_has_ended(s->command))
		return true;
	return s->options.duration_s > 0 && now_ns() - s->armed_ns >= s->options.duration_s * 1e9;
}

static void show_progress(struct sampler *s, double *last)
{
	double elapsed = (double)(now_ns() - s->armed_ns) / 1e9;
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

static struct error *arm(struct sampler *s)
{
	struct error *err;

	malloc_trim(0);
	s->cpu_at_arming = own_cpu_ns();
	s->armed_ns = s->budget_ns = s->snapshot_ns = now_ns();
	collector_begin(s->collector, s->armed_ns);
	s->loading_until_ns = s->command ? s->armed_ns + LOADING_MS * 1000000ull : 0;
	set_hurry(s, s->command || s->options.follow || s->options.everyone);
	err = s->ops->start(s->event, s->command);
	return err || !s->command ? err : command_go(s->command);
}

static void warn_exited(struct sampler *s)
{
	s->options.warn(
	        s->options.ctx, error_new(ERROR_NO_PROCESS, "%s exited after %.1f s; what was seen until then is kept",
	                                sampler_target(s), (double)(now_ns() - s->armed_ns) / 1e9));
}

struct error *sampler_run(struct sampler *s, volatile sig_atomic_t *stop)
{
	struct error *err = load(s), *late;
	double last = 0;

	if (err) /* nothing has begun */
		return err;
	err = arm(s);
	while (!err && !is_over(s, stop)) {
		err = poll_once(s);
		if (!err)
			err = take_snapshot(s);
		show_progress(s, &last);
	}
	if (!err && !s->targets.alive && !s->command && !waits_for_more(s))
		warn_exited(s);
	s->ended_ns = now_ns();
	late = s->ops->stop(s->event);
	take_all(s);
	if (!late)
		late = drain(s);
	if (!late)
		late = collector_settle(s->collector, now_ns(), true);
	if (!late && s->ops->finish)
		late = s->ops->finish(s->event);
	s->sampling_rss_kb = peak_rss_kb();
	s->cpu_at_end = own_cpu_ns();
	s->cpu_end_ns = now_ns();
	set_hurry(s, false);
	*stop = 0; /* one more Ctrl-C is for what takes long now */
	if (!late)
		late = collector_finish(s->collector, stop);
	if (!err)
		return late;
	error_free(late);
	return err;
}

static u64 count_complete(const struct probe_stats *probe)
{
	u64 sum = 0;

	for (u32 i = 0; i < STOP_MAX; i++)
		sum += stop_is_complete(i) ? probe->stop[i] : 0;
	return sum;
}

void sampler_stats(struct sampler *s, struct sampler_stats *ret)
{
	struct sampler_stats st = {.collect = *collector_stats(s->collector),
	        .halvings = s->halvings,
	        .first_sample_ms = -1,
	        .max_rss_kb = peak_rss_kb()};
	u64 until = s->ended_ns ? s->ended_ns : now_ns(), bpf;

	error_free(object_stats(s->object, &st.probe));
	for (u32 i = 0; i < STOP_MAX; i++) {
		st.probe.stop[i] -= st.collect.deferred[i];
		st.probe.stop[STOP_ROOT] += st.collect.deferred[i];
	}
	st.samples = st.collect.counted;
	st.complete = count_complete(&st.probe);
	bpf = bpf_ns(s, &st.probe);
	object_run_time(s->object, &st.bpf_other_ns);
	st.bpf_ns_per_sample = st.probe.samples ? (double)(bpf - st.bpf_other_ns) / (double)st.probe.samples : 0;
	st.cpu_percent = cpu_percent(s, &st.probe, until);
	st.sampling_rss_kb = s->sampling_rss_kb ? s->sampling_rss_kb : st.max_rss_kb;
	st.map_kb = object_map_bytes(s->object) / 1024;
	if (st.probe.first_ns > s->armed_ns)
		st.first_sample_ms = (double)(st.probe.first_ns - s->armed_ns) / 1e6;
	st.processes = s->targets.seen;
	st.unread = s->targets.unread;
	st.armed_ms = (double)(s->armed_ns - s->created_ns) / 1e6;
	st.duration_s = (double)(until - s->armed_ns) / 1e9;
	if (s->command)
		command_has_ended(s->command);
	st.command_status = s->command ? command_status(s->command) : COMMAND_RUNS;
	st.event = s->ops;
	if (s->walkers)
		walkers_stats(s->walkers, &st.walkers);
	if (s->event)
		s->ops->stats(s->event, &st);
	*ret = st;
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
