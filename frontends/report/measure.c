/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "added.h"
#include "blockers.h"
#include "builds.h"
#include "child.h"
#include "dump_facts.h"
#include "findings.h"
#include "frontends/format/input.h"
#include "held.h"
#include "others.h"
#include "probes/event_command.h"
#include "run_apart.h"
#include "source_text.h"
#include "targets.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/process/comm.h"
#include "unwind/process/other_language.h"
#include "unwind/runtime.h"
#include "unwind/runtime_snapshot.h"
#include "unwind/runtime_tasks.h"

#define COUNTERS_S  3.0
#define VIEW_LEAST  2.0  /* seconds of a view, or a thirtieth of the whole if that is less, */
#define VIEW_FLOOR  0.5  /* but not less than that */
#define RATE        199  /* samples a second, at least */
#define SAMPLES     2000 /* aimed at in a view of a target that uses little CPU: they give a share of 5 % to 1 point */
#define RATE_MOST   1999 /* samples a second, at most */
#define RATE_AGAIN  997  /* of the second round: a share to 1 point, and lines of what is seen seldom */
#define WALL_PART   0.3
#define LAST_S      1.0     /* seconds for a dump, */
#define DUMP_S      0.3     /* which is not begun if less is left */
#define AGAIN_PART  0.25    /* of the time that is left after the first two steps */
#define KEPT_PART   0.5     /* of it: between the first and the last reading of a heap */
#define AGAIN_FIRST 3       /* only the first findings, this many, may start another measurement */
#define GROWTH      131072  /* bytes a second */
#define GROWTH_FAST 2097152 /* then each second makes a heap longer to read: it is read early, and again soon */
#define SOON_PART   0.2
#define DEADLOCKED  0.9  /* threads that wait for locks on average; those of a deadlock do it all the time */
#define BUSY        0.02 /* CPUs, or threads: below that nothing is worth a view of its own */
#define MASTER      0.25 /* of the CPU time of a process and its children: a master uses less */
#define WAKERS      "wakers"
#define CALLS_LEAST 500 /* system calls of I/O a second, where hardly a thread waits */

struct plan {
	const char *event;
	double part; /* of the time that is left after the counters */
	bool wanted;
	const char *because; /* "CPU is used" */
};

