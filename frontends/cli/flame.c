/* SPDX-License-Identifier: Apache-2.0 */
/* flame, its views of one language (lua-flame, c-flame …), and record; java-alloc runs the same way. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "colour.h"
#include "frontends/format/format.h"
#include "frontends/ylang/run/conditions.h"
#include "idle.h"
#include "labels.h"
#include "output.h"
#include "probes/event_command.h"
#include "probes/loss.h"
#include "probes/select_find.h"
#include "say.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/process/other_language.h"
#include "unwind/profile/profile_unnamed.h"
#include "unwind/runtime.h"
#include "unwind/runtime_tasks.h"

/* What was seen and what was lost (probes/loss.h): as a file, and notes on processes. */

#define UNREAD_TOLD 3 /* processes */

/* Which processes could not be looked into, and why: the first, and how many more. */
static void loss_note_unread(const struct sampler_stats *st)
{
	const struct unread_list *l = st->unread;
	u32 told = l->kept < UNREAD_TOLD ? l->kept : UNREAD_TOLD;

	for (u32 i = 0; i < told; i++)
		say_note("process %d (%s) could not be looked into, its own code has no names: %s", l->first[i].pid,
		        l->first[i].comm, l->first[i].why ? l->first[i].why : "out of memory");
	if (l->n > told)
		say_note("%u more processes could not be looked into", l->n - told);
}

static struct error *stats_write(const struct sampler_stats *st, const char *path)
{
	FILE *out = !strcmp(path, "-") ? stdout : fopen(path, "we");
	struct error *err = NULL;
	json_t *root;

	if (!out) {
		err = error_errno(errno, "cannot write the statistics to %s", path);
		err->kind = err == &error_no_memory ? err->kind : ERROR_OUTPUT;
		return err;
	}
	root = stats_json(st);
	if (json_dumpf(root, out, JSON_INDENT(2)) || fputc('\n', out) == EOF || fflush(out))
		err = error_new(ERROR_OUTPUT, "cannot write the statistics to %s: %s", path, strerror(errno));
	json_decref(root);
	if (out == stdout)
		return output_unread(out, err);
	if (fclose(out) && !err)
		err = error_new(ERROR_OUTPUT, "cannot write the statistics to %s: %s", path, strerror(errno));
	return err;
}

#define LOST_TOO_MUCH 0.5 /* of all samples: the picture can not be trusted */
#define UNNAMED_MUCH  0.2 /* of all frames */

volatile sig_atomic_t stop_sampling, interrupted;

static void on_signal(int signal)
{
	stop_sampling = interrupted = 1;
}

void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal}, before;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN) /* nohup: it goes on */
		sigaction(SIGHUP, &action, NULL); /* the terminal is gone: what was gathered is kept */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* whoever started yrt may ignore it: commands would have no exit status */
}

void sleep_s(double seconds)
{
	u64 end = now_ns() + (u64)(seconds * 1e9);

	for (u64 now = now_ns(); now < end && !stop_sampling; now = now_ns()) {
		u64 left = end - now;
		struct timespec t = {(time_t)(left / 1000000000), (long)(left % 1000000000)};

		nanosleep(&t, NULL);
	}
}

