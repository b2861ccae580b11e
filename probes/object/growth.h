/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What makes a process larger (leak --growth), without a probe on its allocator:
 *
 *	mapped		mmap(), mremap() and brk() of the run, less what munmap(), mremap() and brk() took away: what is
 *			still there at the end, to the byte, by the stack of the call that mapped it
 *	touched		pages whose first access was in the run and that are still in memory, or swapped out, by the
 *			stack that touched them: page faults, and /proc/PID/pagemap at the end
 *
 * The first is exact; of the second a part of the pages is taken past the budget, by their address, so that a page that
 * is touched again takes the place of its former self. A huge page is one fault (/proc/kpageflags tells those).
 */
#ifndef YRT_GROWTH_H
#define YRT_GROWTH_H

#include <types.h>

#define GROWTH_PAGE 4096ull
#define GROWTH_HUGE (2ull << 20)

enum growth_reason { /* of a mapping; of a touched page it is enum fault_memory */
	GROWTH_ANONYMOUS = 32,
	GROWTH_FILE,
	GROWTH_SHARED,
	GROWTH_BRK,   /* the heap's end */
	GROWTH_MOVED, /* what mremap() added */
	GROWTH_REASONS,
};

/* A process has other memory now (RECORD_EVENT). All addresses are of whole pages. */
struct growth_record {
	u32 type;
	u32 instance;
	u64 hash;            /* of its stack; 0: it is not known, or nothing was added */
	u64 began_ns, ns;    /* the call: what others mapped meanwhile is not meant by it */
	u64 gone, gone_size; /* is not mapped any more; */
	u64 moved;           /* it is there now, as far as it fits; 0: it is nowhere; gone: only its pages are */
	u64 added, added_size;
};

struct growth_page_key {
	u64 page; /* number: address / GROWTH_PAGE */
	u32 instance, reserved;
};

struct growth_page {
	u64 hash;
	u64 ns;
	u32 weight; /* pages that it stands for */
	u32 memory; /* enum fault_memory */
};

struct growth_counters { /* in BPF one for each CPU */
	u64 faults;
	u64 mapped, mapped_bytes; /* calls that added memory */
	u64 unmapped;
	u64 full;   /* pages that the table had no room for */
	u64 missed; /* calls that user space was not told of: the ring was full */
};

#endif
