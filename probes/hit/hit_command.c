/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of probe and latency. */
#include <string.h>

#include "probes/event_command.h"
#include "probes/run.h"
#include "probes/hit/hit.h"
#include "probes/hit/hit_inlining.h"
#include "probes/hit/hit_slow.h"

enum { LATENCY_OVER = EVENT_KEY, HIT_LIST, HIT_ARGUMENTS, HIT_IF };

static const struct setting latency_own[] = {
        {LATENCY_OVER, SETTING_OF(struct hit_options, over_ns), .name = "--over"},
        {0},
};

static const struct setting hit_own[] = {
        {HIT_ARGUMENTS, SETTING_OF(struct hit_options, arguments), .on = true},
        {0},
};

/* Of the -e before it. */
static struct error *add_condition(struct hit_options *o, const char *text)
{
	if (!o->n)
		return error_hint(error_new(ERROR_USAGE, "--if %s: it stands behind the -e that it is of", text),
		        "-e libc:malloc --if '_arg(0) > 4096'");
	if (o->condition[o->n - 1])
		return error_hint(error_new(ERROR_USAGE, "-e %s: it has two --if", o->spec[o->n - 1].text),
		        "A && B is one condition");
	o->condition[o->n - 1] = text;
	return NULL;
}

static struct error *take_probe(struct run_request *r, int key, const char *argument, bool *taken)
{
	*taken = key == 'e' || key == HIT_LIST || key == HIT_IF;
	if (key == HIT_IF)
		return add_condition(r->own, argument);
	if (key == HIT_LIST)
		return error_hint(error_new(ERROR_USAGE, "--list comes first"), "yrt probe --list -p PID 'libc:mall*'");
	return *taken ? hit_add(r->own, argument) : NULL;
}

static struct error *check_probe(struct run_request *r, bool recorded)
{
	const struct hit_options *o = r->own;

	for (u32 i = 0; o->arguments && i < o->n; i++)
		if (!o->spec[i].language)
			return error_hint(error_new(ERROR_USAGE,
			                          "-e %s: --arguments shows those of functions of Python, Lua and Java",
			                          o->spec[i].text),
			        "of others `yrt y` shows them: yrt y -e '_map long n[_stack, long]; _probe "
			        "libc:malloc { n[_stack, _arg(0)]++; }'");
	if (o->n)
		return NULL;
	return error_hint(error_new(ERROR_USAGE, "no probe was given"),
	        "yrt probe -e libc:malloc -p PID; -o x.yrt makes a recording");
}

static struct error *check_timed(struct hit_spec *s)
{
	if (s->kind == HIT_TRACEPOINT || s->kind == HIT_USDT)
		return error_hint(error_new(ERROR_USAGE, "-e %s: latency takes functions", s->text),
		        "yrt latency -e libc:malloc -p PID");
	if (!s->language && hit_is_pattern(s))
		return error_hint(error_new(ERROR_USAGE, "-e %s: latency takes functions, not a pattern", s->text),
		        "`yrt probe -e '%s'` counts them; `yrt functions` lists them", s->text);
	if (!s->language)
		s->kind = HIT_FUNCTION;
	return NULL;
}

static struct error *check_latency(struct run_request *r, bool recorded)
{
	struct hit_options *o = r->own;

	struct error *err = NULL;

	if (!o->n)
		return error_hint(error_new(ERROR_USAGE, "no function was given"), "yrt latency -e libc:malloc -p PID");
	for (u32 i = 0; !err && i < o->n; i++)
		err = check_timed(&o->spec[i]);
	if (err)
		return err;
	o->returns = true;
	if (o->over_ns)
		r->sampler.collect.names.lines = true; /* slow calls are shown with lines */
	return NULL;
}

/*
 * A handler for each condition, which says by the map whether the call meets it (y/y_if.h); what could not be evaluated
 * is counted by its cause.
 */
static char *asks(const void *own)
{
	const struct hit_options *o = own;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool any = false;

	if (!out)
		return NULL;
	fputs("_map long yes[_stack]; _map long no[_stack]; _map long failed[_stack];\n", out);
	for (u32 i = 0; i < o->n; i++) {
		if (!o->condition[i])
			continue;
		fprintf(out,
		        "_probe %s { _try { if (\n%s\n)\nyes[_stack]++; else no[_stack]++; }\n"
		        "_catch { failed[_stack] += _status; } }\n",
		        o->spec[i].text, o->condition[i]);
		any = true;
	}
	if (!fclose(out) && any)
		return text;
	free(text);
	return NULL;
}

