/* SPDX-License-Identifier: Apache-2.0 */
/* The help of io-flame and net-flame. */
#include "flame_rows.h"

#define IO_ROWS {FLAME_CALLS, "calls", NULL, "show the number of calls", COMPLETE_NOTHING},

static const struct manual_option io_options[] = {
        TARGET_ROWS{FLAME_FILES, "files", NULL, "show inside each call its file", COMPLETE_NOTHING},
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
        .text = "Each stack ends in the call: [read], [write], [fsync], [open], [stat], [rename], [chmod], [msync] and "
                "so on, [read of "
                "a pipe], [read of a device]; with --files, inside that, the file. A call counts when it returns, "
                "with its time and its bytes; the last line on stderr has the exact sums. Where a stack for each "
                "call would slow the program down, stacks are sampled by size and weighted.\n"
                "Requests of io_uring (Linux 6.0 or later) and of io_submit() are [read, asynchronous] and so on, with "
                "the stack that submitted them and the time until they ended.\n"
                "Not seen: page faults of mapped files (see fault-flame), close(), "
                "calls that have not returned at the end (see off-flame), and sockets (see net-flame).",
        .options = io_options,
        .examples = io_examples,
};

static const struct manual_option net_options[] = {
        TARGET_ROWS{FLAME_NO_PEERS, "no-peers", NULL, "leave out the peer of each call", COMPLETE_NOTHING},
        {FLAME_PEERS, "peers", NULL, "show the peer of each call (the default)", COMPLETE_NOTHING},
        {FLAME_BYTES, "bytes", NULL, "show the bytes that were sent and received (the default)", COMPLETE_NOTHING},
        {FLAME_LATENCY, "latency", NULL, "show the time that calls took", COMPLETE_NOTHING},
        IO_ROWS OUTPUT_ROWS{0},
};

static const struct manual_example net_examples[] = {
        {"yrt @ -p 4242 -d 10 -o net.html", "which stacks send and receive, and the peers"},
        {"yrt @ -p 4242 --latency -o net.html", "where a process waits for its peers"},
        {"yrt @ -p 4242 --calls -I connect -f txt -o -", "who connects where, and how often"},
        {NULL, NULL},
};

const struct manual net_manual = {
        .usage = flame_usage,
        .text = "Each stack ends in the call: [send], [receive], [connect], [accept], [wait], and inside that the "
                "peer: 10.0.0.5:5432 for a connection that the process made, :8080 from 10.0.0.7 for one that it "
                "accepted, "
                "or unix:/run/x.sock. A call counts when it returns; the last line on stderr has the exact sums. "
                "Where a stack for each call would slow the program down, stacks are sampled by size and weighted.\n"
                "Time (--latency) is that of the calls alone. Clients with timeouts wait in poll() for one socket, "
                "which is [wait]; event loops wait in epoll for all, which belongs to no peer. A connect that returns "
                "before the connection is made is [connect, not waited for], one that fails [connect, failed]. "
                "Requests of io_uring and io_submit() are [send, asynchronous] and so on.",
        .options = net_options,
        .examples = net_examples,
};
