/* SPDX-License-Identifier: Apache-2.0 */
#include "redraw.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"
#include "processes.h"
#include "say.h"
#include "unwind/profile/profile_fold.h"
#include "unwind/runtime.h"

static const struct setting settings[] = {
        {'o', SETTING_OF(struct redraw, output)},
        {'f', SETTING_OF(struct redraw, format)},
        {REDRAW_TITLE, SETTING_OF(struct redraw, title)},
        {'I', SETTING_OF(struct redraw, filter.include)},
        {'X', SETTING_OF(struct redraw, filter.exclude)},
        {'t', SETTING_OF(struct redraw, filter.threads), .on = true},
        {'U', SETTING_OF(struct redraw, filter.no_kernel), .on = true},
        {'K', SETTING_OF(struct redraw, filter.no_user), .on = true},
        {REDRAW_PROCESSES, SETTING_OF(struct redraw, how)},
        {REDRAW_ASYNC, SETTING_OF(struct redraw, async), .on = true},
        {REDRAW_SOURCE, SETTING_OF(struct redraw, source), .on = true},
        {'h', SETTING_OF(struct redraw, help), .on = true},
        {0},
};

struct error *redraw_parse(
        const struct manual *m, int argc, char **argv, const struct setting *own, void *to, struct redraw *ret)
{
	struct manual_getopt g;
	struct error *err = NULL;
	bool taken;
	int option;

	*ret = (struct redraw){0};
	manual_getopt(m, &g);
	optind = 1;
	while (!err && (option = getopt_long(argc, argv, g.shorts + 1, g.longs, NULL)) != -1) {
		if (option == '?')
			return manual_bad_option();
		err = settings_apply(own, option, optarg, to, &taken);
		if (!err && !taken)
			err = settings_apply(settings, option, optarg, ret, &taken);
	}
	if (!err && ret->how)
		err = processes_parse(ret->how, &ret->processes);
	if (err)
		return err;
	for (; optind < argc; optind++) {
		if (ret->nfiles == REDRAW_FILES)
			return error_new(ERROR_USAGE, "unexpected argument \"%s\": there are %d files already",
			        argv[optind], ret->nfiles);
		ret->files[ret->nfiles++] = argv[optind];
	}
	return NULL;
}

struct error *redraw_check(const struct redraw *r, bool diff, const struct format **ret)
{
	if (r->filter.no_user && r->filter.no_kernel)
		return error_new(ERROR_USAGE, "-U and -K together leave nothing to show");
	*ret = format_find(r->format, r->output);
	if (!*ret)
		return error_hint(error_new(ERROR_USAGE, "no output format for %s", r->format ? r->format : r->output),
		        "--help lists the formats and their extensions");
	if ((*ret)->binary && r->output && !strcmp(r->output, "-") && isatty(STDOUT_FILENO))
		return error_hint(
		        error_new(ERROR_USAGE, "this format is not for a terminal"), "give a file with -o, or a pipe");
	if (diff && !(*ret)->compares)
		return error_hint(error_new(ERROR_USAGE, "%s cannot show a difference", (*ret)->name),
		        "html, svg, txt, pprof and folded can");
	return NULL;
}

/* In place of *p. */
static struct error *fold(struct profile **p)
{
	struct profile *folded;
	struct error *err = fold_profile(*p, EXPAND_LOOP | EXPAND_IMPORTS, &folded);

	if (err)
		return err;
	profile_destroy(*p);
	*p = folded;
	return NULL;
}

/* An empty picture says why it is. */
static void note_nothing(const struct redraw *r, const char *path, struct profile *p)
{
	bool chosen = r->filter.include || r->filter.exclude || r->filter.no_kernel || r->filter.no_user;

	if (p->nodes[0].total)
		return;
	if (!p->meta.why || !*p->meta.why)
		p->meta.why =
		        chosen ? "no stack is left by -I, -X, -U and -K: -I and -X are extended regular expressions on "
		                 "names of functions, files and threads"
		               : "there is no stack in this file";
	say_note("%s: %s", path, p->meta.why);
}

struct error *redraw_load(
        const struct redraw *r, const char *path, const struct format *f, struct profile **ret, bool *lost)
{
	struct filter_options options = r->filter;
	struct recording recording;
	struct error *err;

	options.threads |= f->threads;
	err = input_load(path, &options, ret, &recording);
	if (!err && (*ret)->meta.loss && !(*ret)->meta.command) /* of another tool's file */
		say_note("%s: %s", path, (*ret)->meta.loss);
	if (!err && r->async)
		err = fold(ret);
	if (!err)
		note_nothing(r, path, *ret);
	if (err || !recording.cut)
		return err;
	say_note("%s is cut short: %" PRIu64 " samples of it are missing", path, recording.missing);
	*lost = *lost || recording.missing > recording.present;
	return NULL;
}

struct error *redraw_write(const struct redraw *r, const struct format *f, struct profile *p)
{
	struct output out;
	struct error *err = output_open(strdup(r->output), &out), *closing;

	p->meta.annotate = r->annotate;
	p->meta.heading = r->title ? r->title : p->meta.heading;
	p->meta.source = r->source;
	p->meta.processes = r->processes;
	if (!err)
		err = output_error(&out, format_write(f, p, out.file));
	closing = output_close(&out, !err || f->keeps); /* what there is of a recording can be read */
	if (err)
		error_free(closing);
	return err ? err : closing;
}
