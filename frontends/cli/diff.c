/* SPDX-License-Identifier: Apache-2.0 */
/* diff: what changed between two recordings, or folded stacks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "frontends/format/diff.h"
#include "frontends/format/diff_test.h"
#include "redraw.h"
#include "say.h"
#include "unwind/cleanup.h"
#include "unwind/profile/profile_processes.h"
#include "unwind/profile/profile_tiers.h"

enum { OPT_RAW = 256, OPT_SUMMARY, OPT_FAIL_OVER };

static const struct manual_option options[] = {
        REDRAW_OPTIONS,
        {OPT_RAW, "raw", NULL, "compare counts, not shares of the totals", COMPLETE_NOTHING},
        {OPT_SUMMARY, "summary", NULL, "print the functions that changed beyond chance", COMPLETE_NOTHING},
        {OPT_FAIL_OVER, "fail-over", "N",
                "exit with code 9 if a function's share of all samples grew significantly and by more than N points; "
                "with --raw, if its count grew by more than N percent",
                COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {
        "BEFORE AFTER -o OUTPUT [options]", "BEFORE... -- AFTER... --summary [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt diff a.yrt b.yrt -o d.html", "a page: red grew, blue shrank, outlined is gone"},
        {"yrt diff a1.yrt a2.yrt a3.yrt -- b1.yrt b2.yrt b3.yrt --summary",
                "what changed by more than runs differ from each other"},
        {"yrt diff a.yrt b.yrt --fail-over 5%", "for CI: exit code 9 if a function takes 5 % more of all samples"},
        {"yrt diff a.yrt b.yrt -f txt -o -", "a tree: shares before, after, and the change"},
        {"yrt diff a.folded b.folded -o - | flamegraph.pl", "folded stacks with two counts"},
        {NULL, NULL},
};

const struct manual diff_manual = {
        .usage = usage,
        .text = "BEFORE and AFTER are recordings of yrt record, pprof, or folded stacks; - is stdin. Each counts as "
                "100 %, however long it took. Several recordings per side, separated by --, are summed. Functions are "
                "matched by name; the line where a script defines one does not matter. frontends/format/diff_test.h "
                "describes the significance test.",
        .options = options,
        .examples = examples,
        .operands = COMPLETE_FILE,
};

struct comparison {
	struct redraw r;
	bool raw, summary;
	const char *fail_over; /* as given; NULL */
	double limit;
	int nbefore, nafter;
	struct profile *runs[REDRAW_FILES];
	struct profile *joined[2]; /* of several a side */
	struct profile *difference;
	struct diff_tested tested;
	bool lost, grew;
};

static const struct setting settings[] = {
        {OPT_RAW, SETTING_OF(struct comparison, raw), .on = true},
        {OPT_SUMMARY, SETTING_OF(struct comparison, summary), .on = true},
        {OPT_FAIL_OVER, SETTING_OF(struct comparison, fail_over)},
        {0},
};

static void cleanup_comparison(struct comparison *c)
{
	for (int i = 0; i < c->r.nfiles; i++)
		profile_destroy(c->runs[i]);
	profile_destroy(c->difference);
	profile_destroy(c->joined[0]);
	profile_destroy(c->joined[1]);
	diff_tested_free(&c->tested);
}

static struct error *load(struct comparison *c, const struct format *format)
{
	struct error *err = NULL;

	for (int i = 0; !err && i < c->r.nfiles; i++) {
		err = redraw_load(&c->r, c->r.files[i], format, &c->runs[i], &c->lost);
		if (!err)
			err = profile_merge_tiers(c->runs[i]);
	}
	return err ? err : profile_match_processes(c->runs, c->r.nfiles);
}

/* What both sides have together. A test needs counts of things that happen one by one, or several recordings a side. */
static struct error *check_unit(const struct comparison *c)
{
	const char *unit = c->runs[0]->meta.unit;

	if ((!c->summary && !c->fail_over) || c->r.nfiles > 2 || !unit || strcmp(unit, "bytes"))
		return NULL;
	return error_hint(error_new(ERROR_USAGE, "one recording of bytes per side is not enough to recognise chance"),
	        "give several per side: yrt diff a1.yrt a2.yrt -- b1.yrt b2.yrt");
}

/* A side as one profile, which lives as long as c. */
static struct error *join(
        struct comparison *c, const struct diff_side *side, struct profile **joined, const struct profile **ret)
{
	struct error *err = side->n > 1 ? diff_join(side->runs, side->n, joined) : NULL;

