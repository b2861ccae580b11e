/* SPDX-License-Identifier: Apache-2.0 */
/* render: a recording, folded stacks, or text of perf script, drawn in any format. */
#include <stdio.h>

#include "cli.h"
#include "redraw.h"

enum { OPT_ANNOTATE = 256 };

static const struct manual_option options[] = {
        REDRAW_OPTIONS,
        {OPT_ANNOTATE, "annotate", NULL, "split functions by how they were compiled, as when recording",
                COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"FILE -o OUTPUT [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt render x.yrt -o x.html", "a recording as a page"},
        {"yrt render x.yrt -o x.pb.gz", "for pprof"},
        {"yrt render x.yrt -U -I '^worker-1 ' -f txt -o -", "one thread without the kernel, as a tree"},
        {"yrt render cpu.pb.gz -o x.html", "a pprof file of Go, Pyroscope or others"},
        {"perf script | yrt render - -o x.html", "samples of perf"},
        {"stackcollapse.pl x.stacks | yrt render - -o x.svg", "folded stacks of other tools"},
        {NULL, NULL},
};

const struct manual render_manual = {
        .usage = usage,
        .text = "FILE is a recording of yrt record, pprof, folded stacks, or the output of perf script; - is stdin. "
                "Neither root nor files of the recorded machine are needed. Of a truncated recording all complete "
                "stacks are used, and the rest is counted.",
        .options = options,
        .examples = examples,
        .operands = COMPLETE_FILE,
};

static const struct setting settings[] = {
        {OPT_ANNOTATE, SETTING_OF(struct redraw, annotate), .on = true},
        {0},
};

static struct error *render(const struct redraw *r, bool *lost)
{
	const struct format *format;
	struct profile *p = NULL;
	struct error *err = redraw_check(r, false, &format);

	if (!err)
		err = redraw_load(r, r->files[0], format, &p, lost);
	if (!err)
		err = redraw_write(r, format, p);
	profile_destroy(p);
	return err;
}

int render_main(const struct command_line *self, int argc, char **argv)
{
	struct redraw r;
	bool lost = false;
	struct error *err = redraw_parse(self->manual, argc, argv, settings, &r, &r);

	if (!err && r.help) {
		manual_help(stdout, self);
		return 0;
	}
	if (!err && r.nfiles != 1)
		err = error_hint(error_new(ERROR_USAGE, "render takes one file"), "`yrt diff` compares two");
	if (!err && !r.output)
		err = error_hint(error_new(ERROR_USAGE, "no output was given"),
		        "give -o FILE; its extension chooses the format");
	if (!err)
		err = render(&r, &lost);
	return err ? report_error(err) : lost ? ERROR_LOST : 0;
}
