/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Page faults of targets, each by its stack and the kind of memory that was touched, as the kernel counts them
 * (ru_minflt and ru_majflt): perf's page-faults-min and page-faults-maj with a period of 1. Beyond the budget a random
 * part of them is taken, weighted.
 */
#ifndef YRT_FAULT_H
#define YRT_FAULT_H

/* The reason of a fault: what lay at the address. */
enum fault_memory {
	FAULT_UNKNOWN = 1, /* the process was changing its mappings at that moment, or this kernel has no bpf_find_vma()
	                      (before 5.17) */
	FAULT_STACK,
	FAULT_HEAP, /* brk() */
	FAULT_ANONYMOUS,
	FAULT_FILE,   /* private mapping of a file: code, data that is read, or copied when it is written */
	FAULT_SHARED, /* shared mapping of a file, shared memory */
	FAULT_MEMORIES,
	FAULT_MAJOR = 16,     /* and it was read from disk */
	FAULT_READ_ONLY = 32, /* and the program may not write there: it gets no memory of its own */
};

#endif
