/* SPDX-License-Identifier: Apache-2.0 */
/* What render and diff share: options that choose stacks of files, and where the result goes. */
#ifndef YRT_REDRAW_H
#define YRT_REDRAW_H

#include "frontends/format/format.h"
#include "frontends/format/input.h"
#include "manual.h"
#include "probes/setting.h"

/* For the tables of both. */
/* clang-format off */
#define REDRAW_OPTIONS \
	{ 'o', "output", "FILE", "the output; - is stdout", COMPLETE_FILE }, \
	{ 'f', "format", "NAME", "the format, whatever the extension of FILE:", COMPLETE_FORMAT }, \
	{ REDRAW_TITLE, "title", "TEXT", "what the picture is called", COMPLETE_NOTHING }, \
	{ 't', "threads", NULL, "separate threads", COMPLETE_NOTHING }, \
	{ REDRAW_PROCESSES, "processes", "HOW", \
		"separate processes: auto (default), each, program, none", COMPLETE_NOTHING }, \
	{ 'U', "user", NULL, "leave out kernel frames", COMPLETE_NOTHING }, \
	{ 'K', "kernel", NULL, "leave out user frames", COMPLETE_NOTHING }, \
	{ 'I', "include", "REGEX", "only stacks with a frame or thread that matches", COMPLETE_NOTHING }, \
	{ 'X', "exclude", "REGEX", "only stacks without a frame or thread that matches", COMPLETE_NOTHING }, \
	{ REDRAW_SOURCE, "source", NULL, "put source lines into the page, from files that can be read here", \
		COMPLETE_NOTHING }, \
	{ REDRAW_ASYNC, "async", NULL, \
		"one frame for the inside of asyncio's event loop, and one for imports (default of python-flame)", \
		COMPLETE_NOTHING }
/* clang-format on */

#define REDRAW_FILES     64
#define REDRAW_ASYNC     0x200
#define REDRAW_PROCESSES 0x201
#define REDRAW_SOURCE    0x202
#define REDRAW_TITLE     0x203

struct redraw {
	const char *output, *format, *title;
	struct filter_options filter;
	const char *files[REDRAW_FILES];
	int nfiles;
	bool help, async;
	bool source;     /* as profile_meta.source */
	bool annotate;   /* as profile_meta.annotate */
	const char *how; /* --processes */
	enum processes processes;
};

/* Options and files may come in any order. own: what those that are not in REDRAW_OPTIONS do to another struct, or to
 * *ret. */
struct error *redraw_parse(
        const struct manual *m, int argc, char **argv, const struct setting *own, void *to, struct redraw *ret);
/* Checks that a format was chosen, and stacks are left; diff: that the format can show one. Call before long work. */
struct error *redraw_check(const struct redraw *r, bool diff, const struct format **ret);
/* Loads a file; says on stderr if it is cut. *lost becomes true if more than half of it is missing. */
struct error *redraw_load(
        const struct redraw *r, const char *path, const struct format *f, struct profile **ret, bool *lost);
/* Writes p to r->output. An error names the file. */
struct error *redraw_write(const struct redraw *r, const struct format *f, struct profile *p);

#endif
