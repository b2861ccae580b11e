/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Samples that a program takes of its own allocations and tells by USDT probes: these are taken in place of uprobes at
 * malloc. The probes that are known are in alloc_samples.c, each with its source.
 */
#ifndef YRT_ALLOC_SAMPLE_H
#define YRT_ALLOC_SAMPLE_H

#include <types.h>

#define ALLOC_SAMPLE_PLACES 64 /* probes in files; their cookies are the numbers */

enum alloc_argument_kind {
	ALLOC_ARGUMENT_NONE,
	ALLOC_ARGUMENT_CONSTANT,
	ALLOC_ARGUMENT_REGISTER,
	ALLOC_ARGUMENT_MEMORY
};

struct alloc_argument {
	u8 kind, size;         /* bytes */
	u8 base, index, scale; /* registers by DWARF's numbers; scale 0: no index */
	u8 reserved[3];
	s64 value; /* of a constant; of memory the offset */
};

#define ALLOC_SAMPLE_STEPS 64 /* of the table below, up to ALLOC_SAMPLE_REACH */
#define ALLOC_SAMPLE_REACH 8  /* periods: a larger block is sampled nearly always */
#define ALLOC_SAMPLE_UNIT  1024

struct alloc_sample_place {
	struct alloc_argument block, size, weighted; /* kinds may be NONE: weighted then is what the period says */
	u64 period;                                  /* bytes between two samples, on average */
	/* what a block of i * ALLOC_SAMPLE_REACH / ALLOC_SAMPLE_STEPS periods stands for, in 1/1024 of a period */
	u32 of_period[ALLOC_SAMPLE_STEPS + 1];
	u32 reserved;
};

struct alloc_sampled { /* in BPF one for each CPU */
	u64 samples, calls, bytes;
	u64 calls_variance, bytes_variance; /* of these, the latter in squares of KiB */
	u64 strange;                        /* sizes that no address space holds */
};

#endif
