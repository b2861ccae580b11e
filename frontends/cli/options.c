/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of the flame commands. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "frontends/format/format.h"
#include "unwind/cfi/cfi.h"
#include "unwind/grow.h"

#define FREQUENCY_MAX 20000
#define DEPTH_MAX     8192
#define PIDS_MAX      1024

static const struct manual_option flame_options[] = {
	{ 'p', "pid", "LIST", "processes to look into, separated by commas", COMPLETE_PID },
	{ 's', "subprocesses", NULL, "their children too, present and future", COMPLETE_NOTHING },
	{ 'd', "duration", "SECS", "how long (30; 0: until Ctrl-C; a command: until it ends)", COMPLETE_NOTHING },
	{ 'F', "freq", "HZ", "samples a second of CPU time (99)", COMPLETE_NOTHING },
	{ 'r', "rate", "HZ", "the same as --freq", COMPLETE_NOTHING },
	{ 'o', "output", "FILE", "@.html by default (of record: record.yrt); - is stdout; %p pid, %t time", COMPLETE_FILE },
	{ 'f', "format", "NAME", "overrides the extension of FILE:", COMPLETE_FORMAT },
	{ 't', "threads", NULL, "a stack of its own for each thread", COMPLETE_NOTHING },
	{ 'U', "user", NULL, "leave out kernel frames", COMPLETE_NOTHING },
	{ 'K', "kernel", NULL, "leave out user frames", COMPLETE_NOTHING },
	{ 'I', "include", "REGEX", "only stacks with a frame that matches", COMPLETE_NOTHING },
	{ 'X', "exclude", "REGEX", "no stacks with a frame that matches", COMPLETE_NOTHING },
	{ 'g', "gil", NULL, "only threads that hold the GIL of their Python", COMPLETE_NOTHING },
	{ FLAME_ASYNC, "async", NULL, "one frame for the inside of asyncio's event loop (python-flame does)", COMPLETE_NOTHING },
	{ FLAME_NO_ASYNC, "no-async", NULL, "all frames of asyncio's event loop (other commands do)", COMPLETE_NOTHING },
	{ FLAME_LINES, "lines", NULL, "split functions by the line being executed", COMPLETE_NOTHING },
	{ FLAME_NO_INLINE, "no-inline", NULL, "only the functions that native code is in, without those that were inlined", COMPLETE_NOTHING },
	{ FLAME_NO_DEMANGLE, "no-demangle", NULL, "names of C++ and Rust as they are in the file", COMPLETE_NOTHING },
	{ FLAME_TRACES, "traces", NULL, "a frame for each piece of a JIT's machine code: its number and where it starts", COMPLETE_NOTHING },
	{ FLAME_NO_JIT_INLINE, "no-jit-inline", NULL, "only the function that was entered, not those inlined into a JIT's code",
		COMPLETE_NOTHING },
	{ FLAME_SIGNATURES, "signatures", NULL, "names of Java methods with the types of their arguments", COMPLETE_NOTHING },
	{ FLAME_CARRIERS, "carriers", NULL, "below a virtual thread what its carrier thread has on its stack", COMPLETE_NOTHING },
	{ FLAME_ANNOTATE, "annotate", NULL, "a function apart for each way it was compiled; folded stacks with _[k] behind kernel frames,\n"
		"_[0] interpreted, _[1] C1, _[j] JIT, _[i] inlined",
		COMPLETE_NOTHING },
	{ FLAME_DEPTH, "depth", "N", "frames of a stack at most (1024; up to 8192)", COMPLETE_NOTHING },
	{ FLAME_CPU, "max-cpu", "PERCENT", "of one CPU that yrt may take before it halves its rate (10; 0: no limit)",
		COMPLETE_NOTHING },
	{ FLAME_STATS, "stats", "FILE", "write what was seen and lost as JSON (- is stdout)", COMPLETE_FILE },
	{ FLAME_NO_CACHE, "no-cache", NULL, "do not keep compiled unwind tables on disk", COMPLETE_NOTHING },
	{ 'q', "quiet", NULL, "no progress", COMPLETE_NOTHING },
	{ 0 },
};

