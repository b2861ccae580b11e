/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports which processes mapped code, and which files: PERF_RECORD_MMAP2 (and, for execve(), PERF_RECORD_COMM) of a
 * dummy event on each CPU, because the kernel refuses to map the buffer of an inherited event of a task. munmap gives
 * no record, and none is needed: whatever is mapped in its place gives one.
 */
#ifndef YRT_MMAP_WATCH_H
#define YRT_MMAP_WATCH_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"
#include "unwind/binary/maps.h"

struct mmap_watch;

/* An error means that the kernel does not permit it: new code is then noticed only by the samples that hit it. */
struct error *mmap_watch_create(struct mmap_watch **ret);
void mmap_watch_destroy(struct mmap_watch *w);
/* Adds the buffers to an epoll set; events carry data.u64 = tag. */
struct error *mmap_watch_poll(struct mmap_watch *w, int epoll, u64 tag);
/*
 * Calls changed once for each process named since the last call; pid 0: records were lost, look at all. Anonymous code
 * is reported only from time to time. Call this every few ms, because records wake the reader only when there are many.
 */
void mmap_watch_consume(struct mmap_watch *w, u64 now_ns, void (*changed)(void *ctx, pid_t pid), void *ctx);
/*
 * The code of files that a process had mapped of the program that it ran at a moment (~0: now), as far as its records
 * are still available: for programs that were over before anybody could look. forked: it was forked at that moment, and
 * what it had from its parent is left out. *ret is the caller's, empty if nothing is known.
 */
struct error *mmap_watch_recall(struct mmap_watch *w, pid_t pid, u64 at_ns, bool forked, struct maps *ret);

#endif
