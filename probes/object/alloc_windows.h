/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uprobes of allocation functions, within a budget: a share of the target's CPU time, from the first milliseconds
 * on. While hits cost less, they stay. Past it they are placed for windows, about ten a second, each at a random moment
 * and for as long as its part of the budget lasts.
 *
 * In a window the target is slower, by a factor of two to twenty. So a window stands for the program's *progress*
 * since the window before, not for the time: CPU time without what hits cost. That is BPF's own time, which the
 * programs measure, and the exception around it. What an exception costs is measured in the target: now and then a
 * second uprobe is placed right behind the first one of a function, and what lies between the two programs is one
 * exception and an instruction or two. Where code does not permit that, it is measured in yrt itself. By how much the
 * program's own code is slower behind an exception, windows with few other uprobes tell (alloc_marks.h).
 *
 * A thread does the work. It counts stacks with their weights once these are known, and hands them to the sampler when
 * that moves counts out.
 */
#ifndef YRT_ALLOC_WINDOWS_H
#define YRT_ALLOC_WINDOWS_H

#include "alloc.h"
#include "probes/event.h"
#include "unwind/process/process.h"

struct alloc_windows;
struct bpf_program;

#define ALLOC_CPU_LEAST 0.4 /* some 10,000 hits a second */

struct alloc_windows_options {
	const struct event_host *host;
	double share;     /* of the targets' CPU time; 0: uprobes always stay */
	double cpu_least; /* of a CPU: what uses less gets the budget of that */
	double interval;  /* at least: of stacks, in bytes */
	/*
	 * Each second window is for places that are "following", too: blocks are followed there, but nothing is
	 * counted, as hits are so dense that progress is hardly known. open(): one begins. It ends with a tail, in
	 * which calls count no more and only frees are probed, so that most blocks are gone when close() is called:
	 * those places are probed still. NULL: there are no such windows.
	 */
	void (*open)(void *ctx, bool following);
	void (*close)(void *ctx);
	void *ctx;
};

struct alloc_window_place { /* of a uprobe */
	const struct bpf_program *program;
	u64 offset, cookie;
	u64 pair;       /* alloc_function.pair; 0: it has none */
	bool following; /* only in windows that follow blocks, and while uprobes stay */
	bool tail;      /* it stays for a while when such a window ends: it says that a block is freed */
};

/* Before the object is loaded. */
void alloc_windows_prepare(struct object *o);
struct error *alloc_windows_create(const struct alloc_windows_options *options, struct alloc_windows **ret);
void alloc_windows_destroy(struct alloc_windows *w); /* NULL is fine */
/* A place in a file that a process maps; path: of the file, for the kernel. Nothing is placed yet. */
struct error *alloc_windows_add(
        struct alloc_windows *w, const struct process *p, const char *path, const struct alloc_window_place *place);
/* A stack of the process was taken, leaf first: what lies on it may be a landmark (alloc_marks.h). */
struct error *alloc_windows_see(struct alloc_windows *w, const struct process *p, const struct frame *frames, u32 n);
/* What a hit of a debug register takes, besides its program: such hits count as a cost, too. */
void alloc_windows_set_trap(struct alloc_windows *w, u64 ns);
/* All that was added. A process that has ended is no error. */
struct error *alloc_windows_place(struct alloc_windows *w);
/* Uprobes are gone when it returns, and what they saw has its weight. */
void alloc_windows_end(struct alloc_windows *w);
/* Hands out what windows have counted of stacks of this epoch. */
struct error *alloc_windows_drain(struct alloc_windows *w, u32 epoch,
        void (*count)(void *ctx, u32 epoch, u64 hash, u64 bytes, u64 calls), void *ctx);

/* What was seen, with what it stands for. */
void alloc_windows_estimate(struct alloc_windows *w, struct alloc_estimate *ret);

#endif