static const char *const flame_usage[] = { "-p PID[,PID...] [options]", "[options] -- COMMAND [ARGS...]", NULL };

static const struct manual_example flame_examples[] = {
	{ "yrt @ -p 4242 -d 10 -o flame.html", "ten seconds of a process as a page for a browser" },
	{ "yrt @ -p 4242 -s -t -o flame.html", "with its children, a stack for each thread" },
	{ "yrt @ -p 4242 -F 999 -o - | sort -t' ' -k2 -n | tail", "the heaviest stacks as text" },
	{ "yrt @ -o flame.html -- ./program args", "a program from its start to its end" },
	{ NULL, NULL },
};

static const struct manual_example record_examples[] = {
	{ "yrt record -p 4242 -d 10 -o x.yrt", "ten seconds of a process" },
	{ "yrt render x.yrt -o x.html", "and a page of them" },
	{ NULL, NULL },
};

const struct manual record_manual = {
	.usage = flame_usage,
	.text = "A recording keeps all threads, the kernel, what every file was (build-ids), and what was lost. yrt render draws it in any\n"
		"format, on any machine; yrt diff compares two. They need neither root nor the programs that were recorded.",
	.options = flame_options,
	.examples = record_examples,
};

const struct manual flame_manual = {
	.usage = flame_usage,
	.text = "Ctrl-C ends sampling early and keeps the whole result. The last line on stderr tells what was seen and what was\n"
		"lost, by cause. -I and -X take POSIX extended regular expressions. Where DEBUGINFOD_URLS is set, its servers are asked\n"
		"for debug files that are not here, when sampling is over; Ctrl-C goes on without them.",
	.options = flame_options,
	.examples = flame_examples,
};

bool flame_add_pid(struct flame_options *o, int pid)
{
	for (int i = 0; i < o->npids; i++)
		if (o->pids[i] == pid)
			return true;
	if (grow(&o->pids, o->npids, sizeof(*o->pids)))
		return false;
	o->pids[o->npids++] = pid;
	return true;
}

struct error *flame_add_pids(struct flame_options *o, const char *list)
{
	while (*list) {
		char *end;
		long pid = strtol(list, &end, 10);

		if (end == list || pid <= 0 || pid > 1 << 30 || (*end && *end != ',') || o->npids == PIDS_MAX)
			return error_new(ERROR_USAGE, "--pid takes pids separated by commas, not \"%s\"", list);
		if (!flame_add_pid(o, (int)pid))
			return &error_no_memory;
		list = *end ? end + 1 : end;
	}
	return NULL;
}

#define MEMBER(member)		     SETTING_OF(struct flame_options, member)
#define ON(key, member)		     { key, MEMBER(member), .on = true }
#define OFF(key, member)	     { key, MEMBER(member), .on = false }
#define TEXT(key, member)	     { key, MEMBER(member) }
#define BITS(key, member, bits_)     { key, MEMBER(member), .bits = bits_ }
#define NUMBER(key, member, option, min_, max_) { key, MEMBER(member), .name = option, .min = min_, .max = max_ }

