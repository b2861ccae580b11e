/* SPDX-License-Identifier: Apache-2.0 */
/* The help of off-flame and wall-flame. */
#include "flame_rows.h"

#define IDLE_ROWS                                                                                                      \
	{FLAME_NO_IDLE, "no-idle", NULL,                                                                               \
	        "hide idle waits: event loops without events, pools without work (the default of views of a "          \
	        "language)",                                                                                           \
	        COMPLETE_NOTHING},                                                                                     \
	        {FLAME_IDLE, "idle", NULL, "show idle waits", COMPLETE_NOTHING},

static const struct manual_option off_options[] = {
        TARGET_ROWS MANUAL_HEADING("Waits"),
        {FLAME_MIN, "min", "TIME", "only waits of at least TIME: 20ms, 2s; a number alone is microseconds",
                COMPLETE_NOTHING},
        {FLAME_MAX, "max", "TIME", "only waits of at most TIME", COMPLETE_NOTHING},
        {FLAME_WAKERS, "wakers", NULL, "show inside each wait the stack of the thread that ended it, leaf first",
                COMPLETE_NOTHING},
        {FLAME_LOGICAL, "logical", NULL,
                "also show what waits without a thread, sampled: goroutines, virtual threads, tasks of asyncio, "
                "coroutines of LuaJIT",
                COMPLETE_NOTHING},
        IDLE_ROWS OUTPUT_ROWS{0},
};

static const struct manual_example off_examples[] = {
        {"yrt @ -p 4242 -d 10 -o off.html", "what a process waited for in ten seconds"},
        {"yrt @ -p 4242 -t -U -f txt -o - | less", "a tree for each thread, without the kernel"},
        {"yrt @ -p 4242 --min 10ms -o off.html", "only waits of 10 ms and more"},
        {"yrt @ -p 4242 --no-idle -o off.html", "without idle event loops and pools"},
        {"yrt @ -p 4242 --wakers -o off.html", "with the thread that ended each wait"},
        {"yrt @ -p 4242 --no-idle --logical -o off.html", "with what coroutines, goroutines and tasks wait for"},
        {NULL, NULL},
};

const struct manual off_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in what the thread waits for: [futex], [epoll], [sleep], [read of a socket], [page "
                "fault], [run queue] (it could run, but others had the CPU) and so on. Time is exact, summed over all "
                "threads, including those that sleep during the whole run. If threads wait so often that a stack for "
                "each wait would slow them down, waits shorter than 50 ms are sampled at random and weighted.\n"
                "The last line on stderr says whether time on and off the CPU adds up to the lifetime of the threads, "
                "what was truncated and what was lost. Views of a language hide idle waits (event loops without "
                "events, pools without work) and say how much time that was; --idle shows them. Other commands hide "
                "them with --no-idle.",
        .options = off_options,
        .examples = off_examples,
};

static const struct manual_option wall_options[] = {
        TARGET_ROWS RATE_ROWS MANUAL_HEADING("Waits"),
        IDLE_ROWS OUTPUT_ROWS{0},
};

static const struct manual_example wall_examples[] = {
        {"yrt @ -p 4242 -d 10 -o wall.html", "where the time of all threads goes, on and off the CPU"},
        {"yrt @ -p 4242 --timeline -o wall.html", "and when, with a strip for each thread"},
        {"yrt @ -p 4242 --no-idle -t -U -f txt -o - | less", "a tree for each thread, without its idle time"},
        {NULL, NULL},
};

const struct manual wall_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in the state of its thread: [running], [run queue] (it could run, but others had the "
                "CPU), or what it waits for, as in off-flame. Time off the CPU is exact; time on the CPU is sampled "
                "(--freq). The last line on stderr says whether both add up to the lifetime of the threads. Views of a "
                "language hide idle waits; --idle shows them, --no-idle hides them in other commands. With --timeline "
                "the page has a strip for each thread.",
        .options = wall_options,
        .examples = wall_examples,
};
