/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "frontends/format/format.h"
#include "frontends/format/input.h"
#include "probes/event_command.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/runtime.h"

#define COUNTERS_S  3.0
#define VIEW_LEAST  2.0  /* seconds of a view */
#define RATE        199  /* samples a second: 10 s of a busy thread give a share of 5 % to 1 point */
#define BUSY        0.02 /* CPUs, or threads: below that nothing is worth a view of its own */
#define CALLS_LEAST 20   /* system calls of I/O a second */
#define FAULTS      500  /* a second */
#define MESSAGE_MAX 2048

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
	return m->stop && *m->stop;
}

static void sleep_for(const struct measure *m, double seconds)
{
	u64 end = now_ns() + (u64)(seconds * 1e9);

	while (!stopped(m) && now_ns() < end) {
		struct timespec piece = {.tv_nsec = 50000000};

		nanosleep(&piece, NULL);
	}
}

/* --- a run --- */

static void ignore(void *ctx, struct error *err)
{
	error_free(err);
}

/* What its values are sums of: calls rather than bytes, where an event has the choice. */
static struct error *count_calls(struct run_request *r)
{
	const struct event_command *c = r->sampler.event->command_line;
	struct error *err = NULL;
	bool taken;

	for (const struct event_option *o = c ? c->options : NULL; !err && o && o->key; o++)
		if (o->name && !strcmp(o->name, "calls"))
			err = run_option(r, o->key, NULL, &taken);
	return err;
}

static struct error *record(const struct measure *m, const struct event_ops *event, double seconds, const char *path)
{
	struct run_request r = *m->run;
	struct run_result result = {0};
	cleanup(fclose) FILE *out = fopen(path, "we");
	struct error *err = out ? NULL : error_errno(errno, "cannot write %s", path);

	r.own = NULL;
	r.sampler.event = NULL;
	if (!err)
		err = run_choose(&r, event);
	if (!err && event->command_line && event->command_line->defaults)
		event->command_line->defaults(&r);
	if (!err && event->command_line && event->command_line->check)
		err = event->command_line->check(&r, true);
	if (!err)
		err = count_calls(&r);
	r.second = false;
	r.sampler.duration_s = seconds;
	r.sampler.frequency = RATE;
	r.sampler.no_idle = event->waits;
	r.sampler.collect.processes = true;
	r.sampler.collect.names.inlines = true;
	r.sampler.collect.names.lines = true;
	r.sampler.warn = ignore;
	r.stop = m->stop;
	if (!err)
		err = run_profile(&r, &result);
	if (result.profile && !(err && !result.stats.probe.weights)) {
		struct error *unwritten;

		result.profile->meta.title = event->command ? event->command : event->name;
		unwritten = format_write(&format_recording, result.profile, out);
		error_free(err);
		err = unwritten;
	}
	run_result_free(&result);
	free(r.own);
	return err;
}

/* In a process of its own; its error comes through a pipe: kind, message, hint, each ended by a zero byte. */
static void record_and_exit(
        const struct measure *m, const struct event_ops *event, double seconds, const char *path, int fd)
{
	struct error *err = record(m, event, seconds, path);

	if (err)
		dprintf(fd, "%s%c%s", err->message, 0, err->hint ? err->hint : "");
	_exit(err ? (int)err->kind : 0);
}

static struct error *failed(int status, int fd)
{
	char text[MESSAGE_MAX] = "";
	ssize_t n = read(fd, text, sizeof(text) - 2);
	const char *hint = n > 0 ? text + strlen(text) + 1 : "";
	struct error *err;

	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return NULL;
	if (!WIFEXITED(status))
		return error_new(ERROR_INTERNAL, "the run was ended by signal %d", WTERMSIG(status));
	err = error_new((enum error_kind)WEXITSTATUS(status), "%s", *text ? text : "the run failed");
	return *hint ? error_hint(err, "%s", hint) : err;
}

static struct error *run_apart(const struct measure *m, const struct event_ops *event, double seconds, const char *path)
{
	struct error *err;
	int fds[2], status = 0;
	pid_t child;

	if (pipe(fds))
		return error_errno(errno, "cannot make a pipe");
	fflush(NULL);
	child = fork();
	if (!child) {
		close(fds[0]);
		record_and_exit(m, event, seconds, path, fds[1]);
	}
	close(fds[1]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	err = child < 0 ? error_errno(errno, "cannot start a process") : failed(status, fds[0]);
	close(fds[0]);
	return err;
}

static struct error *load(struct evidence *e, const char *path)
{
	struct filter_options options = {0};
	struct recording cut;
	struct profile *p = NULL;
	struct error *err = input_load(path, &options, &p, &cut);

