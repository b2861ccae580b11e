/* SPDX-License-Identifier: Apache-2.0 */
/* The help of io-flame and net-flame. */
#include "flame_rows.h"

#define IO_ROWS {FLAME_CALLS, "calls", NULL, "show how many calls", COMPLETE_NOTHING},

static const struct manual_option io_options[] = {
        TARGET_ROWS{FLAME_FILES, "files", NULL, "inside each call the file that it is made on", COMPLETE_NOTHING},
        {FLAME_LATENCY, "latency", NULL, "show the time that calls took (the default)", COMPLETE_NOTHING},
        {FLAME_BYTES, "bytes", NULL, "show the bytes that were read and written", COMPLETE_NOTHING},
        IO_ROWS OUTPUT_ROWS{0},
};

static const struct manual_example io_examples[] = {
        {"yrt @ -p 4242 -d 10 -o io.html", "where a process spends time in file I/O"},
        {"yrt @ -p 4242 --files --bytes -o io.html", "what it reads and writes, by file"},
        {"yrt @ -p 4242 --calls -X 'of a pipe' -f txt -o -", "how often, without pipes"},
        {"yrt @ -p 4242 --files -o io.pb.gz", "for pprof"},
        {NULL, NULL},
};

const struct manual io_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in what was called: [read], [write], [fsync], [open], [stat], [rename] and so on, "
                "[read of a pipe],\n"
                "[read of a device]; with --files, inside that, the file. A call counts when it returns, with the time "
                "it took and\n"
                "the bytes it moved; the last line on stderr has the exact sums. Where calls are so many that taking "
                "each stack would\n"
                "slow the program down, stacks are chosen by size, and weighted. Not seen: page faults of mapped files "
                "(fault-flame),\n"
                "close(), what io_uring and io_submit do later, and calls that are not over at the end (off-flame "
                "shows "
                "those). Sockets\n"
                "are net-flame's.",
        .options = io_options,
        .examples = io_examples,
};

static const struct manual_option net_options[] = {
        TARGET_ROWS{FLAME_NO_PEERS, "no-peers", NULL, "leave out whom each call talks to", COMPLETE_NOTHING},
        {FLAME_PEERS, "peers", NULL, "show them (the default)", COMPLETE_NOTHING},
        {FLAME_BYTES, "bytes", NULL, "show the bytes that were sent and received (the default)", COMPLETE_NOTHING},
        {FLAME_LATENCY, "latency", NULL, "show the time that calls took", COMPLETE_NOTHING},
        IO_ROWS OUTPUT_ROWS{0},
};

static const struct manual_example net_examples[] = {
        {"yrt @ -p 4242 -d 10 -o net.html", "who sends and receives, and with whom"},
        {"yrt @ -p 4242 --latency -o net.html", "where a process waits for its peers"},
        {"yrt @ -p 4242 --calls -I connect -f txt -o -", "who connects where, and how often"},
        {NULL, NULL},
};

const struct manual net_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in what was called: [send], [receive], [connect], [accept], and inside that the peer: "
                "10.0.0.5:5432 of a\n"
                "connection that the process made, :8080 from 10.0.0.7 of one that it accepted, unix:/run/x.sock. A "
                "call counts when it\n"
                "returns. Time is that of the calls: programs that wait in epoll or poll do not wait in these, and a "
                "connect that returns\n"
                "before the connection is made is [connect, not waited for]. The last line on stderr has the exact "
                "sums. Where calls are\n"
                "so many that taking each stack would slow the program down, stacks are chosen by size, and weighted. "
                "What io_uring\n"
                "sends is not seen.",
        .options = net_options,
        .examples = net_examples,
};
