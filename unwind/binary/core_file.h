/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file: what the kernel (fs/binfmt_elf.c) or gdb's gcore has kept of a process. Its threads with their
 * registers, its mappings, and its memory. Pages that are in files are mostly left out: they are read from these files,
 * if they are still the ones that were mapped. A file whose first page the core has is compared with that, as there are
 * its program headers and build-id; any other must not have changed since the core was written.
 *
 * Everything in it is untrusted, and it may be cut anywhere.
 */
#ifndef YRT_CORE_FILE_H
#define YRT_CORE_FILE_H

#include <core_registers.h>
#include <types.h>

#include "error.h"
#include "maps.h"
#include "memory.h"

#define CORE_COMM     16
#define CORE_BUILD_ID 41 /* 20 bytes as text */

struct core_thread {
	u32 tid;
	struct core_registers at;
};

#define CORE_PROT_UNKNOWN ~0u

struct core_segment { /* of memory */
	u64 start, end;
	u64 offset, kept; /* in the core: its first bytes; 0: none */
	u32 prot;         /* PROT_READ …; CORE_PROT_UNKNOWN: only the file knows */
	u32 file;         /* 1 + index of the file that is mapped; 0: none */
	u64 file_offset;
};

enum core_match { CORE_UNSEEN, CORE_SAME, CORE_OTHER, CORE_MISSING };

struct core_mapped { /* a file */
	char *path;  /* as the process knew it */
	char *here;  /* as it is opened */
	enum core_match match;
	int fd; /* if it is the same */
	dev_t dev;
	ino_t ino;
	u64 start; /* where its first page was mapped; 0: unknown */
	bool code; /* code of it is mapped, or may be; by core_maps() */
};

struct core_file {
	char *path;
	int fd;
	u64 size, missing; /* bytes; missing: that a whole one would have more */
	u64 mtime_ns;
	bool unpacked_cut; /* it was packed, and that ended early */
	u32 pid;
	char comm[CORE_COMM];
	u32 signal;  /* that it was written for; 0: none, as with gcore */
	u32 killed;  /* the thread that got it */
	u64 address; /* that the signal is about, if has_address */
	bool has_address;
	s32 signal_code; /* si_code; 0 without sent: not known */
	bool sent;       /* by kill() or its like, not by the kernel for what the thread did */
	u32 sender;      /* the process, as the program would call it; 0: outside its container, or not known */
	u64 vdso;        /* 0: none */
	struct core_thread *threads; /* as they come */
	u32 nthreads;
	struct core_segment *segments; /* ascending */
	u32 nsegments;
	struct core_mapped *files;
	u32 nfiles;
};

/*
 * path may be packed by gzip, xz or zstd, or be "-": stdin.
 * root: a directory with the files of the machine or container that the process ran in; NULL: they are here.
 * ERROR_INPUT: it is no core file of this architecture, or too much of it is missing.
 */
struct error *core_open(const char *path, const char *root, struct core_file **ret);
void core_close(struct core_file *core);

/* core_memory.c: these two look at the files that were mapped. */
/*
 * As maps_read(). Lines of files that are not the same any more have a path, but neither device nor a real inode, so
 * nobody opens them.
 */
struct error *core_maps(struct core_file *core, struct maps *ret);
/* Of the process; core must outlive it. NULL: out of memory. */
struct memory *core_memory(struct core_file *core);
/* What is missing for whole stacks; NULL: nothing. Call it after core_maps(). */
struct error *core_complaint(const struct core_file *core);
/* In hexadecimal, of the file that the process had mapped, by the core; empty: the core does not say. */
void core_build_id(const struct core_file *core, const struct core_mapped *f, char ret[CORE_BUILD_ID]);

#endif