static void say(struct measure *m, struct evidence *e, bool missing, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

static void say(struct measure *m, struct evidence *e, bool missing, const char *format, ...)
{
	cleanup(free) char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (!text)
		return;
	evidence_step(e, missing, "%s", text);
	if (m->say)
		m->say(m->ctx, text);
}

static bool stopped(const struct measure *m)
{
	return m->ended || (m->stop && *m->stop);
}

static void sleep_for(const struct measure *m, double seconds)
{
	u64 end = now_ns() + (u64)(seconds * 1e9);

	while (!stopped(m) && now_ns() < end) {
		struct timespec piece = {.tv_nsec = 50000000};

		nanosleep(&piece, NULL);
	}
}

static double left_of(const struct measure *m)
{
	u64 now = now_ns();

	return m->end_ns > now ? (double)(m->end_ns - now) / 1e9 : 0;
}

static double view_least(const struct measure *m)
{
	return fmin(VIEW_LEAST, fmax(VIEW_FLOOR, m->seconds / 30));
}

static struct error *read_profile(const char *path, struct profile **ret)
{
	struct filter_options options = {0};
	struct recording cut;

	if (evidence_is_empty(path))
		return error_new(ERROR_INTERNAL, "its run left no recording");
	return input_load(path, &options, ret, &cut);
}

/* samples: there must be some. */
static struct error *load(struct evidence *e, const char *path, bool samples)
{
	struct profile *p = NULL;
	struct error *err = read_profile(path, &p);

	if (!err && samples && !p->nodes[0].total) {
		profile_destroy(p);
		return error_new(ERROR_INTERNAL, "no sample was taken in its time: other programs had the CPUs");
	}
	return err ? err : evidence_add(e, path, p);
}

static double rate_for(const struct evidence *e, const char *event, double seconds)
{
	const struct fact *cpu = facts_find(&e->facts, "cpu");

	if (strcmp(event, "clock") != 0 || !cpu)
		return RATE;
	return fmin(RATE_MOST, fmax(RATE, SAMPLES / seconds / fmax(cpu->number, 0.01)));
}

static const struct event_ops *event_of(const char *view)
{
	return event_find(strcmp(view, WAKERS) != 0 ? view : "wait");
}

/* A view that cannot be had is said; without permission for the first one only counters can be read. */
static struct error *take_view(struct measure *m, struct evidence *e, const char *name, double seconds)
{
	const struct event_ops *event = event_of(name);
	char path[PATH_MAX];
	struct error *err;

	if (!event || stopped(m) || e->refused)
		return NULL;
	if (left_of(m) < view_least(m)) {
		say(m, e, true, "there was no time for: %s (a greater -d has it)",
		        event->summary ? event->summary : event->name);
		return NULL;
	}
	snprintf(path, sizeof(path), "%s/%s.yrt", m->folder, name);
	err = run_apart(
	        m, e, &(struct taking){event, seconds, rate_for(e, name, seconds), path, !strcmp(name, WAKERS)});
	if (!err)
		err = load(e, path, event->rated && facts_number(&e->facts, "cpu") > BUSY);
	cost_add(&m->cost, event->command ? event->command : name);
	if (err && err->kind == ERROR_PERMISSION && !e->nviews)
		e->refused = true;
	else if (!err || (!e->nviews && (err->kind == ERROR_UNSUPPORTED || err->kind == ERROR_USAGE)))
		return err;
	say(m, e, true, "%s was not measured: %s", event->command ? event->command : name, err->message);
	error_free(err);
	return NULL;
}

/* --- a dump --- */

static struct error *measure_dump(const char *folder, pid_t pid, const char *core, u64 until, struct evidence *ret)
{
	char path[PATH_MAX], number[16];
	const char *arguments[] = {
	        "yrt", "dump", "-q", "--json", "-o", path, core ? "--core" : "-p", core ? core : number, NULL};
	struct error *err;

	snprintf(path, sizeof(path), "%s/dump.json", folder);
	snprintf(number, sizeof(number), "%d", pid);
	err = child_yrt(arguments, NULL, until);
	return err ? err : dump_facts_read(ret, path);
}

struct error *measure_core(const char *folder, const char *core, struct evidence *ret)
{
	char path[PATH_MAX];
	const char *arguments[] = {"yrt", "heap", "-q", "--core", core, "--bytes", NULL};
	struct error *err = measure_dump(folder, 0, core, 0, ret);

	if (err)
		return err;
	evidence_step(ret, false, "core: every thread's stack, the instruction, what lies at its address");
	snprintf(path, sizeof(path), "%s/heap.txt", folder);
	err = child_yrt(arguments, path, 0);
	if (!err)
		heap_facts_read(ret, path);
	else
		evidence_step(ret, true, "the heap could not be read: `yrt heap --core %s` says why", core);
	error_free(err);
	return NULL;
}

/* --- steps --- */

/* The one that is looked at where a command takes one process. */
static pid_t busiest_of(const struct measure *m)
{
	return m->busiest ? m->busiest : m->run->pids[0];
}

/* Of what was seen until then the report is made. New processes may take the place of those that are followed. */
static void note_ended(struct measure *m, struct evidence *e, const struct counters *now)
{
	if (now->nprocesses || m->ended || m->run->sampler.follow || m->run->sampler.selection)
		return;
	m->ended = true;
	say(m, e, true, "the target ended while it was looked at, after %.0f of %.0f s", m->seconds - left_of(m),
	        m->seconds);
}

static void remember(struct measure *m, const struct counters *c)
{
	m->memory = counters_memory(c);
	m->collected = counters_collected(c);
	m->nthreads = c->nthreads;
	m->fds = counters_fds(c);
	m->memory_at = c->at_ns;
}

/* After each step: what grows in each of them grows, what grew in one has only started; and who keeps whom waiting. */
static void note_growth(struct measure *m, struct evidence *e)
{
	struct counters now;
	double memory, s;

	blockers_facts(m->run->pids, (u32)m->run->npids, &e->facts);
	if (counters_take(m->run->pids, (u32)m->run->npids, &now))
		return;
	note_ended(m, e, &now);
	if (m->ended) {
		counters_free(&now);
		return;
	}
	if (!m->memory_at && m->first->nprocesses)
		remember(m, m->first);
	memory = counters_memory(&now);
	s = (double)(now.at_ns - m->memory_at) / 1e9;
	if (m->memory_at && s > 1) {
		facts_lower(&e->facts, "growth.rss.least", (memory - m->memory) / s);
		facts_lower(&e->facts, "growth.collected.least", (counters_collected(&now) - m->collected) / s);
		facts_lower(&e->facts, "growth.threads.least", ((double)now.nthreads - m->nthreads) / s);
		facts_lower(&e->facts, "growth.fds.least", (counters_fds(&now) - m->fds) / s);
	}
	if (!m->memory_at || s > 1)
		remember(m, &now);
	counters_free(&now);
}

static void say_counters(struct measure *m, struct evidence *e)
{
	const struct facts *f = &e->facts;
	char files[32] = "not permitted to count";

	if (facts_find(f, "fds"))
		snprintf(files, sizeof(files), "%.0f", facts_number(f, "fds"));
	say(m, e, false,
	        "counters, %.1f s: %.2f CPUs used of %.0f, threads: %.0f in %.0f process%s, %.2f on the run queue, "
	        "%.0f MiB resident, %.0f faults a second, %s open files",
	        facts_number(f, "seconds"), facts_number(f, "cpu"), facts_number(f, "cpus"), facts_number(f, "threads"),
	        facts_number(f, "processes"), facts_number(f, "processes") == 1 ? "" : "es", facts_number(f, "queue"),
	        facts_number(f, "rss") / 1048576, facts_number(f, "faults.minor"), files);
}

static struct error *take_counters(struct measure *m, struct evidence *e, struct counters *first, double seconds)
{
	const struct run_request *r = m->run;
	struct counters now;
	struct others *others;
	struct error *err = counters_take(r->pids, (u32)r->npids, first);

	if (err)
		return err;
	others = others_look();
	sleep_for(m, seconds);
	others_facts(others, r->pids, (u32)r->npids, &e->facts);
	err = counters_take(r->pids, (u32)r->npids, &now);
	if (err)
		return err;
	if (!now.nprocesses)
		err = error_new(ERROR_NO_PROCESS, "all targets have exited");
	else
		counters_facts(first, &now, &e->facts);
	if (!err)
		m->busiest = targets_busiest(first, &now);
	counters_free(&now);
	return err;
}

/* The whole machine: the processes that do something become the targets. */
static struct error *choose_busy(struct measure *m, struct evidence *e, double seconds)
{
	cleanup(free) pid_t *pids = NULL;
	struct counters before = {0}, after = {0};
	u32 n = 0;
	struct error *err = targets_everyone(&pids, &n);

	if (!err)
		err = counters_take(pids, n, &before);
	if (!err) {
		sleep_for(m, seconds);
		err = counters_take(pids, n, &after);
	}
	if (!err)
		err = targets_busy(m->run, &before, &after);
	counters_free(&before);
	counters_free(&after);
	if (!err)
		say(m, e, false, "of %u processes of the machine %d do something, so: these", n, m->run->npids);
	if (!err && !m->run->npids)
		err = error_new(ERROR_NO_PROCESS, "no process of this machine does anything");
	m->run->sampler.everyone = false;
	return err;
}

/* A master does little itself, and has workers that do more. */
static struct error *follow_children(struct measure *m, struct evidence *e, struct counters *first, double seconds)
{
	struct run_request *r = m->run;
	struct evidence all = {0};
	struct counters since = {0};
	int asked = r->npids;
	double own = facts_number(&e->facts, "cpu");
	struct error *err = NULL;

	if (r->sampler.follow || stopped(m))
		return NULL;
	r->sampler.follow = true;
	err = run_add_children(r);
	if (!err && r->npids > asked)
		err = take_counters(m, &all, &since, seconds);
	if (!err && r->npids > asked && (own < BUSY || own < MASTER * facts_number(&all.facts, "cpu"))) {
		say(m, e, false, "the process itself does little and has %d %s, so: with %s", r->npids - asked,
		        r->npids - asked == 1 ? "child" : "children", r->npids - asked == 1 ? "it" : "them");
		counters_free(first);
		facts_free(&e->facts);
		*first = since;
		e->facts = all.facts;
		return NULL;
	}
	r->sampler.follow = false;
	r->npids = asked;
	counters_free(&since);
	facts_free(&all.facts);
	return err;
}

/* As profiles call it; where none could be made. */
static void name_target(const struct measure *m, struct evidence *e)
{
	char comm[COMM_TEXT];

	if (e->target || !m->run->npids)
		return;
	snprintf(comm, sizeof(comm), "%s", m->comm);
	if (!*comm)
		comm_read(m->run->pids[0], comm);
	if (asprintf(&e->target, "%s (pid %d)", *comm ? comm : "a process", m->run->pids[0]) < 0)
		e->target = NULL;
}

static void note_target(const struct measure *m, struct evidence *e)
{
	struct facts *f = &e->facts;
	struct other_language other;
	char text[32];

	if (!m->run->npids)
		return;
	snprintf(text, sizeof(text), "%d%s", m->run->pids[0], m->run->sampler.follow ? " -s" : "");
	facts_set_text(f, "pid", text);
	source_where(m->run->pids, (u32)m->run->npids, e);
	builds_facts(busiest_of(m), f);
	if (other_language_of(busiest_of(m), &other)) {
		facts_set_text(f, "language.unread", other.name);
		facts_set_text(f, "language.unread.text", other.limits);
	}
}

static void say_states(struct measure *m, struct evidence *e)
{
	const struct facts *f = &e->facts;

	say(m, e, false,
	        "wall-clock time, %.1f s: on average %.2f threads ran, %.2f could have run, %.2f waited, %.1f were "
	        "idle by design",
	        facts_number(f, "wall.seconds"), facts_number(f, "wall.running"), facts_number(f, "wall.queued"),
	        facts_number(f, "wall.waiting"), facts_number(f, "wall.idle"));
}

/* Who waits for an answer may wait for the rest of its own question; of a server it is the client that waits. */
static void take_held(const struct measure *m, struct evidence *e)
{
	const struct facts *f = &e->facts;

	if (!stopped(m) && facts_number(f, "fds.sockets") > 0)
		held_facts(m->run->pids, (u32)m->run->npids, &e->facts);
}

static double calls_of(const struct facts *f)
{
	return facts_number(f, "io.read.calls") + facts_number(f, "io.write.calls");
}

/* Does what the program waits for have no thread, in one of these runtimes? */
static bool has_tasks(u32 seen)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (seen & 1u << (*r)->id && (*r)->tasks && (*r)->tasks->all)
			return true;
	return false;
}

