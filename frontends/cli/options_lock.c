/* SPDX-License-Identifier: Apache-2.0 */
/* What help says of lock-flame. */
#include "flame_rows.h"

static const struct manual_option lock_options[] = {
        TARGET_ROWS{FLAME_MIN, "min", "TIME", "only waits of at least TIME: 20ms, 2s; a number alone is microseconds",
                COMPLETE_NOTHING},
        {FLAME_MAX, "max", "TIME", "only waits of at most TIME", COMPLETE_NOTHING},
        {FLAME_HOLDERS, "holders", NULL,
                "show inside each wait the stack of the thread that released the lock, leaf first", COMPLETE_NOTHING},
        {FLAME_ALL_WAITS, "all-waits", NULL, "also other waits in futex(2): conditions, semaphores, joins, idle pools",
                COMPLETE_NOTHING},
        {FLAME_LOGICAL, "logical", NULL, "also goroutines that wait for a lock, sampled: they have no thread then",
                COMPLETE_NOTHING},
        OUTPUT_ROWS{0},
};

static const struct manual_example lock_examples[] = {
        {"yrt @ -p 4242 -d 10 -o lock.html", "which locks threads waited for in ten seconds"},
        {"yrt @ -p 4242 --holders -o lock.html", "and who released them"},
        {"yrt @ -p 4242 --logical -o lock.html", "with goroutines that wait for a sync.Mutex"},
        {"yrt @ -p 4242 -t -f txt -o - | less", "a tree for each thread"},
        {"yrt @ -p 4242 --all-waits -f txt -o - | less", "with conditions, semaphores and parked threads"},
        {NULL, NULL},
};

const struct manual lock_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in the lock that the thread waits for: [mutex stats_lock], [read lock heap "
                "0x55d0c8a4], [GIL], or [futex 0x7f12...] if its use is not known. Functions on the stack distinguish "
                "locks from other waits in futex(2): conditions, semaphores, joins, idle pools. Those are summed in "
                "the last line and shown by --all-waits. In Java, those of a thread that is in the midst of something "
                "are shown among the locks: a request that needs a connection of a pool.\nA wait is the time off the "
                "CPU: spinning and uncontended "
                "locks are not seen. If threads wait so often that a stack for each wait would slow them down, waits "
                "shorter than 50 ms are sampled at random and weighted.",
        .options = lock_options,
        .examples = lock_examples,
};
