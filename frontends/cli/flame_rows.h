/* SPDX-License-Identifier: Apache-2.0 */
/* Options that the commands of several events share. */
#ifndef YRT_FLAME_ROWS_H
#define YRT_FLAME_ROWS_H

#include "cli.h"

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
	ROW('d', "duration", "SECS", \
		"how long to sample: 10, 500ms, 2m, 1h; 0: until Ctrl-C (30; with a command behind --, until it ends)"),

#define RATE_ROWS \
	ROW('F', "freq", "HZ", "samples per second of CPU time (99)"), \
	ROW(FLAME_TIMELINE, "timeline", NULL, "keep when each sample was taken (8 bytes each): the page shows it"), \
	ROW('r', "rate", "HZ", "the same as --freq"),

#define OUTPUT_ROWS \
	MANUAL_HEADING("Output"), \
	FILE_ROW('o', "output", "FILE", \
		"the result (@.html; of record: record.yrt); its extension chooses the format; - is stdout; %p " \
		"becomes the pid, %t the time"), \
	{'f', "format", "NAME", "the format, if not that of the extension of FILE:", COMPLETE_FORMAT}, \
	ROW(FLAME_TITLE, "title", "TEXT", "what the picture is called (the command)"), \
	FILE_ROW(FLAME_STATS, "stats", "FILE", "write counts of samples and losses as JSON (- is stdout)"), \
	ROW('q', "quiet", NULL, "no progress"), \
	MANUAL_HEADING("Which stacks"), \
	ROW(FLAME_TID, "tid", "LIST", "only these threads, by number, separated by commas; -p is not needed"), \
	ROW('t', "threads", NULL, "a box for each thread, or goroutine"), \
	ROW(FLAME_PROCESSES, "processes", "HOW", \
		"boxes for processes: each, program, none, or auto (a box for each process of a program with up to 8 " \
		"of them, else one for the program)"), \
	ROW('U', "user", NULL, "only user frames: leave out those of the kernel"), \
	ROW('K', "kernel", NULL, "only kernel frames: leave out those of the process"), \
	ROW('I', "include", "REGEX", "only stacks with a frame that matches"), \
	ROW('X', "exclude", "REGEX", "only stacks without a frame that matches"), \
	ROW(FLAME_DEPTH, "depth", "N", "at most N frames per stack (1024; up to 8192)"), \
	MANUAL_HEADING("Frames"), \
	ROW(FLAME_LINES, "lines", NULL, "a box for each line of a function that was executed, in all languages"), \
	ROW(FLAME_SOURCE, "source", NULL, "put source lines into the page, from files that can be read here"), \
	MANUAL_HEADING("Frames of native code"), \
	ROW(FLAME_ADDRESSES, "addresses", NULL, "a box for each address in native code, which pprof output then has"), \
	ROW(FLAME_NO_INLINE, "no-inline", NULL, "leave out inlined functions"), \
	ROW(FLAME_NO_DEMANGLE, "no-demangle", NULL, "mangled names of C++ and Rust, as they are in the file"), \
	MANUAL_HEADING("Frames of languages"), \
	ROW('g', "gil", NULL, "only threads that hold the GIL of their Python"), \
	ROW(FLAME_ASYNC, "async", NULL, "show the inside of asyncio's event loop as one frame (default of python-*)"), \
	ROW(FLAME_NO_ASYNC, "no-async", NULL, "show all frames of asyncio's event loop (default of others)"), \
	ROW(FLAME_TRACES, "traces", NULL, "a frame for each piece of a JIT's code: its number and where it starts"), \
	ROW(FLAME_NO_JIT_INLINE, "no-jit-inline", NULL, "leave out functions that a JIT inlined"), \
	ROW(FLAME_SIGNATURES, "signatures", NULL, "show Java methods with the types of their arguments"), \
	ROW(FLAME_CARRIERS, "carriers", NULL, "show the stack of its carrier thread below that of a virtual thread"), \
	ROW(FLAME_CREATORS, "creators", NULL, "show the function that created a goroutine below its stack"), \
	ROW(FLAME_LABELS, "labels", NULL, "show the labels of a goroutine, as pprof.Do() sets them, below its stack"), \
	ROW(FLAME_ANNOTATE, "annotate", NULL, \
		"a box for each way in which a function was compiled; in folded stacks _[k] marks kernel frames, " \
		"_[0] interpreted ones, _[1] C1's, _[j] a JIT's, _[i] inlined ones"), \
	MANUAL_HEADING("Cost"), \
	ROW(FLAME_CPU, "max-cpu", "PERCENT", \
		"how much of one CPU stacks may take; if they take more, the rate is halved (10; 0: no limit)"), \
	ROW(FLAME_NO_CACHE, "no-cache", NULL, "do not keep compiled unwind tables on disk"), \
	MANUAL_HEADING("Profile stores"), SEND_OPTIONS,
/* clang-format on */

#endif
