/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of requests. */
#include <stdlib.h>
#include <string.h>

#include "probes/event_command.h"
#include "probes/hit/hit_native_key.h"
#include "probes/run.h"
#include "probes/sampler.h"
#include "request_calls.h"
#include "request_rules.h"
#include "request_run.h"
#include "unwind/cleanup.h"
#include "unwind/process/children.h"

enum { REQUEST_OVER = EVENT_KEY, REQUEST_BEGIN, REQUEST_END, REQUEST_RUN, REQUEST_LOOP, REQUEST_KEY };

#define KEY_REGS  9
#define LOOKED_NS 80000000ull /* of coroutines that take so long it is known where they were suspended */

static const struct setting own[] = {
        {REQUEST_OVER, SETTING_OF(struct request_options, over_ns), .name = "--over"},
        {0},
};

static struct error *take_function(const char *option, const char *text, struct hit_spec *ret)
{
	struct error *err = hit_parse(text, ret);

	if (err)
		return err;
	if (ret->language)
		return error_hint(error_new(ERROR_USAGE, "%s %s: a function of a language", option, text),
		        "there requests are calls of one function: --begin %s, without --end", text);
	if (ret->kind == HIT_USDT || ret->kind == HIT_TRACEPOINT)
		return error_hint(
		        error_new(ERROR_USAGE, "%s %s: not a function of a program or a library", option, text),
		        "FUNCTION or FILE:FUNCTION, as profiles show them");
	ret->kind = HIT_FUNCTION;
	return NULL;
}

/* Where requests begin; of a language, the function that handles one. */
static struct error *take_begin(struct request_options *o, const char *text)
{
	if (!hit_language(text)) {
		o->has_begin = true;
		o->begin_text = text;
		return take_function("--begin", text, &o->begin);
	}
	if (o->ncalls == HIT_SPECS_MAX)
		return error_new(ERROR_USAGE, "--begin can be given %d times", HIT_SPECS_MAX);
	o->call[o->ncalls++] = text;
	return NULL;
}

static struct error *take_key(struct request_options *o, const char *text)
{
	const char *number = strncmp(text, "arg", 3) ? text : text + 3;
	char *end;
	unsigned long n = strtoul(number, &end, 10);

	if (!*number || *end || n < 1 || n > 6)
		return error_hint(error_new(ERROR_USAGE, "--key %s: not an argument", text),
		        "arg1 to arg6: what the functions are called with, and all requests have another one of");
	o->key = (u32)n;
	return NULL;
}

static struct error *option(struct run_request *r, int key, const char *argument, bool *taken)
{
	struct request_options *o = r->own;

	*taken = true;
	switch (key) {
	case REQUEST_BEGIN:
		return take_begin(o, argument);
	case REQUEST_END:
		o->has_end = true;
		return take_function("--end", argument, &o->end);
	case REQUEST_LOOP:
		o->has_rest = true;
		return take_function("--loop", argument, &o->rest);
	case REQUEST_RUN:
		if (o->nruns == REQUEST_RUNS_MAX)
			return error_new(ERROR_USAGE, "--run can be given %d times", REQUEST_RUNS_MAX);
		return take_function("--run", argument, &o->run[o->nruns++]);
	case REQUEST_KEY:
		o->call_key = argument;
		return NULL;
	default:
		*taken = false;
		return NULL;
	}
}

static void defaults(struct run_request *r)
{
	r->sampler.follow = true;              /* workers, also of a reload */
	r->sampler.collect.names.lines = true; /* slow requests are shown with lines */
}

/* Requests become calls of functions of languages. */
static void follow_calls(struct run_request *r)
{
	struct request_options *o = r->own;
	struct hit_options *calls = &o->calls;

	calls->returns = true;
	calls->over_ns = 1; /* every call is reported */
	calls->listed_ns = o->over_ns;
	calls->looked_ns = o->over_ns ?: LOOKED_NS;
	for (u32 i = 0; i < calls->n && o->call_key; i++)
		calls->key[i] = o->call_key;
	r->sampler.event = o->both ? &request_both_event : &request_calls_event;
}