/* From the first counters up to the last step: bytes a second. */
static double growth_rate(const struct measure *m)
{
	double s = m->memory_at > m->first->at_ns ? (double)(m->memory_at - m->first->at_ns) / 1e9 : 0;

	return s > 0 ? (m->memory - counters_memory(m->first)) / s : 0;
}

/* In each step; a heap that is collected (of a JVM) may have fallen in one of them, and grow all the same. */
static bool is_growing(const struct measure *m, const struct facts *f)
{
	return facts_number(f, "growth.rss.least") > GROWTH || facts_number(f, "growth.collected.least") > GROWTH ||
	       (m->collected > 0 && growth_rate(m) > GROWTH);
}

static bool is_growing_fast(const struct measure *m)
{
	return growth_rate(m) > GROWTH_FAST;
}

/* Memory pools of servers hide from malloc who took what. */
static bool has_pools(const struct measure *m)
{
	static const char *const servers[] = {"nginx", "openresty", "angie", "tengine", "apache2", "httpd"};
	char comm[COMM_TEXT];

	comm_read(m->kept.pid ? m->kept.pid : m->run->pids[0], comm);
	for (size_t i = 0; i < sizeof(servers) / sizeof(*servers); i++)
		if (!strcmp(comm, servers[i]))
			return true;
	return false;
}

