/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages of a process are in memory, and which are swapped out: /proc/PID/pagemap, or what a core has. Where
 * nobody says, all are.
 */
#ifndef YRT_PAGES_H
#define YRT_PAGES_H

#include <sys/types.h>
#include <types.h>

#include "usage.h"

#define PAGES_SIZE   4096ull
#define PAGES_WINDOW 4096

enum page_state { PAGE_ABSENT, PAGE_PRESENT, PAGE_SWAPPED };

struct core_file;

struct pages {
	int fd; /* -1: the kernel does not say */
	const struct core_file *core;
	u64 first, n; /* pages that entries[] is of */
	u64 entries[PAGES_WINDOW];
};

/* core: NULL, or the core that is read in place of pid. pid 0 and no core: a test's memory. */
void pages_open(struct pages *p, pid_t pid, const struct core_file *core);
void pages_close(struct pages *p);
/* Forgets what was read: the process went on. */
void pages_forget(struct pages *p);
enum page_state pages_at(struct pages *p, u64 addr);
/* Of a live process, as the kernel has it (Documentation/admin-guide/mm/pagemap.rst); 0: it is not there. */
#define PAGES_PRESENT (1ull << 63)
#define PAGES_SWAPPED (1ull << 62)
#define PAGES_FILE    (1ull << 61) /* the page of a file, or of shared memory */
#define PAGES_FRAME   ((1ull << 55) - 1)
u64 pages_entry(struct pages *p, u64 addr);
/* Adds what of [start, end) is in memory, and what is swapped out. */
void pages_add(struct pages *p, u64 start, u64 end, struct amount *to);

#endif
