/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages of a process hold data (/proc/PID/pagemap: in memory, or swapped out). A search skips memory that was
 * reserved but never touched: reading it would cost time, and page tables in the target.
 */
#ifndef YRT_RESIDENT_H
#define YRT_RESIDENT_H

#include <sys/types.h>
#include <types.h>

struct resident {
	int fd; /* -1: the kernel does not say, all pages count */
	u64 page;
	u64 first, n; /* pages that entries[] is of */
	u64 ahead;    /* pages per read of pagemap: few for random access; 0: as many as entries[] holds */
	u64 entries[4096];
};

/* The caller may set ahead afterwards. */
void resident_open(struct resident *r, pid_t pid);
void resident_close(struct resident *r);
/* The first stretch of such pages in [start, end), both page-aligned, of at most max bytes. False: there is none. */
bool resident_next(struct resident *r, u64 start, u64 end, u64 max, u64 *ret_start, u64 *ret_end);

#endif
