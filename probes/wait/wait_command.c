/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of off-flame and wall-flame. */
#include "probes/event_command.h"
#include "probes/run.h"
#include "probes/wait/wait.h"
#include "wait_command.h"

/* clang-format off */
#define IDLE_ROWS \
	{WAIT_NO_IDLE, "no-idle", NULL, \
		"hide idle waits: event loops without events, pools without work (the default of views of a " \
		"language)"}, \
	{WAIT_IDLE, "idle", NULL, "show idle waits"},
/* clang-format on */

static const struct setting own[] = {
        {WAIT_MIN, SETTING_OF(struct wait_options, min_ns), .name = "--min", .per_number = 1e3},
        {WAIT_MAX, SETTING_OF(struct wait_options, max_ns), .name = "--max", .per_number = 1e3},
        {WAIT_WAKERS, SETTING_OF(struct wait_options, wakers), .on = true},
        {WAIT_LOGICAL, SETTING_OF(struct wait_options, tasks), .on = true},
        {0},
};

static const struct setting run[] = {
        {WAIT_NO_IDLE, SETTING_OF(struct run_request, sampler.no_idle), .on = true},
        {WAIT_NO_IDLE, SETTING_OF(struct run_request, idle), .on = false},
        {WAIT_IDLE, SETTING_OF(struct run_request, idle), .on = true},
        {WAIT_IDLE, SETTING_OF(struct run_request, sampler.no_idle), .on = false},
        {0},
};

struct error *wait_check(struct run_request *r, bool recorded)
{
	const struct wait_options *o = r->own;

	return o->max_ns && o->max_ns < o->min_ns ? error_new(ERROR_USAGE, "no wait is at least %g and at most %g ms",
	                                                    (double)o->min_ns / 1e6, (double)o->max_ns / 1e6)
	                                          : NULL;
}

static const char *tasks_hint(const void *options)
{
	const struct wait_options *o = options;

	return o->tasks ? NULL : "--logical shows what for";
}

static const struct event_option off_options[] = {
        {-1, NULL, NULL, "Waits"},
        {WAIT_MIN, "min", "TIME",
                "only waits of at least TIME, until the thread is back on a CPU: 20ms, 2s; a number alone is "
                "microseconds"},
        {WAIT_MAX, "max", "TIME", "only waits of at most TIME"},
        {WAIT_WAKERS, "wakers", NULL,
                "on top of each wait, show the stack of the thread that ended it, from its leaf to its root"},
        {WAIT_LOGICAL, "logical", NULL,
                "also show what waits without a thread, sampled: goroutines, virtual threads, tasks of asyncio, "
                "coroutines of LuaJIT"},
        IDLE_ROWS{0},
};

static const struct event_example off_examples[] = {
        {"yrt @ -p 4242 -d 10 -o off.html", "what a process waited for in ten seconds"},
        {"yrt @ -p 4242 -t -U -f txt -o - | less", "a tree for each thread, without the kernel"},
        {"yrt @ -p 4242 --min 10ms -o off.html", "only waits of 10 ms and more"},
        {"yrt @ -p 4242 --no-idle -o off.html", "without idle event loops and pools"},
        {"yrt @ -p 4242 --wakers -o off.html", "with the thread that ended each wait"},
        {"yrt @ -p 4242 --no-idle --logical -o off.html", "with what coroutines, goroutines and tasks wait for"},
        {NULL, NULL},
};

const struct event_command wait_command = {
        .size = sizeof(struct wait_options),
        .own = own,
        .run = run,
        .check = wait_check,
        .tasks_hint = tasks_hint,
        .text = "Each stack ends in what the thread waits for: [mutex accounts], [GIL] (locks, as in lock-flame), "
                "[epoll], [sleep], [read of a socket], [receive on a client's socket] (the connection was "
                "accepted), [page fault], [run queue] (it could run, but others had the CPU: after a preemption, or "
                "after its wait) and so on. Time is exact, summed over all "
                "threads, including those that sleep during the whole run. If threads wait so often that a stack for "
                "each wait would slow them down, waits shorter than 50 ms are sampled at random and weighted.\n"
                "The last line on stderr says whether time on and off the CPU adds up to the lifetime of the threads, "
                "what was truncated and what was lost. Views of a language hide idle waits (event loops without "
                "events, pools without work, servers until their clients say something) and say how much time that "
                "was; --idle shows them. Other commands hide "
                "them with --no-idle.",
        .options = off_options,
        .examples = off_examples,
};

static const struct event_option wall_options[] = {
        {-1, NULL, NULL, "Waits"},
        IDLE_ROWS{0},
};

static const struct event_example wall_examples[] = {
        {"yrt @ -p 4242 -d 10 -o wall.html", "where the time of all threads goes, on and off the CPU"},
        {"yrt @ -p 4242 --timeline -o wall.html", "and when, with a strip for each thread"},
        {"yrt @ -p 4242 --no-idle -t -U -f txt -o - | less", "a tree for each thread, without its idle time"},
        {NULL, NULL},
};

static const char *wall_tasks_hint(const void *options)
{
	return "`yrt off-flame --logical` shows what for";
}

const struct event_command wall_command = {
        .run = run,
        .tasks_hint = wall_tasks_hint,
        .text = "Each stack ends in the state of its thread: [running], [run queue] (it could run, but others had the "
                "CPU: after a preemption, or after its wait), or what it waits for, as in off-flame. Time off the CPU "
                "is exact; time on the CPU is sampled "
                "(--freq). The last line on stderr says whether both add up to the lifetime of the threads. Views of a "
                "language hide idle waits; --idle shows them, --no-idle hides them in other commands. With --timeline "
                "the page has a strip for each thread.",
        .options = wall_options,
        .examples = wall_examples,
};
