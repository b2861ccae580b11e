/* SPDX-License-Identifier: Apache-2.0 */
/* What help says of lock-flame. */
#include "flame_rows.h"

static const struct manual_option lock_options[] = {
        TARGET_ROWS{FLAME_MIN, "min", "USECS", "only waits that last at least so long", COMPLETE_NOTHING},
        {FLAME_MAX, "max", "USECS", "only waits that last at most so long", COMPLETE_NOTHING},
        {FLAME_HOLDERS, "holders", NULL,
                "inside each wait the stack of the thread that released the lock, from its leaf to its root",
                COMPLETE_NOTHING},
        {FLAME_ALL_WAITS, "all-waits", NULL,
                "also waits in futex(2) for what nobody holds: conditions, semaphores, ends of threads, work",
                COMPLETE_NOTHING},
        OUTPUT_ROWS{0},
};

static const struct manual_example lock_examples[] = {
        {"yrt @ -p 4242 -d 10 -o lock.html", "which locks threads waited for in ten seconds"},
        {"yrt @ -p 4242 --holders -o lock.html", "and who released them"},
        {"yrt @ -p 4242 -t -f txt -o - | less", "a tree for each thread"},
        {"yrt @ -p 4242 --all-waits -f txt -o - | less", "also conditions, semaphores and parked threads"},
        {NULL, NULL},
};

const struct manual lock_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in the lock that the thread waits for: [mutex stats_lock], [read lock heap "
                "0x55d0c8a4], [GIL], [futex\n"
                "0x7f12...] if its use is not known. Functions on the stack tell a lock from a condition, a semaphore, "
                "the end of a\n"
                "thread or a pool without work, which are also waits in futex(2): those are summed in the last line, "
                "and shown by\n"
                "--all-waits. A wait is the time off the CPU; a lock that was got by spinning, and one that was "
                "free, is not seen.\n"
                "Where threads wait so often that taking each stack would slow them down, waits shorter than 50 ms are "
                "sampled at\n"
                "random and weighted.",
        .options = lock_options,
        .examples = lock_examples,
};