/* What the first two steps ask for, and a rule looks at, the first things first. */
static u32 make_plan(const struct measure *m, const struct evidence *e, struct plan *ret)
{
	const struct facts *f = &e->facts;
	bool waits = facts_number(f, "wall.waiting") > BUSY, tasks = has_tasks(e->runtimes), grows = is_growing(m, f);
	bool idle = facts_number(f, "cpu") < BUSY && facts_number(f, "wall.threads") < 2 * BUSY;
	const struct plan all[] = {
	        {"clock", 3, facts_number(f, "cpu") > BUSY || facts_number(f, "wall.running") > BUSY,
	                "CPU time is used"},
	        {"leak", 3, grows && (!*m->kept.command || has_pools(m)), "memory grows"},
	        {"pools", 1.5, grows && has_pools(m), "memory grows"},
	        {"fault", 0.7, grows && !m->kept.reader, "memory grows"}, /* else the second round, if it is wanted */
	        {"lock", 1, (waits || tasks) && facts_number(f, "threads") > 1, "threads may wait for locks"},
	        {"io", 1, waits || calls_of(f) > CALLS_LEAST, "files may be read or written"},
	        {"net", 1, facts_number(f, "fds.sockets") > 0 && (waits || calls_of(f) > CALLS_LEAST),
	                "sockets are open"},
	        {"wait", tasks && !waits ? 2 : 1, idle || (tasks && !waits),
	                idle ? "hardly anything happens" : "threads do not wait, but what runs on them may"},
	};
	u32 n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].wanted && (!m->rules || findings_ask_for(m->rules, e->runtimes, all[i].event)))
			ret[n++] = all[i];
	return n;
}

