/* SPDX-License-Identifier: Apache-2.0 */
/* java-alloc: those options of flame that make sense here, with bytes instead of time. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "probes/tlab/tlab_event.h"

#define INTERVAL     (512 << 10)
#define INTERVAL_MIN 1024
#define INTERVAL_MAX 1e12
#define FREQUENCY    500
#define SHARE        0.018 /* of the program's CPU time: under 2 % as estimates go */

enum key { KEY_TOTAL = 512, KEY_OBJECTS, KEY_INTERVAL };

static const struct manual_option options[] = {
        PID_OPTIONS,
        {'s', "subprocesses", NULL, "also their children, present and future", COMPLETE_NOTHING},
        {'d', "duration", "SECS", "how long to sample (30; 0: until Ctrl-C; a command: until it ends)",
                COMPLETE_NOTHING},
        {KEY_TOTAL, "total", NULL, "show bytes (the default)", COMPLETE_NOTHING},
        {KEY_OBJECTS, "objects", NULL, "show the number of objects", COMPLETE_NOTHING},
        {KEY_INTERVAL, "interval", "BYTES", "average distance of samples, at least (524288; k, m, g)",
                COMPLETE_NOTHING},
        {'F', "freq", "HZ",
                "at most HZ samples per second; beyond that the interval grows (500, or what slows the program by 2 %)",
                COMPLETE_NOTHING},
        {'o', "output", "FILE", "@.html by default; - is stdout; %p is the pid, %t the time", COMPLETE_FILE},
        {'f', "format", "NAME", "the format, whatever the extension of FILE:", COMPLETE_FORMAT},
        {'t', "threads", NULL, "separate threads", COMPLETE_NOTHING},
        {'I', "include", "REGEX", "only stacks with a frame (or class) that matches", COMPLETE_NOTHING},
        {'X', "exclude", "REGEX", "only stacks without a frame (or class) that matches", COMPLETE_NOTHING},
        {FLAME_LINES, "lines", NULL, "split functions by the line being executed", COMPLETE_NOTHING},
        {FLAME_SIGNATURES, "signatures", NULL, "Java methods with the types of their arguments", COMPLETE_NOTHING},
        {FLAME_NO_INLINE, "no-inline", NULL, "leave out inlined functions of native code", COMPLETE_NOTHING},
        {FLAME_DEPTH, "depth", "N", "at most N frames per stack (1024; up to 8192)", COMPLETE_NOTHING},
        {FLAME_TITLE, "title", "TEXT", "what the picture is called (the command)", COMPLETE_NOTHING},
        {FLAME_STATS, "stats", "FILE", "write counts of samples and losses as JSON (- is stdout)", COMPLETE_FILE},
        {FLAME_NO_CACHE, "no-cache", NULL, "do not keep compiled unwind tables on disk", COMPLETE_NOTHING},
        {'q', "quiet", NULL, "no progress", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"-p PID[,PID...] [options]", "[options] -- COMMAND [ARGS...]", NULL};

static const struct manual_example examples[] = {
        {"yrt @ -p 4242 -d 10 -o alloc.html", "ten seconds of a JVM as a page for a browser"},
        {"yrt @ -p 4242 -t --objects -o alloc.html", "objects instead of bytes, by thread"},
        {"yrt @ -p 4242 -o alloc.pb.gz", "both numbers, for pprof"},
        {NULL, NULL},
};

const struct manual java_alloc_manual = {
        .usage = usage,
        .text = "Stacks end in the class of the object. Nothing is loaded into the JVM or written to it: a uprobe "
                "reports when a thread takes a new allocation buffer (TLAB), a debug register watches a random address "
                "in it, and the stack is taken when the thread allocates over that address. Each object outside of "
                "TLABs is seen. So every byte has the same chance to be sampled, at an average distance of --interval, "
                "or a larger one if that would be more than --freq samples per second.\nThe bytes that each thread "
                "allocated are exact, as counted by the JVM, and samples are scaled to them. Shares are estimates: "
                "with n samples a share p has the standard error sqrt(p (1 - p) / n), so 20 % of 2,400 samples are 20 "
                "+- 0.8 %. It is less where the contents of some TLABs, by class and size, improve the estimate. The "
                "last line on stderr has n, the bytes without a stack, and what was lost. A program that takes "
                "thousands of TLABs per second is watched for 0.2 s at random moments, so that it loses less than 2 % "
                "of its CPU time; with --freq it is watched all the time. Numbers of objects come from the same "
                "samples: rare small objects have larger errors.\nIf debug registers are in use or not permitted, a "
                "note says so: then only objects that need a new TLAB, or none, have a stack. Bytes by class and size "
                "come from finished TLABs, and are spread over the stacks seen for objects of that class and about "
                "that size; without such a stack they are under [no stack seen]. Sites that allocate the same class "
                "and size may then be mixed up if a program allocates in a cycle.\nIn a JVM without symbols yrt finds "
                "the allocation functions by their code, and says so; if it cannot, it refuses.",
        .options = options,
        .examples = examples,
};

/* "512k", "10m", "1048576". */
static struct error *parse_bytes(const char *text, u64 *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && (*end == 'k' || *end == 'K'))
		value *= 1 << 10;
	else if (end != text && (*end == 'm' || *end == 'M'))
		value *= 1 << 20;
	else if (end != text && (*end == 'g' || *end == 'G'))
		value *= 1 << 30;
	if (end == text || (*end && end[1]) || (*end && !strchr("kKmMgG", *end)) || !(value >= INTERVAL_MIN) ||
	        value > INTERVAL_MAX)
		return error_new(ERROR_USAGE, "--interval takes bytes, at least %d, as 524288 or 512k, not \"%s\"",
		        INTERVAL_MIN, text);
	*ret = (u64)value;
	return NULL;
}

static struct tlab_event_options of_event = {.interval = INTERVAL};

static struct error *take_option(int option, struct flame_options *o)
{
	if (option == KEY_INTERVAL)
		return parse_bytes(optarg, &of_event.interval);
	if (option != KEY_TOTAL && option != KEY_OBJECTS)
		return flame_option(option, o);
	o->run.second = option == KEY_OBJECTS;
	return NULL;
}

static struct error *parse(int argc, char **argv, struct flame_options *o)
{
	struct manual_getopt g;
	struct error *err = NULL;
	int option;

	flame_defaults(o);
	o->run.sampler.event = &tlab_event;
	o->run.sampler.of_event = &of_event;
	o->run.sampler.frequency = 0;
	o->run.sampler.cpu_percent = 0;
	o->run.sampler.no_kernel = true;
	o->run.sampler.collect.names.inlines = true;
	o->run.sampler.collect.names.objects = true;
	o->output = "java-alloc.html";
	optind = 1;
	manual_getopt(&java_alloc_manual, &g);
	while (!err && (option = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1)
		err = take_option(option, o);
	if (!o->run.sampler.frequency) {
		o->run.sampler.frequency = FREQUENCY;
		of_event.share = SHARE;
	}
	if (!err)
		err = flame_operands(argc, argv, o);
	if (o->run.sampler.duration_s < 0)
		o->run.sampler.duration_s = o->run.command ? 0 : 30;
	return err || o->help ? err : flame_check(o);
}

int java_alloc_main(const struct command_line *self, int argc, char **argv)
{
	struct flame_options o;
	struct error *err = parse(argc, argv, &o);

	if (err) {
		flame_free(&o);
		return report_error(err);
	}
	return flame_run(self, &o, argc, argv);
}