static void explain(FILE *out, const struct hit_options *o, u64 calls)
{
	bool functions = false;

	for (u32 i = 0; i < o->n; i++)
		functions |= !o->spec[i].language && (o->spec[i].kind == HIT_ANY || o->spec[i].kind == HIT_FUNCTION);
	if (!calls && functions && !o->conditions)
		fputs("no hit: nothing called it in this time (copies that the compiler put into callers are no "
		      "calls)\n",
		        out);
}

static void explain_probe(FILE *out, const struct run_request *r, const struct sampler_stats *st)
{
	const struct hit_summary *summary = st->of_event;

	explain(out, r->own, st->probe.weights);
	if (summary->inlined)
		hit_inlined_explain(out, r, summary->inlined);
}

static void explain_latency(FILE *out, const struct run_request *r, const struct sampler_stats *st)
{
	const struct latency_summary *latency = st->of_event;
	u64 calls = 0;

	for (u32 i = 0; i < latency->n; i++)
		calls += latency->of[i].counts.entered;
	explain(out, r->own, calls);
	if (latency->inlined)
		hit_inlined_explain(out, r, latency->inlined);
}

static const struct event_option probe_first[] = {
        {'e', "event", "WHAT",
                "FILE:FUNCTION, FUNCTION, FILE+0xADDRESS, PROVIDER:PROBE (USDT), CATEGORY:TRACEPOINT, "
                "python:MODULE.FUNCTION, lua:FILE:FUNCTION, lua:FILE:LINE, perl:PACKAGE::SUB, java:CLASS.METHOD or "
                "go:FUNCTION; up to 64. In FILE:FUNCTION * stands for any characters: up to 64 functions"},
        {HIT_IF, "if", "CONDITION",
                "only calls of the -e before it that meet this: C's expressions, as `yrt y` has them. Arguments are "
                "_arg(0), _arg(1), or $NAME where names are known: --if '_arg(0) > 4096', --if '$customer == "
                "\"bob\"'"},
        {HIT_ARGUMENTS, "arguments", NULL,
                "calls of Python's, Lua's and Java's functions by their arguments: each set of values is a frame, and "
                "the most frequent are listed"},
        {HIT_LIST, "list", NULL, "list what -e takes, for -p and patterns, as `yrt functions` does"},
        {0},
};

static const char *const probe_usage[] = {"-e WHAT [--if CONDITION] [-e WHAT...] -p PID[,PID...] [options]",
        "-e WHAT [options] -- COMMAND [ARGS...]", NULL};

static const struct event_example probe_examples[] = {
        {"yrt @ -e libc:malloc -p 4242 -d 10 -o malloc.html", "who calls malloc()"},
        {"yrt @ --list -p 4242 'libc:mall*'", "which functions there are"},
        {"yrt @ -e 'libc:mall*' -p 4242 -d 10", "all of them"},
        {"yrt @ -e nginx:ngx_http_finalize_request -p 4242", "a function of the program"},
        {"yrt @ -e sched:sched_process_exec -s -p 4242", "a tracepoint: who starts programs"},
        {"yrt @ -e python:gc__start -p 4242", "a USDT probe, by its provider and name"},
        {"yrt @ -e python:orders.views.checkout -p 4242", "a function of Python"},
        {"yrt @ -e python:orders.views.checkout --arguments -p 4242", "with which arguments"},
        {"yrt @ -e lua:access.lua:handle -p 4242", "one of Lua, by the end of its file's path"},
        {"yrt @ -e perl:Shop::Order::place -p 4242", "a sub of Perl"},
        {"yrt @ -e java:com.shop.OrderService.place -p 4242", "a method of Java"},
        {"yrt @ -e nginx+0x51340 -p 4242", "code without a symbol, as stacks show it"},
        {"yrt @ -e libc:malloc --if '_arg(0) > 65536' -p 4242", "only large blocks"},
        {"yrt @ -e python:orders.views.checkout --if '$user == \"bob\"' -p 4242", "only calls with this argument"},
        {"yrt y -e '_map long n[_stack, long]; _probe libc:malloc { n[_stack, _arg(0)]++; }' -p 4242",
                "stacks with the first argument of each call"},
        {NULL, NULL},
};