/* Of the process that grows most; beside the views that follow. */
static void start_reader(struct measure *m, struct evidence *e, double bytes)
{
	u64 last = now_ns() + (u64)(left_of(m) * (1 - AGAIN_PART) * 1e9);
	double rate = (bytes - counters_memory(m->first)) * 1e9 / (double)(now_ns() - m->first->at_ns);
	struct error *err = kept_begin(&m->kept, left_of(m) * (rate > GROWTH_FAST ? SOON_PART : KEPT_PART), last);

	if (err)
		say(m, e, true, "who keeps memory was not read: %s", err->message);
	error_free(err);
}

/* Who grows most, and how much memory of its own all have. */
static double find_growing(struct measure *m)
{
	struct counters now = {0};
	struct timespec t;
	double bytes = 0;

	if (counters_take(m->run->pids, (u32)m->run->npids, &now))
		return 0;
	clock_gettime(CLOCK_REALTIME, &t);
	m->kept.folder = m->folder;
	m->kept.pid = counters_growing(m->first, &now, &m->kept.before);
	m->kept.before_unix_ns = (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec - (now_ns() - m->first->at_ns);
	bytes = counters_memory(&now);
	counters_free(&now);
	return bytes;
}

/*
 * What the counters say may have come to an end in the next step; but a heap that does grow is read before it is large,
 * and there is more time for the second reading. Not where the only CPU is wanted for what the next step looks at.
 */
static void begin_kept_early(struct measure *m, struct evidence *e)
{
	double bytes, s;

	if (e->refused || stopped(m) || facts_number(&e->facts, "cpus") < 2)
		return;
	bytes = find_growing(m);
	s = (double)(now_ns() - m->first->at_ns) / 1e9;
	if (m->kept.pid && bytes < KEPT_MOST && (bytes - counters_memory(m->first)) / s > GROWTH)
		start_reader(m, e, bytes);
}

/* If a language is there whose heap can be read. */
static void begin_kept(struct measure *m, struct evidence *e)
{
	bool early = m->kept.reader;
	double bytes = early ? 0 : find_growing(m);

	if (!is_growing(m, &e->facts) || e->refused || stopped(m) || !m->kept.pid ||
	        !kept_choose(&m->kept, e->runtimes)) {
		kept_cancel(&m->kept);
		return;
	}
	if (bytes > KEPT_MOST) {
		say(m, e, true,
		        "who keeps memory was not read: pid %d has %.1f GiB, which takes long; `yrt %s -p %d` does it",
		        m->kept.pid, bytes / (1 << 30), m->kept.command, m->kept.pid);
		return;
	}
	facts_set(&e->facts, "kept.wanted", 1);
	say(m, e, false, "memory grows, so: yrt %s of pid %d, up to %d times%s: what it keeps more and more of",
	        m->kept.command, m->kept.pid, KEPT_READINGS, early ? ", since the first step" : "");
	if (!early)
		start_reader(m, e, bytes);
}

static void end_kept(struct measure *m, struct evidence *e)
{
	struct counters now = {0};
	struct error *err;

	if (m->kept.reader && !counters_take(&m->kept.pid, 1, &now))
		m->kept.rate = (counters_memory_of(&now, m->kept.pid) - m->kept.before) * 1e9 /
		               (double)(now.at_ns - m->first->at_ns);
	counters_free(&now);
	cost_add(&m->cost, "the rest");
	err = kept_end(&m->kept, m->end_ns, e);
	cost_add(&m->cost, m->kept.command);
	if (err)
		say(m, e, true, "who keeps memory was not read: %s; `yrt %s -p %d` says more", err->message,
		        m->kept.command, m->kept.pid);
	error_free(err);
}

static struct error *take_plan(struct measure *m, struct evidence *e)
{
	struct plan plan[12];
	u32 n = make_plan(m, e, plan);
	double parts = 0;
	struct error *err = NULL;

	for (u32 i = 0; i < n; i++)
		parts += plan[i].part;
	for (u32 i = 0; !err && i < n && !stopped(m); i++) {
		const struct event_ops *event = event_find(plan[i].event);
		double seconds = left_of(m) * (1 - AGAIN_PART) * plan[i].part / parts - m->overhead;

		if (!e->refused)
			say(m, e, false, "%s, so: %s", plan[i].because, event->summary);
		err = take_view(m, e, plan[i].event, fmax(view_least(m), seconds));
		note_growth(m, e);
		parts -= plan[i].part;
	}
	return err;
}

/* --- a second round --- */

static bool has_allocations(u32 seen)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (seen & 1u << (*r)->id && ((*r)->alloc || (*r)->allocator))
			return true;
	return false;
}