	*ret = side->n > 1 ? *joined : side->runs[0];
	return err;
}

static struct error *compare(struct comparison *c)
{
	const struct profile *const *runs = (const struct profile *const *)c->runs;
	struct diff_side sides[2] = {{runs, c->nbefore}, {runs + c->nbefore, c->nafter}};
	struct diff_options o = {.raw = c->raw, .before = c->r.files[0]};
	const char *const *names[2] = {c->r.files, c->r.files + c->nbefore};
	const struct profile *before, *after;
	struct error *err = check_unit(c);

	if (!err)
		err = join(c, &sides[0], &c->joined[0], &before);
	if (!err)
		err = join(c, &sides[1], &c->joined[1], &after);
	if (!err)
		err = diff_create(before, after, &o, &c->difference);
	if (!err)
		err = diff_test(c->difference, sides, c->raw, &c->tested);
	if (!err && c->summary)
		diff_summary(stdout, c->difference, &c->tested, sides, names, c->raw);
	return err;
}

static void judge(struct comparison *c)
{
	const struct diff_finding *f = c->fail_over ? diff_grew(&c->tested, c->limit, c->raw) : NULL;

	if (!f)
		return;
	c->grew = true;
	say_note("%s grew by more than %s: from %.4g%s to %.4g%s (p = %.2g)",
	        c->difference->functions[f->function].name, c->fail_over, c->raw ? f->before : f->before * 100,
	        c->raw ? "" : " %", c->raw ? f->after : f->after * 100, c->raw ? "" : " %", f->p);
}

static struct error *run(struct comparison *c)
{
	const struct format *format = &format_folded;
	struct error *err = c->r.output ? redraw_check(&c->r, true, &format) : NULL;

	if (!err)
		err = load(c, format);
	if (!err)
		err = compare(c);
	if (!err && c->r.output)
		err = redraw_write(&c->r, format, c->difference);
	if (!err)
		judge(c);
	return err;
}

/* "5%" or "5". */
static struct error *check_limit(struct comparison *c)
{
	char *end;

	if (!c->fail_over)
		return NULL;
	c->limit = strtod(c->fail_over, &end);
	end += *end == '%';
	if (end == c->fail_over || *end || !(c->limit >= 0) || isinf(c->limit))
		return error_new(ERROR_USAGE, "--fail-over takes percent, as 5%%, not \"%s\"", c->fail_over);
	return NULL;
}

/* Options may be behind "--", too, so to getopt it is an operand. */
static char between[] = "between the sides";

static void keep_separator(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--")) {
			argv[i] = between;
			return;
		}
}

static bool split_sides(struct comparison *c)
{
	int at = 0;

	while (at < c->r.nfiles && c->r.files[at] != between)
		at++;
	c->nbefore = at < c->r.nfiles ? at : 1;
	if (at < c->r.nfiles)
		memmove(&c->r.files[at], &c->r.files[at + 1], (--c->r.nfiles - at) * sizeof(*c->r.files));
	c->nafter = c->r.nfiles - c->nbefore;
	return c->nbefore > 0 && c->nafter > 0 && (at <= c->r.nfiles - c->nafter || c->r.nfiles == 2);
}

static struct error *check(struct comparison *c)
{
	int fifos = 0;
	bool split = split_sides(c);

	for (int i = 0; i < c->r.nfiles; i++)
		fifos += !strcmp(c->r.files[i], "-");
	if (!split)
		return error_hint(error_new(ERROR_USAGE,
		                          "diff takes two files, or several of each side with -- between the sides"),
		        "the older one comes first");
	if (fifos > 1)
		return error_new(ERROR_USAGE, "only one of the files can be stdin");
	if (!c->r.output && !c->summary && !c->fail_over)
		return error_hint(error_new(ERROR_USAGE, "no output was given"),
		        "give -o FILE, whose extension chooses the format, or --summary");
	return check_limit(c);
}

int diff_main(const struct command_line *self, int argc, char **argv)
{
	cleanup(comparison) struct comparison c = {0};
	struct error *err;

	keep_separator(argc, argv);
	err = redraw_parse(self->manual, argc, argv, settings, &c, &c.r);

	if (!err && c.r.help) {
		manual_help(stdout, self);
		return 0;
	}
	if (!err)
		err = check(&c);
	if (!err)
		err = run(&c);
	return err ? report_error(err) : c.grew ? ERROR_CHANGED : c.lost ? ERROR_LOST : 0;
}