/* Of a target and of its children. */
static struct error *add_rules(const struct run_request *r, pid_t pid, struct request_options *o)
{
	cleanup(free) pid_t *children = NULL;
	u32 n = 0;
	struct error *err = request_rules_add(pid, &o->calls, &o->both);

	if (!err && r->sampler.follow)
		error_free(children_list(pid, &children, &n)); /* attaching says why */
	for (u32 i = 0; !err && i < n; i++)
		err = request_rules_add(children[i], &o->calls, &o->both);
	return err;
}

/* Servers of the other kind may be there (request_both.c). */
static struct error *none_is_fine(void)
{
	return NULL;
}

/* What rules know of the targets. Those of a selection, or of a program that is to be started, can be anything. */
static struct error *find_rules(const struct run_request *r, struct request_options *o)
{
	struct error *err = NULL;

	o->both = !r->npids || r->sampler.selection;
	if (o->both)
		err = request_rules_add_all(&o->calls);
	for (int i = 0; !err && i < r->npids; i++)
		err = add_rules(r, r->pids[i], o);
	o->both &= o->calls.n > 0;
	o->calls.none = o->both ? none_is_fine : request_rules_none;
	return err;
}

/* Calls that are requests: those of --begin, or what rules know. There may be none. */
static struct error *find_calls(struct run_request *r)
{
	struct request_options *o = r->own;
	struct hit_options *calls = &o->calls;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < o->ncalls; i++)
		err = hit_add(calls, o->call[i]);
	if (!err && o->has_begin) {
		err = hit_add(calls, o->begin_text);
		calls->spec[0].kind = HIT_FUNCTION;
	}
	return err || calls->n ? err : find_rules(r, o);
}

static struct error *check_native(struct request_options *o)
{
	if (o->call_key) {
		struct error *err = take_key(o, o->call_key);

		if (err)
			return err;
	}
	if (o->has_begin == o->has_end && (o->has_begin || (!o->nruns && !o->has_rest && !o->key)))
		return NULL;
	return error_hint(error_new(ERROR_USAGE, "%s is missing", o->has_begin ? "--end" : "--begin"),
	        "--begin FUNCTION --end FUNCTION [--key arg1] say where requests begin and end");
}

/* Functions of languages may have more registers than those of C. */
static struct error *check_key(const char *key)
{
	struct value_places unused;
	u8 regs[KEY_REGS] = {0};

	if (hit_native_key(key, regs, KEY_REGS, &unused))
		return NULL;
	return error_hint(error_new(ERROR_USAGE, "--key %s: not the way to a text", key),
	        "arg1+48 is a text of C whose address is 48 bytes behind what the first argument points to, arg1+16+56 "
	        "has a pointer between, arg1+0# has its length behind its address; several with commas");
}

static struct error *check(struct run_request *r, bool recorded)
{
	struct request_options *o = r->own;
	bool key = o->call_key && hit_native_key_is(o->call_key);
	bool native = o->has_end || o->nruns || o->has_rest || (o->has_begin && o->call_key && !key);
	struct error *err = NULL;

	if ((native || o->has_begin) && o->ncalls)
		return error_hint(error_new(ERROR_USAGE, "--begin %s: a function of a language", o->call[0]),
		        "its requests are its calls: it goes without --end, --run, --loop and other kinds of --begin");
	if (!err && key)
		err = check_key(o->call_key);
	if (!err && !native)
		err = find_calls(r);
	if (!err && !o->calls.n)
		return check_native(o);
	if (!err)
		follow_calls(r);
	return err;
}

static void explain(FILE *out, const struct run_request *r, const struct sampler_stats *st)
{
	const struct request_summary *summary = st->of_event;

	if (!summary->counts.begun)
		fputs("no request began during the run\n", out);
}

static const char *const usage[] = {"-p PID[,PID...] [--over TIME] [options]",
        "--begin FUNCTION --end FUNCTION [--key arg1] -p PID [options]",
        "--begin FUNCTION [--key ARGUMENT] -p PID [options]", NULL};