void release_signals(void)
{
	catch_signals();
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

void sleep_released_s(double seconds)
{
	catch_signals();
	sleep_s(seconds);
	release_signals();
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

	if (o->run.sampler.event->waits)
		fprintf(stderr, "\r%6.1f s  %.1f s of threads  (Ctrl-C ends it and keeps the result)", elapsed_s,
		        (double)samples / 1e9);
	else
		fprintf(stderr, "\r%6.1f s  %lu %s  (Ctrl-C ends it and keeps the result)", elapsed_s, samples,
		        o->run.sampler.event->unit);
}

char *join_arguments(int argc, char **argv)
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

static struct error *write_profile(const struct flame_options *o, const struct command_line *self,
        const struct run_result *r, const char *command, const struct output *out)
{
	struct profile_meta *meta = &r->profile->meta;

	meta->title = self->name;
	meta->heading = o->title;
	meta->processes = o->processes;
	meta->command = command;
	meta->annotate = o->annotate;
	meta->source = o->source;
	meta->labels = o->labels;
	return output_error(out, format_write(format_find(o->format, o->output), r->profile, out->file));
}

/* Of several targets, those that can be are sampled. */
static void refused(void *ctx, struct error *err, bool asked)
{
	const struct flame_options *o = ctx;

	if (asked && err->kind != ERROR_NO_PROCESS)
		report_error(err);
	else if (o->quiet && !asked)
		error_free(err);
	else
		say_note_error(err);
}

void flame_set_view(const struct command_line *self, struct flame_options *o)
{
	o->run.sampler.collect.native_only = !strncmp(self->name, "c-", 2);
	o->run.sampler.collect.names.view = view_of_command(self->name);
	if (o->run.sampler.collect.names.view)
		o->run.sampler.collect.names.expand |= EXPAND_IMPORTS;
	if (o->run.sampler.collect.names.view && !o->run.sampler.event->waits) /* waits in there are for rules */
		o->run.sampler.collect.names.expand |= EXPAND_OWN;
	o->run.sampler.no_idle |= o->run.sampler.collect.names.view && !o->run.idle;
	if (o->async || (o->run.sampler.collect.names.view && !o->no_async))
		o->run.sampler.collect.names.expand |= EXPAND_LOOP;
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

/* Processes that do nothing use some CPU time as well. */
static bool was_too_short(const struct sampler_stats *st)
{
	return st->duration_s < 0.1 || st->expected >= 0.5;
}

/* Why the picture is empty, or has nothing of the language asked for: lines, "" if there is nothing to explain. */
static char *explain(const struct flame_options *o, const struct run_result *r)
{
	const struct view *view = o->run.sampler.collect.names.view;
	const struct event_ops *event = o->run.sampler.event;
	const struct event_command *c = event->command_line;
	const struct sampler_stats *st = &r->stats;
	cleanup(free) char *target = clean_text(sampler_target(r->sampler));
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (view && !(r->runtimes & view->runtimes)) {
		fprintf(out, "no %s was found in %s\n", view->language, target ? target : "");
		for (const struct view *v = views(); v->name; v++)
			if (r->runtimes & v->runtimes)
				fprintf(out, "%s was: `yrt %s-flame` shows it\n", v->language, v->name);
	}
	if (!st->probe.weights && event == events[0] && was_too_short(st))
		fputs("this was too short for a sample: sample for longer (-d) or at a higher rate (-F)\n", out);
	else if (!st->probe.weights && event == events[0])
		idle_explain(out, o->run.pids, o->run.npids, st->duration_s, o->run.sampler.follow);
	else if (!st->probe.weights)
		idle_explain_stopped(out, o->run.pids, o->run.npids);
	if (c && c->explain)
		c->explain(out, &o->run, st);
	else if (st->collect.idle && !st->collect.counted)
		fputs("all that was seen is waits by design: --idle shows them\n", out);
	if (st->collect.filtered && !st->collect.counted && !st->collect.idle && o->run.sampler.collect.ntids)
		fputs("the threads of --tid, or what -I and -X ask for, were not seen; others were\n", out);
	else if (st->collect.filtered && !st->collect.counted && !st->collect.idle)
		fputs("no stack matches -I and -X: they are extended regular expressions on names of functions and "
		      "files\n",
		        out);
	fclose(out);
	return text;
}

/* Threads of some languages wait only for work: what the program waits for has none. */
static void note_tasks(const struct flame_options *o, u32 seen)
{
	const struct event_command *c = o->run.sampler.event->command_line;
	const char *hint = c && c->tasks_hint ? c->tasks_hint(o->run.own) : NULL;

	for (const struct runtime_ops *const *r = runtimes; hint && *r; r++)
		if (seen & 1u << (*r)->id && (*r)->tasks && (*r)->tasks->all)
			say_note("%s wait without a thread: %s", (*r)->tasks->kinds, hint);
}

static void note_lines(char *text)
{
	for (char *line, *at = text; (line = strsep(&at, "\n"));)
		if (*line)
			say_note("%s", line);
}

/* A recording that has no room in its file, but in the store. */
static bool push_unwritten(const struct flame_options *o, struct profile *p)
{
	struct error *err = send_profile(&o->send, p, &stop_sampling);

	if (err)
		report_error(err);
	else
		say_note("the whole recording was sent from memory");
	return !err;
}

static void note_unnamed(const struct profile *p)
{
	char text[512];
	double share;
	u32 image = profile_unnamed(p, &share);

	if (share >= UNNAMED_MUCH)
		say_note("%.0f %% of all frames are functions of %s without a name. %s", 100 * share,
		        p->images[image].path, profile_unnamed_text(p, image, text, sizeof(text)));
}

/* What there is to say of a run, besides its last line. */
static void note_all(const struct flame_options *o, const struct run_result *r, char *why)
{
	struct other_language other;

	if (o->run.command)
		note_status(r->stats.command_status, o->run.command[0]);
	note_denied(o);
	loss_note_unread(&r->stats);
	note_lines(why);
	note_unnamed(r->profile);
	note_tasks(o, r->runtimes);
	for (int i = 0; r->stats.probe.weights && i < o->run.nasked; i++)
		if (other_language_of(o->run.pids[i], &other))
			say_note("process %d runs %s: %s", o->run.pids[i], other.name, other.limits);
}

/* *sent: the store has it by now. */
static int finish(const struct flame_options *o, const struct command_line *self, struct run_result *r,
        const char *command, struct output *out, bool *sent)
{
	const struct event_words *words = o->run.sampler.event->words;
	cleanup(free) char *why = explain(o, r);
	cleanup(free) char *name = strdup(out->name);
	struct error *err;
	int code;

	r->profile->meta.why = why;
	err = write_profile(o, self, r, command, out);
	if (!err)
		err = output_close(out, true);
	code = err ? report_error(err) : too_much_lost(&r->stats);
	*sent = err && o->send.url && push_unwritten(o, r->profile);
	if (err && (!*sent || o->named) && format_find(o->format, o->output)->keeps)
		error_free(output_close(out, true)); /* what there is of a recording can be read */
	if (*sent && !o->named)
		code = too_much_lost(&r->stats);
	if (o->stats_file && (err = stats_write(&r->stats, o->stats_file)))
		code = report_error(err);
	if (!o->quiet)
		note_all(o, r, why);
	if (name && strcmp(name, "-") && !code && !*sent && !o->quiet && (o->named || !o->send.url))
		fprintf(stderr, "yrt: wrote %s\n", name);
	if (words && words->print && !o->quiet)
		words->print(stderr, &r->stats);
	fprintf(stderr, "yrt: %s\n", r->loss ? r->loss : "");
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
/* An empty one holds only the name's place. */
static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_size;
}

static struct error *open_output(struct flame_options *o, struct output *out, char **reserved)
{
	char stamp[OUTPUT_STAMP], *name;
	struct error *err;

	*out = (struct output){0};
	if (!strcmp(o->output, "-") && isatty(STDOUT_FILENO) && format_find(o->format, o->output)->binary)
		return error_hint(
		        error_new(ERROR_USAGE, "this format is not for a terminal"), "give a file with -o, or a pipe");
	if (!strcmp(o->output, "-"))
		return output_open(strdup("-"), out);
	if (!o->send.url || o->named) {
		name = output_expand(o->output, o->run.npids ? o->run.pids[0] : 0);
		o->replaces = name && !o->named && is_file(name) ? strdup(name) : NULL;
		return output_open(name, out);
	}
	output_stamp(stamp);
	err = output_reserve(stamp, ".yrt", 1, reserved);
	return err ? err : output_open(strdup(*reserved), out);
}

static void begins(void *ctx)
{
	struct flame_options *o = ctx;

	if (o->awaits && !o->run.npids && o->selection.nrules && !o->quiet)
		flame_note_waiting(o);
	if (o->replaces && !o->quiet) /* nobody gave its name */
		say_note("%s is there already and will be replaced: -o gives another name", o->replaces);
	set_labels(o, o->run.pids, o->run.npids);
}

static void ended(void *ctx)
{
	const struct flame_options *o = ctx;

	if (o->run.sampler.progress)
		fputs("\r\033[K", stderr);
}

static int sample(const struct command_line *self, struct flame_options *o, const char *command)
{
	struct run_result r = {0};
	cleanup(free) char *name = NULL;
	cleanup(free) char *reserved = NULL;
	struct output out;
	int code = 0, failed = 0;
	bool sent = false;
	struct error *err = open_output(o, &out, &reserved);

	if (err && o->send.url)
		error_hint(err,
		        "what is sent is written first: give a place with -o DIR/NAME.yrt, in a container a volume");
	if (!err)
		err = run_profile(&o->run, &r);
	code = err ? report_error(err) : (int)r.refused;
	if (r.profile) { /* else what was there before stays */
		name = o->send.url ? strdup(out.name) : NULL;
		failed = finish(o, self, &r, command, &out, &sent);
		code = code ? code : failed;
	}
	run_result_free(&r);
	free(TAKE(o->labels));
	free(TAKE(o->replaces));
	error_free(output_close(&out, false));
	output_unreserve(reserved);
	if (name && !sent && (!code || code == ERROR_LOST)) {
		failed = push(o, name);
		code = code ? code : failed;
	}
	return code;
}

/* What --if says, for the processes that are there. */
static struct error *make_conditions(const struct flame_options *o, struct y_conditions **ret)
{
	const struct event_command *c = o->run.sampler.event->command_line;
	char *source = c && c->asks ? c->asks(o->run.own) : NULL;

	*ret = NULL;
	if (!source)
		return NULL;
	if (o->run.npids)
		return y_conditions_make(source, o->run.pids, (u32)o->run.npids, o->run.own, ret);
	free(source);
	return error_hint(error_new(ERROR_USAGE, "--if takes processes that run already"), "-p PID, --select RULE");
}

int flame_once(const struct command_line *self, struct flame_options *o, int argc, char **argv)
{
	cleanup(free) char *command = join_arguments(argc, argv);
	struct y_conditions *conditions;
	struct error *err = make_conditions(o, &conditions);
	int code;

	if (err)
		return report_error(err);
	flame_set_view(self, o);
	o->run.sampler.selection = o->selection.nrules ? &o->selection : NULL;
	o->service = o->run.command ? o->run.command[0] : o->selection.text;
	o->run.sampler.collect.processes = true;
	o->run.sampler.collect.threads |= format_find(o->format, o->output)->threads;
	o->run.sampler.collect.threads |=
	        o->run.sampler.collect.times && o->run.sampler.event->waits; /* a strip a thread */
	o->run.sampler.warn = warn;
	o->run.sampler.ctx = o;
	o->run.stop = &stop_sampling;
	o->run.refused = refused;
	o->run.begins = begins;
	o->run.ended = ended;
	o->run.sampler.progress = colour_escapes(stderr) && !o->quiet ? progress : NULL;
	o->run.sampler.measure = o->stats_file != NULL;
	catch_signals();
	code = sample(self, o, command);
	y_conditions_free(conditions);
	return code;
}

int flame_run(const struct command_line *self, struct flame_options *o, int argc, char **argv)
{
	int code = 0;

	o->run.sampler.awaited = o->awaits ? awaited : NULL;
	if (o->help)
		manual_help(stdout, self);
	else
		code = flame_once(self, o, argc, argv);
	flame_free(o);
	return code;
}

int flame_main(const struct command_line *self, int argc, char **argv)
{
	const struct event_command *c = self->event ? self->event->command_line : NULL;
	struct flame_options o;
	struct error *err;

	if (c && c->lister && argc > 1 && !strcmp(argv[1], "--list")) {
		self = find_command(c->lister);
		manual_arguments(argv + 1);
		return self->run(self, argc - 1, argv + 1);
	}
	err = flame_parse(self, argc, argv, &o);

	return err ? report_error(err) : flame_run(self, &o, argc, argv);
}
