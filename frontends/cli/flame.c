/* SPDX-License-Identifier: Apache-2.0 */
/* flame, its views of one language (lua-flame, c-flame …), and record; java-alloc runs the same way. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "idle.h"
#include "labels.h"
#include "output.h"
#include "other_language.h"
#include "say.h"
#include "frontends/format/format.h"
#include "probes/hit/hit_slow.h"
#include "probes/select_find.h"
#include "unwind/cleanup.h"
#include "unwind/process/children.h"
#include "unwind/runtime.h"
#include "unwind/runtime_tasks.h"

#define LOST_TOO_MUCH 0.5 /* of all samples: the picture can not be trusted */

volatile sig_atomic_t stop_sampling, interrupted;

static void on_signal(int signal)
{
	stop_sampling = interrupted = 1;
}

void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL); /* the terminal is gone: what was gathered is kept */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* whoever started yrt may ignore it: commands would have no exit status */
}

static void warn(void *ctx, struct error *err)
{
	struct flame_options *o = ctx;

	bool again = err->kind == ERROR_PERMISSION && o->denied++;

	if (o->quiet || again) /* of many files that may not be read the first is reported, and at the end how many */
		error_free(err);
	else
		say_note_error(err);
}

static void note_denied(const struct flame_options *o)
{
	if (o->denied)
		say_note("%u files of targets could not be read: stacks end at their code, which has no names. Run as "
		         "root, or with CAP_DAC_READ_SEARCH and CAP_CHECKPOINT_RESTORE (`yrt doctor`)",
		        o->denied);
}

static void progress(void *ctx, double elapsed_s, u64 samples)
{
	const struct flame_options *o = ctx;

	if (o->sampler.event->waits)
		fprintf(stderr, "\r%6.1f s  %.1f s of threads  (Ctrl-C ends it and keeps the result)", elapsed_s,
		        (double)samples / 1e9);
	else
		fprintf(stderr, "\r%6.1f s  %lu %s  (Ctrl-C ends it and keeps the result)", elapsed_s, samples,
		        o->sampler.event->unit);
}

/* "%p" and "%t" in a file name become the pid and the time; "%%" a percent sign. */
static char *expand_name(const char *pattern, int pid)
{
	char *text = NULL, stamp[OUTPUT_STAMP];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	output_stamp(stamp);
	for (; *pattern; pattern++) {
		if (*pattern != '%' || !pattern[1])
			fputc(*pattern, out);
		else if (*++pattern == 'p')
			fprintf(out, "%d", pid);
		else if (*pattern == 't')
			fputs(stamp, out);
		else
			fputc(*pattern, out);
	}
	fclose(out);
	return text;
}

static char *join_arguments(int argc, char **argv)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("yrt", out);
	for (int i = 0; i < argc; i++)
		fprintf(out, " %s", argv[i]);
	fclose(out);
	return text;
}

static void fill_meta(struct sampler *s, const struct flame_options *o, const struct command_line *self,
        const struct sampler_stats *st, struct profile_meta *meta)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	meta->title = self->name;
	meta->processes = o->processes;
	meta->target = sampler_target(s);
	meta->unit = o->sampler.event->unit;
	meta->more = o->io.calls ? "calls" : o->sampler.event->more;
	meta->frequency = o->sampler.event->rated ? o->sampler.frequency : 0;
	meta->duration_ns = (u64)(st->duration_s * 1e9);
	meta->start_unix_ns = now.tv_sec * 1000000000ULL + now.tv_nsec - meta->duration_ns;
}

static struct error *write_profile(struct sampler *s, const struct flame_options *o, const struct command_line *self,
        const struct sampler_stats *st, const char *command, const struct output *out)
{
	struct profile *p = sampler_profile(s);

	fill_meta(s, o, self, st, &p->meta);
	if (o->second)
		profile_swap(p);
	profile_finish(p);
	p->meta.command = command;
	p->meta.annotate = o->annotate;
	p->meta.source = o->source;
	p->meta.labels = o->labels;
	return output_error(out, format_write(format_find(o->format, o->output), p, out->file));
}

struct error *flame_attach(struct sampler *s, const struct flame_options *o, int *failed)
{
	struct error *err = NULL;

