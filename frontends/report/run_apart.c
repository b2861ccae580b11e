/* SPDX-License-Identifier: Apache-2.0 */
#include "run_apart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "frontends/format/format.h"
#include "probes/event_command.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

#define MESSAGE_MAX 2048

static void ignore(void *ctx, struct error *err)
{
	error_free(err);
}

/* Calls rather than bytes; who held a lock; also what waits without a thread: where an event has such a choice. */
static struct error *choose_options(struct run_request *r, bool wakers)
{
	const struct event_command *c = r->sampler.event->command_line;
	struct error *err = NULL;
	bool taken;

	for (const struct event_option *o = c ? c->options : NULL; !err && o && o->key; o++)
		if (o->name && (!strcmp(o->name, "calls") || !strcmp(o->name, "logical") ||
		                       !strcmp(o->name, "holders") || (wakers && !strcmp(o->name, "wakers"))))
			err = run_option(r, o->key, NULL, &taken);
	return err;
}

static struct error *record(const struct measure *m, const struct taking *t)
{
	struct run_request r = *m->run;
	struct run_result result = {0};
	const struct event_ops *event = t->event;
	cleanup(fclose) FILE *out = fopen(t->path, "we");
	struct error *err = out ? NULL : error_errno(errno, "cannot write %s", t->path);

	r.own = NULL;
	r.sampler.event = NULL;
	if (!err)
		err = run_choose(&r, event);
	if (!err && event->command_line && event->command_line->defaults)
		event->command_line->defaults(&r);
	if (!err && event->command_line && event->command_line->check)
		err = event->command_line->check(&r, true);
	if (!err)
		err = choose_options(&r, t->wakers);
	r.second = false;
	r.sampler.duration_s = t->seconds;
	r.sampler.frequency = t->rate;
	r.sampler.no_idle = event->waits && event->rated; /* of waits alone, those by design are what there is to see */
	r.sampler.collect.processes = true;
	r.sampler.collect.names.inlines = true;
	r.sampler.collect.names.lines = true;
	r.sampler.collect.names.own_inlines = true;
	r.sampler.warn = ignore;
	r.stop = m->stop;
	if (!err)
		err = run_profile(&r, &result);
	if (result.profile && !(err && !result.stats.probe.weights)) {
		struct error *unwritten;

		result.profile->meta.title = event->command ? event->command : event->name;
		unwritten = format_write(&format_recording, result.profile, out);
		if (!unwritten && fflush(out))
			unwritten = error_errno(errno, "cannot write %s", t->path);
		error_free(err);
		err = unwritten;
	}
	run_result_free(&result);
	free(r.own);
	return err;
}

/* In a process of its own; its error comes through a pipe: kind, message, hint, each ended by a zero byte. */
static void record_and_exit(const struct measure *m, const struct taking *t, int fd)
{
	struct error *err = record(m, t);

	if (err)
		dprintf(fd, "%s%c%s", err->message, 0, err->hint ? err->hint : "");
	_exit(err ? (int)err->kind : 0);
}

static struct error *failed(int status, bool late, int fd)
{
	char text[MESSAGE_MAX] = "";
	ssize_t n = late ? 0 : read(fd, text, sizeof(text) - 2);
	const char *hint = n > 0 ? text + strlen(text) + 1 : "";
	struct error *err;

	if (late)
		return error_new(ERROR_INTERNAL, "it was not ready in time");
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return NULL;
	if (!WIFEXITED(status))
		return error_new(ERROR_INTERNAL, "the run was ended by signal %d", WTERMSIG(status));
	err = error_new((enum error_kind)WEXITSTATUS(status), "%s", *text ? text : "the run failed");
	return *hint ? error_hint(err, "%s", hint) : err;
}

/*
 * Where names are many and CPUs few, most of a run comes after it: it may have all the time that there is. The first
 * one, without which there is nothing to say, has half of the whole more.
 */
static u64 limit_of(const struct measure *m, const struct evidence *e)
{
	return m->end_ns + (e->nviews ? 0 : (u64)(m->seconds / 2 * 1e9));
}

struct error *run_apart(struct measure *m, const struct evidence *e, const struct taking *t)
{
	u64 began = now_ns();
	double took;
	struct error *err;
	int fds[2], status = 0;
	bool late = false;
	pid_t child;

	if (pipe(fds))
		return error_errno(errno, "cannot make a pipe");
	fflush(NULL);
	child = fork();
	if (!child) {
		close(fds[0]);
		record_and_exit(m, t, fds[1]);
	}
	close(fds[1]);
	err = child < 0 ? error_errno(errno, "cannot start a process")
	                : child_wait(child, limit_of(m, e), &status, &late);
	if (!err)
		err = failed(status, late, fds[0]);
	took = (double)(now_ns() - began) / 1e9 - t->seconds;
	m->overhead = m->overhead > 0 ? (m->overhead + took) / 2 : took;
	close(fds[0]);
	return err;
}
