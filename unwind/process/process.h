/* SPDX-License-Identifier: Apache-2.0 */
/* One target: its mappings, its runtimes, and the array of regions in the arena in which walkers look up its code. */
#ifndef YRT_PROCESS_H
#define YRT_PROCESS_H

#include <types.h>

#include "comm.h"
#include "module.h"
#include "shared/region.h"

struct instance { /* a runtime in this process */
	const struct runtime_ops *ops;
	struct loaded *loaded;
	u64 bias;
	void *data; /* of attach(); NULL: attach failed, native frames only */
};

struct core_file;

struct process {
	pid_t pid;  /* 0: of a core file */
	u32 number; /* struct process_entry.instance */
	u32 parent; /* number of the process that it was forked from, 0: none */
	/* What process_starting() reads of each process all the time comes first: it is in one cache line. */
	u32 ninstances;
	struct instance *instances;
	struct jit_code *code; /* what of its own code nothing describes (jit_code.h); NULL: nothing yet */
	u32 made_files;        /* what modules_made() was before its tables were asked for */
	bool unfinished;       /* tables of some of its files are still being made */
	bool dead;             /* exited: kept for naming what is still on its way */
	bool buried;           /* was dead already when targets_sweep_old() came by last */
	bool crowded;          /* said that it has more code than fits (regions_fit.h) */
	u64 stack; /* start of its first thread's stack: maps without it are another program's; 0: not known */
	u64 at_ns; /* it ran this program then, CLOCK_MONOTONIC; with a parent: it was forked then; 0: not known */
	char comm[COMM_TEXT]; /* empty: it was gone */
	struct modules *modules;
	struct memory *memory;
	struct maps maps;
	struct core_file *core;    /* that it was read from; not owned. NULL: it runs, or ran */
	struct moved_texts *moved; /* NULL: none was looked for yet */
	u64 maps_hash;
	u64 text_hash;              /* maps.text_hash of the last look */
	struct mapping *mappings;   /* for runtimes: the same lines, with images */
	struct process_entry entry; /* what BPF should have */
	u32 regions_size;           /* bytes at entry.regions */
	u32 old_regions, old_size;  /* the array before: freed a generation later, walks may still read it */
	void *own_tables;           /* CFI tables of the runtimes' own rows; private to regions.c */
	struct jit_tables {
		u64 hash;
		struct cfi *cfi;
		u32 *tables;
	} jit, old_jit; /* rows of code that it compiled itself (jit_cfi.h), and those before; private to regions.c */
	struct jit_tables made, old_made; /* its rows */
	u32 generation;                   /* of entry.regions: another one after each change */
	u32 deferred_left;                /* so many walks may still send a copy of their stack */
	u32 deferred_modules;             /* mappings of files when that was last set */
};

/* A hint for when the kernel does not let yrt look into another user's process: what is missing, or who refuses. */
const char *process_remedy(void);

/* Finds out what pid is and fills its regions. ERROR_NO_PROCESS, ERROR_PERMISSION, ERROR_UNSUPPORTED (32-bit, kernel
 * thread). */
struct error *process_create(struct modules *modules, pid_t pid, u32 number, struct process **ret);
/* The same for the program whose stack starts there: if it runs another one by now, that is ERROR_NO_PROCESS. */
struct error *process_create_program(struct modules *modules, pid_t pid, u32 number, u64 stack, struct process **ret);
/* A process that was gone before yrt could look: its native frames still have names, by their modules. */
struct error *process_create_gone(struct modules *modules, pid_t pid, u32 number, struct process **ret);
/*
 * process_core.c: the process of a core file, which must outlive it. Its number is 0, so that nobody takes what runs
 * under its old one for it. What a file of it lacks is complained about.
 */
struct error *process_create_core(struct modules *modules, struct core_file *core, u32 number, struct process **ret);
/* It runs, but /proc does not show it: it is mounted with hidepid, which hides what yrt may not look into. */
bool process_is_hidden(pid_t pid);
/* A kernel thread: it has no user code. */
bool process_in_kernel(pid_t pid);
void process_destroy(struct process *p);

/* Looks at the mappings again. *changed: p->entry is new and is to be handed to BPF. A dead process is no error. */
struct error *process_rescan(struct process *p, bool *changed);
/* Makes p->entry anew from p->maps: its files, its runtimes, its regions. */
struct error *process_renew(struct process *p);
/*
 * The same for a process that has ended, by the mappings of the last look: tables of its files are made now. Memory of
 * runtimes that were not attached to is gone: walks end at their code.
 */
struct error *process_finish(struct process *p);
/* process_recall.c: the same for one that has ended before anybody looked; files: what it had mapped of code. */
struct error *process_recall(struct process *p, const struct maps *files);
/* And for one that was only forked: it had what its parent has. */
struct error *process_inherit(struct process *p, const struct process *parent);
/*
 * A runtime in it is still starting, or tables of its files are made now: look at it again, even if its mappings do not
 * change.
 */
bool process_starting(const struct process *p);
/* The runtimes that it has, or may have once they have started: bit n is id n. */
u32 process_runtimes(const struct process *p);

/* The same process as runtimes see it; valid until the next rescan. */
struct runtime_process process_view(const struct process *p);
/* The mapping that holds addr; NULL: none. */
const struct mapping *process_mapping(const struct process *p, u64 addr);

/* regions.c: builds the array of p from its mappings and runtimes and places it in the arena. */
struct error *regions_build(struct process *p);
void regions_free(struct process *p);
/* Adds files whose tables were made since then; nothing is asked of the process or of its runtimes. */
struct error *regions_add_files(struct process *p);
/* A frame was seen at addr, outside of all files. */
void regions_saw(struct process *p, u64 addr);

#endif