	*failed = 0;
	if (o->command)
		return sampler_start_command(s, o->command);
	for (int i = 0; i < o->npids; i++) {
		err = sampler_attach(s, o->pids[i], o->npids == 1);
		if (err && i >= o->nasked) { /* a child that was found: it may be gone by now */
			if (err->kind == ERROR_NO_PROCESS || o->quiet)
				error_free(err);
			else
				say_note_error(err);
			err = NULL;
		} else if (err && o->npids > 1) { /* of several, those that can be are sampled */
			*failed = report_error(err);
			err = NULL;
		} else if (err) {
			return err;
		}
	}
	return err;
}

struct error *flame_add_children(struct flame_options *o)
{
	o->nasked = o->npids;
	for (int i = 0; o->sampler.follow && i < o->npids; i++) {
		cleanup(free) pid_t *children = NULL;
		u32 n;
		struct error *err = children_list(o->pids[i], &children, &n);

		if (err)
			return err;
		for (u32 k = 0; k < n; k++)
			if (!flame_add_pid(o, children[k]))
				return &error_no_memory;
	}
	return NULL;
}

void flame_set_view(const struct command_line *self, struct flame_options *o)
{
	o->sampler.collect.native_only = !strncmp(self->name, "c-", 2);
	o->sampler.collect.names.view = view_of_command(self->name);
	if (o->sampler.collect.names.view)
		o->sampler.collect.names.expand |= EXPAND_IMPORTS;
	if (o->sampler.collect.names.view && !o->sampler.event->waits) /* waits in there are idle_rule's */
		o->sampler.collect.names.expand |= EXPAND_OWN;
	o->sampler.no_idle |= o->sampler.collect.names.view && !o->idle;
	if (o->async || (o->sampler.collect.names.view && !o->no_async))
		o->sampler.collect.names.expand |= EXPAND_LOOP;
}

static int too_much_lost(const struct sampler_stats *st)
{
	u64 lost = total_lost(st);

	if (lost <= LOST_TOO_MUCH * (double)(lost + st->probe.weights))
		return 0;
	fprintf(stderr, "yrt: more than half of all samples were lost; the result is not to be trusted\n");
	return ERROR_LOST;
}