/*
 * A view that a finding wants for naming its cause, and that nobody has asked for yet: also who ends the waits, or
 * holds the lock, and what that waits for without a thread. "made" is made of another.
 */
static const char *wanted_by(const struct finding *f, const struct evidence *e)
{
	if (f->rule->waker)
		return evidence_view(e, WAKERS) ? NULL : WAKERS;
	if (f->rule->holder && !evidence_view(e, "lock"))
		return "lock";
	if (f->unseen && has_tasks(e->runtimes) && !evidence_view(e, "wait"))
		return "wait";
	for (u32 i = 0; i < f->rule->nblames; i++) {
		const char *view = f->rule->blames[i].view;
		const struct event_ops *event = event_find(strcmp(view, "made") != 0 ? view : "tlab");

		if (evidence_view(e, view) && f->nsites)
			return NULL;
		if (event && !evidence_view(e, event->name) && (event->command || has_allocations(e->runtimes)))
			return event->name;
	}
	return NULL;
}

/* --max-cpu of the whole time: what only sharpens an answer is not begun then. */
static bool is_budget_used(const struct measure *m)
{
	double percent = m->run->sampler.cpu_percent;

	return percent > 0 && m->cost.used_s - m->cost.began_s > percent / 100 * m->seconds;
}

/* The first finding's CPU time again, at a higher rate, if that makes it sharper. */
static struct error *look_closer(struct measure *m, struct evidence *e, const struct finding *f, double seconds)
{
	char again[PATH_MAX], path[PATH_MAX];
	struct profile *p = NULL;
	struct error *err;
	bool better = false;

	if (!f->view || strcmp(f->view->name, "clock") != 0 || stopped(m) || left_of(m) < view_least(m) ||
	        is_budget_used(m))
		return NULL;
	say(m, e, false, "%s, so: again at a higher rate", f->title);
	snprintf(path, sizeof(path), "%s/clock.yrt", m->folder);
	snprintf(again, sizeof(again), "%s/again.yrt", m->folder);
	err = run_apart(m, e,
	        &(struct taking){
	                event_find("clock"), seconds, fmax(RATE_AGAIN, rate_for(e, "clock", seconds)), again, false});
	if (!err)
		err = read_profile(again, &p);
	if (!err)
		err = evidence_replace(e, again, p, &better);
	if (!err && better)
		rename(again, path);
	unlink(again);
	cost_add(&m->cost, "flame");
	if (err)
		say(m, e, true, "CPU time was not measured again: %s", err->message);
	error_free(err);
	return NULL;
}

/* The command that lists goroutines or coroutines of these runtimes. False: none of them has one. */
static bool tasks_command(u32 seen, char *ret, size_t size)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++) {
		const struct runtime_tasks_ops *t = (*r)->tasks;

		if (!(seen & 1u << (*r)->id) || !t || !t->all)
			continue;
		for (const struct runtime_snapshot_ops *const *s = (*r)->snapshots; s && *s; s++)
			if (!strcmp((*s)->name, t->kinds)) {
				snprintf(ret, size, "%s-%s", (*r)->view, t->kinds);
				return true;
			}
	}
	return false;
}

