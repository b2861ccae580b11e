/* SPDX-License-Identifier: Apache-2.0 */
/* flame, its views of one language (lua-flame, c-flame …), and record; java-alloc runs the same way. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "frontends/format/format.h"
#include "unwind/cleanup.h"

#define LOST_TOO_MUCH 0.5 /* of all samples: the picture can not be trusted */

volatile sig_atomic_t stop_sampling;

static void on_signal(int signal)
{
	stop_sampling = 1;
}

void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void warn(void *ctx, struct error *err)
{
	struct flame_options *o = ctx;

	if (!o->quiet)
		fprintf(stderr, "yrt: note: %s\n", err->message);
	error_free(err);
}

static void progress(void *ctx, double elapsed_s, u64 samples)
{
	fprintf(stderr, "\r%6.1f s  %lu samples  (Ctrl-C ends it and keeps the result)", elapsed_s, samples);
}

/* "%p" and "%t" in a file name become the pid and the time; "%%" a percent sign. */
static char *expand_name(const char *pattern, int pid)
{
	char *text = NULL, stamp[32];
	size_t size;
	FILE *out = open_memstream(&text, &size);
	time_t now = time(NULL);
	struct tm tm;

	if (!out)
		return NULL;
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
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

/* Opened before sampling: an unwritable place is no reason to lose a profile. */
static struct error *open_output(const struct flame_options *o, char **name, FILE **ret)
{
	if (!strcmp(o->output, "-")) {
		*ret = stdout;
		*name = strdup("-");
		return *name ? NULL : &error_no_memory;
	}
	*name = expand_name(o->output, o->npids ? o->pids[0] : 0);
	if (!*name)
		return &error_no_memory;
	*ret = fopen(*name, "we");
	if (!*ret) {
		int code = errno;

		return error_hint(error_new(ERROR_OUTPUT, "cannot write %s: %s", *name, strerror(code)),
			"choose another place with -o, or -o - for stdout");
	}
	return NULL;
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
	meta->target = sampler_target(s);
	meta->unit = o->sampler.alloc ? "bytes" : "samples";
	meta->more = o->sampler.alloc ? "objects" : NULL;
	meta->frequency = o->sampler.alloc ? 0 : o->sampler.frequency;
	meta->duration_ns = (u64)(st->duration_s * 1e9);
	meta->start_unix_ns = now.tv_sec * 1000000000ULL + now.tv_nsec - meta->duration_ns;
}

static struct error *write_profile(struct sampler *s, const struct flame_options *o, const struct command_line *self,
	const struct sampler_stats *st, const char *command, const char *loss, const char *name, FILE *out)
{
	struct profile *p = sampler_profile(s);
	cleanup(free) char *stats = NULL;
	struct error *err;

	fill_meta(s, o, self, st, &p->meta);
	if (o->objects)
		profile_swap(p);
	profile_finish(p);
	p->meta.command = command;
	p->meta.annotate = o->annotate;
	p->meta.loss = loss;
	p->meta.stats = stats = stats_text(st);
	err = format_write(format_find(o->format, o->output), p, out);
	if (!err && fflush(out))
		err = error_new(ERROR_OUTPUT, "%s", strerror(errno));
	if (!err)
		return NULL;
	error_hint(err, "free some space or choose another place with -o: %s is incomplete", name);
	return err;
}

struct error *flame_attach(struct sampler *s, const struct flame_options *o, int *failed)
{
	struct error *err = NULL;

	*failed = 0;
	if (o->command)
		return sampler_start_command(s, o->command);
	for (int i = 0; i < o->npids; i++) {
		err = sampler_attach(s, o->pids[i]);
		if (err && o->npids > 1) { /* of several, those that can be are sampled */
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
	for (int i = 0; o->sampler.follow && i < o->npids; i++) {
		char path[96];
		cleanup(fclose) FILE *file = NULL;
		int child;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", o->pids[i], o->pids[i]);
		file = fopen(path, "re");
		while (file && fscanf(file, "%d", &child) == 1)
			if (!flame_add_pid(o, child))
				return &error_no_memory;
	}
	return NULL;
}

static void set_view(const struct command_line *self, struct flame_options *o)
{
	size_t len = strcspn(self->name, "-");

	o->sampler.collect.native_only = !strncmp(self->name, "c-", 2);
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (strlen((*r)->view) == len && !strncmp(self->name, (*r)->view, len))
			o->sampler.collect.names.view = *r;
	if (o->sampler.collect.names.view)
		o->sampler.collect.names.expand |= EXPAND_IMPORTS;
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

static int finish(struct sampler *s, const struct flame_options *o, const struct command_line *self, const char *command,
	const char *name, FILE *out)
{
	struct sampler_stats st;
	cleanup(free) char *loss = NULL;
	struct error *err;
	int code;

	sampler_stats(s, &st);
	loss = loss_line(&st);
	err = write_profile(s, o, self, &st, command, loss, name, out);
	code = err ? report_error(err) : too_much_lost(&st);
	if (o->stats_file && (err = stats_write(&st, o->stats_file)))
		code = report_error(err);
	if (strcmp(name, "-") && !code && !o->quiet)
		fprintf(stderr, "yrt: wrote %s\n", name);
	fprintf(stderr, "yrt: %s\n", loss ? loss : "");
	return code;
}

static int sample(const struct command_line *self, struct flame_options *o, const char *command)
{
	struct sampler *s = NULL;
	cleanup(free) char *name = NULL;
	FILE *out = NULL;
	int code = 0, failed = 0;
	struct error *err = open_output(o, &name, &out);

	if (!err)
		err = sampler_create(&o->sampler, &s);
	if (!err)
		err = flame_add_children(o);
	if (!err)
		err = flame_attach(s, o, &failed);
	if (err) {
		code = report_error(err);
		if (out && out != stdout && !fseek(out, 0, SEEK_END) && ftell(out) == 0)
			remove(name);
	} else {
		err = sampler_run(s, &stop_sampling);
		if (o->sampler.progress)
			fputs("\r\033[K", stderr);
		code = err ? report_error(err) : failed;
		failed = finish(s, o, self, command, name, out);
		code = code ? code : failed;
	}
	sampler_destroy(s);
	if (out && out != stdout)
		fclose(out);
	return code;
}

int flame_run(const struct command_line *self, struct flame_options *o, int argc, char **argv)
{
	cleanup(free) char *command = join_arguments(argc, argv);
	int code = 0;

	if (o->help) {
		manual_help(stdout, self);
	} else {
		set_view(self, o);
		o->sampler.collect.threads |= format_find(o->format, o->output)->threads;
		o->sampler.warn = warn;
		o->sampler.ctx = o;
		o->sampler.progress = isatty(STDERR_FILENO) && !o->quiet ? progress : NULL;
		o->sampler.measure = o->stats_file != NULL;
		catch_signals();
		code = sample(self, o, command);
	}
	free(o->pids);
	return code;
}

int flame_main(const struct command_line *self, int argc, char **argv)
{
	struct flame_options o;
	struct error *err = flame_parse(argc, argv, &o);

	return err ? report_error(err) : flame_run(self, &o, argc, argv);
}
