/* SPDX-License-Identifier: Apache-2.0 */
/* The help of flame and record. */
#include "flame_rows.h"

static const char *const flame_usage[] = {
        "-p PID[,PID...] [options]", "--select RULE | -a [options]", "[options] -- COMMAND [ARGS...]", NULL};

static const struct manual_option flame_options[] = {
        TARGET_ROWS(SELECT_OPTIONS) RATE_ROWS OUTPUT_ROWS MANUAL_HEADING("Options of other profilers"),
        {FLAME_AS_ALWAYS, "native", NULL, "accepted, as py-spy has it: native frames are always shown",
                COMPLETE_NOTHING},
        {FLAME_AS_ALWAYS, "nonblocking", NULL, "accepted, as py-spy has it: targets are never paused",
                COMPLETE_NOTHING},
        {'e', "event", "NAME",
                "as async-profiler and perf have it: cpu is what this command does; for others yrt names the command",
                COMPLETE_NOTHING},
        {0},
};

static const struct manual_example flame_examples[] = {
        {"yrt @ -p 4242 -d 10 -o flame.html", "ten seconds of a process as a page for a browser"},
        {"yrt @ -p 4242 -s -t -o flame.html", "with its children, by thread"},
        {"yrt @ -p 4242 -F 999 -f txt -o - | less", "as a tree in the terminal"},
        {"yrt @ --select exe=envoy -d 60", "all processes of a program, also those that start meanwhile"},
        {"yrt @ -a -d 10 -o machine.html", "the whole machine"},
        {"yrt @ -o flame.html -- ./program args", "a program from start to end"},
        {NULL, NULL},
};

const struct manual flame_manual = {
        .usage = flame_usage,
        .text = "Ctrl-C ends sampling early and keeps the result. The last line on stderr counts the samples and what "
                "was lost, by cause. -I and -X take POSIX extended regular expressions.\n"
                "Debug files that are not installed are fetched from the servers in DEBUGINFOD_URLS after sampling; "
                "Ctrl-C skips that. If a command behind -- fails, yrt prints its exit status; yrt's own exit code is "
                "about sampling.\n"
                "With several processes the graph has a level of processes: one box for each if a program has up to 8, "
                "else one for each program. --processes changes that.",
        .options = flame_options,
        .examples = flame_examples,
};

static const struct manual_option record_options[] = {
        TARGET_ROWS(SELECT_OPTIONS) RATE_ROWS{FLAME_EVENT, "event", "NAME",
                "clock (time on the CPU, the default), fault (page faults), wait (time off the CPU), wall (both), io "
                "(file I/O) or net (sockets)",
                COMPLETE_NOTHING},
        OUTPUT_ROWS{0},
};

static const struct manual_example record_examples[] = {
        {"yrt record -p 4242 -d 10 -o x.yrt", "ten seconds of a process"},
        {"yrt render x.yrt -o x.html", "as a page"},
        {NULL, NULL},
};

const struct manual record_manual = {
        .usage = flame_usage,
        .text = "A recording keeps all threads, kernel frames, the build-ids of files, and what was lost. yrt render "
                "converts it to any format, on any machine; yrt diff compares two. Both need neither root nor the "
                "recorded programs.",
        .options = record_options,
        .examples = record_examples,
};