/* A view that a command of its own makes, of the busiest process. */
static struct error *take_by_command(
        struct measure *m, struct evidence *e, const char *name, const char *command, double seconds, bool tasks)
{
	char path[PATH_MAX], pid[16], duration[32];
	const char *arguments[] = {"yrt", command, "-q", tasks ? "--watch" : "-d", duration, "-p", pid, "-o", path,
	        "--lines", tasks ? "--creators" : NULL, NULL};
	struct error *err;

	snprintf(path, sizeof(path), "%s/%s.yrt", m->folder, name);
	snprintf(pid, sizeof(pid), "%d", m->kept.pid ? m->kept.pid : busiest_of(m));
	snprintf(duration, sizeof(duration), "%.1f", seconds);
	err = child_yrt(arguments, "/dev/null", m->end_ns);
	cost_add(&m->cost, command);
	if (!err)
		return load(e, path, false);
	say(m, e, true, "yrt %s was not measured: %s", command, err->message);
	error_free(err);
	return NULL;
}

/* Which tasks have come and not gone. */
static struct error *take_tasks(struct measure *m, struct evidence *e)
{
	char command[64];

	if (stopped(m) || e->refused || !m->run->npids || !tasks_command(e->runtimes, command, sizeof(command)))
		return NULL;
	say(m, e, false, "what waits may have no thread, so: %s, those that come and do not go", command);
	return take_by_command(m, e, "tasks", command, fmin(2, view_least(m) * 3), true);
}

/* Who makes the objects of a runtime's heap. */
static struct error *take_allocations(struct measure *m, struct evidence *e, const char *event, double seconds)
{
	char command[64];
	struct error *err;

	for (const struct runtime_ops *const *r = runtimes; *r; r++) {
		if (!(e->runtimes & 1u << (*r)->id) || !((*r)->alloc || (*r)->allocator))
			continue;
		snprintf(command, sizeof(command), "%s-alloc", (*r)->view);
		err = take_by_command(m, e, event, command, seconds, false);
		return err ? err : kept_made(m->folder, e);
	}
	return NULL;
}

/* Rules on what is known so far say what is worth another look. */
static struct error *narrow_down(struct measure *m, struct evidence *e, double seconds)
{
	struct findings f = {0};
	bool taken = false;
	struct error *err = m->rules && !stopped(m) ? findings_make(m->rules, e, &f) : NULL;

	for (u32 i = 0; !err && i < f.n && i < AGAIN_FIRST && !taken; i++) {
		const char *view = wanted_by(&f.all[i], e);
		const struct event_ops *event = view ? event_of(view) : NULL;

		if (!event)
			continue;
		taken = true;
		say(m, e, false, "%s, so: %s", f.all[i].title,
		        !strcmp(view, WAKERS) ? "who ends these waits"
		        : event->summary      ? event->summary
		                              : "who allocates what has to be collected");
		err = event->command && strcmp(view, "alloc") != 0 ? take_view(m, e, view, seconds)
		                                                   : take_allocations(m, e, view, seconds);
	}
	if (!err && !taken && f.n)
		err = look_closer(m, e, &f.all[0], seconds);
	findings_free(&f);
	return err;
}

/* Of the busiest process: who waits for whom. */
static void take_dump(struct measure *m, struct evidence *e)
{
	const struct facts *f = &e->facts;
	struct error *err;

	if (facts_number(f, "threads") < 2 || facts_number(f, "wall.locked") < DEADLOCKED || stopped(m) ||
	        !m->run->npids || e->refused)
		return;
	if (left_of(m) < DUMP_S) {
		say(m, e, true, "threads wait for locks, but there was no time for a dump: deadlocks are not seen");
		return;
	}
	say(m, e, false, "threads wait for locks all the time, so: every thread's stack, and who waits for whom");
	err = measure_dump(m->folder, busiest_of(m), NULL, m->end_ns, e);
	cost_add(&m->cost, "dump");
	if (err)
		say(m, e, true, "no dump was taken: %s", err->message);
	error_free(err);
}