	return err ? err : evidence_add(e, path, p);
}

/* A view that cannot be had is said; without permission nothing can. */
static struct error *take_view(struct measure *m, struct evidence *e, const char *name, double seconds)
{
	const struct event_ops *event = event_find(name);
	char path[PATH_MAX];
	struct error *err;

	if (!event || stopped(m))
		return NULL;
	snprintf(path, sizeof(path), "%s/%s.yrt", m->folder, name);
	err = run_apart(m, event, seconds, path);
	if (!err)
		err = load(e, path);
	if (!err || (!e->nviews && err->kind != ERROR_NO_PROCESS))
		return err;
	say(m, e, true, "%s was not measured: %s", event->command ? event->command : name, err->message);
	error_free(err);
	return NULL;
}

/* --- steps --- */

static void say_counters(struct measure *m, struct evidence *e)
{
	const struct facts *f = &e->facts;

	say(m, e, false,
	        "counters, %.1f s: %.2f CPUs used of %.0f, %.0f threads in %.0f processes, %.2f on the run queue, "
	        "%.0f MiB resident, %.0f faults a second, %.0f open files",
	        facts_number(f, "seconds"), facts_number(f, "cpu"), facts_number(f, "cpus"), facts_number(f, "threads"),
	        facts_number(f, "processes"), facts_number(f, "queue"), facts_number(f, "rss") / 1048576,
	        facts_number(f, "faults.minor"), facts_number(f, "fds"));
}

static struct error *take_counters(struct measure *m, struct evidence *e, struct counters *first, double seconds)
{
	const struct run_request *r = m->run;
	struct counters now;
	struct error *err = counters_take(r->pids, (u32)r->npids, first);

	if (err)
		return err;
	sleep_for(m, seconds);
	err = counters_take(r->pids, (u32)r->npids, &now);
	if (err)
		return err;
	if (!now.nprocesses)
		err = error_new(ERROR_NO_PROCESS, "all targets have exited");
	else
		counters_facts(first, &now, &e->facts);
	counters_free(&now);
	return err;
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

static double calls_of(const struct facts *f)
{
	return facts_number(f, "io.read.calls") + facts_number(f, "io.write.calls");
}

/* What the first two steps ask for. */
static u32 make_plan(const struct evidence *e, struct plan *ret)
{
	const struct facts *f = &e->facts;
	bool waits = facts_number(f, "wall.waiting") > BUSY;
	const struct plan all[] = {
	        {"clock", 3, facts_number(f, "cpu") > BUSY || facts_number(f, "wall.running") > BUSY,
	                "CPU time is used"},
	        {"lock", 1, waits && facts_number(f, "threads") > 1, "threads wait"},
	        {"io", 1, calls_of(f) > CALLS_LEAST || waits, "files may be read or written"},
	        {"net", 1, facts_number(f, "fds.sockets") > 0 && (waits || calls_of(f) > CALLS_LEAST),
	                "sockets are open"},
	        {"fault", 0.7, facts_number(f, "faults.minor") + facts_number(f, "faults.major") > FAULTS,
	                "memory is touched for the first time"},
	};
	u32 n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].wanted)
			ret[n++] = all[i];
	return n;
}

static struct error *take_plan(struct measure *m, struct evidence *e, double seconds)
{
	struct plan plan[8];
	u32 n = make_plan(e, plan);
	double parts = 0;
	struct error *err = NULL;

	for (u32 i = 0; i < n; i++)
		parts += plan[i].part;
	for (u32 i = 0; !err && i < n && !stopped(m); i++) {
		const struct event_ops *event = event_find(plan[i].event);

		say(m, e, false, "%s, so: %s", plan[i].because, event->summary);
		err = take_view(m, e, plan[i].event, fmax(VIEW_LEAST, seconds * plan[i].part / parts));
	}
	return err;
}

struct error *measure(struct measure *m, struct evidence *ret)
{
	double first_s = fmin(COUNTERS_S, m->seconds / 5), wall_s;
	struct counters first = {0}, last = {0};
	struct error *err = take_counters(m, ret, &first, first_s);

	if (!err)
		say_counters(m, ret);
	if (m->run->npids)
		facts_set(&ret->facts, "pid", m->run->pids[0]);
	wall_s = fmax(VIEW_LEAST, (m->seconds - first_s) * 0.3);
	if (!err)
		err = take_view(m, ret, "wall", wall_s);
	evidence_conclude(ret);
	if (!err && evidence_view(ret, "wall"))
		say_states(m, ret);
	if (!err)
		err = take_plan(m, ret, m->seconds - first_s - wall_s);
	if (!err && !counters_take(m->run->pids, (u32)m->run->npids, &last))
		counters_growth(&first, &last, &ret->facts);
	evidence_conclude(ret);
	counters_free(&first);
	counters_free(&last);
	return err ? err : facts_check(&ret->facts);
}
