/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the driver looks up for a program counter: which code this is, and which walker steps out of it.
 *
 * The regions of a process are one array in the arena, sorted by start, without overlaps. They are never changed in
 * place: a new array is written, then the process's entry is switched to it.
 */
#ifndef YRT_SHARED_REGION_H
#define YRT_SHARED_REGION_H

#include <types.h>

struct region {
	u64 start; /* [start, end) in the process */
	u64 end;
	u64 origin;  /* address in the process of the first byte that the CFI table covers */
	u32 table;   /* arena offset of a struct cfi_table; 0: none, use frame pointers */
	u32 vm;      /* arena offset of the runtime's configuration; 0 for ordinary code */
	u32 module;  /* number of the module, in FRAME_NATIVE.detail */
	u8 runtime;  /* enum runtime_id: whose step function */
	u8 part;     /* meaning is the runtime's: interpreter, JIT heap, exit stubs, … */
	u8 unmapped; /* was no code when the maps were read, but may be by now: no place to guess return addresses in */
	u8 probed; /* [uprobes]: a return address here is the kernel's, in place of the true one (STOP_RETURN_PROBE) */
};
_Static_assert(sizeof(struct region) == 40, "regions are stored as an array");

#define REGIONS_MAX 5000 /* of one process: an array must fit into one slab */

/* A VM instance that can find its innermost native frame for threads whose walk was lost before it. */
struct region_resume {
	u16 runtime; /* enum runtime_id; 0: none */
	u16 exact;   /* it finds the innermost frame that there is, by which no guess is needed */
	u32 vm;      /* arena offset of its configuration */
};
#define PROCESS_RESUMES 2 /* of one process */

/* One process, as BPF finds it under its tgid. */
struct process_entry {
	u32 instance; /* unique over a run of yrt: a pid that is reused, exec and fork get new ones */
	u32 regions;  /* arena offset of struct region[nregions] */
	u32 nregions;
	u32 flags;    /* enum process_flag */
	u64 asked_ns; /* when a walk last asked user space to look at the maps again; written by BPF */
	u32 deferred; /* so many walks may still send a copy of their stack (struct deferred_record); written by BPF,
	                 too */
	u32 reserved;
	u64 since_ns;  /* when it became a target: CLOCK_MONOTONIC; 0: at its start, or before anything counts */
	u64 stack;     /* where its first thread's stack starts, which execve() changes; 0: not known; written by BPF */
	u64 looked_ns; /* when its maps, and the code that it made, were last read: CLOCK_MONOTONIC */
	struct region_resume resume[PROCESS_RESUMES];
};

/*
 * A process mapped memory where code had been that it made itself (probes/code_watch.h). If that was after
 * process_entry.looked_ns, nothing that yrt knows of code in [start, end) is to be believed.
 */
struct code_change {
	u64 ns; /* CLOCK_MONOTONIC */
	u64 start, end;
};

/* Where such code is, as of the last look. */
#define CODE_RANGES_MAX 64
struct code_ranges {
	u64 n;
	struct {
		u64 start, end;
	} range[CODE_RANGES_MAX];
};

/*
 * A target whose last thread is exiting. It uses CPU time until it is gone: a short process spends much of its life
 * freeing its memory.
 */
struct process_ending {
	u32 tgid;
	u32 instance;
	u64 cpu_ns;   /* CPU time until then, without that of threads that exit at the same time */
	u64 since_ns; /* as process_entry has it */
	u64 is_final; /* cpu_ns is all of it: no thread is left */
};

enum process_flag {
	PROCESS_FOLLOW = 1, /* children are targets too (-s) */
};

/* The arena: slabs of one size that user space fills and walkers read, addressed by 32-bit offsets; 0 is never valid.
 */
#define ARENA_SLAB_BITS 18
#define ARENA_SLAB_SIZE (1u << ARENA_SLAB_BITS)
#define ARENA_SLAB_PAD  1024 /* addressable behind each slab, never written */
#define ARENA_SLABS_MAX 8192
struct slab {
	u8 byte[ARENA_SLAB_SIZE + ARENA_SLAB_PAD];
};

#endif