/* What the holder of a file lock does, by a dump of it: "in copy (backup.py:12)". */
static void take_holder(struct measure *m, struct evidence *e)
{
	const struct fact *pid = facts_find(&e->facts, "lock.file.pid");
	char path[PATH_MAX], number[16];
	const char *arguments[] = {"yrt", "dump", "-q", "--json", "-p", number, NULL};
	struct error *err;

	if (!pid || stopped(m) || e->refused || left_of(m) < DUMP_S)
		return;
	say(m, e, false, "a file lock is waited for, so: what pid %.0f does, which holds it", pid->number);
	snprintf(number, sizeof(number), "%.0f", pid->number);
	snprintf(path, sizeof(path), "%s/holder.json", m->folder);
	err = child_yrt(arguments, path, m->end_ns);
	if (!err)
		holder_facts_read(e, path);
	else
		say(m, e, true, "no dump of pid %s was taken: %s", number, err->message);
	unlink(path);
	error_free(err);
}

/* What has grown since the first reading. */
static void take_growth(const struct measure *m, struct evidence *e, const struct counters *first)
{
	struct counters now = {0};

	if (!counters_take(m->run->pids, (u32)m->run->npids, &now))
		counters_growth(first, &now, &e->facts);
	counters_free(&now);
	evidence_conclude(e);
}

/* The counters, and who is looked at. */
static struct error *take_first(struct measure *m, struct evidence *ret)
{
	double seconds = fmin(COUNTERS_S, m->seconds / 5);
	struct error *err = m->run->sampler.everyone ? choose_busy(m, ret, seconds) : NULL;

	if (!err)
		err = take_counters(m, ret, m->first, seconds);
	if (!err)
		err = follow_children(m, ret, m->first, seconds / 2);
	note_growth(m, ret);
	if (!err)
		say_counters(m, ret);
	note_target(m, ret);
	return err;
}

/* At the end, as they take little time: a dump, which tells of deadlocks; who holds what; what has grown. */
static void take_last(struct measure *m, struct evidence *e)
{
	take_dump(m, e);
	take_holder(m, e);
	take_growth(m, e, m->first);
}

/* What the report itself took: yrt's own processes, and its programs in the kernel. */
static void note_cost(struct measure *m, struct evidence *e, double seconds)
{
	double taken = 0, cpu_s;
	char parts[256];

	for (u32 i = 0; i < e->nviews; i++)
		taken += evidence_taken(e->view[i].profile);
	cost_add(&m->cost, "the rest");
	cpu_s = m->cost.used_s - m->cost.began_s;
	cost_most(&m->cost, parts, sizeof(parts));
	facts_set(&e->facts, "cost.yrt", cpu_s / seconds);
	facts_set(&e->facts, "cost.kernel", taken / seconds);
	say(m, e, false,
	        "all of it took %.0f s; yrt used %.1f %% of a CPU (%s), and its programs in the kernel %.2f %%, mostly "
	        "while the target ran",
	        seconds, 100 * cpu_s / seconds, parts, 100 * taken / seconds);
}

struct error *measure(struct measure *m, struct evidence *ret)
{
	u64 began = now_ns();
	double least = view_least(m);
	struct counters first = {0};
	struct error *err;
	bool grows;

	cost_begin(&m->cost);
	m->end_ns = now_ns() + (u64)(m->seconds * 1e9);
	m->first = &first;
	if (m->run->npids)
		comm_read(m->run->pids[0], m->comm);
	err = take_first(m, ret);
	if (!err)
		begin_kept_early(m, ret);
	if (!err)
		err = take_view(m, ret, "wall", is_growing_fast(m) ? least : fmax(least, left_of(m) * WALL_PART));
	evidence_conclude(ret);
	note_growth(m, ret);
	if (!err && evidence_view(ret, "wall")) {
		say_states(m, ret);
		take_held(m, ret);
	}
	if (!err)
		begin_kept(m, ret);
	grows = is_growing(m, &ret->facts); /* what grows takes longer to read with each second */
	if (!err && grows)
		err = take_tasks(m, ret);
	if (!err)
		err = take_plan(m, ret);
	if (!err && !grows)
		err = take_tasks(m, ret);
	if (!err)
		end_kept(m, ret);
	take_growth(m, ret, &first);
	if (!err && m->rules)
		err = added_find(m->rules->libraries, m->kept.pid, ret);
	if (!err)
		err = narrow_down(m, ret, fmax(view_least(m), left_of(m) - m->overhead - LAST_S));
	if (!err)
		take_last(m, ret);
	kept_cancel(&m->kept);
	name_target(m, ret);
	if (!err)
		note_cost(m, ret, (double)(now_ns() - began) / 1e9);
	counters_free(&first);
	m->first = NULL;
	return err ? err : facts_check(&ret->facts);
}
