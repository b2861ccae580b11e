/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of lock-flame. */
#include "probes/event_command.h"
#include "probes/run.h"
#include "probes/wait/wait.h"
#include "wait_command.h"

static const struct setting own[] = {
        {WAIT_MIN, SETTING_OF(struct wait_options, min_ns), .name = "--min", .per_number = 1e3},
        {WAIT_MAX, SETTING_OF(struct wait_options, max_ns), .name = "--max", .per_number = 1e3},
        {WAIT_HOLDERS, SETTING_OF(struct wait_options, wakers), .on = true},
        {WAIT_LOGICAL, SETTING_OF(struct wait_options, tasks), .on = true},
        {0},
};

static const struct setting run[] = {
        {WAIT_ALL, SETTING_OF(struct run_request, sampler.collect.all_waits), .on = true},
        {0},
};

static void explain(FILE *out, const struct run_request *r, const struct sampler_stats *st)
{
	if (st->collect.idle && !st->collect.counted)
		fputs("no thread waited for a lock: --all-waits shows what else was waited for\n", out);
}

static const char *tasks_hint(const void *options)
{
	const struct wait_options *o = options;

	return o->tasks ? NULL : "--logical shows what for";
}

static const struct event_option lock_options[] = {
        {WAIT_MIN, "min", "TIME", "only waits of at least TIME: 20ms, 2s; a number alone is microseconds"},
        {WAIT_MAX, "max", "TIME", "only waits of at most TIME"},
        {WAIT_HOLDERS, "holders", NULL,
                "show inside each wait the stack of the thread that released the lock, leaf first"},
        {WAIT_ALL, "all-waits", NULL, "also other waits in futex(2): conditions, semaphores, joins, idle pools"},
        {WAIT_LOGICAL, "logical", NULL, "also goroutines that wait for a lock, sampled: they have no thread then"},
        {0},
};

static const struct event_example lock_examples[] = {
        {"yrt @ -p 4242 -d 10 -o lock.html", "which locks threads waited for in ten seconds"},
        {"yrt @ -p 4242 --holders -o lock.html", "and who released them"},
        {"yrt @ -p 4242 --logical -o lock.html", "with goroutines that wait for a sync.Mutex"},
        {"yrt @ -p 4242 -t -f txt -o - | less", "a tree for each thread"},
        {"yrt @ -p 4242 --all-waits -f txt -o - | less", "with conditions, semaphores and parked threads"},
        {NULL, NULL},
};

const struct event_command lock_command = {
        .size = sizeof(struct wait_options),
        .own = own,
        .run = run,
        .check = wait_check,
        .explain = explain,
        .tasks_hint = tasks_hint,
        .no_kernel = true, /* they are those of futex(2) */
        .text = "Each stack ends in the lock that the thread waits for: [mutex stats_lock], [read lock heap "
                "0x55d0c8a4], [GIL], or [futex 0x7f12...] if its use is not known. Functions on the stack distinguish "
                "locks from other waits in futex(2): conditions, semaphores, joins, idle pools. Those are summed in "
                "the last line and shown by --all-waits. In Java, such a wait counts as one for a lock if the thread "
                "is in the middle of its work: a request that needs a connection from a pool.\n"
                "A wait is the time off the CPU until the thread is woken up: spinning and uncontended locks are not "
                "seen, and what threads then wait for a CPU is summed in the last line only. If threads wait so "
                "often that a stack for each wait would slow them down, waits shorter than 50 ms are sampled at "
                "random and weighted.",
        .options = lock_options,
        .examples = lock_examples,
};
