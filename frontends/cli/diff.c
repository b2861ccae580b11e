/* SPDX-License-Identifier: Apache-2.0 */
/* diff: what changed between two recordings, or folded stacks. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "frontends/format/diff.h"
#include "redraw.h"
#include "unwind/profile/profile_tiers.h"
#include "unwind/cleanup.h"

enum { OPT_RAW = 256 };

static const struct manual_option options[] = {
        REDRAW_OPTIONS,
        {OPT_RAW, "raw", NULL, "compare counts, not shares of the totals", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"BEFORE AFTER -o OUTPUT [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt diff a.yrt b.yrt -o d.html", "the page: what grew is red, what shrank is blue, what is gone is outlined"},
        {"yrt diff a.yrt b.yrt -f txt -o -", "a tree: shares before, after, and the change"},
        {"yrt diff a.folded b.folded -o - | flamegraph.pl", "folded stacks with two counts"},
        {NULL, NULL},
};

const struct manual diff_manual = {
        .usage = usage,
        .text = "BEFORE and AFTER are recordings of yrt record, or folded stacks; - is stdin. Both count as 100 %, "
                "however long they took.\n"
                "Functions are the same if their names are; the line where a script defines one does not matter.",
        .options = options,
        .examples = examples,
        .operands = COMPLETE_FILE,
};

static const struct setting settings[] = {
        {OPT_RAW, SETTING_OF(struct diff_options, raw), .on = true},
        {0},
};

static struct error *compare(const struct redraw *r, struct diff_options *o, bool *lost)
{
	const struct format *format;
	struct profile *before = NULL, *after = NULL, *difference = NULL;
	struct error *err = redraw_check(r, true, &format);

	o->before = r->files[0];
	if (!err)
		err = redraw_load(r, r->files[0], format, &before, lost);
	if (!err)
		err = redraw_load(r, r->files[1], format, &after, lost);
	if (!err)
		err = profile_merge_tiers(before);
	if (!err)
		err = profile_merge_tiers(after);
	if (!err)
		err = diff_create(before, after, o, &difference);
	if (!err)
		err = redraw_write(r, format, difference);
	profile_destroy(difference);
	profile_destroy(after);
	profile_destroy(before);
	return err;
}

int diff_main(const struct command_line *self, int argc, char **argv)
{
	struct diff_options o = {0};
	struct redraw r;
	bool lost = false;
	struct error *err = redraw_parse(self->manual, argc, argv, settings, &o, &r);

	if (!err && r.help) {
		manual_help(stdout, self);
		return 0;
	}
	if (!err && r.nfiles != 2)
		err = error_hint(error_new(ERROR_USAGE, "diff takes two files"), "the one from before comes first");
	if (!err && !strcmp(r.files[0], r.files[1]) && !strcmp(r.files[0], "-"))
		err = error_new(ERROR_USAGE, "only one of the files can be stdin");
	if (!err && !r.output)
		err = error_hint(error_new(ERROR_USAGE, "no output was given"),
		        "give -o FILE; its extension chooses the format");
	if (!err)
		err = compare(&r, &o, &lost);
	return err ? report_error(err) : lost ? ERROR_LOST : 0;
}
