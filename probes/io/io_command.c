/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of io-flame and net-flame. */
#include "probes/event_command.h"
#include "probes/run.h"
#include "probes/io/io.h"

enum { IO_FILES = EVENT_KEY, IO_PEERS, IO_NO_PEERS, IO_LATENCY, IO_BYTES, IO_CALLS };

#define IO_ROWS {IO_CALLS, "calls", NULL, "show the number of calls"},

static const struct event_option io_options[] = {
        {IO_FILES, "files", NULL, "show inside each call its file"},
        {IO_LATENCY, "latency", NULL, "show the time that calls took (the default)"},
        {IO_BYTES, "bytes", NULL, "show the bytes that were read and written"},
        IO_ROWS{0},
};

static const struct event_example io_examples[] = {
        {"yrt @ -p 4242 -d 10 -o io.html", "where a process spends time in file I/O"},
        {"yrt @ -p 4242 --files --bytes -o io.html", "what it reads and writes, by file"},
        {"yrt @ -p 4242 --calls -X 'of a pipe' -f txt -o -", "how often, without pipes"},
        {"yrt @ -p 4242 --files -o io.pb.gz", "for pprof"},
        {NULL, NULL},
};

/* What is counted, and what is shown of it. */
static const struct setting own[] = {
        {IO_BYTES, SETTING_OF(struct io_options, calls), .on = false},
        {IO_LATENCY, SETTING_OF(struct io_options, calls), .on = false},
        {IO_CALLS, SETTING_OF(struct io_options, calls), .on = true},
        {IO_FILES, SETTING_OF(struct io_options, objects), .on = true},
        {IO_PEERS, SETTING_OF(struct io_options, objects), .on = true},
        {IO_NO_PEERS, SETTING_OF(struct io_options, objects), .on = false},
        {0},
};

static const struct setting run[] = {
        {IO_BYTES, SETTING_OF(struct run_request, second), .on = true},
        {IO_LATENCY, SETTING_OF(struct run_request, second), .on = false},
        {IO_CALLS, SETTING_OF(struct run_request, second), .on = true},
        {0},
};

/* A recording keeps all. */
static struct error *check(struct run_request *r, bool recorded)
{
	struct io_options *o = r->own;

	o->objects |= recorded;
	return NULL;
}

static const char *more(const void *options)
{
	const struct io_options *o = options;

	return o->calls ? "calls" : NULL;
}

static void net_defaults(struct run_request *r)
{
	struct io_options *o = r->own;

	r->second = o->objects = true;
}

const struct event_command io_command = {
        .size = sizeof(struct io_options),
        .own = own,
        .run = run,
        .check = check,
        .more = more,
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

static const struct event_option net_options[] = {
        {IO_NO_PEERS, "no-peers", NULL, "leave out the peer of each call"},
        {IO_PEERS, "peers", NULL, "show the peer of each call (the default)"},
        {IO_BYTES, "bytes", NULL, "show the bytes that were sent and received (the default)"},
        {IO_LATENCY, "latency", NULL, "show the time that calls took"},
        IO_ROWS{0},
};

static const struct event_example net_examples[] = {
        {"yrt @ -p 4242 -d 10 -o net.html", "which stacks send and receive, and the peers"},
        {"yrt @ -p 4242 --latency -o net.html", "where a process waits for its peers"},
        {"yrt @ -p 4242 --calls -I connect -f txt -o -", "who connects where, and how often"},
        {NULL, NULL},
};

const struct event_command net_command = {
        .size = sizeof(struct io_options),
        .own = own,
        .run = run,
        .defaults = net_defaults,
        .check = check,
        .more = more,
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