static const struct setting settings[] = {
	NUMBER('d', sampler.duration_s, "--duration", 0, 1e7),
	NUMBER('F', sampler.frequency, "--freq", 0.1, FREQUENCY_MAX),
	NUMBER('r', sampler.frequency, "--freq", 0.1, FREQUENCY_MAX),
	NUMBER(FLAME_CPU, sampler.cpu_percent, "--max-cpu", 0, 1e6),
	NUMBER(FLAME_DEPTH, sampler.depth, "--depth", 1, DEPTH_MAX),
	TEXT('o', output),
	TEXT('f', format),
	TEXT('I', sampler.collect.include),
	TEXT('X', sampler.collect.exclude),
	TEXT(FLAME_STATS, stats_file),
	TEXT(FLAME_NO_CACHE, sampler.cache_dir),
	ON('t', sampler.collect.threads),
	ON('s', sampler.follow),
	ON('U', sampler.no_kernel),
	ON('U', sampler.collect.no_kernel),
	ON('K', sampler.no_user),
	ON('q', quiet),
	ON('h', help),
	ON('g', sampler.collect.lock_only),
	ON(FLAME_ASYNC, async),
	OFF(FLAME_ASYNC, no_async),
	ON(FLAME_NO_ASYNC, no_async),
	OFF(FLAME_NO_ASYNC, async),
	ON(FLAME_LINES, sampler.collect.names.lines),
	ON(FLAME_SIGNATURES, sampler.collect.names.signatures),
	ON(FLAME_NO_DEMANGLE, sampler.collect.names.mangled),
	OFF(FLAME_NO_INLINE, sampler.collect.names.inlines),
	ON(FLAME_ANNOTATE, annotate),
	BITS(FLAME_TRACES, sampler.collect.names.expand, EXPAND_TRACES),
	BITS(FLAME_NO_JIT_INLINE, sampler.collect.names.expand, EXPAND_MERGE),
	BITS(FLAME_CARRIERS, sampler.collect.names.expand, EXPAND_CARRIERS),
	{ 0 },
};

struct error *flame_option(int option, struct flame_options *o)
{
	struct error *err;
	bool taken;

	if (option == 'p')
		return flame_add_pids(o, optarg);
	err = settings_apply(settings, option, optarg, o, &taken);
	if (err || taken)
		return err;
	return error_hint(error_new(ERROR_USAGE, "see the line above"), "--help tells all options");
}

struct error *flame_check_targets(const struct flame_options *o)
{
	if (o->sampler.no_user && o->sampler.no_kernel)
		return error_new(ERROR_USAGE, "-U and -K together leave nothing to show");
	if (!o->npids && !o->command)
		return error_hint(error_new(ERROR_USAGE, "no process was given"),
			"give -p PID, or a command behind --; --help tells all");
	if (o->npids && o->command)
		return error_new(ERROR_USAGE, "-p and a command behind -- exclude each other");
	return NULL;
}

struct error *flame_check(const struct flame_options *o)
{
	struct error *err = flame_check_targets(o);

	if (!err && !format_find(o->format, o->output))
		err = error_hint(error_new(ERROR_USAGE, "no output format for %s", o->format ? o->format : o->output),
			"--help lists the formats and their extensions");
	return err;
}

void flame_defaults(struct flame_options *ret)
{
	*ret = (struct flame_options){ .sampler = { .frequency = 99, .duration_s = -1, .depth = 1024, .cpu_percent = 10,
		.cache_dir = cfi_default_cache() } };
}

struct error *flame_operands(int argc, char **argv, struct flame_options *o)
{
	if (optind >= argc)
		return NULL;
	if (strcmp(argv[optind - 1], "--") != 0)
		return error_hint(error_new(ERROR_USAGE, "what is \"%s\"?", argv[optind]), "a command to run goes behind --");
	o->command = argv + optind;
	return NULL;
}

struct error *flame_parse(int argc, char **argv, struct flame_options *ret)
{
	static char name[64];
	struct flame_options o;
	struct manual_getopt g;
	struct error *err = NULL;
	int option;

	flame_defaults(&o);
	o.sampler.collect.names.inlines = true;
	optind = 1;
	snprintf(name, sizeof(name), "%s.%s", argv[0], strcmp(argv[0], "record") ? "html" : "yrt");
	o.output = name;
	manual_getopt(&flame_manual, &g);
	while (!err && (option = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1)
		err = flame_option(option, &o);
	if (!err)
		err = flame_operands(argc, argv, &o);
	if (o.sampler.duration_s < 0)
		o.sampler.duration_s = o.command ? 0 : 30;
	if (!err && !o.help)
		err = flame_check(&o);
	if (err) {
		free(o.pids);
		return err;
	}
	*ret = o;
	return NULL;
}