static const struct event_option first[] = {
        {REQUEST_OVER, "over", "TIME", "list, and show stacks of, only requests that last at least TIME (500ms)"},
        {REQUEST_BEGIN, "begin", "FUNCTION",
                "of another server: requests begin where this is called; without --end they are its calls. Of "
                "Python, Java, Perl, Lua as `yrt latency -e` takes it; up to 64"},
        {REQUEST_END, "end", "FUNCTION", "and end where this is called"},
        {REQUEST_KEY, "key", "ARG",
                "the argument of both that tells requests apart: arg1 to arg6; default arg1. Of a function of "
                "Python, Java, Lua: the argument that is the route, by name or number from 0, or what a dict has: "
                "environ[PATH_INFO]; of Python and Java also what its fields lead to: self.request.path; of Perl "
                "1[PATH_INFO]; of a "
                "native function without --end arg1+48: the text whose address is 48 bytes behind what the argument "
                "points to, with '#' behind it one whose length follows its address (Go); several with commas"},
        {REQUEST_RUN, "run", "FUNCTION",
                "works for a request, its key as --key says: of an event loop that serves many; up to 8"},
        {REQUEST_LOOP, "loop", "FUNCTION", "called where the event loop begins a turn: for no request"},
        {0},
};

static const struct event_example examples[] = {
        {"yrt @ -p 4242 -d 10", "nginx (its master or a worker), Envoy: requests by route"},
        {"yrt @ -p 4242 --over 500ms -o slow.html", "what slow ones did, and waited for"},
        {"yrt @ --begin handle_start --end handle_done -p 4242", "another server"},
        {"yrt @ -p 4242 -d 10", "Django, FastAPI, WSGI, Go's net/http, httpd, Tomcat, Jetty: the same"},
        {"yrt @ --begin ap_process_async_request --key arg1+48 -p 4242", "calls of any function, by a text"},
        {"yrt @ --begin 'python:shop.views.*' -p 4242", "each view of Python is a row"},
        {"yrt @ --begin python:shop.jobs.run --key name -p 4242", "jobs by an argument"},
        {NULL, NULL},
};

const struct event_command request_command = {
        .size = sizeof(struct request_options),
        .usage = usage,
        .text = "Prints a table of requests by route on stderr: how many, how long, and where their time went: on the "
                "CPU, on the run queue, blocked in the kernel, idle (waiting for a client, an upstream or a timer "
                "while the thread slept), or waiting while the thread worked for others. Then the slowest, with their "
                "stacks. An event loop's thread is charged to the request whose handler runs. The page shows both, "
                "and --stats writes them as JSON; stacks count the time of requests.\n"
                "nginx and OpenResty are known, also stripped, with Lua, HTTP/2 and subrequests (part of their "
                "request), and so is Envoy 1.36 to 1.40, also stripped: there a request is named by the path that is "
                "sent to the upstream, and lasts until its memory is freed.\n"
                "Of other servers each call of the function that handles a request is one: of those that are known "
                "without being told (Django, Flask, Starlette and FastAPI, Quart, Litestar, Falcon, Bottle, Pyramid, "
                "CherryPy, Tornado, aiohttp, Sanic, plain WSGI and ASGI, Go's net/http with gin, echo and chi, Apache "
                "httpd, Tomcat and "
                "Spring, Jetty, Undertow's servlets, the JDK's server, Mojolicious, Dancer2, Catalyst, PSGI by method "
                "and path, Celery by task, gRPC in Go by method; Fiber as one row), else of "
                "--begin. What its thread ran, queued and waited for is "
                "the request's; of a coroutine, whose thread serves others, too, only idle (the thread slept) and "
                "others are known, and the lines where it was suspended.\n"
                "Several targets (-p PID,PID, --select, a program that is started) may be of different kinds: the "
                "table has the requests of all; beside nginx or Envoy those of frameworks begin with their language: "
                "what passes both is in it twice. Children of the process are followed. "
                "Requests that began before the run are not counted. A request costs the target some 6 hits of 1 to 3 "
                "us, 20 us in some virtual machines: where that is too much, requests are followed in shifts "
                "(--max-cpu). Ctrl-C ends the run early and keeps the result.",
        .first = first,
        .own = own,
        .option = option,
        .defaults = defaults,
        .check = check,
        .explain = explain,
        .examples = examples,
};