const struct event_command hit_command = {
        .lister = "functions",
        .usage = probe_usage,
        .text = "Each hit counts once for its stack: user, language and kernel frames. FILE is a mapped program or "
                "library: the beginning of its name (libc for libc.so.6) or the end of its path. All functions of the "
                "name are probed, C++'s with any arguments if none are given. If WHAT is ambiguous, put uprobe:, "
                "usdt: or tracepoint: in front.\n"
                "Functions of an interpreter are watched by debug registers, of which each thread has four: more "
                "functions are watched in turns. `yrt functions` lists them. The end of a name is enough if only one "
                "function has it, and * stands for any characters. A function that is defined anew during the run is "
                "found within a second. A hit costs the target 1 us, 15 to 50 us in some virtual machines. Calls that "
                "a "
                "JIT inlined are not counted: a note names the callers and, by a CPU profile of a second after the "
                "run, "
                "the share of samples.\n"
                "A hit of other functions costs the target 1 to 3 us, 20 us in some virtual machines. If that is more "
                "than a quarter of --max-cpu (of an interpreter's functions a tenth), functions are probed in shifts, "
                "and hits of a shift stand for those in between. If stacks take more than --max-cpu, every second hit "
                "gets one and counts twice, then every "
                "fourth, and so on. yrt says when it does either. Ctrl-C ends the run early and keeps the result.",
        .size = sizeof(struct hit_options),
        .first = probe_first,
        .own = hit_own,
        .option = take_probe,
        .asks = asks,
        .check = check_probe,
        .explain = explain_probe,
        .examples = probe_examples,
};

static const struct event_option latency_first[] = {
        {'e', "event", "FUNCTION",
                "FILE:FUNCTION, FUNCTION, FILE+0xADDRESS, python:MODULE.FUNCTION, lua:FILE:FUNCTION, lua:FILE:LINE, "
                "perl:PACKAGE::SUB or java:CLASS.METHOD; up to 64, each with its own histogram"},
        {HIT_IF, "if", "CONDITION",
                "only calls of the -e before it that meet this: C's expressions, as `yrt y` has them. Arguments are "
                "_arg(0), _arg(1), or $NAME where names are known: --if '_arg(0) > 4096', --if '$customer == "
                "\"bob\"'"},
        {LATENCY_OVER, "over", "TIME",
                "stacks only of calls that last at least TIME (100ms, 5us), with their arguments and waits"},
        {0},
};

static const char *const latency_usage[] = {
        "-e FUNCTION [--if CONDITION] [-e FUNCTION...] [--over TIME] -p PID [options]",
        "-e FUNCTION [options] -- COMMAND [ARGS...]", NULL};

static const struct event_example latency_examples[] = {
        {"yrt @ -e libc:fsync -p 4242 -d 10", "how long each fsync() took"},
        {"yrt @ -e nginx:ngx_http_process_request --over 100ms -p 4242 -o slow.html",
                "slow ones: stacks, arguments, waits"},
        {"yrt @ -e java:shop.Order.place --if '$customer == \"bob\"' -p 4242", "calls for one customer alone"},
        {"yrt @ -e java:shop.Order.place --over 50ms -p 4242", "a method of Java; `yrt functions` lists names"},
        {"yrt @ -e python:shop.views.checkout -e python:shop.db.query -e libpq:PQexec -p 4242",
                "how much of a view's time is its queries"},
        {NULL, NULL},
};

const struct event_command latency_command = {
        .usage = latency_usage,
        .text = "The histogram is printed on stderr, shown in the page, and written as JSON with --stats (of several "
                "functions as a list); stacks count the time of slow calls. Each call costs the target two hits of 1 "
                "to 3 us, up to 40 us in some virtual machines. What they add to its time is measured at the start and "
                "subtracted from the mean, the median, the 99th percentile and the histogram; `under 5 us` is a time "
                "too short to be told from it. If hits take more than a quarter of --max-cpu (of an interpreter's "
                "functions a tenth), the function is probed in shifts of 20 ms and more, and calls of a shift stand "
                "for those in between; calls that last longer than a second are not "
                "seen then. yrt finds the returns in the function's code. Functions of Python, Lua, Perl and Java are "
                "watched by debug registers. Those that return at more than three places are refused, except Perl's "
                "and those of Python 3.11 to 3.13: there a call that an exception ends counts as a return, and is "
                "also counted separately. A call of Lua that yields, a coroutine (`async def`) or a generator of "
                "Python "
                "lasts until it returns; what it ran and waited for is then what its thread did, also for others.\n"
                "With --over, the longest calls are listed with their arguments, what they waited for and, of native "
                "functions and Go's with debug information and of compiled Java, what they returned; stacks "
                "show where they waited and ran; a coroutine shows the lines where it was suspended, of all that it "
                "awaited in turn. Debug information gives the arguments names and types. Memory that "
                "they point to is read as the call returns. Ctrl-C ends the run early and keeps the result.",
        .size = sizeof(struct hit_options),
        .first = latency_first,
        .own = latency_own,
        .option = take_probe,
        .asks = asks,
        .check = check_latency,
        .explain = explain_latency,
        .examples = latency_examples,
};
