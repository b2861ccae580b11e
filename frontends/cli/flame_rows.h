/* SPDX-License-Identifier: Apache-2.0 */
/* Options that the commands of several events share. */
#ifndef YRT_FLAME_ROWS_H
#define YRT_FLAME_ROWS_H

#include "cli.h"

extern const char *const flame_usage[];

#define ROW(key, name, argument, text)                                                                                 \
	{                                                                                                              \
		key, name, argument, text, COMPLETE_NOTHING                                                            \
	}
#define FILE_ROW(key, name, argument, text)                                                                            \
	{                                                                                                              \
		key, name, argument, text, COMPLETE_FILE                                                               \
	}

/* clang-format off */
/* LIKE: SELECT_OPTIONS, or without -a AWAIT_OPTIONS. */
#define TARGET_ROWS(LIKE) \
	MANUAL_HEADING("Targets"), LIKE, \
	ROW('s', "subprocesses", NULL, "also their children, present and future"), \
	ROW('d', "duration", "SECS", "how long to sample (30; 0: until Ctrl-C; a command: until it ends)"),

#define RATE_ROWS \
	ROW('F', "freq", "HZ", "samples per second of CPU time (99)"), \
	ROW(FLAME_TIMELINE, "timeline", NULL, "keep the time of each sample (8 bytes each)"), \
	ROW('r', "rate", "HZ", "the same as --freq"),

#define OUTPUT_ROWS \
	MANUAL_HEADING("Output"), \
	FILE_ROW('o', "output", "FILE", \
		"@.html by default (record: record.yrt); - is stdout; %p is the pid, %t the time"), \
	{'f', "format", "NAME", "the format, whatever the extension of FILE:", COMPLETE_FORMAT}, \
	ROW(FLAME_TITLE, "title", "TEXT", "what the picture is called (the command)"), \
	FILE_ROW(FLAME_STATS, "stats", "FILE", "write counts of samples and losses as JSON (- is stdout)"), \
	ROW('q', "quiet", NULL, "no progress"), \
	MANUAL_HEADING("Which stacks"), \
	ROW('t', "threads", NULL, "separate threads, or goroutines"), \
	ROW(FLAME_PROCESSES, "processes", "HOW", "separate processes: auto (default), each, program, none"), \
	ROW('U', "user", NULL, "leave out kernel frames"), \
	ROW('K', "kernel", NULL, "leave out user frames"), \
	ROW('I', "include", "REGEX", "only stacks with a frame that matches"), \
	ROW('X', "exclude", "REGEX", "only stacks without a frame that matches"), \
	ROW(FLAME_DEPTH, "depth", "N", "at most N frames per stack (1024; up to 8192)"), \
	MANUAL_HEADING("Frames of native code"), \
	ROW(FLAME_LINES, "lines", NULL, "split functions by the line being executed"), \
	ROW(FLAME_SOURCE, "source", NULL, "put source lines into the page, from files that can be read here"), \
	ROW(FLAME_ADDRESSES, "addresses", NULL, "split native functions by address, and keep it (pprof)"), \
	ROW(FLAME_NO_INLINE, "no-inline", NULL, "leave out inlined functions"), \
	ROW(FLAME_NO_DEMANGLE, "no-demangle", NULL, "show names of C++ and Rust as they are in the file"), \
	MANUAL_HEADING("Frames of languages"), \
	ROW('g', "gil", NULL, "only threads that hold the GIL of their Python"), \
	ROW(FLAME_ASYNC, "async", NULL, "one frame for the inside of asyncio's event loop (default of python-flame)"), \
	ROW(FLAME_NO_ASYNC, "no-async", NULL, "all frames of asyncio's event loop (default of other commands)"), \
	ROW(FLAME_TRACES, "traces", NULL, "a frame for each piece of a JIT's code: its number and where it starts"), \
	ROW(FLAME_NO_JIT_INLINE, "no-jit-inline", NULL, "leave out functions that a JIT inlined"), \
	ROW(FLAME_SIGNATURES, "signatures", NULL, "Java methods with the types of their arguments"), \
	ROW(FLAME_CARRIERS, "carriers", NULL, "below a virtual thread the stack of its carrier thread"), \
	ROW(FLAME_CREATORS, "creators", NULL, "below a goroutine's stack the function that created it"), \
	ROW(FLAME_LABELS, "labels", NULL, "below a goroutine's stack its labels, as set by pprof.Do()"), \
	ROW(FLAME_ANNOTATE, "annotate", NULL, \
		"split functions by how they were compiled; in folded stacks _[k] marks kernel frames, " \
		"_[0] interpreted ones, _[1] C1's, _[j] a JIT's, _[i] inlined ones"), \
	MANUAL_HEADING("Cost"), \
	ROW(FLAME_CPU, "max-cpu", "PERCENT", \
		"how much of one CPU stacks may take; if they take more, the rate is halved (10; 0: no limit)"), \
	ROW(FLAME_NO_CACHE, "no-cache", NULL, "do not keep compiled unwind tables on disk"), \
	MANUAL_HEADING("Profile stores"), SEND_OPTIONS,
/* clang-format on */

#endif
