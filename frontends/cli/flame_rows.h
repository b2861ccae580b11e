/* SPDX-License-Identifier: Apache-2.0 */
/* Options that the commands of several events share. */
#ifndef YRT_FLAME_ROWS_H
#define YRT_FLAME_ROWS_H

#include "cli.h"

extern const char *const flame_usage[];

#define TARGET_ROWS                                                                                                    \
	SELECT_OPTIONS, {'s', "subprocesses", NULL, "their children too, present and future", COMPLETE_NOTHING},       \
	        {'d', "duration", "SECS", "how long (30; 0: until Ctrl-C; a command: until it ends)",                  \
	                COMPLETE_NOTHING},
#define RATE_ROWS                                                                                                      \
	{'F', "freq", "HZ", "samples a second of CPU time (99)", COMPLETE_NOTHING},                                    \
	        {FLAME_TIMELINE, "timeline", NULL, "keep when each sample was taken (8 bytes each)",                   \
	                COMPLETE_NOTHING},                                                                             \
	        {'r', "rate", "HZ", "the same as --freq", COMPLETE_NOTHING},
#define OUTPUT_ROWS                                                                                                    \
	{'o', "output", "FILE", "@.html by default (of record: record.yrt); - is stdout; %p pid, %t time",             \
	        COMPLETE_FILE},                                                                                        \
	        {'f', "format", "NAME", "overrides the extension of FILE:", COMPLETE_FORMAT},                          \
	        {'t', "threads", NULL, "a stack of its own for each thread, or goroutine", COMPLETE_NOTHING},          \
	        {FLAME_PROCESSES, "processes", "HOW", "several processes apart: auto (default), each, program, none",  \
	                COMPLETE_NOTHING},                                                                             \
	        {'U', "user", NULL, "leave out kernel frames", COMPLETE_NOTHING},                                      \
	        {'K', "kernel", NULL, "leave out user frames", COMPLETE_NOTHING},                                      \
	        {'I', "include", "REGEX", "only stacks with a frame that matches", COMPLETE_NOTHING},                  \
	        {'X', "exclude", "REGEX", "no stacks with a frame that matches", COMPLETE_NOTHING},                    \
	        {'g', "gil", NULL, "only threads that hold the GIL of their Python", COMPLETE_NOTHING},                \
	        {FLAME_ASYNC, "async", NULL, "one frame for the inside of asyncio's event loop (python-flame does)",   \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_NO_ASYNC, "no-async", NULL, "all frames of asyncio's event loop (other commands do)",           \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_LINES, "lines", NULL, "split functions by the line being executed", COMPLETE_NOTHING},          \
	        {FLAME_SOURCE, "source", NULL, "source lines in the page, of files that can be read here",             \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_ADDRESSES, "addresses", NULL,                                                                   \
	                "split native functions by the address being executed, and keep it (pprof)",                   \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_NO_INLINE, "no-inline", NULL,                                                                   \
	                "only the functions that native code is in, without those that were inlined",                  \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_NO_DEMANGLE, "no-demangle", NULL, "names of C++ and Rust as they are in the file",              \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_TRACES, "traces", NULL,                                                                         \
	                "a frame for each piece of a JIT's machine code: its number and where it starts",              \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_NO_JIT_INLINE, "no-jit-inline", NULL,                                                           \
	                "only the function that was entered, not those inlined into a JIT's code", COMPLETE_NOTHING},  \
	        {FLAME_SIGNATURES, "signatures", NULL, "names of Java methods with the types of their arguments",      \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_CARRIERS, "carriers", NULL, "below a virtual thread what its carrier thread has on its stack",  \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_CREATORS, "creators", NULL, "below a goroutine's stack the function that created it",           \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_LABELS, "labels", NULL, "below a goroutine's stack its labels, as pprof.Do() sets them",        \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_ANNOTATE, "annotate", NULL,                                                                     \
	                "a function apart for each way it was compiled; folded stacks with _[k] behind kernel "        \
	                "frames,\n"                                                                                    \
	                "_[0] interpreted, _[1] C1, _[j] JIT, _[i] inlined",                                           \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_DEPTH, "depth", "N", "frames of a stack at most (1024; up to 8192)", COMPLETE_NOTHING},         \
	        {FLAME_CPU, "max-cpu", "PERCENT",                                                                      \
	                "of one CPU that yrt may take before it halves its rate (10; 0: no limit, and\n"               \
	                "each wait has a stack of its own)",                                                           \
	                COMPLETE_NOTHING},                                                                             \
	        {FLAME_STATS, "stats", "FILE", "write what was seen and lost as JSON (- is stdout)", COMPLETE_FILE},   \
	        {FLAME_NO_CACHE, "no-cache", NULL, "do not keep compiled unwind tables on disk", COMPLETE_NOTHING},    \
	        SEND_OPTIONS, {'q', "quiet", NULL, "no progress", COMPLETE_NOTHING},

#endif
