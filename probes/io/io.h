/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls of I/O by stack: how long each took, and the bytes that it moved.
 *
 * Programs at the entry and exit of all system calls (tp_btf/sys_enter, sys_exit) time those of I/O. At exit the file
 * is found from its descriptor; user registers are those saved at entry. Every call is counted (struct io_summary). If
 * taking all stacks takes more than 2 % of a CPU for longer than a moment, stacks are chosen. A call that is larger
 * than what a stack stands for is always taken; a smaller one with a chance proportional to its size, and then it
 * stands for several (its time, bytes and number times that factor). The size of a call is its time, its bytes and 1,
 * each relative to a mean call.
 *
 * Requests of io_uring (io_later.bpf.h) and io_submit() (io_aio.bpf.h) have the stack that submitted them; their time
 * lasts until they end, or until that is seen. What io_uring does before Linux 6.0 is not seen, but the calls that
 * begin it are counted. Nor are page faults of mapped files, and calls that are not over when the run ends.
 */
#ifndef YRT_IO_H
#define YRT_IO_H

#include <stdbool.h>
#include <types.h>

struct io_options {   /* sampler_options.of_event */
	bool objects; /* the file, or the peer, as the innermost frame */
	bool calls;   /* the second value is the number of calls, not bytes */
};

struct io_summary { /* sampler_stats.of_event */
	bool net;
	u64 calls;
	u64 ns;
	u64 in_bytes, out_bytes;
	u64 skipped; /* calls that others stand for */
	u64 async;   /* of io_uring_enter() and io_submit(), which began some that is not seen */
	u64 later;   /* of calls: requests of io_uring and io_submit() */
	u64 begun;   /* connects that were not waited for */
	u64 objects; /* files or peers with a name */
	bool full;   /* others had no room */
};

/* io_command.c, io_words.c: probes/event_command.h */
extern const struct event_command io_command, net_command;
extern const struct event_words io_words, net_words;

#endif