/* How the program that was started ended, where that is no success: yrt's own exit code is about yrt alone. */
static void note_status(int status, const char *program)
{
	if (status < 0)
		say_note("%s still runs: it gets SIGTERM", program);
	else if (WIFSIGNALED(status))
		say_note("%s was ended by signal %d (%s)", program, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		say_note("%s ended with exit code %d", program, WEXITSTATUS(status));
}

static u64 calls(const struct sampler_stats *st)
{
	const struct latency_summary *latency = st->of_event;

	return st->event == &latency_event ? latency->counts.entered : st->probe.weights;
}

static bool probes_functions(const struct flame_options *o)
{
	bool found = false;

	for (u32 i = 0; i < o->hit.n; i++)
		found |= o->hit.spec[i].kind == HIT_ANY || o->hit.spec[i].kind == HIT_FUNCTION;
	return found;
}

/* Processes that do nothing use some CPU time as well. */
static bool was_too_short(const struct sampler_stats *st)
{
	return st->duration_s < 0.1 || st->expected >= 0.5;
}

/* Why the picture is empty, or has nothing of the language asked for: lines, "" if there is nothing to explain. */
static char *explain(const struct sampler *s, const struct flame_options *o, const struct sampler_stats *st)
{
	const struct view *view = o->sampler.collect.names.view;
	cleanup(free) char *target = say_clean(sampler_target(s));
	u32 seen = sampler_runtimes(s);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (view && !(seen & view->runtimes)) {
		fprintf(out, "no %s was found in %s\n", view->language, target ? target : "");
		for (const struct view *v = views(); v->name; v++)
			if (seen & v->runtimes)
				fprintf(out, "%s was: `yrt %s-flame` shows it\n", v->language, v->name);
	}
	if (!st->probe.weights && o->sampler.event == events[0] && was_too_short(st))
		fputs("this was too short for a sample: sample for longer (-d) or at a higher rate (-F)\n", out);
	else if (!st->probe.weights && o->sampler.event == events[0])
		idle_explain(out, o->pids, o->npids, st->duration_s, o->sampler.follow);
	else if (!st->probe.weights)
		idle_explain_stopped(out, o->pids, o->npids);
	if (!calls(st) && probes_functions(o))
		fputs("no hit: calls of a function that is inlined into its callers cannot be seen\n", out);
	if (st->collect.idle && !st->collect.counted)
		fputs(o->sampler.event == &lock_event
		                ? "no thread waited for a lock: --all-waits shows what else was waited for\n"
		                : "all that was seen is waits by design: --idle shows them\n",
		        out);
	fclose(out);
	return text;
}

/* Threads of some languages wait only for work: what the program waits for has none. */
static void note_tasks(const struct sampler *s, const struct flame_options *o)
{
	if (o->wait.tasks || !o->sampler.event->waits)
		return;
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (sampler_runtimes(s) & 1u << (*r)->id && (*r)->tasks && (*r)->tasks->all)
			say_note("%s wait without a thread: %s", (*r)->tasks->kinds,
			        o->sampler.event == &wall_event ? "`yrt off-flame --logical` shows what for"
			                                        : "--logical shows what for");
}

static void note_lines(char *text)
{
	for (char *line, *at = text; (line = strsep(&at, "\n"));)
		if (*line)
			say_note("%s", line);
}

/* A recording that has no room in its file, but in the store. */
static bool push_unwritten(struct sampler *s, const struct flame_options *o)
{
	struct error *err = send_profile(&o->send, sampler_profile(s), &stop_sampling);

	if (err)
		report_error(err);
	else
		say_note("the whole recording was sent from memory");
	return !err;
}

/* *sent: the store has it by now. */
static int finish(struct sampler *s, const struct flame_options *o, const struct command_line *self,
        const char *command, struct output *out, bool *sent)
{
	struct sampler_stats st;
	struct profile_meta *meta = &sampler_profile(s)->meta;
	cleanup(free) char *loss = NULL, *why = NULL, *stats = NULL;
	cleanup(free) char *name = strdup(out->name);
	struct error *err;
	int code;

	sampler_stats(s, &st);
	meta->loss = loss = loss_line(&st);
	meta->stats = stats = stats_text(&st);
	meta->why = why = explain(s, o, &st);
	err = write_profile(s, o, self, &st, command, out);
	if (!err)
		err = output_close(out, true);
	code = err ? report_error(err) : too_much_lost(&st);
	*sent = err && o->send.url && push_unwritten(s, o);
	if (err && (!*sent || o->named) && format_find(o->format, o->output)->keeps)
		error_free(output_close(out, true)); /* what there is of a recording can be read */
	if (*sent && !o->named)
		code = too_much_lost(&st);
	if (o->stats_file && (err = stats_write(&st, o->stats_file)))
		code = report_error(err);
	if (!o->quiet && o->command)
		note_status(st.command_status, o->command[0]);
	if (!o->quiet)
		note_denied(o);
	if (!o->quiet)
		loss_note_unread(&st);
	if (!o->quiet)
		note_lines(why);
	if (!o->quiet)
		note_tasks(s, o);
	for (int i = 0; !o->quiet && st.probe.weights && i < o->nasked; i++)
		other_language_hint(o->pids[i]);
	if (name && strcmp(name, "-") && !code && !*sent && !o->quiet && (o->named || !o->send.url))
		fprintf(stderr, "yrt: wrote %s\n", name);
	if (o->sampler.event == &latency_event && !o->quiet)
		latency_print(stderr, &st);
	fprintf(stderr, "yrt: %s\n", loss ? loss : "");
	return code;
}

/* The file that was written; it goes once it is sent, unless somebody named it. */
static int push(const struct flame_options *o, const char *path)
{
	struct send_result result;
	struct error *err = send_file(&o->send, path, &stop_sampling, &result);
	int code = err ? report_error(err) : 0;

	if (code)
		say_note("it is kept in %s; `yrt push %s --push %s` sends it later", path, path, o->send.url);
	else if (!o->named)
		unlink(path);
	return code;
}

/* The processes may be gone at the end. */
static void set_labels(struct flame_options *o, const pid_t *pids, int n)
{
	free(o->labels);
	o->labels = labels_of(pids, n, o->service);
}

static void awaited(void *ctx, pid_t pid)
{
	set_labels(ctx, &pid, 1);
}

void flame_note_waiting(const struct flame_options *o)
{
	struct error *err = selection_missed(&o->selection, "/proc");

	say_note("%s yet: waiting. %s", err->message, err->hint ? err->hint : "");
	error_free(err);
}

/* *reserved: a name that yrt chose for what is sent. */
static struct error *open_output(const struct flame_options *o, struct output *out, char **reserved)
{
	char stamp[OUTPUT_STAMP];
	struct error *err;

	*out = (struct output){0};
	if (!strcmp(o->output, "-"))
		return output_open(strdup("-"), out);
	if (!o->send.url || o->named)
		return output_open(expand_name(o->output, o->npids ? o->pids[0] : 0), out);
	output_stamp(stamp);
	err = output_reserve(stamp, 1, reserved);
	return err ? err : output_open(strdup(*reserved), out);
}

static int sample(const struct command_line *self, struct flame_options *o, const char *command)
{
	struct sampler *s = NULL;
	cleanup(free) char *name = NULL;
	cleanup(free) char *reserved = NULL;
	struct output out;
	int code = 0, failed = 0;
	struct sampler_stats st;
	bool began, sent = false;
	struct error *err = open_output(o, &out, &reserved);

	if (err && o->send.url)
		error_hint(err,
		        "what is sent is written first: give a place with -o DIR/NAME.yrt, in a container a volume");
	if (!err)
		err = sampler_create(&o->sampler, &s);
	if (!err)
		err = flame_add_children(o);
	if (!err)
		err = flame_attach(s, o, &failed);
	if (err) {
		code = report_error(err);
	} else {
		if (o->awaits && !o->npids && o->selection.nrules && !o->quiet)
			flame_note_waiting(o);
		set_labels(o, o->pids, o->npids);
		err = sampler_run(s, &stop_sampling);
		if (o->sampler.progress)
			fputs("\r\033[K", stderr);
		sampler_stats(s, &st);
		began = !err || st.probe.weights;
		code = err ? report_error(err) : failed;
		name = began && o->send.url ? strdup(out.name) : NULL;
		failed = began ? finish(s, o, self, command, &out, &sent) : 0; /* else what was there before stays */
		code = code ? code : failed;
	}
	sampler_destroy(s);
	free(TAKE(o->labels));
	error_free(output_close(&out, false));
	output_unreserve(reserved);
	if (name && !sent && (!code || code == ERROR_LOST)) {
		failed = push(o, name);
		code = code ? code : failed;
	}
	return code;
}

int flame_once(const struct command_line *self, struct flame_options *o, int argc, char **argv)
{
	cleanup(free) char *command = join_arguments(argc, argv);

	flame_set_view(self, o);
	o->sampler.selection = o->selection.nrules ? &o->selection : NULL;
	o->service = o->command ? o->command[0] : o->selection.text;
	o->sampler.collect.processes = true;
	o->sampler.collect.threads |= format_find(o->format, o->output)->threads;
	o->sampler.collect.threads |= o->sampler.collect.times && o->sampler.event->waits; /* a strip a thread */
	o->sampler.warn = warn;
	o->sampler.ctx = o;
	o->sampler.no_kernel |= o->sampler.event == &lock_event; /* they are those of futex(2) */
	if (o->sampler.event == &wait_event || o->sampler.event == &lock_event)
		o->sampler.of_event = &o->wait;
	if (o->sampler.event == &io_event || o->sampler.event == &net_event)
		o->sampler.of_event = &o->io;
	if (o->sampler.event == &hit_event || o->sampler.event == &latency_event)
		o->sampler.of_event = &o->hit;
	o->sampler.progress = isatty(STDERR_FILENO) && !o->quiet ? progress : NULL;
	o->sampler.measure = o->stats_file != NULL;
	catch_signals();
	return sample(self, o, command);
}

int flame_run(const struct command_line *self, struct flame_options *o, int argc, char **argv)
{
	int code = 0;

	o->sampler.awaited = o->awaits ? awaited : NULL;
	if (o->help)
		manual_help(stdout, self);
	else
		code = flame_once(self, o, argc, argv);
	flame_free(o);
	return code;
}

int flame_main(const struct command_line *self, int argc, char **argv)
{
	struct flame_options o;
	struct error *err = flame_parse(self, argc, argv, &o);

	return err ? report_error(err) : flame_run(self, &o, argc, argv);
}
